-- steps over ranks: the spread of their durations
SELECT run_id, step, count(*) AS ranks, round(min(duration_s), 4) AS fastest, round(max(duration_s), 4) AS slowest, arg_max(rank, duration_s) AS slowest_rank
FROM steps
GROUP BY run_id, step
ORDER BY run_id, step
