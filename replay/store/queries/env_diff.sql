-- settings that differ by rank
SELECT run_id, name, value, ranks_text(ranks) AS ranks
FROM env_diff
