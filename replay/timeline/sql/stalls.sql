-- Who waited for whom. A step is a stall where most ranks spent a good while in a collective and one did not.

-- When a rank was compiling: compiles that overlap are one
CREATE OR REPLACE TEMP TABLE _compiling (run_id INTEGER, rank INTEGER, file_id INTEGER, line_no BIGINT, t DOUBLE, t_end DOUBLE,
    seconds DOUBLE, is_again BOOLEAN, is_open BOOLEAN);

-- @needs compiles
INSERT INTO _compiling
WITH spans AS (
    SELECT run_id, rank, file_id, line_no, t_lo AS t, coalesce(end_hi, t_lo + duration_s, t_hi, t_lo) AS t_end, coalesce(duration_s, end_hi - t_lo, 0) AS seconds,
        coalesce(is_recompile, FALSE) AS is_again, coalesce(duration_s, end_hi) IS NULL AS is_open
    FROM compiles WHERE rank IS NOT NULL
), marked AS (
    SELECT *, coalesce(t > max(t_end) OVER (PARTITION BY run_id, rank ORDER BY t, t_end DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TRUE) AS begins
    FROM spans WHERE t IS NOT NULL
), grouped AS (
    SELECT *, sum(begins::INTEGER) OVER (PARTITION BY run_id, rank ORDER BY t, t_end DESC, file_id, line_no) AS island FROM marked
)
SELECT run_id, rank, min({'f': file_id, 'l': line_no}).f, min({'f': file_id, 'l': line_no}).l, min(t), max(t_end),
    greatest(max(t_end) - min(t), max(seconds)), bool_or(is_again), bool_or(is_open)
FROM grouped GROUP BY run_id, rank, island
UNION ALL
SELECT run_id, rank, file_id, line_no, NULL, NULL, seconds, is_again, is_open FROM spans WHERE t IS NULL;

-- Seconds of compiling in each step of each rank, by time, or by place in the file where there are no stamps; a compile whose
-- end was not logged took no longer than its step
CREATE OR REPLACE TEMP TABLE _compiled (run_id INTEGER, rank INTEGER, epoch DOUBLE, step BIGINT, seconds DOUBLE,
    file_id INTEGER, line_no BIGINT, is_again BOOLEAN);

-- @needs compiles step_lines
INSERT INTO _compiled
SELECT s.run_id, s.rank, s.epoch, s.step,
    greatest(sum(c.seconds), IF(bool_or(c.is_open), coalesce(any_value(s.total), any_value(s.t - s.t_before), 0), 0)),
    min({'f': c.file_id, 'l': c.line_no}).f, min({'f': c.file_id, 'l': c.line_no}).l, bool_or(c.is_again)
FROM _steps AS s
JOIN _compiling AS c ON c.run_id = s.run_id AND c.rank = s.rank
    AND IF(c.t IS NOT NULL AND s.t IS NOT NULL, c.t <= s.t AND c.t >= coalesce(s.t_before, c.t),
        c.file_id = s.file_id AND c.line_no < s.line_no AND (s.file_before IS DISTINCT FROM s.file_id OR c.line_no > s.line_before))
GROUP BY s.run_id, s.rank, s.epoch, s.step;

-- What a rank said it did in each step: between its lines, the line before included ("evaluating" after step 3 is of step 4)
CREATE OR REPLACE TEMP TABLE _did (run_id INTEGER, rank INTEGER, epoch DOUBLE, step BIGINT, doing VARCHAR, seconds DOUBLE);

-- @needs activities step_lines
INSERT INTO _did
SELECT s.run_id, s.rank, s.epoch, s.step, arg_max(a.kind, (coalesce(a.duration_s, 0), -a.line_no)), sum(a.duration_s)
FROM _steps AS s
JOIN activities AS a ON a.run_id = s.run_id AND a.rank = s.rank AND a.kind IN ('save', 'load', 'eval', 'data', 'preprocess', 'download')
    AND IF(a.t_lo = a.t_hi AND s.t IS NOT NULL, a.t_lo <= s.t AND a.t_lo >= coalesce(s.t_before, a.t_lo),
        a.file_id = s.file_id AND a.line_no < s.line_no AND (s.file_before IS DISTINCT FROM s.file_id OR a.line_no > s.line_before))
GROUP BY s.run_id, s.rank, s.epoch, s.step;

-- Stalls by the figures of steps
-- @needs metrics step_lines
INSERT INTO stalls (
    run_id, step, comm_id, op, late_rank, waiting, wait_s, lost_s, t_lo, t_hi, late_doing, file_id, line_no,
    late_file, late_line)
WITH usual AS (
    SELECT run_id, median(coalesce(own, 0) + coalesce(data, 0) + coalesce(wait, 0)) AS seconds FROM _steps GROUP BY run_id
), found AS (
    SELECT w.run_id, w.epoch, w.step, w.late, any_value(w.n) AS n,
        list(w.rank ORDER BY w.rank) AS waiting, max(w.wait_s) AS wait_s, sum(w.wait_s) AS lost_s, arg_max(w.rank, (w.wait_s, -w.rank)) AS longest
    FROM _waits AS w JOIN usual AS u USING (run_id)
    WHERE NOT w.is_first AND w.rank <> w.late AND w.spread >= greatest(0.1, 0.5 * u.seconds) AND w.wait_s >= 0.5 * w.spread
    GROUP BY ALL
), others AS (
    SELECT f.run_id, f.epoch, f.step, median(coalesce(s.data, 0)) AS data, median(coalesce(s.own, 0)) AS own
    FROM found AS f JOIN _steps AS s ON s.run_id = f.run_id AND s.epoch IS NOT DISTINCT FROM f.epoch AND s.step = f.step
    WHERE s.rank <> f.late GROUP BY ALL
)
SELECT f.run_id, f.step, NULL, NULL, f.late, f.waiting, round(f.wait_s, 6), round(f.lost_s, 6),
    coalesce(s.t_before, s.t - f.wait_s), greatest(s.t, l.t),
    CASE WHEN s.data - o.data >= 0.5 * f.wait_s THEN 'data'
        WHEN c.step IS NOT NULL AND c.seconds >= 0.3 * f.wait_s THEN 'compiling'
        WHEN d.doing IS NOT NULL THEN IF(d.doing IN ('load', 'download'), 'data', d.doing)
        WHEN s.own - o.own >= 0.5 * f.wait_s THEN 'forward'
        ELSE 'unknown' END,
    l.file_id, l.line_no, s.file_id, s.line_no
FROM found AS f
JOIN others AS o ON o.run_id = f.run_id AND o.epoch IS NOT DISTINCT FROM f.epoch AND o.step = f.step
JOIN _steps AS s ON s.run_id = f.run_id AND s.epoch IS NOT DISTINCT FROM f.epoch AND s.step = f.step AND s.rank = f.late
JOIN _steps AS l ON l.run_id = f.run_id AND l.epoch IS NOT DISTINCT FROM f.epoch AND l.step = f.step AND l.rank = f.longest
LEFT JOIN _compiled AS c ON c.run_id = f.run_id AND c.epoch IS NOT DISTINCT FROM f.epoch AND c.step = f.step AND c.rank = f.late
LEFT JOIN _did AS d ON d.run_id = f.run_id AND d.epoch IS NOT DISTINCT FROM f.epoch AND d.step = f.step AND d.rank = f.late
WHERE len(f.waiting) * 2 >= f.n - 1
ORDER BY f.run_id, f.epoch, f.step;

-- Stalls by a compile of one rank: the others' same step took as long and they compiled nothing
-- @needs compiles step_lines
INSERT INTO stalls (
    run_id, step, comm_id, op, late_rank, waiting, wait_s, lost_s, t_lo, t_hi, late_doing, file_id, line_no,
    late_file, late_line)
WITH lasted AS (
    SELECT s.*, coalesce(s.total, s.t - s.t_before) AS seconds, c.seconds AS compiled, c.is_again, c.file_id AS compile_file, c.line_no AS compile_line,
        row_number() OVER (PARTITION BY s.run_id, s.rank ORDER BY s.file_id, s.line_no) = 1 AS is_first
    FROM _steps AS s
    LEFT JOIN _compiled AS c ON c.run_id = s.run_id AND c.rank = s.rank AND c.epoch IS NOT DISTINCT FROM s.epoch AND c.step = s.step
    WHERE s.rank IS NOT NULL
), usual AS (
    SELECT run_id, rank, median(seconds) AS seconds FROM lasted WHERE NOT is_first GROUP BY ALL
), crowd AS (
    SELECT run_id, epoch, step, count(*) AS n, bool_or(is_first) AS is_first FROM lasted GROUP BY ALL
), waited AS (
    SELECT a.run_id, a.epoch, a.step, a.rank AS late, b.rank, b.t_before, b.t, b.file_id, b.line_no, g.n,
        least(a.compiled, b.seconds - least(coalesce(u.seconds, 0), b.seconds / 2)) AS wait_s
    FROM lasted AS a
    JOIN crowd AS g ON g.run_id = a.run_id AND g.epoch IS NOT DISTINCT FROM a.epoch AND g.step = a.step
    JOIN lasted AS b ON b.run_id = a.run_id AND b.epoch IS NOT DISTINCT FROM a.epoch AND b.step = a.step AND b.rank <> a.rank
    LEFT JOIN usual AS u ON u.run_id = b.run_id AND u.rank = b.rank
    WHERE NOT g.is_first AND a.compiled >= 0.03 AND a.is_again
        AND coalesce(b.compiled, 0) < 0.5 * a.compiled AND b.seconds >= 0.7 * a.compiled AND b.seconds - coalesce(u.seconds, 0) >= 0.3 * a.compiled
), found AS (
    SELECT run_id, epoch, step, late, any_value(n) AS n, list(rank ORDER BY rank) AS waiting, max(wait_s) AS wait_s, sum(wait_s) AS lost_s,
        min(t_before) AS t_before, max(t) AS t, arg_max({'f': file_id, 'l': line_no}, (wait_s, -rank)) AS place
    FROM waited GROUP BY ALL
)
SELECT f.run_id, f.step, NULL, NULL, f.late, f.waiting, round(f.wait_s, 6), round(f.lost_s, 6), f.t_before, f.t, 'compiling', f.place.f, f.place.l,
    a.compile_file, a.compile_line
FROM found AS f
JOIN lasted AS a ON a.run_id = f.run_id AND a.epoch IS NOT DISTINCT FROM f.epoch AND a.step = f.step AND a.rank = f.late
WHERE len(f.waiting) * 2 >= f.n - 1
    AND NOT EXISTS (FROM stalls AS x WHERE x.run_id = f.run_id AND x.step = f.step AND (x.late_rank = f.late OR NOT list_contains(x.waiting, f.late)))
ORDER BY f.run_id, f.epoch, f.step;

-- Stalls by operations whose arrivals are stamped; what clocks of hosts may be apart is no waiting
-- @needs collectives
INSERT INTO stalls (
    run_id, step, comm_id, op, late_rank, waiting, wait_s, lost_s, t_lo, t_hi, late_doing, file_id, line_no,
    late_file, late_line)
SELECT m.run_id, NULL, m.comm_id, m.op, m.last_rank, list_filter(m.ranks, lambda r: r <> m.last_rank), round(m.last_enter - m.first_enter, 6),
    round((m.last_enter - m.first_enter) * (len(m.ranks) - 1), 6), m.first_enter, m.last_enter, 'unknown', c.file_id, c.line_no, m.file_id, m.line_no
FROM matched AS m
JOIN (
    SELECT run_id, comm_id, source, rank, t_lo, min({'f': file_id, 'l': line_no}).f AS file_id, min({'f': file_id, 'l': line_no}).l AS line_no
    FROM collectives WHERE t_lo = t_hi GROUP BY ALL
) AS c ON c.run_id = m.run_id AND c.comm_id = m.comm_id AND c.source = m.source AND c.t_lo = m.first_enter AND c.rank <> m.last_rank
WHERE (m.source LIKE 'nccl%' OR m.source = 'app') AND m.nth > 0
    AND m.last_enter - m.first_enter >= 2 + 2 * coalesce((SELECT max(k.bound_s) FROM clocks AS k WHERE k.run_id = m.run_id), 0) AND m.odd_aspect IS NULL AND len(m.ranks) > 1
    AND NOT EXISTS (FROM stalls AS x WHERE x.run_id = m.run_id AND x.late_rank = m.last_rank AND x.t_lo <= m.last_enter AND x.t_hi >= m.first_enter)
QUALIFY row_number() OVER (PARTITION BY m.run_id, m.comm_id, m.source, m.nth ORDER BY c.rank) = 1
ORDER BY m.run_id, m.comm_id, m.nth
