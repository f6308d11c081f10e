-- Ranks that were heard or named, and what a run as a whole is known by.

CREATE OR REPLACE TEMP TABLE _lines_of AS
SELECT run_id, rank, min(coalesce(t_lo, t_hi)) AS first_t, max(coalesce(t_hi, t_lo)) AS last_t,
    arg_min({'f': file_id, 'l': line_no}, (coalesce(t_lo, t_hi, 'infinity'::DOUBLE), file_id, line_no)) AS first_place,
    arg_max({'f': file_id, 'l': line_no}, (coalesce(t_hi, t_lo, '-infinity'::DOUBLE), file_id, line_no)) AS last_place
FROM lines WHERE run_id IS NOT NULL GROUP BY ALL;

-- World size: as the user told it, as the trainer did, as NCCL's largest communicator, as the launcher's table allows
UPDATE runs SET ranks_expected = coalesce(runs.ranks_expected, e.told, e.nccl)
FROM (
    SELECT r.run_id,
        (SELECT max(try_cast(value AS INTEGER)) FROM env WHERE env.run_id = r.run_id AND upper(name) = 'WORLD_SIZE') AS told,
        (SELECT max(nranks) FROM comms WHERE comms.run_id = r.run_id) AS nccl
    FROM runs AS r
) AS e
WHERE runs.run_id = e.run_id;

CREATE OR REPLACE TEMP TABLE _last_steps AS
SELECT run_id, rank, arg_max(step, (file_id, line_no)) AS step, max({'f': file_id, 'l': line_no}) AS place,
    arg_max(total, (file_id, line_no)) AS total
FROM step_lines WHERE step IS NOT NULL AND phase IS DISTINCT FROM 'eval'
GROUP BY run_id, rank;

INSERT INTO ranks (
    run_id, rank, host, local_rank, pid, device, bus_id, heard, first_t, last_t, first_file, first_line, last_file,
    last_line, last_step, last_step_file, last_step_line, finished, how)
WITH named AS (
    SELECT run_id, rank FROM _lines_of WHERE rank IS NOT NULL
    UNION SELECT run_id, of_rank FROM exits WHERE of_rank IS NOT NULL AND run_id IS NOT NULL
    UNION SELECT run_id, unnest(range(ranks_expected))::INTEGER FROM runs WHERE ranks_expected BETWEEN 1 AND 100000
), said AS (
    SELECT run_id, rank, max(host) AS host, max(local_rank) AS local_rank, IF(count(DISTINCT pid) = 1, max(pid), NULL) AS pid,
        arg_min(how, CASE how WHEN 'prefix' THEN 0 WHEN 'nccl-init' THEN 1 WHEN 'folder' THEN 2 ELSE 3 END) AS how
    FROM writers WHERE rank IS NOT NULL GROUP BY ALL
), placed AS (
    SELECT run_id, rank, min(device) AS device, min(bus_id) AS bus_id, max(host) AS host, IF(count(DISTINCT pid) = 1, max(pid), NULL) AS pid
    FROM comms WHERE rank IS NOT NULL GROUP BY ALL
), gone AS (
    SELECT run_id, of_rank AS rank, max(of_host) AS host, max(of_local_rank) AS local_rank, max(of_pid) AS pid, min(coalesce(code, 1)) = 0 AND max(coalesce(code, 1)) = 0 AS well
    FROM exits WHERE of_rank IS NOT NULL GROUP BY ALL
), done AS (
    SELECT DISTINCT run_id, rank FROM activities WHERE kind = 'train-end'
)
SELECT n.run_id, n.rank, coalesce(p.host, s.host, g.host), coalesce(s.local_rank, g.local_rank), coalesce(p.pid, s.pid, g.pid), p.device, p.bus_id,
    l.rank IS NOT NULL, l.first_t, l.last_t, l.first_place.f, l.first_place.l, l.last_place.f, l.last_place.l, t.step, t.place.f, t.place.l,
    d.rank IS NOT NULL OR coalesce(g.well, FALSE), s.how
FROM named AS n
LEFT JOIN _lines_of AS l ON l.run_id = n.run_id AND l.rank = n.rank
LEFT JOIN said AS s ON s.run_id = n.run_id AND s.rank = n.rank
LEFT JOIN placed AS p ON p.run_id = n.run_id AND p.rank = n.rank
LEFT JOIN gone AS g ON g.run_id = n.run_id AND g.rank = n.rank
LEFT JOIN done AS d ON d.run_id = n.run_id AND d.rank = n.rank
LEFT JOIN _last_steps AS t ON t.run_id = n.run_id AND t.rank = n.rank
ORDER BY n.run_id, n.rank;

-- A file a host: where the files of all ranks whose host is told are called after it, so are those of the rest
UPDATE ranks SET host = n.stem
FROM (
    WITH homes AS (
        SELECT w.run_id, w.rank, min(f.file_id) AS file_id, any_value(regexp_extract(f.path, '([^/]+?)(\.(log|out|err|txt|gz|zst|bz2|xz))*$', 1)) AS stem
        FROM writers AS w JOIN files AS f USING (file_id) WHERE w.rank IS NOT NULL
        GROUP BY ALL HAVING count(DISTINCT f.file_id) = 1
    ), placed AS (
        SELECT h.run_id, h.stem, k.rank, k.host FROM homes AS h JOIN ranks AS k ON k.run_id = h.run_id AND k.rank = h.rank
    ), named AS (
        SELECT run_id FROM placed GROUP BY run_id HAVING bool_and(host = stem) AND count(DISTINCT host) > 1
    )
    SELECT p.run_id, p.rank, p.stem FROM placed AS p JOIN named USING (run_id) WHERE p.host IS NULL
) AS n
WHERE ranks.run_id = n.run_id AND ranks.rank = n.rank;

-- A host that failed tells of no rank: it held those whose host nobody tells, if it is the only one that is missing
-- @needs signals
UPDATE ranks SET host = f.host
FROM (
    SELECT s.run_id, any_value(s.of_host) AS host,
        (SELECT max(n) FROM (SELECT count(*) AS n FROM ranks AS k WHERE k.run_id = s.run_id AND k.host IS NOT NULL GROUP BY k.host)) AS most
    FROM signals AS s
    WHERE s.reason = 'node-failure' AND s.of_host IS NOT NULL AND NOT EXISTS (FROM ranks AS k WHERE k.run_id = s.run_id AND k.host = s.of_host)
    GROUP BY s.run_id HAVING count(DISTINCT s.of_host) = 1
) AS f
WHERE ranks.run_id = f.run_id AND ranks.host IS NULL
    AND (SELECT count(*) FROM ranks AS k WHERE k.run_id = f.run_id AND k.host IS NULL) <= f.most;

UPDATE runs SET ranks_seen = s.ranks_seen, t_first = s.t_first, t_last = s.t_last, span_s = round(s.t_last - s.t_first, 6),
    torch = s.torch, nccl = s.nccl, last_step = s.last_step
FROM (
    SELECT r.run_id,
        (SELECT count(*)::INTEGER FROM ranks AS k WHERE k.run_id = r.run_id AND k.heard) AS ranks_seen,
        (SELECT min(first_t) FROM _lines_of AS l WHERE l.run_id = r.run_id) AS t_first,
        (SELECT max(last_t) FROM _lines_of AS l WHERE l.run_id = r.run_id) AS t_last,
        (SELECT mode(version ORDER BY version) FROM packages AS p WHERE p.run_id = r.run_id AND p.name = 'torch') AS torch,
        (SELECT mode(version ORDER BY version) FROM packages AS p WHERE p.run_id = r.run_id AND p.name = 'nccl') AS nccl,
        (SELECT max(step) FROM _last_steps AS t WHERE t.run_id = r.run_id) AS last_step
    FROM runs AS r
) AS s
WHERE runs.run_id = s.run_id
