-- the first error of each rank, in order of time
SELECT run_id, rank, t_lo, kind, summary, path, line_no
FROM first_errors
ORDER BY run_id, t_lo NULLS LAST, rank
