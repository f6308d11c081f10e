-- Whom a launcher's word of an end is about, and each end once.

-- Ranks of processes and of local ranks, as writers and torchrun's table tell them
CREATE OR REPLACE TEMP TABLE _processes AS
WITH told AS (
    SELECT run_id, coalesce(host, '') AS host, pid, rank FROM writers WHERE pid IS NOT NULL AND rank IS NOT NULL
    UNION SELECT run_id, coalesce(host, ''), pid, rank FROM comms WHERE pid IS NOT NULL AND rank IS NOT NULL
    UNION SELECT run_id, coalesce(of_host, ''), of_pid, of_rank FROM exits WHERE of_pid IS NOT NULL AND of_rank IS NOT NULL
)
SELECT run_id, host, pid, min(rank) AS rank FROM told GROUP BY ALL HAVING min(rank) = max(rank);

-- @needs exits _processes
UPDATE exits SET of_rank = p.rank
FROM (
    SELECT e.rowid AS row_no, min(p.rank) AS rank
    FROM exits AS e JOIN _processes AS p ON p.run_id = e.run_id AND p.pid = e.of_pid
        AND (p.host = '' OR coalesce(e.of_host, e.host, p.host) = p.host)
    WHERE e.of_rank IS NULL GROUP BY e.rowid HAVING min(p.rank) = max(p.rank)
) AS p
WHERE exits.rowid = p.row_no;

-- Local ranks: of the host that the agent ran on, or of the only one
CREATE OR REPLACE TEMP TABLE _places_of AS
WITH told AS (
    SELECT run_id, host, local_rank, rank FROM writers WHERE local_rank IS NOT NULL AND rank IS NOT NULL
    UNION SELECT run_id, of_host, of_local_rank, of_rank FROM exits WHERE of_local_rank IS NOT NULL AND of_rank IS NOT NULL
)
SELECT run_id, host, local_rank, min(rank) AS rank FROM told GROUP BY ALL HAVING min(rank) = max(rank);

-- @needs exits _places_of
UPDATE exits SET of_rank = p.rank
FROM (
    SELECT e.rowid AS row_no, min(p.rank) AS rank
    FROM exits AS e JOIN _places_of AS p ON p.run_id = e.run_id AND p.local_rank = e.of_local_rank
        AND coalesce(p.host = coalesce(e.of_host, e.host), TRUE)
    WHERE e.of_rank IS NULL GROUP BY e.rowid HAVING min(p.rank) = max(p.rank)
) AS p
WHERE exits.rowid = p.row_no;

-- On one host of at most eight ranks, one launcher's local ranks are the ranks
-- @needs exits
UPDATE exits SET of_rank = of_local_rank
WHERE of_rank IS NULL AND of_local_rank IS NOT NULL AND run_id IN (
    SELECT run_id
    FROM (
        SELECT run_id, host, rank, NULL::BIGINT AS launcher FROM writers WHERE rank IS NOT NULL
        UNION ALL SELECT run_id, of_host, of_rank, pid FROM exits WHERE reporter NOT IN ('shell', 'kernel', 'dataloader')
    )
    GROUP BY run_id HAVING max(rank) < 8 AND count(DISTINCT host) <= 1 AND count(DISTINCT launcher) <= 1
);

-- A worker of a data loader is part of the rank that tells of it
-- @needs exits
UPDATE exits SET of_rank = w.rank
FROM writers AS w WHERE exits.reporter = 'dataloader' AND exits.of_rank IS NULL AND w.writer_id = exits.writer_id;

-- The agent's line and its table tell of one process: the table tells more, the line knows its agent. A table has the year, a
-- line has not: where that parts them, the line's is the one that the rest of the log goes by.
CREATE OR REPLACE TEMP TABLE _ends_twice AS
SELECT t.rowid AS keep, e.rowid AS row_no, e.pid, e.host, IF(abs(e.t_lo - t.t_lo) > 86400, e.t_lo, NULL) AS t_lo
FROM exits AS e JOIN exits AS t
    ON t.run_id = e.run_id AND t.reporter = e.reporter AND t.of_pid = e.of_pid AND t.code IS NOT DISTINCT FROM e.code
    AND coalesce(t.of_local_rank = e.of_local_rank, TRUE)
WHERE e.is_first IS NULL AND t.is_first IS NOT NULL;

-- @needs exits _ends_twice
UPDATE exits SET pid = coalesce(x.pid, exits.pid), host = coalesce(exits.host, x.host), t_lo = coalesce(x.t_lo, exits.t_lo), t_hi = coalesce(x.t_lo, exits.t_hi)
FROM _ends_twice AS x WHERE exits.rowid = x.keep;

-- @needs exits _ends_twice
DELETE FROM exits WHERE rowid IN (SELECT row_no FROM _ends_twice)
