-- Views and macros of the run database. The text behind AS documents each (docs/schema.md).

CREATE MACRO ranks_text(ranks) AS -- ranks in short form: [0,1,2,3,4,5,6,8] gives '0-6,8'; '' for no rank
(
    -- of neighbours in order, those that no smaller one leads to and those that lead to no larger one; not a subquery, which would carry
    -- the whole list beside each of its ranks
    coalesce(list_transform([list_sort(list_distinct(ranks))], lambda own: list_aggregate(list_transform(
        list_zip(
            list_filter(list_zip(own, list_prepend(NULL, own)), lambda pair: pair[1] IS NOT NULL AND pair[2] IS DISTINCT FROM pair[1] - 1),
            list_filter(list_zip(own, own[2:]), lambda pair: pair[2] IS DISTINCT FROM pair[1] + 1)
        ),
        lambda island: IF(island[1][1] = island[2][1], island[1][1]::VARCHAR, island[1][1] || '-' || island[2][1])
    ), 'string_agg', ','))[1], '')
);

CREATE MACRO ranks_phrase(ranks) AS -- ranks as a sentence names them: 'rank 3', 'ranks 0-2,5', 'an unnamed process'
(
    CASE coalesce(len(list_distinct(ranks)), 0) WHEN 0 THEN 'an unnamed process' WHEN 1 THEN 'rank ' || ranks_text(ranks) ELSE 'ranks ' || ranks_text(ranks) END
);

CREATE MACRO busbw(op, bytes, nranks, seconds) AS -- bus bandwidth of an operation [GB/s], by the factors of nccl-tests
(
    CASE WHEN seconds > 0 AND nranks > 0 THEN bytes / 1e9 / seconds * CASE
        WHEN op = 'allreduce' THEN 2.0 * (nranks - 1) / nranks
        WHEN op IN ('allgather', 'reducescatter', 'alltoall', 'gather', 'scatter') THEN (nranks - 1.0) / nranks
        ELSE 1.0
    END END
);

CREATE MACRO version_parts(version) AS -- the numbers that a version begins with, which compare as versions do: '2.21.5+cuda12.4' gives [2,21,5]
(
    try_cast(string_split(nullif(regexp_extract(version, '^[0-9]+([.][0-9]+)*'), ''), '.') AS INTEGER[])
);

CREATE VIEW recompiles AS -- one row per recompile of the user's code, with the newest guard failure that caused it
SELECT
    c.run_id, c.rank, c.host, c.t_lo, c.end_hi, c.duration_s, c.compile_id, c.frame, c.nth, c.fn, c.fn_file, c.fn_line,
    coalesce(g.user_file, c.user_file) AS user_file, coalesce(g.user_line, c.user_line) AS user_line,
    g.kind, g.source, g.dim, g.expected, g.actual, g.reason, g.cause, c.status,
    c.file_id, f.path, coalesce(g.line_no, c.line_no) AS line_no
FROM compiles AS c
LEFT JOIN guard_failures AS g
    ON g.writer_id = c.writer_id AND g.compile_line = c.line_no AND g.nth = 0
LEFT JOIN files AS f ON f.file_id = c.file_id
WHERE c.is_recompile AND NOT coalesce(c.is_framework, FALSE)
    -- a TORCH_TRACE file beside the log tells of the same compiles
    AND NOT (c.evidence IN ('trace', 'metrics') AND EXISTS (
        FROM compiles AS l
        WHERE l.run_id = c.run_id AND l.rank IS NOT DISTINCT FROM c.rank AND l.compile_id = c.compile_id AND l.fn = c.fn
            AND l.evidence NOT IN ('trace', 'metrics') AND abs(l.t_lo - c.t_lo) < 1
    ))
ORDER BY c.run_id, c.t_lo NULLS LAST, c.rank, c.file_id, c.line_no;

CREATE VIEW first_errors AS -- one row per rank: the first event of severity error
SELECT DISTINCT ON (e.run_id, e.rank)
    e.run_id, e.rank, e.host, e.t_lo, e.kind, e.summary, e.file_id, f.path, e.line_no
FROM events AS e
LEFT JOIN files AS f ON f.file_id = e.file_id
WHERE e.severity = 'error'
ORDER BY e.run_id, e.rank, e.seq;

CREATE VIEW env_diff AS -- one row per variable and value where ranks of one run do not agree
WITH told AS (
    SELECT DISTINCT run_id, name, value, rank FROM env WHERE rank IS NOT NULL
), differing AS (
    SELECT run_id, name FROM told GROUP BY ALL HAVING count(DISTINCT value) > 1
)
SELECT told.run_id, told.name, told.value, list(told.rank ORDER BY told.rank) AS ranks
FROM told
JOIN differing USING (run_id, name)
GROUP BY told.run_id, told.name, told.value
ORDER BY told.run_id, told.name, count(*) DESC, told.value;

CREATE VIEW cache_rate AS -- one row per run, rank and compile cache: how often it was hit
SELECT
    run_id, rank, cache,
    count(*) FILTER (event = 'hit') AS hits,
    count(*) FILTER (event = 'miss') AS misses,
    count(*) FILTER (event = 'bypass') AS bypasses,
    count(*) FILTER (event = 'hit') / nullif(count(*) FILTER (event IN ('hit', 'miss', 'bypass')), 0) AS hit_rate
FROM cache_events
GROUP BY run_id, rank, cache
ORDER BY run_id, rank, cache;

CREATE VIEW oom AS -- one row per line that says that memory ran out
SELECT
    m.run_id, m.rank, m.host, m.t_lo, m.kind, m.requested_mb, m.total_mb, m.free_mb, m.used_mb, m.step, m.text, m.file_id, f.path, m.line_no
FROM memory AS m
LEFT JOIN files AS f ON f.file_id = m.file_id
WHERE m.kind IN ('cuda-oom', 'host-oom', 'alloc-failed')
ORDER BY m.run_id, m.t_lo NULLS LAST, m.rank, m.file_id, m.line_no;

CREATE VIEW graph_collectives AS -- one row per graph text and collective that it calls on its own for several tensors
SELECT
    g.run_id, g.rank, g.host, g.t_lo, g.t_hi, g.compile_id, g.kind, o.op, count(*) AS calls,
    sum(e.elements) AS elements, max(e.elements) AS largest, min(o.nth) AS first_nth, max(o.nth) AS last_nth, g.file_id, g.line_no
FROM graphs AS g
JOIN graph_ops AS o ON o.file_id = g.file_id AND o.graph_line = g.line_no AND o.is_collective
LEFT JOIN LATERAL (
    SELECT list_product(list_transform(string_split(o.shape, ','), lambda x: try_cast(trim(x) AS BIGINT))) AS elements
) AS e ON TRUE
WHERE o.op NOT LIKE '%coalesced%' AND o.op NOT LIKE 'wait%'
GROUP BY ALL
ORDER BY g.run_id, g.rank, g.file_id, g.line_no, o.op;

CREATE VIEW lateness AS -- one row per rank and what it did when others waited for it: how often, how long, and what share of the run
WITH spans AS (
    SELECT run_id, count(DISTINCT coalesce(epoch, 0) || ' ' || step) AS steps, max(t_hi) - min(t_hi) AS span_s, sum(duration_s) / nullif(count(DISTINCT rank), 0) AS busy_s
    FROM steps WHERE rank IS NOT NULL GROUP BY run_id
), late AS (
    SELECT run_id, late_rank AS rank, late_doing AS doing, count(*) AS stalls, sum(wait_s) AS wait_s, sum(lost_s) AS lost_s, max(wait_s) AS longest_s,
        list_sort(list_distinct(flatten(list(waiting)))) AS waiting, min(step) AS step, min(t_lo) AS t_lo, min(t_lo) AS t_hi,
        bool_or(step IS NULL) AS is_by_operations, arg_min({'f': late_file, 'l': late_line}, (coalesce(step, 0), late_file, late_line)) AS first,
        arg_max({'f': file_id, 'l': line_no}, (wait_s, -line_no)) AS longest
    FROM stalls GROUP BY ALL
)
SELECT
    l.run_id, l.rank, l.doing, l.stalls, s.steps, l.stalls / nullif(s.steps, 0) AS share_steps,
    l.stalls / sum(l.stalls) OVER (PARTITION BY l.run_id) AS share_stalls, l.wait_s, l.lost_s, l.longest_s,
    l.wait_s / nullif(coalesce(nullif(s.span_s, 0), s.busy_s), 0) AS share_time, l.waiting, l.step, l.is_by_operations, l.t_lo, l.t_hi,
    l.first.f AS file_id, l.first.l AS line_no, l.longest.f AS wait_file, l.longest.l AS wait_line
FROM late AS l LEFT JOIN spans AS s USING (run_id)
ORDER BY l.run_id, l.lost_s DESC, l.rank, l.doing;

CREATE VIEW agreement AS -- one row per communicator and source of its operations: at which one its members first did different things (first_odd), and which is the last that all did alike (last_alike)
SELECT
    run_id, comm_id, source, min(nth) FILTER (len(odd) > 0) AS first_odd, max(nth) FILTER (len(odd) = 0) AS last_alike
FROM matched GROUP BY ALL
ORDER BY run_id, comm_id, source;

CREATE VIEW omissions AS -- one row per operation and rank that left it out (matched.skipped)
SELECT run_id, comm_id, source, op, nth, unnest(skipped) AS rank
FROM matched
ORDER BY run_id, comm_id, source, nth, rank;
