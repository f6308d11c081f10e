-- Where ranks of one run, or two runs in one folder, do not agree although they ought to.

-- Names by what they are: times and rates differ always, ids of samples by rank
CREATE OR REPLACE TEMP TABLE _names (name VARCHAR, is_time BOOLEAN, is_data BOOLEAN, is_replica BOOLEAN);

-- @needs metrics
INSERT INTO _names
WITH words AS (
    SELECT name, string_split(replace(replace(replace(replace(replace(lower(name), '.', '_'), '/', '_'), '-', '_'), '(', '_'), ')', '_'), '_') AS w
    FROM (SELECT DISTINCT name FROM metrics)
)
SELECT name,
    list_has_any(w, ['ms', 'us', 's', 'sec', 'secs', 'seconds', 'time', 'dt', 'duration', 'elapsed', 'eta', 'per', 'tps', 'mfu', 'throughput',
        'mb', 'gb', 'mib', 'gib', 'memory', 'mem', 'rss', 'bandwidth', 'bw', 'speed', 'wps', 'tflops', 'flops', 'tgs']),
    list_has_any(w, ['ids', 'id', 'idx', 'indices', 'index', 'sample', 'samples', 'data', 'shard', 'shards', 'file', 'files', 'batch', 'order', 'tokens']),
    list_has_any(w, ['param', 'params', 'parameter', 'parameters', 'weight', 'weights', 'checksum', 'digest', 'fingerprint', 'crc', 'md5',
        'seed', 'lr', 'norm', 'dtype', 'precision', 'model'])
FROM words;

-- ---- ranks of one run

-- Figures that are the same on all ranks when all is well: what is told of the model, texts, shapes, and whatever agreed at
-- first. Without a majority the lowest rank is the reference, unless there are more than two sides.
-- @needs metrics
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH told AS (
    SELECT m.run_id, m.name, m.epoch, m.step, m.rank, m.value, m.text, m.file_id, m.line_no, n.is_replica
    FROM metrics AS m JOIN _names AS n USING (name)
    WHERE m.rank IS NOT NULL AND NOT n.is_time AND (NOT n.is_data OR m.text LIKE '(%,%' OR m.text LIKE 'torch.Size%')
    QUALIFY row_number() OVER (PARTITION BY m.run_id, m.name, m.epoch, m.step, m.rank ORDER BY m.file_id DESC, m.line_no DESC) = 1
), spread AS (
    SELECT run_id, name, epoch, step, count(*) AS n, any_value(is_replica) AS is_replica, bool_or(value IS NULL) AS is_text,
        IF(bool_or(value IS NULL), IF(count(DISTINCT text) > 1, 1, 0),
            coalesce((max(value) - min(value)) / nullif(greatest(abs(max(value)), abs(min(value))), 0), 0)) AS rel,
        count(DISTINCT isnan(coalesce(value, 0))) > 1 AS nan_differs, min((file_id, line_no)) AS place
    FROM told GROUP BY ALL HAVING count(*) > 1
), parted AS (
    SELECT run_id, name, arg_min({'epoch': epoch, 'step': step}, place) FILTER (rel > 1e-5 OR nan_differs) AS at_step,
        min(place) FILTER (rel > 1e-5 OR nan_differs) AS place, arg_min(rel, place) FILTER (rel > 1e-5 OR nan_differs) AS rel, max(rel) AS rel_max,
        any_value(is_replica) AS is_replica, bool_or(is_text) AS is_text
    FROM spread GROUP BY ALL HAVING count(*) FILTER (rel > 1e-5 OR nan_differs) > 0
), agreed AS (
    SELECT p.run_id, p.name, count(*) AS steps FROM parted AS p JOIN spread AS s USING (run_id, name) WHERE s.place < p.place GROUP BY ALL
), chosen AS (
    SELECT p.*, coalesce(a.steps, 0) AS steps FROM parted AS p LEFT JOIN agreed AS a USING (run_id, name)
    WHERE p.is_replica OR p.is_text OR coalesce(a.steps, 0) >= 2
), groups AS (
    SELECT c.run_id, c.name, t.text, count(*) AS n, list(t.rank ORDER BY t.rank) AS ranks, min(t.rank) AS low,
        arg_min({'f': t.file_id, 'l': t.line_no}, t.rank) AS place
    FROM chosen AS c JOIN told AS t ON t.run_id = c.run_id AND t.name = c.name AND t.epoch IS NOT DISTINCT FROM c.at_step.epoch
        AND t.step IS NOT DISTINCT FROM c.at_step.step
    GROUP BY ALL
), sides AS (
    SELECT run_id, name, max(n) AS most, sum(n) AS total, count(*) AS sides, arg_min(text, (-n, low)) AS majority, arg_min(place, (-n, low)) AS place
    FROM groups GROUP BY ALL
), odd AS (
    SELECT g.run_id, g.name, list_sort(flatten(list(g.ranks))) AS ranks, arg_min(g.text, (-g.n, g.low)) AS text, arg_min(g.place, (-g.n, g.low)) AS place
    FROM groups AS g JOIN sides AS s USING (run_id, name) WHERE g.text <> s.majority GROUP BY ALL
)
SELECT c.run_id, NULL, c.name, 'metric', c.at_step.step, IF(s.most * 2 > s.total OR s.sides = 2, o.ranks, []), o.text, s.majority, c.rel, c.rel_max, c.steps::INTEGER,
    o.place.f, o.place.l, s.place.f, s.place.l
FROM chosen AS c JOIN sides AS s USING (run_id, name) JOIN odd AS o USING (run_id, name)
ORDER BY c.run_id, c.place, c.name;

-- Settings and versions that ranks told
CREATE OR REPLACE TEMP TABLE _settings AS
SELECT run_id, rank, name, kind, string_agg(DISTINCT value, ', ' ORDER BY value) AS value, min({'f': file_id, 'l': line_no}) AS place
FROM (
    SELECT run_id, rank, name, 'setting' AS kind, value, file_id, line_no FROM env
    UNION ALL SELECT run_id, rank, name, 'package', version, file_id, line_no FROM packages
)
WHERE run_id IS NOT NULL AND name IS NOT NULL AND value IS NOT NULL
GROUP BY run_id, rank, name, kind;

-- @needs _settings
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH groups AS (
    SELECT run_id, name, kind, value, count(*) AS n, list(rank ORDER BY rank) AS ranks, min(rank) AS low, arg_min(place, rank) AS place
    FROM _settings
    WHERE rank IS NOT NULL AND NOT regexp_matches(lower(name), '(^|[_.])(local_)?rank$|^(pid|host|hostname|device|gpu|port|cuda_visible_devices|ip|node|stage)$')
    GROUP BY ALL
), sides AS (
    SELECT run_id, name, kind, max(n) AS most, sum(n) AS total, count(*) AS sides, arg_min(value, (-n, low)) AS majority, arg_min(place, (-n, low)) AS place
    FROM groups GROUP BY ALL HAVING count(*) > 1
), odd AS (
    SELECT g.run_id, g.name, g.kind, list_sort(flatten(list(g.ranks))) AS ranks, arg_min(g.value, (-g.n, g.low)) AS value, arg_min(g.place, (-g.n, g.low)) AS place
    FROM groups AS g JOIN sides AS s USING (run_id, name, kind) WHERE g.value <> s.majority GROUP BY ALL
)
SELECT s.run_id, NULL, s.name, s.kind, NULL, IF(s.most * 2 > s.total OR s.sides = 2, o.ranks, []), o.value, s.majority, NULL, NULL, NULL,
    o.place.f, o.place.l, s.place.f, s.place.l
FROM sides AS s JOIN odd AS o USING (run_id, name, kind)
ORDER BY s.run_id, s.kind, s.name;

-- Two sides that one log describes: "reference: dtype=... training=..." and "candidate: dtype=... training=..."
-- @needs env
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH told AS (
    SELECT run_id, rank, left(name, position('.' IN name) - 1) AS side, substr(name, position('.' IN name) + 1) AS name, value, file_id, line_no
    FROM env WHERE origin = 'app' AND name LIKE '%.%'
    UNION ALL
    SELECT run_id, rank, left(name, position('.' IN name) - 1), substr(name, position('.' IN name) + 1), text, file_id, line_no
    FROM metrics WHERE step IS NULL AND epoch IS NULL AND name LIKE '%.%'
), sides AS (
    SELECT run_id, rank, side, list(DISTINCT name) AS names, min({'f': file_id, 'l': line_no}) AS place FROM told GROUP BY ALL
), twos AS (
    SELECT a.run_id, a.rank, a.side AS first, b.side AS second
    FROM sides AS a JOIN sides AS b ON b.run_id = a.run_id AND b.rank IS NOT DISTINCT FROM a.rank AND b.place > a.place
    WHERE len(list_intersect(a.names, b.names)) >= 2
)
SELECT DISTINCT ON (t.run_id, b.side, b.name) t.run_id, NULL, b.side || '.' || b.name, 'setting', NULL, []::INTEGER[], b.value, a.value, NULL, NULL, NULL,
    b.file_id, b.line_no, a.file_id, a.line_no
FROM twos AS t
JOIN told AS a ON a.run_id = t.run_id AND a.rank IS NOT DISTINCT FROM t.rank AND a.side = t.first
JOIN told AS b ON b.run_id = t.run_id AND b.rank IS NOT DISTINCT FROM t.rank AND b.side = t.second AND b.name = a.name AND b.value <> a.value
ORDER BY t.run_id, b.side, b.name, b.file_id, b.line_no, a.line_no;

-- Graphs of one compile id that differ by rank
-- @needs graphs
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH calls AS (
    SELECT file_id, graph_line AS line_no, string_agg(op, ' ' ORDER BY nth) AS ops FROM graph_ops GROUP BY ALL
), told AS (
    SELECT run_id, rank, concat_ws(' ', kind, compile_id) AS name, string_agg(digest, ' ' ORDER BY file_id, line_no) AS value,
        string_agg(coalesce(c.ops, g.ops::VARCHAR), ';' ORDER BY file_id, line_no) AS ops, min({'f': file_id, 'l': line_no}) AS place
    FROM (SELECT DISTINCT ON (run_id, rank, kind, compile_id, digest) * FROM graphs WHERE rank IS NOT NULL AND digest IS NOT NULL
        ORDER BY run_id, rank, kind, compile_id, digest, file_id, line_no) AS g
    LEFT JOIN calls AS c USING (file_id, line_no)
    GROUP BY ALL
), groups AS (
    SELECT run_id, name, value, any_value(ops) AS ops, count(*) AS n, list(rank ORDER BY rank) AS ranks, min(rank) AS low, arg_min(place, rank) AS place
    FROM told GROUP BY run_id, name, value
), sides AS (
    SELECT run_id, name, max(n) AS most, sum(n) AS total, count(*) AS sides, arg_min(value, (-n, low)) AS majority, arg_min(ops, (-n, low)) AS ops,
        arg_min(place, (-n, low)) AS place
    FROM groups GROUP BY ALL HAVING count(*) > 1
), odd AS (
    SELECT g.run_id, g.name, list_sort(flatten(list(g.ranks))) AS ranks, arg_min(g.value, (-g.n, g.low)) AS value,
        arg_min(g.ops, (-g.n, g.low)) AS ops, arg_min(g.place, (-g.n, g.low)) AS place
    FROM groups AS g JOIN sides AS s USING (run_id, name) WHERE g.value <> s.majority GROUP BY ALL
)
SELECT s.run_id, NULL, s.name, 'graph', NULL, IF(s.most * 2 > s.total OR s.sides = 2, o.ranks, []), o.value, s.majority,
    IF(s.ops IS DISTINCT FROM o.ops, 1, 0), NULL, NULL,
    o.place.f, o.place.l, s.place.f, s.place.l
FROM sides AS s JOIN odd AS o USING (run_id, name)
ORDER BY s.run_id, s.name;

-- ---- runs in one folder, each with the first; attempts of one job go on where the last one failed and are not compared
CREATE OR REPLACE TEMP TABLE _pairs AS
SELECT b.run_id, a.run_id AS other_run
FROM runs AS a JOIN runs AS b ON b.run_id > a.run_id
WHERE a.run_id = (SELECT min(run_id) FROM runs)
    AND (split_part(coalesce(a.key, ''), '/', 1) <> split_part(coalesce(b.key, ''), '/', 1) OR coalesce(a.name, '') LIKE '%=%')
    AND coalesce(split_part(b.key, '/', 1), '') NOT LIKE 'attempt\_%' ESCAPE '\';

-- @needs _pairs metrics
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH told AS (
    SELECT m.run_id, coalesce(m.rank, -1) AS rank, m.name, m.epoch, m.step, m.value, m.text, m.file_id, m.line_no, n.is_data,
        row_number() OVER (PARTITION BY m.run_id, m.rank, m.name, m.epoch, m.step ORDER BY m.file_id, m.line_no) AS k
    FROM metrics AS m JOIN _names AS n USING (name) WHERE NOT n.is_time
), compared AS (
    SELECT p.run_id, p.other_run, b.name, b.rank, b.step, b.text AS value, a.text AS other_value, b.is_data AND b.value IS NULL AS is_order,
        IF(b.value IS NULL OR a.value IS NULL OR isnan(a.value) OR isnan(b.value), IF(a.text <> b.text, 1, 0),
            coalesce(abs(a.value - b.value) / nullif(greatest(abs(a.value), abs(b.value)), 0), 0)) AS rel,
        {'f': b.file_id, 'l': b.line_no} AS place, {'f': a.file_id, 'l': a.line_no} AS other_place
    FROM _pairs AS p JOIN told AS b ON b.run_id = p.run_id
    JOIN told AS a ON a.run_id = p.other_run AND a.rank = b.rank AND a.name = b.name AND a.k = b.k
        AND a.step IS NOT DISTINCT FROM b.step AND a.epoch IS NOT DISTINCT FROM b.epoch
), firsts AS (
    SELECT run_id, other_run, name, any_value(is_order) AS is_order, max(rel) AS rel_max,
        arg_min({'step': step, 'value': value, 'other': other_value, 'rel': rel, 'place': place, 'other_place': other_place}, (place, rank)) FILTER (rel > 0) AS x
    FROM compared GROUP BY ALL HAVING max(rel) > 1e-6
), agreed AS (
    SELECT f.run_id, f.other_run, f.name, count(DISTINCT c.step) AS steps
    FROM firsts AS f JOIN compared AS c USING (run_id, other_run, name) WHERE c.step < f.x.step GROUP BY ALL
)
SELECT f.run_id, f.other_run, f.name, IF(f.is_order, 'order', 'metric'), f.x.step, []::INTEGER[], f.x.value, f.x.other, f.x.rel, f.rel_max,
    coalesce(a.steps, 0)::INTEGER, f.x.place.f, f.x.place.l, f.x.other_place.f, f.x.other_place.l
FROM firsts AS f LEFT JOIN agreed AS a USING (run_id, other_run, name)
ORDER BY f.run_id, f.other_run, f.x.step NULLS FIRST, f.name;

-- @needs _pairs _settings
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH told AS (
    SELECT run_id, name, kind, string_agg(DISTINCT value, ', ' ORDER BY value) AS value, min(place) AS place FROM _settings GROUP BY ALL
)
SELECT p.run_id, p.other_run, coalesce(b.name, a.name), coalesce(b.kind, a.kind), NULL, []::INTEGER[], b.value, a.value, NULL, NULL, NULL,
    b.place.f, b.place.l, a.place.f, a.place.l
FROM _pairs AS p
JOIN told AS b ON b.run_id = p.run_id
JOIN told AS a ON a.run_id = p.other_run AND a.name = b.name AND a.kind = b.kind
WHERE a.value <> b.value
ORDER BY p.run_id, p.other_run, b.kind, b.name;

-- @needs _pairs graphs
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no,
    other_file, other_line)
WITH told AS (
    SELECT run_id, concat_ws(' ', kind, compile_id) AS name, string_agg(DISTINCT digest, ' ' ORDER BY digest) AS value, min({'f': file_id, 'l': line_no}) AS place
    FROM graphs WHERE digest IS NOT NULL GROUP BY ALL
)
SELECT p.run_id, p.other_run, b.name, 'graph', NULL, []::INTEGER[], b.value, a.value, NULL, NULL, NULL, b.place.f, b.place.l, a.place.f, a.place.l
FROM _pairs AS p JOIN told AS b ON b.run_id = p.run_id JOIN told AS a ON a.run_id = p.other_run AND a.name = b.name
WHERE a.value <> b.value
ORDER BY p.run_id, p.other_run, b.name
