-- Where ranks meet: nobody leaves before everybody has come. `enter` bounds the moment of coming from below (a line is written
-- before it), `leave` that of leaving from above (a line is written behind it). Lines of one moment have lo = hi.

CREATE OR REPLACE TEMP TABLE _homes_of AS
SELECT run_id, rank, max(host) AS host FROM writers WHERE rank IS NOT NULL AND host IS NOT NULL GROUP BY ALL HAVING count(DISTINCT host) = 1;

CREATE OR REPLACE TEMP TABLE _meetings (run_id INTEGER, place VARCHAR, nth BIGINT, rank INTEGER, enter_lo DOUBLE, enter_hi DOUBLE, enter_file INTEGER, enter_line BIGINT,
    leave_lo DOUBLE, leave_hi DOUBLE, leave_file INTEGER, leave_line BIGINT);

-- Operations in which all wait for all; both ends are told
-- @needs _aligned
INSERT INTO _meetings
SELECT a.run_id, a.source || ' ' || a.comm_id, a.spot, a.rank, a.t, a.t, a.place.file_id, a.place.line_no, a.t_exit, a.t_exit, NULL, NULL
FROM _aligned AS a
WHERE a.source IN ('app', 'flight-recorder') AND a.op IN ('allreduce', 'allgather', 'reducescatter', 'alltoall', 'barrier');

-- A communicator is complete when all have started it
-- @needs comms
INSERT INTO _meetings
SELECT s.run_id, 'init ' || s.comm_id, 0, s.rank, min(s.t_lo), min(s.t_hi), min({'f': s.file_id, 'l': s.line_no}).f, min({'f': s.file_id, 'l': s.line_no}).l,
    max(e.t_lo), max(e.t_hi), max({'f': e.file_id, 'l': e.line_no}).f, max({'f': e.file_id, 'l': e.line_no}).l
FROM comms AS s JOIN comms AS e ON e.run_id = s.run_id AND e.comm_id = s.comm_id AND e.rank = s.rank
WHERE s.event = 'start' AND e.event = 'complete' AND s.rank IS NOT NULL
GROUP BY s.run_id, s.comm_id, s.rank HAVING count(*) = 1;

-- A step is reported when its loss is known; then everybody has reduced the gradients of the step before, and so has reported
-- the one before that. Of steps further apart one lies between, whatever is reported.
-- @needs step_lines
INSERT INTO _meetings
WITH told AS (
    SELECT run_id, coalesce(epoch, 0) AS epoch, step, rank, max({'t': t_hi, 'lo': t_lo, 'f': file_id, 'l': line_no}) AS x
    FROM step_lines WHERE rank IS NOT NULL AND step IS NOT NULL AND phase IS DISTINCT FROM 'eval' GROUP BY ALL
), ranked AS (
    SELECT *, lag(x) OVER w AS x1, lag(x, 2) OVER w AS x2, lag(step) OVER w AS step1, dense_rank() OVER (PARTITION BY run_id ORDER BY epoch, step) AS nth
    FROM told WINDOW w AS (PARTITION BY run_id, rank ORDER BY epoch, step)
), paired AS (
    SELECT *, IF(step - step1 >= 2, x1, x2) AS y FROM ranked
)
SELECT run_id, 'step', nth, rank, y.lo, y.t, y.f, y.l, x.lo, x.t, x.f, x.l FROM paired
WHERE run_id IN (SELECT run_id FROM told GROUP BY run_id HAVING count(DISTINCT rank) > 1)
;

-- Barriers that the application or torch tells of; those of the store have names
-- @needs activities
INSERT INTO _meetings
WITH told AS (
    SELECT run_id, rank, phase, t_lo, t_hi, file_id, line_no,
        concat_ws(' ', 'barrier', IF(what LIKE 'store_based_barrier_key:%', what, NULL)) AS place,
        row_number() OVER (PARTITION BY run_id, rank, phase, place ORDER BY file_id, line_no) AS nth
    FROM activities WHERE kind = 'barrier' AND phase IN ('begin', 'end') AND rank IS NOT NULL
)
SELECT b.run_id, b.place, b.nth, b.rank, b.t_lo, b.t_hi, b.file_id, b.line_no, e.t_lo, e.t_hi, e.file_id, e.line_no
FROM told AS b JOIN told AS e ON e.run_id = b.run_id AND e.rank = b.rank AND e.place = b.place AND e.nth = b.nth AND b.phase = 'begin' AND e.phase = 'end';

-- What was received had been sent: the k-th of a pair
-- @needs collectives
INSERT INTO _meetings
WITH told AS (
    SELECT run_id, source || ' ' || comm_id || ' ' || IF(op = 'send', comm_rank || '>' || peer, peer || '>' || comm_rank) AS place, op, rank,
        t_lo, t_hi, exit_lo, exit_hi, file_id, line_no,
        row_number() OVER (PARTITION BY run_id, source, comm_id, rank, op, peer ORDER BY coalesce(logged_seq, 0), file_id, line_no) AS nth
    FROM collectives
    WHERE source IN ('app', 'flight-recorder') AND op IN ('send', 'recv') AND rank IS NOT NULL AND comm_rank IS NOT NULL AND peer IS NOT NULL
)
SELECT run_id, place, nth, rank, IF(op = 'send', t_lo, NULL), IF(op = 'send', t_hi, NULL), file_id, line_no,
    IF(op = 'recv', exit_lo, NULL), IF(op = 'recv', exit_hi, NULL), NULL, NULL
FROM told
