-- Ranks of writers. The best source wins; where two that ought to agree do not, a problem is noted.
-- $world: world size that the user told, or NULL; $hinted: the user told how paths name ranks.

-- Writers with what their file adds
CREATE OR REPLACE TEMP TABLE _who AS
SELECT w.writer_id, w.file_id, f.run_key AS key, coalesce(f.attempt, 0) AS attempt, coalesce(w.host, f.host) AS host,
    w.pid, w.device, w.prefix_rank, f.rank AS file_rank, coalesce(w.local_rank, f.local_rank) AS local_rank,
    w.rank_guess, w.label, regexp_replace(f.path, '[^/]*$', '') AS folder
FROM writers AS w JOIN files AS f USING (file_id);

CREATE OR REPLACE TEMP TABLE _spans AS
SELECT writer_id, min(line_no) AS first_line, max(line_no) AS last_line FROM lines GROUP BY writer_id;

-- The world's size as something else than NCCL tells it
CREATE OR REPLACE TEMP TABLE _told AS
SELECT q.key, q.attempt, coalesce($world::INTEGER, max(try_cast(e.value AS INTEGER))) AS world,
    max(q.prefix_rank) + 1 AS least
FROM _who AS q LEFT JOIN env AS e ON e.writer_id = q.writer_id AND upper(e.name) = 'WORLD_SIZE'
GROUP BY q.key, q.attempt;

CREATE OR REPLACE TEMP TABLE _members (key VARCHAR, attempt INTEGER, file_id INTEGER, host VARCHAR, pid BIGINT,
    device INTEGER, comm_rank INTEGER, nranks INTEGER, first_line BIGINT, last_line BIGINT);

-- Places in the world communicator: the largest one, if it is as large as the world is told to be
-- @needs comms
INSERT INTO _members
WITH said AS (
    SELECT q.key, q.attempt, q.file_id, q.host, q.pid, q.device, c.comm_rank, c.nranks
    FROM comms AS c JOIN _who AS q USING (writer_id)
    WHERE c.comm_rank >= 0 AND c.nranks > c.comm_rank AND q.pid IS NOT NULL
    GROUP BY ALL
), largest AS (
    SELECT said.key, said.attempt, max(nranks) AS nranks FROM said GROUP BY ALL
), processes AS (
    SELECT q.file_id, q.host, q.pid, min(s.first_line) AS first_line, max(s.last_line) AS last_line
    FROM _who AS q JOIN _spans AS s USING (writer_id) WHERE q.pid IS NOT NULL GROUP BY ALL
)
SELECT said.*, p.first_line, p.last_line
FROM said
JOIN largest USING (key, attempt, nranks)
JOIN _told AS t USING (key, attempt)
JOIN processes AS p ON p.file_id = said.file_id AND p.pid = said.pid AND p.host IS NOT DISTINCT FROM said.host
WHERE said.nranks = coalesce(t.world, said.nranks) AND said.nranks >= coalesce(t.least, 0);

-- A place that two processes claim at the same time is no rank: there are several communicators of that size
-- @needs comms
DELETE FROM _members AS m
WHERE EXISTS (
    FROM _members AS o
    WHERE o.key = m.key AND o.attempt = m.attempt AND o.comm_rank = m.comm_rank
        AND (o.pid, o.host, o.device) IS DISTINCT FROM (m.pid, m.host, m.device)
        AND NOT (o.file_id = m.file_id AND (o.last_line < m.first_line OR m.last_line < o.first_line))
);

-- Ranks that are said, by writer; a lower number of `best` is the better source
CREATE OR REPLACE TEMP TABLE _said AS
SELECT writer_id, prefix_rank AS rank, CASE WHEN prefix_rank IS DISTINCT FROM file_rank THEN 'prefix'
    WHEN $hinted THEN 'hint' ELSE 'folder' END AS how, 1 AS best
FROM _who WHERE prefix_rank IS NOT NULL;

-- @needs comms
INSERT INTO _said
SELECT q.writer_id, min(m.comm_rank), 'nccl-init', 2
FROM _who AS q
JOIN _members AS m ON m.key = q.key AND m.attempt = q.attempt AND m.pid = q.pid
    AND (m.host = q.host OR ((q.host IS NULL OR m.host IS NULL) AND m.file_id = q.file_id))
    AND (m.device = q.device OR q.device IS NULL OR m.device IS NULL)
GROUP BY q.writer_id
HAVING count(DISTINCT m.comm_rank) = 1;

-- Ranks of processes: what one writer of a process says holds for all
INSERT INTO _said
WITH processes AS (
    SELECT q.file_id, q.host, q.pid, min(s.rank) AS rank, any_value(s.how) AS how
    FROM _said AS s JOIN _who AS q USING (writer_id)
    WHERE q.pid IS NOT NULL
    GROUP BY ALL HAVING count(DISTINCT s.rank) = 1
)
SELECT q.writer_id, min(p.rank), any_value(p.how), 3
FROM _who AS q
JOIN processes AS p ON p.pid = q.pid
    AND (p.file_id = q.file_id OR p.host = q.host) AND coalesce(p.host = q.host, TRUE)
WHERE q.writer_id NOT IN (SELECT writer_id FROM _said)
GROUP BY q.writer_id
HAVING count(DISTINCT p.rank) = 1;

-- Files whose lines all name one rank, where each rank has files of its own
INSERT INTO _said
WITH named AS (
    SELECT q.key, q.attempt, q.file_id, min(s.rank) AS rank, bool_or(q.local_rank IS NOT NULL) AS has_place
    FROM _said AS s JOIN _who AS q USING (writer_id)
    GROUP BY ALL HAVING count(DISTINCT s.rank) = 1
), several AS (
    SELECT named.key, named.attempt FROM named GROUP BY ALL HAVING count(DISTINCT rank) > 1
)
SELECT q.writer_id, n.rank, 'file', 4
FROM _who AS q JOIN named AS n USING (file_id)
WHERE q.writer_id NOT IN (SELECT writer_id FROM _said)
    AND (n.has_place OR EXISTS (FROM several AS v WHERE v.key = q.key AND v.attempt = q.attempt))
    AND (q.pid IS NULL OR n.has_place);

-- Labels, such as pods: where each has named just one rank of its own and these are all ranks, what else it writes is of it
INSERT INTO _said
WITH named AS (
    SELECT q.key, q.attempt, q.label, count(DISTINCT s.rank) AS ranks, min(s.rank) AS rank
    FROM _who AS q LEFT JOIN _said AS s USING (writer_id) WHERE q.label IS NOT NULL GROUP BY ALL
), whole AS (
    SELECT key, attempt FROM named LEFT JOIN _told AS t USING (key, attempt)
    GROUP BY key, attempt, t.world
    HAVING count(*) > 1 AND bool_and(ranks = 1) AND count(DISTINCT rank) = count(*)
        AND min(rank) = 0 AND max(rank) = count(*) - 1 AND coalesce(t.world, count(*)) = count(*)
)
SELECT q.writer_id, n.rank, 'label', 4
FROM _who AS q JOIN named AS n USING (key, attempt, label) JOIN whole USING (key, attempt)
WHERE q.writer_id NOT IN (SELECT writer_id FROM _said);

-- Local ranks: the offset of a host is told by writers that have both, or by the launcher's table; alone it is 0
INSERT INTO _said
WITH both_told AS (
    SELECT q.key, q.host, s.rank - q.local_rank AS shift
    FROM _said AS s JOIN _who AS q USING (writer_id) WHERE q.local_rank IS NOT NULL
    UNION ALL
    SELECT f.run_key, e.of_host, e.of_rank - e.of_local_rank
    FROM exits AS e JOIN files AS f USING (file_id) WHERE e.of_rank IS NOT NULL AND e.of_local_rank IS NOT NULL
), offsets AS (
    SELECT key, host, min(shift) AS shift FROM both_told GROUP BY ALL HAVING min(shift) = max(shift)
), folders AS (
    SELECT key, attempt, max(folders) AS folders, count(*) AS local_ranks, max(local_rank) AS top
    FROM (SELECT key, attempt, local_rank, count(DISTINCT folder) AS folders FROM _who WHERE local_rank IS NOT NULL GROUP BY ALL)
    GROUP BY ALL
), hosts AS (
    SELECT key, count(DISTINCT host) AS hosts
    FROM (SELECT key, host FROM _who UNION SELECT f.run_key, e.of_host FROM exits AS e JOIN files AS f USING (file_id))
    WHERE host IS NOT NULL GROUP BY key
), alone AS (
    SELECT f.key, f.attempt
    FROM folders AS f LEFT JOIN hosts AS h USING (key) LEFT JOIN _told AS t USING (key, attempt)
    WHERE f.folders = 1 AND coalesce(h.hosts, 1) = 1 AND coalesce(t.world, f.top + 1) <= f.top + 1
), shifts AS (
    SELECT q.writer_id, coalesce(o.shift, IF(a.key IS NULL, NULL, 0)) AS shift
    FROM _who AS q
    LEFT JOIN offsets AS o ON o.key = q.key
        AND (o.host = q.host OR (q.host IS NULL AND (SELECT count(*) FROM offsets AS x WHERE x.key = q.key) = 1
            AND NOT EXISTS (FROM hosts AS h WHERE h.key = q.key AND h.hosts > 1)))
    LEFT JOIN alone AS a ON a.key = q.key AND a.attempt = q.attempt
    WHERE q.local_rank IS NOT NULL
)
SELECT q.writer_id, q.local_rank + s.shift, 'folder', 5
FROM _who AS q JOIN shifts AS s USING (writer_id)
WHERE s.shift IS NOT NULL AND q.local_rank + s.shift >= 0 AND q.writer_id NOT IN (SELECT writer_id FROM _said);

-- Numbers in labels: only if they are 0..n-1 and contradict nothing
INSERT INTO _said
WITH numbers AS (
    SELECT q.key, q.attempt, count(DISTINCT q.rank_guess) AS n, min(q.rank_guess) AS low, max(q.rank_guess) AS high,
        bool_or(s.rank IS NOT NULL AND s.rank <> q.rank_guess) AS contradicted
    FROM _who AS q LEFT JOIN _said AS s USING (writer_id) WHERE q.rank_guess IS NOT NULL GROUP BY ALL
)
SELECT q.writer_id, q.rank_guess, 'folder', 6
FROM _who AS q JOIN numbers AS g USING (key, attempt) LEFT JOIN _told AS t USING (key, attempt)
WHERE q.rank_guess IS NOT NULL AND g.n > 1 AND g.low = 0 AND g.high = g.n - 1 AND NOT g.contradicted
    AND coalesce(t.world, g.n) = g.n AND q.writer_id NOT IN (SELECT writer_id FROM _said);

-- One process and no sign of another: rank 0
INSERT INTO _said
WITH signs AS (
    SELECT q.key, q.attempt FROM _who AS q LEFT JOIN _said AS s USING (writer_id)
    LEFT JOIN _told AS t USING (key, attempt)
    WHERE coalesce(t.world, 1) > 1 OR s.rank IS NOT NULL OR q.local_rank IS NOT NULL OR q.rank_guess IS NOT NULL
    UNION ALL SELECT q.key, q.attempt FROM comms AS x JOIN _who AS q USING (writer_id) WHERE x.nranks > 1
    UNION ALL SELECT q.key, q.attempt FROM collectives AS x JOIN _who AS q USING (writer_id) WHERE coalesce(x.nranks, 2) > 1
    UNION ALL SELECT q.key, q.attempt FROM timeouts AS x JOIN _who AS q USING (writer_id)
    UNION ALL SELECT q.key, q.attempt FROM peer_losses AS x JOIN _who AS q USING (writer_id)
    UNION ALL SELECT q.key, q.attempt FROM exits AS x JOIN _who AS q USING (writer_id)
    UNION ALL SELECT q.key, q.attempt FROM mismatches AS x JOIN _who AS q USING (writer_id)
)
SELECT q.writer_id, 0, 'single', 7
FROM _who AS q
WHERE NOT EXISTS (FROM signs AS s WHERE s.key = q.key AND s.attempt = q.attempt)
    AND (SELECT count(DISTINCT (o.host, o.pid)) FROM _who AS o WHERE o.key = q.key AND o.attempt = q.attempt AND o.pid IS NOT NULL) <= 1;

-- @needs comms
INSERT INTO problems (kind, text, file_id, line_no, writer_id, complete)
SELECT 'rank-conflict', 'the line says rank ' || a.rank || ', NCCL says rank ' || b.rank, q.file_id, min(s.first_line),
    min(q.writer_id), TRUE
FROM _said AS a JOIN _said AS b USING (writer_id) JOIN _who AS q USING (writer_id) JOIN _spans AS s USING (writer_id)
WHERE a.best = 1 AND b.best = 2 AND a.rank <> b.rank
GROUP BY q.file_id, a.rank, b.rank;

INSERT INTO problems (kind, text, file_id, complete)
SELECT 'rank-conflict', 'the name says rank ' || q.file_rank || ', its lines name rank '
    || string_agg(DISTINCT q.prefix_rank::VARCHAR, ', ' ORDER BY q.prefix_rank::VARCHAR), q.file_id, TRUE
FROM _who AS q WHERE q.file_rank IS NOT NULL AND q.prefix_rank <> q.file_rank
GROUP BY q.file_id, q.file_rank;

INSERT INTO problems (kind, text, file_id, complete)
SELECT 'rank-conflict', 'rank ' || s.rank || ' is outside of the world of ' || $world::INTEGER || ' that was told',
    min(q.file_id), TRUE
FROM _said AS s JOIN _who AS q USING (writer_id) WHERE s.rank >= $world::INTEGER
GROUP BY s.rank;

-- The choice; a writer whose prefix and NCCL place differ keeps the prefix
CREATE OR REPLACE TEMP TABLE _ranks AS
SELECT q.writer_id, q.file_id, q.key, q.attempt, q.host, q.pid, q.device, s.rank, s.how
FROM _who AS q
LEFT JOIN (SELECT writer_id, arg_min(rank, best) AS rank, arg_min(how, best) AS how FROM _said GROUP BY writer_id) AS s
    USING (writer_id);

-- Host and process of writers that do not say them: those of the same rank in the same file, or of the same rank
CREATE OR REPLACE TEMP TABLE _homes AS
SELECT key, attempt, rank, IF(count(DISTINCT host) = 1, any_value(host), NULL) AS host,
    IF(count(DISTINCT pid) = 1, any_value(pid), NULL) AS pid
FROM _ranks WHERE rank IS NOT NULL GROUP BY ALL
