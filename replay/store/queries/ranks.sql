-- the ranks: where they ran, how they are known, how far they came
SELECT run_id, rank, host, local_rank, pid, device, bus_id, last_step, finished, how
FROM ranks
ORDER BY run_id, rank
