-- What compilers of ranks, or of two starts, did differently although they ought to agree.

-- Kernels that ranks chose for one operation and shape
-- @needs autotune
INSERT INTO divergences (
    run_id, other_run, name, kind, step, ranks, value, other_value, rel, rel_max, steps_equal, file_id, line_no, other_file,
    other_line)
WITH told AS (
    SELECT run_id, rank, op || '(' || shape || ')' AS name, arg_max(choice, (file_id, line_no)) AS value, max({'f': file_id, 'l': line_no}) AS place
    FROM autotune WHERE is_best AND rank IS NOT NULL GROUP BY ALL
), groups AS (
    SELECT run_id, name, value, count(*) AS n, list(rank ORDER BY rank) AS ranks, min(rank) AS low, arg_min(place, rank) AS place FROM told GROUP BY ALL
), sides AS (
    SELECT run_id, name, max(n) AS most, sum(n) AS total, arg_min(value, (-n, low)) AS majority, arg_min(place, (-n, low)) AS place
    FROM groups GROUP BY ALL HAVING count(*) > 1
), odd AS (
    SELECT g.run_id, g.name, list_sort(flatten(list(g.ranks))) AS ranks, arg_min(g.value, (-g.n, g.low)) AS value, arg_min(g.place, (-g.n, g.low)) AS place
    FROM groups AS g JOIN sides AS s USING (run_id, name) WHERE g.value <> s.majority GROUP BY ALL
)
SELECT s.run_id, NULL, s.name, 'kernel', NULL, IF(s.most * 2 > s.total, o.ranks, []), o.value, s.majority, NULL, NULL, NULL,
    o.place.f, o.place.l, s.place.f, s.place.l
FROM sides AS s JOIN odd AS o USING (run_id, name)
ORDER BY s.run_id, s.name;

-- Lookups of a cache that failed again: the same key (or the same compile, where the cache was passed by) in an earlier start.
-- An earlier start that was over before it could save, or ran on other hosts, left nothing to be found.
-- @needs cache_events
INSERT INTO cache_repeats
WITH looked AS (
    SELECT run_id, cache, event, key, reason, IF(event = 'bypass', compile_id, NULL) AS compile_id,
        list(DISTINCT rank ORDER BY rank) AS ranks, list(DISTINCT host) FILTER (host IS NOT NULL) AS hosts, min({'f': file_id, 'l': line_no}) AS place
    FROM cache_events
    WHERE (event = 'miss' AND key IS NOT NULL) OR (event = 'bypass' AND reason IS NOT NULL)
    GROUP BY ALL
), hit AS (
    SELECT DISTINCT run_id, cache, key FROM cache_events WHERE event = 'hit' AND key IS NOT NULL
), paired AS (
    SELECT b.run_id, a.run_id AS other_run, b.cache, b.event, b.key, b.reason, b.ranks, b.place, a.place AS other_place
    FROM looked AS b
    JOIN looked AS a ON a.run_id < b.run_id AND a.cache = b.cache AND a.event = b.event AND a.key IS NOT DISTINCT FROM b.key
        AND a.reason IS NOT DISTINCT FROM b.reason AND a.compile_id IS NOT DISTINCT FROM b.compile_id
    JOIN runs AS r ON r.run_id = a.run_id
    LEFT JOIN hit AS h ON h.run_id = b.run_id AND h.cache = b.cache AND h.key = b.key
    WHERE h.run_id IS NULL AND coalesce(list_has_any(a.hosts, b.hosts), TRUE)
        AND (b.event = 'bypass' OR r.outcome = 'completed' OR r.last_step > 0
            OR EXISTS (FROM cache_events AS s WHERE s.run_id = a.run_id AND s.cache = a.cache AND s.event = 'save' AND s.key = a.key))
)
SELECT run_id, other_run, cache, event, key, reason, ranks, place.f, place.l, other_place.f, other_place.l
FROM paired
QUALIFY row_number() OVER (PARTITION BY run_id, cache, event, key, reason ORDER BY other_run DESC, place) = 1
ORDER BY run_id, place.f, place.l
