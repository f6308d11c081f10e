-- What ranks were doing, as spans that may overlap: `level` says which one holds where they do (the higher; of one level the
-- one that began later). replay.timeline.states lays them over each other. An end that was not logged is 'infinity'.

-- Those that gave up waiting: one whose latest moment is not known did no earlier than its last word and the wait behind it
CREATE OR REPLACE TEMP TABLE _gave_up AS
SELECT t.run_id, t.rank, t.kind, t.op, t.group_name, t.logged_seq, coalesce(t.ran_ms, t.timeout_ms) / 1000 AS waited_s, t.t_hi,
    coalesce(t.t_hi, greatest(t.t_lo, k.last_t + coalesce(t.ran_ms, t.timeout_ms) / 1000)) AS t, t.file_id, t.line_no
FROM timeouts AS t LEFT JOIN ranks AS k USING (run_id, rank)
WHERE t.rank IS NOT NULL AND t.kind IN ('watchdog', 'gloo', 'monitored-barrier', 'nccl-init', 'store');

CREATE OR REPLACE TEMP TABLE _extents AS
SELECT k.run_id, k.rank, k.heard, k.finished, coalesce(k.first_t, r.t_first) AS t_first, coalesce(k.last_t, r.t_first) AS t_said, greatest(r.t_last, g.t) AS t_last, r.outcome,
    coalesce(k.first_file, r.outcome_file) AS first_file, coalesce(k.first_line, r.outcome_line) AS first_line, k.last_file, k.last_line
FROM ranks AS k JOIN runs AS r USING (run_id) LEFT JOIN (
    -- who gave up waiting without a stamp did so when the run's last stamp was long ago
    SELECT run_id, max(t) AS t FROM _gave_up WHERE t_hi IS NULL GROUP BY run_id
) AS g USING (run_id)
WHERE r.t_first IS NOT NULL;

CREATE OR REPLACE TEMP TABLE _doings (run_id INTEGER, rank INTEGER, level INTEGER, state VARCHAR, t_lo DOUBLE, t_hi DOUBLE, step BIGINT, comm_id VARCHAR, op VARCHAR,
    nth BIGINT, late INTEGER[], summary VARCHAR, file_id INTEGER, line_no BIGINT);

-- What a rank reported of its steps, its operations and its compiles begins where it no longer starts
CREATE OR REPLACE TEMP TABLE _begun (run_id INTEGER, rank INTEGER, t DOUBLE);
-- @needs steps
INSERT INTO _begun SELECT run_id, rank, min(coalesce(t_lo, t_hi - duration_s, t_hi)) FROM steps GROUP BY ALL;
-- @needs collectives
INSERT INTO _begun SELECT run_id, rank, min(coalesce(t_hi, t_lo)) FROM collectives WHERE source IN ('nccl-coll', 'nccl-call', 'app', 'flight-recorder') GROUP BY ALL;
-- @needs compiles
INSERT INTO _begun SELECT run_id, rank, min(coalesce(t_hi, t_lo)) FROM compiles GROUP BY ALL;
-- @needs activities
INSERT INTO _begun SELECT run_id, rank, min(coalesce(t_hi, t_lo)) FROM activities
WHERE kind NOT IN ('init', 'config', 'other') AND coalesce(what NOT LIKE 'store_based_barrier_key:%', TRUE) GROUP BY ALL;

INSERT INTO _doings
WITH begun AS (
    SELECT run_id, rank, min(t) AS t FROM _begun GROUP BY ALL
)
SELECT e.run_id, e.rank, 0, 'starting', e.t_first, coalesce(greatest(b.t, e.t_first), e.t_said), NULL, NULL, NULL, NULL, NULL, 'starting', e.first_file, e.first_line
FROM _extents AS e LEFT JOIN begun AS b USING (run_id, rank) WHERE e.heard
UNION ALL
SELECT e.run_id, e.rank, 0, 'running', greatest(b.t, e.t_first), e.t_last, NULL, NULL, NULL, NULL, NULL, 'running', e.last_file, e.last_line
FROM _extents AS e JOIN begun AS b USING (run_id, rank) WHERE e.heard AND b.t IS NOT NULL
UNION ALL
-- what is behind its last word is known only of runs that ended well, and of those that still run
SELECT e.run_id, e.rank, 1, CASE WHEN e.heard AND (e.finished OR e.outcome = 'completed') THEN 'gone' ELSE 'unknown' END, e.t_said, e.t_last, NULL, NULL, NULL, NULL, NULL,
    CASE WHEN NOT e.heard THEN 'never heard' WHEN e.finished THEN 'finished' WHEN e.outcome = 'completed' THEN 'last word said' ELSE 'silent' END,
    coalesce(e.last_file, e.first_file), coalesce(e.last_line, e.first_line)
FROM _extents AS e WHERE e.outcome IS DISTINCT FROM 'running' OR NOT e.heard;

-- @needs steps
INSERT INTO _doings
SELECT run_id, rank, 1, 'running', coalesce(t_lo, t_hi - duration_s), t_hi, step, NULL, NULL, NULL, NULL, 'step ' || step, file_id, line_no
FROM steps WHERE t_hi IS NOT NULL AND rank IS NOT NULL;

-- Lines about evaluation, from the line before
-- @needs step_lines
INSERT INTO _doings
SELECT run_id, rank, 2, 'evaluating', before, t_lo, NULL, NULL, NULL, NULL, NULL, 'evaluating', file_id, line_no
FROM (
    SELECT *, lag(t_lo) OVER (PARTITION BY run_id, rank ORDER BY t_lo, file_id, line_no) AS before
    FROM step_lines WHERE t_lo = t_hi AND rank IS NOT NULL
) WHERE phase = 'eval' AND before IS NOT NULL;

CREATE OR REPLACE TEMP TABLE _kinds AS
SELECT * FROM (VALUES ('save', 'saving'), ('load', 'loading'), ('download', 'loading'), ('data', 'loading'), ('preprocess', 'loading'), ('eval', 'evaluating'),
    ('compiling', 'compiling'), ('compile', 'compiling'), ('init', 'starting'), ('barrier', 'waiting'), ('dead', 'gone')) AS k (kind, state);

-- Activities: from begin to the next end of the kind, else to the next step or activity that the rank told of, else for good.
-- A line that tells seconds is written behind them.
-- @needs activities
INSERT INTO _doings
WITH marks AS (
    SELECT run_id, rank, kind, phase, duration_s, step, text, t_lo AS t, file_id, line_no FROM activities
    WHERE rank IS NOT NULL AND t_lo = t_hi AND kind NOT IN ('config', 'other', 'exhausted')
    UNION ALL
    SELECT run_id, rank, 'step', 'point', NULL, step, NULL, t_hi, file_id, line_no FROM step_lines WHERE rank IS NOT NULL AND t_lo = t_hi
), ordered AS (
    SELECT *, lead(t) OVER near AS t_next, lag(t) OVER near AS t_before, lag(kind) OVER near AS kind_before,
        lead(t) OVER alike AS t_alike, lead(phase) OVER alike AS phase_alike, lag(phase) OVER alike AS phase_before
    FROM marks
    WINDOW near AS (PARTITION BY run_id, rank ORDER BY t, file_id, line_no), alike AS (PARTITION BY run_id, rank, kind ORDER BY t, file_id, line_no)
), spans AS (
    SELECT *, CASE WHEN phase = 'begin' AND phase_alike IN ('end', 'point') THEN t WHEN phase = 'begin' THEN t
            WHEN phase = 'progress' AND kind_before = kind THEN t_before
            WHEN phase = 'end' AND phase_before = 'begin' THEN NULL ELSE t - duration_s END AS lo,
        CASE WHEN phase <> 'begin' THEN t WHEN phase_alike IN ('end', 'point') THEN t_alike
            WHEN duration_s IS NOT NULL THEN t + duration_s ELSE coalesce(t_next, 'infinity'::DOUBLE) END AS hi
    FROM ordered
)
SELECT s.run_id, s.rank, IF(k.state = 'waiting', 3, 2), k.state, s.lo, s.hi, s.step, NULL, IF(k.state = 'waiting', 'barrier', NULL), NULL, IF(k.state = 'waiting', [], NULL),
    left(coalesce(s.text, s.kind), 200), s.file_id, s.line_no
FROM spans AS s JOIN _kinds AS k USING (kind) WHERE s.lo < s.hi;

-- Stalls that steps tell: the waits are the ends of the steps, and what made one late was done before it arrived
-- @needs stalls steps
INSERT INTO _doings
SELECT s.run_id, s.rank, 3, 'waiting', greatest(s.t_hi - least(coalesce(s.wait_s, x.wait_s), x.wait_s), coalesce(s.t_lo, s.t_hi - x.wait_s)), s.t_hi, s.step, NULL, NULL, NULL, [x.late_rank],
    'step ' || s.step || ', waits for rank ' || x.late_rank, s.file_id, s.line_no
FROM stalls AS x JOIN steps AS s ON s.run_id = x.run_id AND s.step = x.step AND list_contains(x.waiting, s.rank)
WHERE x.comm_id IS NULL AND s.t_hi IS NOT NULL AND s.rank <> x.late_rank AND s.t_hi BETWEEN x.t_lo AND x.t_hi + x.wait_s
UNION ALL
SELECT x.run_id, x.late_rank, IF(k.state = 'compiling', 4, 2), k.state, IF(k.state = 'loading', s.t_lo, s.t_hi - x.wait_s),
    IF(k.state = 'loading', s.t_lo + x.wait_s, s.t_hi), x.step, NULL, NULL, NULL, NULL,
    'step ' || x.step || ', ' || ranks_phrase(x.waiting) || IF(len(x.waiting) > 1, ' wait', ' waits'), x.late_file, x.late_line
FROM stalls AS x JOIN steps AS s ON s.run_id = x.run_id AND s.step = x.step AND s.rank = x.late_rank JOIN _kinds AS k ON k.kind = x.late_doing
WHERE x.comm_id IS NULL AND s.t_hi BETWEEN x.t_lo AND x.t_hi + x.wait_s AND k.state <> 'gone';

-- Operations whose arrivals are stamped: from the own arrival to the last one. An operation that is only enqueued holds a rank
-- no longer than until it does the next thing. Of those that came late, the last 8 at most are named.
CREATE OR REPLACE TEMP TABLE _latest (run_id INTEGER, comm_id VARCHAR, source VARCHAR, nth BIGINT, late INTEGER[], waits_for VARCHAR, waits_for_last VARCHAR);
-- @needs arrivals
INSERT INTO _latest
SELECT run_id, comm_id, source, nth, late, concat_ws(' ', op, '#' || nth, 'waits for', ranks_phrase(late)), concat_ws(' ', op, '#' || nth, 'waits for', 'rank ' || last_rank)
FROM (
    SELECT a.run_id, a.comm_id, a.source, a.nth, list_sort(arg_max(a.rank, a.t, 8)) AS late, any_value(a.op) AS op, any_value(m.last_rank) AS last_rank
    FROM arrivals AS a JOIN matched AS m USING (run_id, comm_id, source, nth) WHERE a.t >= m.last_enter - 0.1 * (m.last_enter - m.first_enter)
    GROUP BY ALL
);

-- @needs arrivals
INSERT INTO _doings
WITH longest AS (
    -- of very many only the longest: nobody steps through millions
    SELECT a.rowid AS arrival, m.rowid AS met
    FROM arrivals AS a JOIN matched AS m USING (run_id, comm_id, source, nth) JOIN runs AS r USING (run_id)
    WHERE m.last_enter - a.t >= greatest(0.001, 1e-4 * r.span_s) AND a.rank <> m.last_rank
    QUALIFY row_number() OVER (PARTITION BY a.run_id ORDER BY m.last_enter - a.t DESC, a.rank, a.t) <= 300000
), waits AS (
    SELECT a.*, IF(list_contains(l.late, a.rank), [m.last_rank], l.late) AS late, IF(list_contains(l.late, a.rank), l.waits_for_last, l.waits_for) AS summary,
        least(m.last_enter, coalesce(a.t_exit, a.t_next, m.last_enter)) AS hi
    FROM longest AS w JOIN arrivals AS a ON a.rowid = w.arrival JOIN matched AS m ON m.rowid = w.met
    LEFT JOIN _latest AS l ON l.run_id = a.run_id AND l.comm_id = a.comm_id AND l.source = a.source AND l.nth = a.nth
)
SELECT run_id, rank, 3, 'waiting', t, hi, NULL, comm_id, op, nth, late, summary, file_id, line_no FROM waits WHERE hi > t
UNION ALL
-- the last operation of a run that came to no end
SELECT a.run_id, a.rank, 3, 'waiting', a.t, 'infinity'::DOUBLE, NULL, a.comm_id, a.op, a.nth, list_filter(m.missing, lambda r: r <> a.rank),
    concat_ws(' ', a.op, '#' || a.nth, 'waits for ' || nullif(ranks_phrase(m.missing), 'an unnamed process')), a.file_id, a.line_no
FROM arrivals AS a JOIN matched AS m USING (run_id, comm_id, source, nth) JOIN runs AS r USING (run_id)
WHERE a.t_next IS NULL AND a.t_exit IS NULL AND r.outcome = 'hung' AND a.source IN ('app', 'nccl-coll', 'nccl-call') AND (a.source = 'app' OR len(m.missing) > 0)
    AND NOT list_contains(m.missing, a.rank);

-- Those that gave up waiting say how long they waited
-- @needs timeouts
INSERT INTO _doings
WITH gone AS (
    SELECT run_id, coalesce(group_name, '0') AS grp, list(DISTINCT rank ORDER BY rank) AS late FROM absentees GROUP BY ALL
), told AS (
    SELECT t.*, coalesce(g.late, []) AS late
    FROM _gave_up AS t LEFT JOIN gone AS g ON g.run_id = t.run_id AND g.grp = coalesce(t.group_name, '0')
    WHERE t.t IS NOT NULL
)
SELECT run_id, rank, 3, 'waiting', t - waited_s, t, NULL, group_name, op, logged_seq, list_filter(late, lambda r: r <> told.rank),
    concat_ws(' ', coalesce(op, kind), '#' || logged_seq, 'waits for ' || nullif(ranks_phrase(list_filter(late, lambda r: r <> told.rank)), 'an unnamed process')), file_id, line_no
FROM told WHERE waited_s > 0
UNION ALL
SELECT run_id, rank, 6, 'failed', t, 'infinity'::DOUBLE, NULL, NULL, NULL, NULL, NULL, concat_ws(' ', 'gave up waiting', 'in ' || op, '#' || logged_seq), file_id, line_no FROM told;

-- Those that did not come: what they said last they still did
-- @needs absentees
INSERT INTO _doings
SELECT a.run_id, a.rank, CASE k.state WHEN 'compiling' THEN 4 WHEN 'gone' THEN 6 ELSE 2 END, k.state, l.t_lo, 'infinity'::DOUBLE, NULL, NULL, NULL, NULL, NULL,
    k.state || ', does not come to ' || coalesce(a.op, 'an operation') || coalesce(' #' || a.seq, ''), a.doing_file, a.doing_line
FROM absentees AS a JOIN _kinds AS k ON k.kind = a.doing JOIN lines AS l ON l.file_id = a.doing_file AND l.line_no = a.doing_line
WHERE l.rank = a.rank AND l.t_lo IS NOT NULL AND k.state <> 'gone';

-- The others of the group waited for them, since the moment that they tell or else since their last word
-- @needs absentees
INSERT INTO _doings
SELECT a.run_id, w.rank, 3, 'waiting', coalesce(a.since, e.t_said), 'infinity'::DOUBLE, NULL, a.group_name, a.op, a.seq, a.late,
    concat_ws(' ', coalesce(a.op, 'an operation'), '#' || a.seq, 'waits for', ranks_phrase(a.late)), a.wait_file, a.wait_line
FROM (
    SELECT run_id, group_name, op, seq, min(since) AS since, list(rank ORDER BY rank) AS late, min({'f': wait_file, 'l': wait_line}).f AS wait_file,
        min({'f': wait_file, 'l': wait_line}).l AS wait_line, any_value(waiting) AS waiting
    FROM absentees GROUP BY run_id, group_name, op, seq
) AS a CROSS JOIN LATERAL (SELECT unnest(a.waiting) AS rank) AS w JOIN _extents AS e ON e.run_id = a.run_id AND e.rank = w.rank
WHERE NOT list_contains(a.late, w.rank);

-- @needs compiles
INSERT INTO _doings
SELECT run_id, rank, 4, 'compiling', t_lo, coalesce(end_hi, t_lo + duration_s), NULL, NULL, NULL, NULL, NULL,
    concat_ws(' ', IF(is_recompile, 'recompiles', 'compiles'), coalesce(fn, 'a frame'), '[' || compile_id || ']'), file_id, line_no
FROM compiles WHERE rank IS NOT NULL AND t_lo IS NOT NULL AND coalesce(end_hi, t_lo + duration_s) > t_lo;

-- Until Dynamo has its graph, it traces
-- @needs compiles graphs
INSERT INTO _doings
SELECT c.run_id, c.rank, 5, 'tracing', c.t_lo, min(g.t_lo), NULL, NULL, NULL, NULL, NULL,
    concat_ws(' ', 'traces', coalesce(any_value(c.fn), 'a frame'), '[' || c.compile_id || ']'), c.file_id, c.line_no
FROM compiles AS c JOIN graphs AS g ON g.run_id = c.run_id AND g.rank = c.rank AND g.compile_id = c.compile_id AND g.t_lo >= c.t_lo AND g.kind IN ('dynamo', 'pre_grad')
WHERE c.end_hi > c.t_lo GROUP BY c.run_id, c.rank, c.compile_id, c.t_lo, c.file_id, c.line_no HAVING min(g.t_lo) > c.t_lo;

-- @needs exceptions
INSERT INTO _doings
WITH raised AS (
    -- what was raised without a stamp by who gave up waiting, was raised then
    SELECT e.*, coalesce(e.t_hi, greatest(e.t_lo, g.t)) AS t
    FROM exceptions AS e LEFT JOIN (SELECT run_id, rank, max(t) AS t FROM _gave_up WHERE t_hi IS NULL GROUP BY ALL) AS g USING (run_id, rank)
)
SELECT run_id, rank, 6, 'failed', t, 'infinity'::DOUBLE, NULL, NULL, NULL, NULL, NULL, left(concat_ws(': ', type, message), 200), file_id, line_no
FROM raised WHERE is_uncaught AND rank IS NOT NULL AND t IS NOT NULL;

-- @needs crashes
INSERT INTO _doings
SELECT run_id, rank, 6, 'failed', coalesce(t_hi, t_lo), 'infinity'::DOUBLE, NULL, NULL, NULL, NULL, NULL, left(coalesce(text, signal), 200), file_id, line_no
FROM crashes WHERE rank IS NOT NULL AND coalesce(t_hi, t_lo) IS NOT NULL;

-- A process that was said to have ended is gone, once it has said its last word
-- @needs exits
INSERT INTO _doings
SELECT x.run_id, x.of_rank, 7, 'gone', greatest(min(coalesce(x.t_exit, x.t_lo)), e.t_said), 'infinity'::DOUBLE, NULL, NULL, NULL, NULL, NULL,
    concat_ws(' ', 'exited with', coalesce(arg_min(x.signal, (x.file_id, x.line_no)), arg_min(x.code, (x.file_id, x.line_no))::VARCHAR)), arg_min(x.file_id, (x.file_id, x.line_no)), arg_min(x.line_no, (x.file_id, x.line_no))
FROM exits AS x JOIN _extents AS e ON e.run_id = x.run_id AND e.rank = x.of_rank
WHERE coalesce(x.t_exit, x.t_lo) IS NOT NULL AND (x.code IS NOT NULL OR x.signal IS NOT NULL)
GROUP BY x.run_id, x.of_rank, e.t_said
