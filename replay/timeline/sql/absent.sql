-- Who did not come where others gave up waiting, and what it was doing. The rank that prints a timeout is usually healthy: it
-- waited. One that did not come says so by its own count of operations, is named by the others, or says nothing at all.

-- Who gave up, in which group. A group without a name is the world, as far as one can see.
CREATE OR REPLACE TEMP TABLE _gave_up (run_id INTEGER, grp VARCHAR, is_world BOOLEAN, rank INTEGER, seq BIGINT, op VARCHAR, t DOUBLE, since DOUBLE,
    enqueued BIGINT, file_id INTEGER, line_no BIGINT);

-- @needs timeouts
INSERT INTO _gave_up
SELECT run_id, coalesce(group_name, '0'), bool_and(coalesce(group_name, '0') IN ('0', 'default_pg', '0(default_pg)') AND coalesce(group_rank = rank, TRUE)) OVER (PARTITION BY run_id, group_name),
    rank, logged_seq, op, t_lo, IF(t_lo = t_hi, t_lo - coalesce(ran_ms, timeout_ms) / 1000, NULL), last_enqueued, file_id, line_no
FROM timeouts
WHERE rank IS NOT NULL AND kind IN ('watchdog', 'gloo', 'monitored-barrier', 'nccl-init')
QUALIFY row_number() OVER (PARTITION BY run_id, coalesce(group_name, '0'), rank ORDER BY logged_seq NULLS LAST, file_id, line_no) = 1;

-- The operation that most of them waited for; of equally many the later one
CREATE OR REPLACE TEMP TABLE _fronts AS
WITH counted AS (
    SELECT run_id, grp, seq, count(*) AS n FROM _gave_up GROUP BY ALL
), front AS (
    SELECT run_id, grp, seq FROM counted QUALIFY row_number() OVER (PARTITION BY run_id, grp ORDER BY n DESC, seq DESC NULLS LAST) = 1
)
SELECT g.run_id, g.grp, f.seq, bool_and(g.is_world) AS is_world, mode(g.op ORDER BY g.op) AS op, list(g.rank ORDER BY g.rank) AS waiting, min(g.t) AS t, min(g.since) AS since,
    min({'f': g.file_id, 'l': g.line_no}) AS place
FROM _gave_up AS g JOIN front AS f ON f.run_id = g.run_id AND f.grp = g.grp AND (g.seq >= f.seq OR g.seq IS NOT DISTINCT FROM f.seq)
GROUP BY g.run_id, g.grp, f.seq;

CREATE OR REPLACE TEMP TABLE _absent (run_id INTEGER, grp VARCHAR, rank INTEGER, how VARCHAR, sure INTEGER, file_id INTEGER, line_no BIGINT);

-- Behind: its last operation comes before the one that the others wait for
-- @needs _fronts timeouts
INSERT INTO _absent
SELECT f.run_id, f.grp, t.rank, 'behind', 1, min({'f': t.file_id, 'l': t.line_no}).f, min({'f': t.file_id, 'l': t.line_no}).l
FROM _fronts AS f JOIN timeouts AS t ON t.run_id = f.run_id AND coalesce(t.group_name, '0') = f.grp AND t.rank IS NOT NULL
WHERE t.last_enqueued < f.seq AND NOT list_contains(f.waiting, t.rank)
    AND NOT EXISTS (FROM timeouts AS o WHERE o.run_id = t.run_id AND o.rank = t.rank AND coalesce(o.group_name, '0') = f.grp AND o.last_enqueued >= f.seq)
GROUP BY f.run_id, f.grp, t.rank;

-- Behind: what the dumps of the flight recorder say of the group as a whole
-- @needs _fronts flight_records
INSERT INTO _absent
WITH told AS (
    SELECT run_id, group_name, rank, max(coalesce(last_enqueued, collective_seq)) AS seq, min({'f': file_id, 'l': line_no}) AS place
    FROM flight_records WHERE rank IS NOT NULL GROUP BY ALL
)
SELECT f.run_id, f.grp, t.rank, 'behind', 1, t.place.f, t.place.l
FROM _fronts AS f JOIN told AS t ON t.run_id = f.run_id AND coalesce(t.group_name, '0') = f.grp
WHERE NOT list_contains(f.waiting, t.rank)
    AND t.seq < (SELECT min(o.seq) FROM told AS o WHERE o.run_id = f.run_id AND o.group_name IS NOT DISTINCT FROM t.group_name AND list_contains(f.waiting, o.rank));

-- Behind: by the count of NCCL's own service. A communicator of all ranks has their numbers.
-- @needs _fronts ras_reports
INSERT INTO _absent
WITH told AS (
    SELECT run_id, comm_hash, op, comm_rank AS rank, launched, max(launched) OVER (PARTITION BY run_id, comm_hash, op) AS most, file_id, line_no
    FROM ras_reports AS r
    WHERE aspect = 'launched' AND comm_size = (SELECT count(DISTINCT rank) FROM ranks AS k WHERE k.run_id = r.run_id)
)
SELECT f.run_id, f.grp, t.rank, 'behind', 1, min({'f': t.file_id, 'l': t.line_no}).f, min({'f': t.file_id, 'l': t.line_no}).l
FROM _fronts AS f JOIN told AS t ON t.run_id = f.run_id
WHERE f.is_world AND t.launched < t.most AND NOT list_contains(f.waiting, t.rank)
GROUP BY f.run_id, f.grp, t.rank;

-- Named: by the text of those that gave up
-- @needs _fronts timeouts
INSERT INTO _absent
SELECT f.run_id, f.grp, n.rank, 'named', 2, min(n.place).f, min(n.place).l
FROM _fronts AS f
JOIN (
    SELECT run_id, coalesce(group_name, '0') AS grp, try_cast(trim(unnest(string_split(missing, ','))) AS INTEGER) AS rank, {'f': file_id, 'l': line_no} AS place
    FROM timeouts WHERE missing IS NOT NULL AND kind <> 'stall'
) AS n ON n.run_id = f.run_id AND n.grp = f.grp
WHERE n.rank IS NOT NULL AND f.is_world AND NOT list_contains(f.waiting, n.rank)
GROUP BY f.run_id, f.grp, n.rank;

-- Listed: operations of a communicator that it alone did not begin
-- @needs _fronts matched
INSERT INTO _absent
SELECT DISTINCT f.run_id, f.grp, m.rank, 'listed', 3, m.file_id, m.line_no
FROM _fronts AS f
JOIN (
    SELECT run_id, unnest(missing) AS rank, ranks, file_id, line_no FROM matched
    WHERE source IN ('nccl-coll', 'nccl-call', 'app', 'flight-recorder') AND op NOT IN ('send', 'recv') AND len(missing) < len(ranks)
    QUALIFY row_number() OVER (PARTITION BY run_id, comm_id, source, missing ORDER BY nth) = 1
) AS m ON m.run_id = f.run_id AND list_has_any(m.ranks, f.waiting)
WHERE NOT list_contains(f.waiting, m.rank);

-- Silent: it was heard, gave no timeout and lost no connection. Only where the group is the world, where the silent are few,
-- and where they are not all that a host held: such a host is lost.
-- @needs _fronts
INSERT INTO _absent
WITH quiet AS (
    SELECT f.run_id, f.grp, k.rank, k.host, len(f.waiting) AS n
    FROM _fronts AS f JOIN ranks AS k USING (run_id)
    WHERE f.is_world AND k.heard AND NOT list_contains(f.waiting, k.rank)
        AND NOT EXISTS (FROM timeouts AS t WHERE t.run_id = f.run_id AND t.rank = k.rank)
        AND NOT EXISTS (FROM peer_losses AS p WHERE p.run_id = f.run_id AND p.rank = k.rank)
), hosts AS (
    SELECT run_id, host, count(*) AS n FROM ranks WHERE heard AND host IS NOT NULL GROUP BY ALL
), lost AS (
    SELECT q.run_id, q.grp, q.host FROM quiet AS q JOIN hosts AS h ON h.run_id = q.run_id AND h.host = q.host
    WHERE (SELECT count(*) FROM hosts AS o WHERE o.run_id = q.run_id) > 1
    GROUP BY q.run_id, q.grp, q.host, h.n HAVING count(*) = h.n AND h.n > 1
)
SELECT q.run_id, q.grp, q.rank, 'silent', 4, NULL, NULL
FROM quiet AS q
WHERE NOT EXISTS (FROM lost AS l WHERE l.run_id = q.run_id AND l.grp = q.grp AND l.host = q.host)
    AND NOT EXISTS (FROM _absent AS a WHERE a.run_id = q.run_id AND a.grp = q.grp)
QUALIFY count(*) OVER (PARTITION BY q.run_id, q.grp) <= greatest(1, q.n // 4);

-- Out of data: some ranks said that their data came to an end and others went on with steps, and each waits for the other. The
-- fewer are odd. If only rank 0 ever said so, it may be the only one that prints it.
-- @needs _gave_up activities step_lines
INSERT INTO _absent
WITH marks AS (
    SELECT run_id, rank, kind, {'t': coalesce(t_lo, 0), 'f': file_id, 'l': line_no} AS place
    FROM (
        SELECT run_id, rank, 'end' AS kind, t_lo, file_id, line_no FROM activities WHERE kind IN ('exhausted', 'train-end')
        UNION ALL SELECT run_id, rank, 'step', t_lo, file_id, line_no FROM step_lines WHERE phase IS DISTINCT FROM 'eval'
    ) WHERE rank IS NOT NULL
), lasts AS (
    SELECT run_id, rank, arg_max(kind, place) AS kind, count(*) FILTER (kind = 'end') AS ends, count(*) FILTER (kind = 'step') AS steps,
        arg_max(place, place) AS place
    FROM marks GROUP BY ALL
), sides AS (
    SELECT run_id, list(rank ORDER BY rank) FILTER (kind = 'end') AS ended, list(rank ORDER BY rank) FILTER (kind = 'step') AS others,
        max(ends) FILTER (kind = 'end') AS ends, max(ends) FILTER (kind = 'step') AS other_ends
    FROM lasts WHERE steps > 0 GROUP BY ALL
), odd AS (
    SELECT run_id, IF(len(ended) <= len(others), ended, others) AS ranks, len(ended) <= len(others) AS is_short
    FROM sides
    WHERE len(ended) > 0 AND len(others) > 0 AND ends = other_ends + 1 AND (ended <> [0] OR other_ends > 0)
)
SELECT DISTINCT o.run_id, g.grp, l.rank, IF(o.is_short, 'exhausted', 'longer'), 0, l.place.f, l.place.l
FROM odd AS o JOIN lasts AS l ON l.run_id = o.run_id AND list_contains(o.ranks, l.rank)
JOIN (FROM _fronts QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY is_world DESC, len(waiting) DESC, grp) = 1) AS g ON g.run_id = o.run_id
WHERE EXISTS (FROM _gave_up AS w WHERE w.run_id = o.run_id AND NOT list_contains(o.ranks, w.rank))
    AND (o.is_short OR EXISTS (FROM _gave_up AS w WHERE w.run_id = o.run_id AND w.rank = l.rank));

-- What the absent said last, before the others gave up: begun and not ended, or the end of its data
CREATE OR REPLACE TEMP TABLE _doing (run_id INTEGER, rank INTEGER, doing VARCHAR, t DOUBLE, file_id INTEGER, line_no BIGINT);

-- @needs _absent activities
INSERT INTO _doing
SELECT run_id, rank, kind, t_lo, file_id, line_no FROM (
    SELECT a.run_id, r.rank, a.kind, a.phase, a.t_lo, a.file_id, a.line_no, a.step
    FROM activities AS a
    -- progress of work that no rank signed is that of the one that alone was not heard otherwise
    JOIN (SELECT DISTINCT run_id, rank FROM _absent) AS r ON r.run_id = a.run_id
        AND (r.rank = a.rank OR (a.rank IS NULL AND NOT EXISTS (FROM ranks AS k WHERE k.run_id = r.run_id AND k.rank = r.rank AND k.heard)))
    WHERE a.kind NOT IN ('init', 'config', 'other', 'barrier')
    QUALIFY row_number() OVER (PARTITION BY a.run_id, r.rank ORDER BY a.t_lo DESC NULLS LAST, a.file_id DESC, a.line_no DESC) = 1
)
WHERE phase IN ('begin', 'progress') OR kind IN ('exhausted', 'train-end');

-- Steps that came after it: it was over
-- @needs _doing step_lines
DELETE FROM _doing WHERE EXISTS (
    FROM step_lines AS s WHERE s.run_id = _doing.run_id AND s.rank = _doing.rank AND s.phase IS DISTINCT FROM 'eval'
        AND ((s.file_id = _doing.file_id AND s.line_no > _doing.line_no) OR (s.file_id <> _doing.file_id AND s.t_lo > _doing.t)));

-- Compiles: one that had not ended when the others gave up, or that took place while they waited
-- @needs _absent compiles
INSERT INTO _doing
SELECT c.run_id, c.rank, 'compiling', min(c.t_lo), min({'f': c.file_id, 'l': c.line_no}).f, min({'f': c.file_id, 'l': c.line_no}).l
FROM compiles AS c
JOIN _absent AS a ON a.run_id = c.run_id AND a.rank = c.rank
JOIN _fronts AS f ON f.run_id = a.run_id AND f.grp = a.grp
LEFT JOIN last_words AS w ON w.run_id = c.run_id AND w.rank = c.rank
WHERE NOT coalesce(c.is_framework, FALSE) AND (w.kind = 'compile' OR (c.t_lo < f.t AND coalesce(c.end_hi, c.t_lo + c.duration_s) >= f.since))
GROUP BY c.run_id, c.rank;

-- @needs _absent cache_events
INSERT INTO _doing
SELECT c.run_id, c.rank, 'compiling', min(c.t_lo), min({'f': c.file_id, 'l': c.line_no}).f, min({'f': c.file_id, 'l': c.line_no}).l
FROM cache_events AS c JOIN _absent AS a ON a.run_id = c.run_id AND a.rank = c.rank JOIN _fronts AS f ON f.run_id = a.run_id AND f.grp = a.grp
WHERE c.event IN ('miss', 'bypass', 'save') AND c.t_hi BETWEEN f.since - 60 AND f.t GROUP BY c.run_id, c.rank;

-- @needs _absent autotune
INSERT INTO _doing
SELECT c.run_id, c.rank, 'compiling', min(c.t_lo), min({'f': c.file_id, 'l': c.line_no}).f, min({'f': c.file_id, 'l': c.line_no}).l
FROM autotune AS c JOIN _absent AS a ON a.run_id = c.run_id AND a.rank = c.rank GROUP BY c.run_id, c.rank;

-- The dead do nothing
-- @needs _absent exceptions
INSERT INTO _doing
SELECT e.run_id, e.rank, 'dead', any_value(e.t_lo), min({'f': e.file_id, 'l': e.line_no}).f, min({'f': e.file_id, 'l': e.line_no}).l
FROM exceptions AS e JOIN _absent AS a ON a.run_id = e.run_id AND a.rank = e.rank
WHERE coalesce(e.is_uncaught, TRUE) AND coalesce(e.category, 'other') NOT IN ('victim', 'child-failed') GROUP BY e.run_id, e.rank;

-- @needs _absent crashes
INSERT INTO _doing
SELECT e.run_id, e.rank, 'dead', any_value(e.t_lo), min({'f': e.file_id, 'l': e.line_no}).f, min({'f': e.file_id, 'l': e.line_no}).l
FROM crashes AS e JOIN _absent AS a ON a.run_id = e.run_id AND a.rank = e.rank GROUP BY e.run_id, e.rank;

-- @needs _absent memory
INSERT INTO _doing
SELECT e.run_id, e.rank, 'dead', any_value(e.t_lo), min({'f': e.file_id, 'l': e.line_no}).f, min({'f': e.file_id, 'l': e.line_no}).l
FROM memory AS e JOIN _absent AS a ON a.run_id = e.run_id AND a.rank = e.rank WHERE e.kind IN ('cuda-oom', 'host-oom', 'alloc-failed') GROUP BY e.run_id, e.rank;

-- @needs _absent device_faults
INSERT INTO _doing
SELECT e.run_id, e.rank, 'dead', any_value(e.t_lo), min({'f': e.file_id, 'l': e.line_no}).f, min({'f': e.file_id, 'l': e.line_no}).l
FROM device_faults AS e JOIN _absent AS a ON a.run_id = e.run_id AND a.rank = e.rank GROUP BY e.run_id, e.rank;

-- @needs _absent exits
INSERT INTO _doing
SELECT e.run_id, a.rank, 'dead', any_value(e.t_exit), min({'f': e.file_id, 'l': e.line_no}).f, min({'f': e.file_id, 'l': e.line_no}).l
FROM exits AS e
JOIN _absent AS a ON a.run_id = e.run_id
LEFT JOIN ranks AS k ON k.run_id = a.run_id AND k.rank = a.rank
WHERE (e.of_rank = a.rank OR (e.of_rank IS NULL AND e.of_pid = k.pid)) AND e.signal IN ('SIGKILL', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE')
GROUP BY e.run_id, a.rank;

-- The surest word on each
-- @needs _absent
INSERT INTO absentees (
    run_id, rank, waiting, group_name, op, seq, how, doing, t, since, file_id, line_no, wait_file, wait_line, doing_file, doing_line)
SELECT a.run_id, a.rank, list_filter(f.waiting, lambda x: x <> a.rank), nullif(f.grp, '0'), f.op, f.seq, a.how, IF(a.how IN ('exhausted', 'longer'), a.how, coalesce(d.doing, 'unknown')), f.t, f.since,
    coalesce(a.file_id, w.file_id, f.place.f), coalesce(a.line_no, w.line_no, f.place.l), f.place.f, f.place.l, coalesce(d.file_id, a.file_id, w.file_id, f.place.f), coalesce(d.line_no, a.line_no, w.line_no, f.place.l)
FROM (FROM _absent QUALIFY row_number() OVER (PARTITION BY run_id, grp, rank ORDER BY sure, file_id, line_no) = 1) AS a
JOIN _fronts AS f ON f.run_id = a.run_id AND f.grp = a.grp
LEFT JOIN (
    FROM _doing QUALIFY row_number() OVER (PARTITION BY run_id, rank ORDER BY list_position(['dead', 'compiling'], doing) NULLS LAST, t DESC NULLS LAST, file_id, line_no) = 1
) AS d ON d.run_id = a.run_id AND d.rank = a.rank
LEFT JOIN last_words AS w ON w.run_id = a.run_id AND w.rank = a.rank
ORDER BY a.run_id, f.grp, a.rank;

-- ---- Two communicators used in another order: pairs of neighbouring operations of a rank that another rank has the other way round
CREATE OR REPLACE TEMP TABLE _places (run_id INTEGER, rank INTEGER, comm_id VARCHAR, pos BIGINT, op VARCHAR, place BIGINT, is_late BOOLEAN, file_id INTEGER, line_no BIGINT);

-- @needs collectives
INSERT INTO _places
SELECT run_id, rank, comm_id, nth, op, row_number() OVER (PARTITION BY run_id, rank ORDER BY file_id, line_no),
    row_number() OVER (PARTITION BY run_id, rank ORDER BY file_id DESC, line_no DESC) <= 64, file_id, line_no
FROM collectives
WHERE source IN ('nccl-coll', 'nccl-call') AND comm_id IS NOT NULL AND rank IS NOT NULL AND op NOT IN ('send', 'recv')
    AND run_id IN (SELECT run_id FROM collectives WHERE source IN ('nccl-coll', 'nccl-call') GROUP BY run_id HAVING count(DISTINCT comm_id) > 1);

-- @needs _places
INSERT INTO crossings (
    run_id, comm_id, other_comm, ranks, others, op, other_op, times, file_id, line_no, other_file, other_line)
WITH steps AS (
    SELECT a.run_id, a.rank, a.comm_id AS first_comm, a.pos AS first_pos, b.comm_id AS second_comm, b.pos AS second_pos, a.op AS first_op, b.op AS second_op,
        a.is_late, {'f': a.file_id, 'l': a.line_no} AS place
    FROM _places AS a JOIN _places AS b ON b.run_id = a.run_id AND b.rank = a.rank AND b.place = a.place + 1 AND b.comm_id <> a.comm_id
), twofold AS (
    SELECT x.run_id, x.first_comm, x.first_pos, x.second_comm, x.second_pos, any_value(x.first_op) AS first_op, any_value(x.second_op) AS second_op,
        bool_or(x.is_late OR y.is_late) AS is_late, list(DISTINCT x.rank ORDER BY x.rank) AS xs, list(DISTINCT y.rank ORDER BY y.rank) AS ys, min(x.place) AS x_place, min(y.place) AS y_place
    FROM steps AS x JOIN steps AS y ON y.run_id = x.run_id AND y.first_comm = x.second_comm AND y.first_pos = x.second_pos
        AND y.second_comm = x.first_comm AND y.second_pos = x.first_pos
    GROUP BY ALL
), oriented AS (
    -- xs used first_comm first and are the majority
    SELECT * FROM twofold WHERE len(xs) > len(ys) OR (len(xs) = len(ys) AND xs[1] < ys[1])
), often AS (
    SELECT run_id, count(*) AS times FROM oriented GROUP BY run_id
)
SELECT run_id, first_comm, second_comm, ys, xs, first_op, second_op, times, y_place.f, y_place.l, x_place.f, x_place.l
FROM oriented JOIN often USING (run_id)
WHERE is_late
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY y_place) = 1
ORDER BY run_id
