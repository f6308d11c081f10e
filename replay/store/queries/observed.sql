-- what could have been seen of which ranks
SELECT run_id, what, is_on, ranks_text(list(rank)) AS ranks, any_value(how) AS how
FROM observed
GROUP BY run_id, what, is_on
ORDER BY run_id, what, is_on DESC
