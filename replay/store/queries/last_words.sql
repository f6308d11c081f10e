-- what each rank was last heard to do, the longest silence first
SELECT run_id, rank, kind, summary, round(silent_s, 1) AS silent_s
FROM last_words
ORDER BY silent_s DESC NULLS LAST, run_id, rank
