-- who waited for whom, the longest first
SELECT run_id, step, op, late_rank, late_doing, ranks_text(waiting) AS waiting, round(wait_s, 3) AS wait_s, round(lost_s, 3) AS lost_rank_s
FROM stalls
ORDER BY lost_s DESC NULLS LAST, run_id, step
