-- operations by kind: how many, on how many ranks, how many bytes
SELECT run_id, source, op, dtype, count(*) AS operations, count(DISTINCT rank) AS ranks, sum(bytes) AS bytes
FROM collectives
GROUP BY run_id, source, op, dtype
ORDER BY run_id, operations DESC, op, dtype
