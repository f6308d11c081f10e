-- operations on which ranks do not agree, or that some never issued
SELECT run_id, comm_id, nth, op, odd_aspect, ranks_text(odd) AS odd, majority, minority, ranks_text(missing) AS missing
FROM matched
WHERE odd_aspect IS NOT NULL OR len(missing) > 0
ORDER BY run_id, comm_id, nth
