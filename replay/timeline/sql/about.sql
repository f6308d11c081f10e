-- What a divergence is about, and whether what parted stayed apart: rules ask for the meaning of a name, not for names.

-- Of "candidate.training" the part behind the side; "checksum.layers.0.wq" is a figure and stays whole
CREATE OR REPLACE TEMP TABLE _told AS
SELECT DISTINCT name, kind, coalesce(value, '') AS value, coalesce(other_value, '') AS other_value,
    string_split(translate(lower(IF(kind = 'setting' AND contains(name, '.'), substr(name, position('.' IN name) + 1), name)), './-() ', '______'), '_') AS w,
    string_split(replace(replace(lower(concat_ws('+', value, other_value)), 'torch.', ''), '_', '+'), '+') AS v
FROM divergences;

-- @needs divergences _told
UPDATE divergences SET about = a.about
FROM (
    SELECT name, kind, value, other_value, CASE
        WHEN kind IN ('graph', 'kernel', 'package') THEN kind
        WHEN kind = 'order' OR list_has_any(w, ['order', 'shuffle', 'hashseed', 'pythonhashseed', 'indices'])
            OR (list_has_any(w, ['sample', 'samples', 'data', 'batch', 'batches', 'shard', 'input', 'inputs', 'tokens', 'x'])
                AND list_has_any(w, ['id', 'ids', 'idx', 'index', 'hash', 'digest', 'checksum', 'crc', 'md5', 'sha', 'fingerprint'])) THEN 'order'
        WHEN list_has_any(w, ['seed', 'seeds', 'manualseed']) THEN 'seed'
        WHEN list_has_any(w, ['random', 'rng', 'noise', 'mask', 'dropout', 'droprate', 'drop', 'rand']) THEN 'random'
        WHEN list_has_any(w, ['dtype', 'precision', 'amp', 'autocast', 'bf16', 'fp16', 'fp32', 'fp8', 'tf32', 'float16', 'bfloat16', 'half', 'matmul'])
            OR list_has_any(v, ['float16', 'bfloat16', 'float32', 'float64', 'bf16', 'fp16', 'fp32', 'fp8', 'tf32', 'half']) THEN 'precision'
        WHEN list_has_any(w, ['compile', 'compiled', 'compiler', 'inductor', 'dynamo', 'torchcompile'])
            OR (list_has_any(w, ['mode', 'backend', 'engine', 'impl', 'executor', 'variant', 'run'])
                AND list_has_any(v, ['eager', 'inductor', 'compile', 'compiled', 'aot', 'dynamo'])) THEN 'compile'
        WHEN list_has_any(w, ['loss', 'ppl', 'perplexity', 'nll', 'acc', 'accuracy', 'logits', 'score', 'diff', 'allclose']) THEN 'loss'
        WHEN list_has_any(w, ['training', 'eval', 'train']) AND (list_has_any(v, ['true', 'false', 'train', 'eval']) OR (kind = 'setting' AND list_has_any(v, ['0', '1'])))
            OR (list_contains(w, 'mode') AND list_has_any(v, ['train', 'eval'])) THEN 'mode'
        WHEN list_has_any(w, ['attn', 'attention', 'sdpa', 'flash', 'fused', 'cudnn', 'deterministic', 'benchmark', 'algo', 'kernel', 'kernels', 'foreach',
            'liger', 'triton']) THEN 'kernel'
        WHEN list_has_any(w, ['lr', 'decay', 'momentum', 'beta1', 'beta2', 'eps', 'warmup', 'clip', 'accum', 'steps', 'epochs', 'wd']) THEN 'hyper'
        WHEN list_has_any(w, ['grad', 'grads', 'gradient', 'gradients']) THEN 'gradient'
        WHEN list_has_any(w, ['shape', 'size', 'sizes', 'numel', 'seqlen', 'batch']) OR value LIKE '(%,%' OR value LIKE 'torch.Size%' THEN 'shape'
        WHEN list_has_any(w, ['param', 'params', 'parameter', 'parameters', 'weight', 'weights', 'bias', 'checksum', 'digest', 'fingerprint', 'crc', 'md5',
            'hash', 'model', 'state']) THEN 'parameter'
        ELSE 'other' END AS about
    FROM _told
) AS a
WHERE a.name = divergences.name AND a.kind = divergences.kind AND a.value = coalesce(divergences.value, '')
    AND a.other_value = coalesce(divergences.other_value, '');

-- @needs divergences metrics
UPDATE divergences SET share_apart = s.share
FROM (
    WITH places AS (
        SELECT d.run_id, d.name, m.epoch, m.step, count(DISTINCT m.text) AS texts, count(DISTINCT m.rank) AS ranks,
            min((m.file_id, m.line_no)) AS place, max(m.value) - min(m.value) AS spread, max(abs(m.value)) AS size
        FROM divergences AS d JOIN metrics AS m ON m.run_id = d.run_id AND m.name = d.name
        WHERE d.other_run IS NULL AND d.kind = 'metric' AND m.rank IS NOT NULL AND m.step IS NOT NULL AND m.step >= coalesce(d.step, m.step)
        GROUP BY ALL
    )
    SELECT run_id, name, avg((texts > 1 AND coalesce(spread > 1e-5 * size, TRUE))::INTEGER) AS share FROM places WHERE ranks > 1 GROUP BY ALL
) AS s
WHERE divergences.other_run IS NULL AND divergences.kind = 'metric' AND s.run_id = divergences.run_id AND s.name = divergences.name;

-- @needs divergences metrics
UPDATE divergences SET share_apart = s.share
FROM (
    SELECT d.run_id, d.other_run, d.name,
        avg(IF(a.value IS NULL OR b.value IS NULL, a.text <> b.text, abs(a.value - b.value) > 1e-6 * greatest(abs(a.value), abs(b.value)))::INTEGER) AS share
    FROM divergences AS d
    JOIN metrics AS b ON b.run_id = d.run_id AND b.name = d.name
    JOIN metrics AS a ON a.run_id = d.other_run AND a.name = d.name AND a.rank IS NOT DISTINCT FROM b.rank AND a.step = b.step
        AND a.epoch IS NOT DISTINCT FROM b.epoch
    WHERE d.other_run IS NOT NULL AND d.kind IN ('metric', 'order') AND b.step >= coalesce(d.step, b.step)
    GROUP BY ALL
) AS s
WHERE s.run_id = divergences.run_id AND s.other_run = divergences.other_run AND s.name = divergences.name
