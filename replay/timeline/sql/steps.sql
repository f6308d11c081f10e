-- Steps of ranks, and what each rank did in them as far as figures tell.

-- What figures of a step mean: own work, loading of data, work that contains a collective, the whole step; `scale` is seconds
CREATE OR REPLACE TEMP TABLE _roles (name VARCHAR, role VARCHAR, scale DOUBLE, is_rate BOOLEAN);

-- @needs metrics
INSERT INTO _roles
WITH words AS (
    SELECT name, string_split(replace(replace(replace(lower(name), '.', '_'), '/', '_'), '-', '_'), '_') AS w
    FROM (SELECT DISTINCT name FROM metrics WHERE value IS NOT NULL)
), phases AS (
    -- "Time 0.360 Data 0.350": a part without unit beside the time of its step, and never longer than it, is in its unit
    SELECT part.name FROM metrics AS part JOIN metrics AS whole USING (file_id, line_no)
    WHERE whole.name IN ('time', 'batch_time')
        AND part.name IN ('data', 'load', 'loading', 'forward', 'fwd', 'backward', 'bwd', 'compute', 'comm', 'sync')
    GROUP BY ALL HAVING bool_and(part.value <= whole.value)
), timed AS (
    SELECT name, w, CASE
            WHEN name IN (FROM phases) THEN 1.0
            WHEN list_has_any(w, ['ms', 'millis', 'milliseconds']) THEN 0.001
            WHEN list_has_any(w, ['us', 'microseconds']) THEN 0.000001
            WHEN list_has_any(w, ['s', 'sec', 'secs', 'seconds', 'time', 'dt', 'duration', 'elapsed']) THEN 1.0 END AS scale
    FROM words
)
SELECT name, role, scale, is_rate FROM (SELECT name, CASE
        WHEN list_has_any(w, ['bwd', 'backward', 'fwdbwd', 'fwbw', 'allreduce', 'reduce', 'sync', 'comm', 'comms', 'communication',
            'wait', 'waiting', 'waited', 'barrier', 'collective', 'collectives', 'nccl', 'gather', 'allgather']) THEN 'wait'
        WHEN list_has_any(w, ['data', 'dataload', 'dataloader', 'dataloading', 'load', 'loader', 'loading', 'fetch', 'io',
            'read', 'input', 'decode']) THEN 'data'
        WHEN list_has_any(w, ['fwd', 'forward', 'fw', 'compute', 'feat', 'feature', 'features', 'opt', 'optim', 'optimizer',
            'prep', 'preprocess', 'tokenize', 'augment', 'host', 'cpu', 'h2d', 'model', 'work']) THEN 'own'
        WHEN len(list_filter(w, lambda x: x NOT IN ('step', 'steps', 'iter', 'iteration', 'it', 'time', 'dt', 'ms', 's', 'sec', 'secs',
            'seconds', 'per', 'total', 'duration', 'batch', 'train', 'elapsed', 'us', 'avg', ''))) = 0
            AND (NOT list_contains(w, 'elapsed') OR list_contains(w, 'per')) THEN 'total' END AS role,
    scale, len(w) > 2 AND w[-2] = 'per' AND w[-1] IN ('s', 'sec', 'second') AS is_rate
FROM timed WHERE scale IS NOT NULL) WHERE role IS NOT NULL;

CREATE OR REPLACE TEMP TABLE _steps (run_id INTEGER, rank INTEGER, epoch DOUBLE, step BIGINT, file_id INTEGER,
    line_no BIGINT, t_before DOUBLE, t DOUBLE, step_before BIGINT, line_before BIGINT, file_before INTEGER, own DOUBLE, data DOUBLE, wait DOUBLE, total DOUBLE);

-- One row a step and rank: of several lines that tell one step the one with the most figures, then the last
-- @needs step_lines
INSERT INTO _steps
WITH figures AS (
    SELECT m.file_id, m.line_no,
        sum(m.value * r.scale) FILTER (r.role = 'own') AS own,
        sum(m.value * r.scale) FILTER (r.role = 'data') AS data,
        sum(m.value * r.scale) FILTER (r.role = 'wait') AS wait,
        max(IF(r.is_rate, 1 / nullif(m.value, 0), m.value * r.scale)) FILTER (r.role = 'total') AS total,
        count(*) AS n
    FROM metrics AS m JOIN _roles AS r USING (name)
    WHERE m.value IS NOT NULL AND isfinite(m.value)
    GROUP BY ALL
), told AS (
    SELECT s.run_id, s.rank, s.epoch, s.step, s.file_id, s.line_no, IF(s.t_lo = s.t_hi, s.t_hi, NULL) AS t,
        f.own, f.data,
        -- What is left of a step of which only the parts without a collective were told holds the collectives
        coalesce(f.wait, IF(coalesce(f.own, f.data) IS NULL, NULL, greatest(f.total - coalesce(f.own, 0) - coalesce(f.data, 0), 0))) AS wait,
        f.total
    FROM step_lines AS s LEFT JOIN figures AS f USING (file_id, line_no)
    WHERE s.step IS NOT NULL AND s.phase IS DISTINCT FROM 'eval'
    QUALIFY row_number() OVER (
        PARTITION BY s.run_id, s.rank, s.epoch, s.step ORDER BY coalesce(f.n, 0) DESC, s.file_id DESC, s.line_no DESC) = 1
)
SELECT run_id, rank, epoch, step, file_id, line_no, lag(t) OVER w, t, lag(step) OVER w, lag(line_no) OVER w, lag(file_id) OVER w,
    own, data, wait, total
FROM told
WINDOW w AS (PARTITION BY run_id, rank ORDER BY file_id, line_no);

-- Waiting: ranks that enter a collective leave it together, so what one spends in it beyond the last to enter is waiting.
-- Steps in which all spent alike tell nothing; else the last spends next to nothing, unless it worked there too (a compile of
-- the backward pass), so its own usual share is the ground. Of several that waited as little, the last is who was busy outside of what
-- the figures tell: a forward pass that took long may have waited for it too (tensor-parallel groups).
CREATE OR REPLACE TEMP TABLE _waits AS
WITH numbered AS (
    SELECT *, row_number() OVER (PARTITION BY run_id, rank ORDER BY file_id, line_no) = 1 AS is_first,
        IF(step = step_before + 1, greatest(t - t_before - greatest(coalesce(own, 0) + coalesce(data, 0) + wait, coalesce(total, 0)), 0), NULL) AS untold,
        min(wait) OVER s AS low, max(wait) OVER s AS high
    FROM _steps WINDOW s AS (PARTITION BY run_id, epoch, step)
), usual AS (
    SELECT run_id, rank, median(wait) AS wait FROM numbered WHERE NOT is_first AND wait IS NOT NULL GROUP BY ALL
), crowd AS (
    SELECT run_id, epoch, step, count(wait) AS n, min(wait) AS low, max(wait) AS high, bool_or(is_first) AS is_first,
        arg_min(rank, (wait > low + 0.1 * (high - low), IF(untold >= 0.5 * (high - low), -untold, 0), wait, -coalesce(own, 0) - coalesce(data, 0), rank))
            FILTER (wait IS NOT NULL) AS late
    FROM numbered GROUP BY ALL
)
SELECT s.run_id, s.rank, s.epoch, s.step, c.n, c.late, c.is_first, c.high - c.low AS spread,
    CASE WHEN c.n < 2 OR s.wait IS NULL THEN NULL
        WHEN s.rank = c.late THEN 0
        WHEN c.high - c.low < 0.3 * c.high THEN s.wait - c.low
        ELSE s.wait - least(c.low, coalesce(u.wait, c.low)) END AS wait_s
FROM numbered AS s
JOIN crowd AS c ON c.run_id = s.run_id AND c.epoch IS NOT DISTINCT FROM s.epoch AND c.step = s.step
LEFT JOIN usual AS u ON u.run_id = s.run_id AND u.rank = s.rank
WHERE s.rank IS NOT NULL;

-- @needs step_lines
INSERT INTO steps (
    run_id, rank, step, epoch, t_lo, t_hi, duration_s, own_s, wait_s, file_id, line_no)
SELECT s.run_id, s.rank, s.step, s.epoch, s.t_before, s.t,
    round(coalesce(s.total, (s.t - s.t_before) / IF(s.step > s.step_before, s.step - s.step_before, 1)), 6),
    round(coalesce(s.own, 0) + coalesce(s.data, 0) + IF(coalesce(s.own, s.data, w.wait_s) IS NULL, NULL, coalesce(s.wait - w.wait_s, 0)), 6),
    round(w.wait_s, 6), s.file_id, s.line_no
FROM _steps AS s
LEFT JOIN _waits AS w ON w.run_id = s.run_id AND w.rank = s.rank AND w.epoch IS NOT DISTINCT FROM s.epoch AND w.step = s.step
ORDER BY s.run_id, s.rank, s.file_id, s.line_no
