-- Operations of a communicator over its ranks. Each rank's operations are numbered; what most ranks did at a number is the
-- reference. A rank that left one out (or did one more) is shifted from there on, as in a diff, so that only the place where
-- it parted is odd and not everything behind it.

CREATE OR REPLACE TEMP TABLE _ops (run_id INTEGER, comm_id VARCHAR, source VARCHAR, rank INTEGER, pos BIGINT, place STRUCT(file_id INTEGER, line_no BIGINT),
    sig VARCHAR, op VARCHAR, count BIGINT, dtype VARCHAR, root INTEGER, redop VARCHAR, t DOUBLE, t_exit DOUBLE, has_counter BOOLEAN);

-- own number of each operation
-- @needs collectives
UPDATE collectives SET nth = n.nth
FROM (
    SELECT rowid AS row_no, row_number() OVER (PARTITION BY run_id, rank, comm_id, source ORDER BY file_id, line_no, rowid) - 1 AS nth
    FROM collectives WHERE comm_id IS NOT NULL AND rank IS NOT NULL
) AS n
WHERE collectives.rowid = n.row_no;

-- @needs collectives
INSERT INTO _ops
WITH told AS (
    SELECT run_id, comm_id, source, rank, file_id, line_no, op, count, dtype, root, redop, logged_seq,
        IF(t_lo = t_hi, t_lo, NULL) AS t, exit_hi AS t_exit,
        row_number() OVER (PARTITION BY run_id, comm_id, source, rank ORDER BY file_id, line_no) - 1 AS nth
    FROM collectives
    WHERE comm_id IS NOT NULL AND rank IS NOT NULL AND op NOT IN ('send', 'recv') AND coalesce(complete, TRUE)
        AND source IN ('nccl-coll', 'nccl-call', 'app', 'graph')
), counters AS (
    -- A counter that steps by one with every operation survives lines that were lost; others are no numbers
    SELECT run_id, comm_id, source, bool_and(is_counter) AS is_counter
    FROM (
        SELECT run_id, comm_id, source, rank, count(DISTINCT logged_seq) = count(*) AND max(logged_seq) - min(logged_seq) < count(*) * 1.2 + 2 AS is_counter
        FROM told GROUP BY ALL
    )
    GROUP BY ALL
), mixed AS (
    SELECT DISTINCT run_id, comm_id, source FROM collectives WHERE op IN ('send', 'recv')
)
SELECT t.run_id, t.comm_id, t.source, t.rank, IF(c.is_counter AND m.run_id IS NULL, t.logged_seq, t.nth),
    {'file_id': t.file_id, 'line_no': t.line_no},
    concat_ws('|', t.op, coalesce(t.count, -1), coalesce(t.dtype, ''), IF(t.op IN ('broadcast', 'reduce', 'gather', 'scatter'), t.root, -1), coalesce(t.redop, '')),
    t.op, t.count, t.dtype, IF(t.op IN ('broadcast', 'reduce', 'gather', 'scatter'), t.root, NULL), t.redop, t.t, t.t_exit,
    coalesce(c.is_counter AND m.run_id IS NULL, FALSE)
FROM told AS t JOIN counters AS c USING (run_id, comm_id, source) LEFT JOIN mixed AS m USING (run_id, comm_id, source);

-- Records that carry a sequence number over all ranks
-- @needs collectives
INSERT INTO _ops
SELECT run_id, comm_id, source, rank, logged_seq, {'file_id': any_value(file_id), 'line_no': min(line_no)},
    concat_ws('|', any_value(op), coalesce(any_value(count), -1), coalesce(any_value(dtype), ''), coalesce(any_value(shape), '')),
    any_value(op), any_value(count), any_value(dtype), NULL, NULL, min(IF(t_lo = t_hi, t_lo, NULL)), min(exit_hi), TRUE
FROM collectives
WHERE comm_id IS NOT NULL AND rank IS NOT NULL AND source IN ('watchdog', 'fingerprint', 'flight-recorder')
    AND logged_seq IS NOT NULL AND op NOT IN ('send', 'recv')
GROUP BY run_id, comm_id, source, rank, logged_seq;

-- What most ranks did; of equally many the side of the lowest rank
CREATE OR REPLACE TEMP TABLE _reference AS
SELECT run_id, comm_id, source, pos, sig, n
FROM (
    SELECT run_id, comm_id, source, pos, sig, count(*) AS n, min(rank) AS low FROM _ops GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY run_id, comm_id, source, pos ORDER BY n DESC, low) = 1;

-- What the reference would have gone on with: a program repeats its steps. The period is the smallest that the last two rounds
-- keep to.
CREATE OR REPLACE TEMP TABLE _expected AS
WITH common AS (
    -- what only a rank or two did stands behind the end of the others, not for it
    SELECT * FROM _reference QUALIFY n * 2 > max(n) OVER (PARTITION BY run_id, comm_id, source)
), ends AS (
    SELECT run_id, comm_id, source, max(pos) AS last FROM common WHERE source NOT IN ('watchdog', 'fingerprint') GROUP BY ALL
), tail AS (
    SELECT r.*, e.last FROM common AS r JOIN ends AS e USING (run_id, comm_id, source) WHERE r.pos > e.last - 128
), periods AS (
    SELECT t.run_id, t.comm_id, t.source, t.last, p.period
    FROM tail AS t
    CROSS JOIN (SELECT unnest(range(1, 33)) AS period) AS p
    LEFT JOIN _reference AS b ON b.run_id = t.run_id AND b.comm_id = t.comm_id AND b.source = t.source AND b.pos = t.pos - p.period
    WHERE t.pos > t.last - 2 * p.period
    GROUP BY ALL
    HAVING count(*) = 2 * any_value(p.period) AND bool_and(coalesce(b.sig = t.sig, FALSE))
), chosen AS (
    SELECT run_id, comm_id, source, last, min(period) AS period FROM periods GROUP BY ALL
)
SELECT run_id, comm_id, source, pos, sig, TRUE AS is_told FROM common
UNION ALL
SELECT c.run_id, c.comm_id, c.source, c.last + n.n, r.sig, FALSE
FROM chosen AS c
CROSS JOIN (SELECT unnest(range(1, 9)) AS n) AS n
JOIN _reference AS r ON r.run_id = c.run_id AND r.comm_id = c.comm_id AND r.source = c.source AND r.pos = c.last + n.n - c.period * ((n.n - 1) // c.period + 1);

-- Ranks that part from the reference somewhere, and how far each shift of what follows would bring them back
CREATE OR REPLACE TEMP TABLE _shifts AS
WITH parted AS (
    SELECT o.run_id, o.comm_id, o.source, o.rank, min(o.pos) AS pos, max(o.pos) AS last
    FROM _ops AS o JOIN _reference AS r USING (run_id, comm_id, source, pos)
    WHERE o.sig <> r.sig
    GROUP BY ALL
), rest AS (
    SELECT p.run_id, p.comm_id, p.source, p.rank, p.pos AS start, o.pos, o.sig
    FROM parted AS p JOIN _ops AS o ON o.run_id = p.run_id AND o.comm_id = p.comm_id AND o.source = p.source AND o.rank = p.rank AND o.pos >= p.pos
), tried AS (
    SELECT r.run_id, r.comm_id, r.source, r.rank, r.start, s.shift,
        count(*) FILTER (f.sig IS NOT NULL) AS overlap, count(*) FILTER (f.sig = r.sig) AS equal, count(*) AS length,
        bool_and(split_part(f.sig, '|', 1) = split_part(h.sig, '|', 1)) AS is_alike
    FROM rest AS r
    CROSS JOIN (SELECT unnest([0, 1, -1, 2, -2, 3, -3]) AS shift) AS s
    LEFT JOIN _expected AS f ON f.run_id = r.run_id AND f.comm_id = r.comm_id AND f.source = r.source AND f.pos = r.pos + s.shift
        AND (s.shift = 1 OR f.is_told)  -- a whole period further everything fits again
    LEFT JOIN _expected AS h ON h.run_id = r.run_id AND h.comm_id = r.comm_id AND h.source = r.source AND h.pos = r.pos
    WHERE s.shift >= 0 OR r.pos >= r.start - s.shift
    GROUP BY ALL
)
SELECT run_id, comm_id, source, rank, start, shift
FROM tried
QUALIFY row_number() OVER (
    PARTITION BY run_id, comm_id, source, rank ORDER BY equal::DOUBLE / greatest(overlap, 1) DESC, equal DESC, abs(shift), shift DESC) = 1
    -- one operation is enough where it is the last, and the one that comes next
    AND shift <> 0 AND equal = overlap AND (overlap >= 2 OR (overlap = 1 AND length = 1 AND shift = 1 AND is_alike));

-- Positions after the shift; what a rank did once more stands where it did it
CREATE OR REPLACE TEMP TABLE _aligned AS
SELECT o.*, NULL::BIGINT AS start, NULL::BIGINT AS shift, o.pos AS spot FROM _ops AS o ANTI JOIN _shifts USING (run_id, comm_id, source, rank)
UNION ALL
SELECT o.*, s.start, s.shift, IF(o.pos >= s.start - least(s.shift, 0), o.pos + s.shift, o.pos) AS spot
FROM _ops AS o JOIN _shifts AS s USING (run_id, comm_id, source, rank)
QUALIFY row_number() OVER (PARTITION BY o.run_id, o.comm_id, o.source, o.rank, spot ORDER BY o.pos) = 1
