-- Communicators over ranks: which rows of different ranks mean the same one.

-- Lines that name only the pointer: it means what the process said of it last
-- @needs comms
UPDATE comms SET comm_id = k.comm_id
FROM (
    SELECT run_id, host, pid, ptr, any_value(comm_id) AS comm_id
    FROM comms WHERE comm_id IS NOT NULL AND ptr IS NOT NULL
    GROUP BY ALL HAVING count(DISTINCT comm_id) = 1
) AS k
WHERE comms.comm_id IS NULL AND comms.ptr = k.ptr AND comms.run_id = k.run_id
    AND comms.host IS NOT DISTINCT FROM k.host AND comms.pid IS NOT DISTINCT FROM k.pid;

-- @needs collectives comms
UPDATE collectives SET comm_id = k.comm_id, comm_rank = coalesce(collectives.comm_rank, k.comm_rank),
    nranks = coalesce(collectives.nranks, k.nranks)
FROM (
    SELECT run_id, host, pid, ptr, any_value(comm_id) AS comm_id, any_value(comm_rank) AS comm_rank, any_value(nranks) AS nranks
    FROM comms WHERE comm_id IS NOT NULL AND ptr IS NOT NULL
    GROUP BY ALL HAVING count(DISTINCT comm_id) = 1
) AS k
WHERE collectives.comm_id IS NULL AND collectives.comm = k.ptr AND collectives.run_id = k.run_id
    AND collectives.host IS NOT DISTINCT FROM k.host AND collectives.pid IS NOT DISTINCT FROM k.pid;

-- Process groups have names
-- @needs collectives
UPDATE collectives SET comm_id = coalesce(comm, 'world')
WHERE comm_id IS NULL AND source NOT IN ('nccl-coll', 'nccl-call');

-- Versions that print no commId: the k-th communicator of this size on each rank, unless that would be too many ranks
-- @needs collectives
UPDATE collectives SET comm_id = k.comm_id
FROM (
    WITH firsts AS (
        SELECT run_id, rank, source, nranks, comm, min((file_id, line_no)) AS place
        FROM collectives WHERE comm_id IS NULL AND rank IS NOT NULL AND nranks IS NOT NULL AND comm IS NOT NULL GROUP BY ALL
    ), numbered AS (
        SELECT *, row_number() OVER (PARTITION BY run_id, rank, source, nranks ORDER BY place) AS k FROM firsts
    ), crowd AS (
        SELECT run_id, source, nranks, k, count(DISTINCT rank) AS ranks FROM numbered GROUP BY ALL
    )
    SELECT n.run_id, n.rank, n.source, n.nranks, n.comm, 'size' || n.nranks || '.' || n.k AS comm_id
    FROM numbered AS n JOIN crowd AS c USING (run_id, source, nranks, k) WHERE c.ranks <= n.nranks
) AS k
WHERE collectives.comm_id IS NULL AND collectives.run_id = k.run_id AND collectives.rank = k.rank
    AND collectives.source = k.source AND collectives.nranks = k.nranks AND collectives.comm = k.comm;

-- The world's communicator is the ranks themselves, where no line said more
-- @needs collectives
UPDATE collectives SET comm_rank = rank
WHERE comm_rank IS NULL AND rank IS NOT NULL AND nranks = (SELECT max(c.nranks) FROM collectives AS c WHERE c.run_id = collectives.run_id)
;

-- NCCL gives splits of one parent and colour the same commId: there the size belongs to the name
CREATE OR REPLACE TEMP TABLE _twins AS
SELECT run_id, comm_id FROM (SELECT run_id, comm_id, nranks FROM comms UNION ALL SELECT run_id, comm_id, nranks FROM collectives WHERE source LIKE 'nccl%')
WHERE comm_id IS NOT NULL AND nranks IS NOT NULL
GROUP BY ALL HAVING count(DISTINCT nranks) > 1;

-- @needs _twins comms
UPDATE comms SET comm_id = comms.comm_id || '/' || nranks FROM _twins AS t WHERE t.run_id = comms.run_id AND t.comm_id = comms.comm_id AND nranks IS NOT NULL;

-- @needs _twins collectives
UPDATE collectives SET comm_id = collectives.comm_id || '/' || nranks FROM _twins AS t
WHERE t.run_id = collectives.run_id AND t.comm_id = collectives.comm_id AND nranks IS NOT NULL
