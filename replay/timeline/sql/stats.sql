-- How each rank's figures compare with its peers', first step left out (it warms up).

CREATE OR REPLACE TEMP TABLE _values (run_id INTEGER, rank INTEGER, name VARCHAR, epoch DOUBLE, step BIGINT, value DOUBLE,
    text VARCHAR, file_id INTEGER, line_no BIGINT, is_first BOOLEAN);

-- @needs metrics
INSERT INTO _values
SELECT run_id, rank, name, epoch, step, value, text, file_id, line_no,
    (file_id, line_no) = min((file_id, line_no)) OVER (PARTITION BY run_id, rank, name)
FROM metrics WHERE rank IS NOT NULL AND (step IS NOT NULL OR epoch IS NOT NULL)
QUALIFY row_number() OVER (PARTITION BY run_id, rank, name, epoch, step ORDER BY file_id DESC, line_no DESC) = 1;

-- Figures of the machine that are no times
CREATE OR REPLACE TEMP TABLE _levels (name VARCHAR, role VARCHAR);

-- @needs _values
INSERT INTO _levels
WITH words AS (
    SELECT name, string_split(replace(replace(replace(lower(name), '.', '_'), '/', '_'), '-', '_'), '_') AS w
    FROM (SELECT DISTINCT name FROM _values)
)
SELECT name, CASE
        WHEN list_has_any(w, ['clock', 'clocks', 'mhz', 'sclk', 'smclk']) THEN 'clock'
        WHEN list_has_any(w, ['mem', 'memory', 'rss', 'allocated', 'reserved', 'alloc', 'vram', 'mb', 'mib', 'gb', 'gib'])
            AND NOT list_has_any(w, ['s', 'ms', 'sec', 'per', 'bandwidth', 'bw', 'free', 'available']) THEN 'memory' END AS role
FROM words WHERE role IS NOT NULL;

-- The median of the others: take one value out of a sorted row, the middle of the rest is one or two of its neighbours
-- @needs _values
INSERT INTO rank_stats (
    run_id, rank, name, n, median, lo, hi, first, last, peers_median, share_above, share_slow, role, lead_s, lead_share, warmup, rising,
    slope, file_id, line_no)
WITH finite AS (
    SELECT * FROM _values WHERE value IS NOT NULL AND isfinite(value) AND NOT is_first AND step IS NOT NULL
), placed AS (
    SELECT run_id, name, epoch, step, rank, value,
        row_number() OVER w AS pos, count(*) OVER (PARTITION BY run_id, name, epoch, step) AS n
    FROM finite WINDOW w AS (PARTITION BY run_id, name, epoch, step ORDER BY value, rank)
), wanted AS (
    SELECT *, n // 2 + (n // 2 >= pos)::INTEGER AS lower, (n + 1) // 2 + ((n + 1) // 2 >= pos)::INTEGER AS upper
    FROM placed WHERE n > 1
), compared AS (
    SELECT w.run_id, w.name, w.rank, avg((w.value > a.value + b.value AND w.value > 0)::INTEGER) AS share_above,
        avg((w.value > 0.6 * (a.value + b.value) AND w.value > 0)::INTEGER) AS share_slow
    FROM wanted AS w
    JOIN placed AS a ON a.run_id = w.run_id AND a.name = w.name AND a.epoch IS NOT DISTINCT FROM w.epoch AND a.step = w.step AND a.pos = w.upper
    JOIN placed AS b ON b.run_id = w.run_id AND b.name = w.name AND b.epoch IS NOT DISTINCT FROM w.epoch AND b.step = w.step AND b.pos = w.lower
    GROUP BY ALL
), own AS (
    SELECT run_id, rank, name, count(*)::INTEGER AS n, median(value) AS median, min(value) AS lo, max(value) AS hi,
        arg_min(value, {'f': file_id, 'l': line_no}) AS first, arg_max(value, {'f': file_id, 'l': line_no}) AS last,
        regr_slope(value, step ORDER BY step, file_id, line_no) AS slope, arg_max({'f': file_id, 'l': line_no}, (value, -line_no)) AS place
    FROM finite GROUP BY ALL
), before AS (
    SELECT run_id, rank, name, is_first, value, value > lag(value) OVER (PARTITION BY run_id, rank, name ORDER BY file_id, line_no) AS is_more
    FROM _values WHERE value IS NOT NULL AND isfinite(value) AND step IS NOT NULL
), rises AS (
    SELECT run_id, rank, name, any_value(value) FILTER (is_first) AS warmup, avg(is_more::INTEGER) AS rising FROM before GROUP BY ALL
), typical AS (
    SELECT run_id, median(duration_s) AS seconds FROM steps GROUP BY run_id
), medians AS (
    SELECT run_id, name, rank, median, row_number() OVER w AS pos, count(*) OVER (PARTITION BY run_id, name) AS n
    FROM own WINDOW w AS (PARTITION BY run_id, name ORDER BY median, rank)
), peers AS (
    SELECT m.run_id, m.name, m.rank, (a.median + b.median) / 2 AS median
    FROM medians AS m
    JOIN medians AS a ON a.run_id = m.run_id AND a.name = m.name AND a.pos = m.n // 2 + (m.n // 2 >= m.pos)::INTEGER
    JOIN medians AS b ON b.run_id = m.run_id AND b.name = m.name AND b.pos = (m.n + 1) // 2 + ((m.n + 1) // 2 >= m.pos)::INTEGER
)
SELECT o.run_id, o.rank, o.name, o.n, o.median, o.lo, o.hi, o.first, o.last, p.median, c.share_above, c.share_slow,
    coalesce(r.role, k.role), IF(r.is_rate, NULL, (o.median - p.median) * r.scale),
    IF(r.is_rate, NULL, (o.median - p.median) * r.scale) / nullif(t.seconds, 0), w.warmup, w.rising, o.slope, o.place.f, o.place.l
FROM own AS o
LEFT JOIN peers AS p USING (run_id, name, rank)
LEFT JOIN compared AS c USING (run_id, name, rank)
LEFT JOIN rises AS w USING (run_id, name, rank)
LEFT JOIN _roles AS r USING (name)
LEFT JOIN _levels AS k USING (name)
LEFT JOIN typical AS t USING (run_id)
ORDER BY o.run_id, o.name, o.rank
