-- the runs: size, outcome, time, versions
SELECT run_id, attempt, ranks_expected, ranks_seen, outcome, round(span_s, 1) AS seconds, torch, nccl, last_step
FROM runs
ORDER BY run_id
