-- How each run ended, and the line that decides it.

CREATE OR REPLACE TEMP TABLE _ends (run_id INTEGER, rank INTEGER, kind VARCHAR, t DOUBLE, file_id INTEGER, line_no BIGINT);

-- @needs exceptions
INSERT INTO _ends
SELECT run_id, rank, CASE WHEN category IN ('victim', 'child-failed') THEN 'victim' WHEN category = 'interrupt' THEN 'stop' ELSE 'own' END, t_lo, file_id, line_no
FROM exceptions WHERE is_uncaught;

-- @needs timeouts
INSERT INTO _ends SELECT run_id, rank, 'timeout', t_lo, file_id, line_no FROM timeouts;

-- An abort after a timeout is the watchdog's own
-- @needs crashes
INSERT INTO _ends
SELECT c.run_id, c.rank, IF(coalesce(c.signal, 'SIGABRT') = 'SIGABRT' AND EXISTS (FROM timeouts AS t WHERE t.run_id = c.run_id), 'victim', 'own'), c.t_lo, c.file_id, c.line_no
FROM crashes AS c;

-- @needs exits
INSERT INTO _ends
SELECT run_id, of_rank, CASE WHEN code = 0 THEN 'well' WHEN signal IN ('SIGKILL', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE') THEN 'own'
        WHEN signal = 'SIGTERM' THEN 'closed' ELSE 'exit' END, coalesce(t_lo, t_exit), file_id, line_no
FROM exits WHERE code IS NOT NULL OR signal IS NOT NULL;

-- Slurm cancels a step of which a task failed; it told of the task before
-- @needs signals
INSERT INTO _ends
SELECT run_id, rank, CASE WHEN reason = 'oom-kill' THEN 'own'
        WHEN reason = 'cancelled' AND EXISTS (
            FROM exits AS e WHERE e.run_id = s.run_id AND e.file_id = s.file_id AND e.line_no < s.line_no AND e.reporter = 'slurm'
                AND e.code <> 0 AND e.signal IS DISTINCT FROM 'SIGTERM') THEN 'closed'
        ELSE 'stop' END, t_lo, file_id, line_no
FROM signals AS s WHERE direction IN ('received', 'announced');

-- @needs device_faults
INSERT INTO _ends SELECT run_id, rank, 'fault', t_lo, file_id, line_no FROM device_faults;

-- @needs nccl_warnings
INSERT INTO _ends SELECT run_id, rank, 'fault', t_lo, file_id, line_no FROM nccl_warnings WHERE level = 'chain';

-- Operations that ranks do not agree on, or that were entered and never left
-- @needs matched
INSERT INTO _ends
SELECT run_id, NULL, 'stuck', NULL, file_id, line_no FROM matched
WHERE source IN ('nccl-coll', 'nccl-call', 'flight-recorder', 'app') AND (odd_aspect IS NOT NULL OR len(missing) > 0);

-- @needs collectives
INSERT INTO _ends SELECT run_id, rank, 'stuck', t_lo, file_id, line_no FROM collectives WHERE source = 'app' AND state = 'issued';

CREATE OR REPLACE TEMP TABLE _well AS
SELECT run_id, rank, min(place) AS place
FROM (
    SELECT run_id, rank, {'f': file_id, 'l': line_no} AS place FROM activities WHERE kind = 'train-end'
    UNION ALL SELECT run_id, rank, {'f': file_id, 'l': line_no} FROM activities WHERE what = 'interpreter exit'
    UNION ALL SELECT run_id, rank, {'f': file_id, 'l': line_no} FROM comms WHERE event IN ('destroy', 'finalize', 'abort')
    UNION ALL SELECT run_id, of_rank, {'f': file_id, 'l': line_no} FROM exits WHERE code = 0 AND of_rank IS NOT NULL
    UNION ALL SELECT run_id, rank, place FROM _last_steps WHERE total IS NOT NULL AND step >= total
)
GROUP BY ALL;

-- Ranks of whom an end would be expected: they trained, compiled or communicated. The last of all that only one rank prints
-- stands for all.
CREATE OR REPLACE TEMP TABLE _finished AS
WITH workers AS (
    SELECT DISTINCT run_id, rank FROM step_lines
    UNION SELECT run_id, rank FROM activities
    UNION SELECT run_id, rank FROM compiles
    UNION SELECT run_id, rank FROM comms
    UNION SELECT run_id, rank FROM metrics
), printers AS (
    SELECT DISTINCT run_id, rank FROM step_lines UNION SELECT DISTINCT run_id, rank FROM activities
)
SELECT w.run_id, bool_and(e.run_id IS NOT NULL OR o.run_id IS NOT NULL) AS all_well, max(e.place) AS place
FROM workers AS w
LEFT JOIN _well AS e ON e.run_id = w.run_id AND e.rank IS NOT DISTINCT FROM w.rank
LEFT JOIN (
    SELECT p.run_id FROM printers AS p JOIN _well AS e ON e.run_id = p.run_id AND e.rank IS NOT DISTINCT FROM p.rank
    WHERE (SELECT count(*) FROM printers AS q WHERE q.run_id = p.run_id) = 1
) AS o ON o.run_id = w.run_id
GROUP BY w.run_id;

UPDATE runs SET outcome = o.outcome, outcome_file = o.place.f, outcome_line = o.place.l
FROM (
    WITH firsts AS (
        SELECT run_id, kind, min(t) AS t, arg_min({'f': file_id, 'l': line_no}, (coalesce(t, 'infinity'::DOUBLE), file_id, line_no)) AS place
        FROM _ends WHERE run_id IS NOT NULL GROUP BY ALL
    ), pivoted AS (
        SELECT r.run_id, r.t_last,
            max(f.place) FILTER (kind = 'own') AS own, max(f.t) FILTER (kind = 'own') AS own_t,
            max(f.place) FILTER (kind = 'timeout') AS timeout, max(f.t) FILTER (kind = 'timeout') AS timeout_t,
            max(f.place) FILTER (kind = 'stop') AS stop, max(f.t) FILTER (kind = 'stop') AS stop_t,
            coalesce(max(f.place) FILTER (kind = 'victim'), max(f.place) FILTER (kind = 'exit')) AS other,
            max(f.place) FILTER (kind = 'fault') AS fault, max(f.place) FILTER (kind = 'stuck') AS stuck, max(f.place) FILTER (kind = 'well') AS well
        FROM runs AS r LEFT JOIN firsts AS f USING (run_id)
        GROUP BY ALL
    ), progress AS (
        SELECT run_id, max(t_hi) AS t, median(duration_s) AS seconds FROM steps GROUP BY run_id
    ), written AS (
        SELECT w.run_id, max(f.mtime) AS mtime FROM files AS f JOIN writers AS w USING (file_id) GROUP BY w.run_id
    )
    SELECT p.run_id,
        CASE
            WHEN p.own IS NOT NULL AND (p.timeout IS NULL OR CASE WHEN p.own_t <> p.timeout_t THEN p.own_t < p.timeout_t
                    WHEN p.own.f = p.timeout.f THEN p.own.l < p.timeout.l ELSE TRUE END)
                AND (p.stop IS NULL OR coalesce(p.own_t <= p.stop_t, TRUE)) THEN 'failed'
            WHEN p.stop IS NOT NULL AND (p.timeout IS NULL OR coalesce(p.stop_t < p.timeout_t, FALSE)) THEN
                IF(p.stuck IS NOT NULL OR p.stop_t - g.t > greatest(60, 20 * coalesce(g.seconds, 0)), 'hung', 'stopped')
            WHEN p.timeout IS NOT NULL THEN 'hung'
            WHEN p.own IS NOT NULL OR p.other IS NOT NULL THEN 'failed'
            WHEN f.all_well THEN 'completed'
            WHEN p.well IS NOT NULL THEN 'completed'
            WHEN p.fault IS NOT NULL THEN 'failed'
            WHEN p.stuck IS NOT NULL THEN 'hung'
            WHEN epoch(now()) - w.mtime BETWEEN -120 AND 120 AND abs(w.mtime - coalesce(p.t_last, w.mtime)) < 86400 THEN 'running'
            ELSE 'unknown' END AS outcome,
        CASE outcome
            WHEN 'failed' THEN coalesce(p.own, p.other, p.fault)
            WHEN 'hung' THEN coalesce(p.timeout, p.stuck, p.stop)
            WHEN 'stopped' THEN p.stop
            WHEN 'completed' THEN coalesce(f.place, p.well) END AS place
    FROM pivoted AS p LEFT JOIN progress AS g USING (run_id) LEFT JOIN _finished AS f USING (run_id) LEFT JOIN written AS w USING (run_id)
) AS o
WHERE runs.run_id = o.run_id
