-- ranks whose per-step figures stand out from their peers'
SELECT run_id, name, rank, n, round(median, 4) AS median, round(peers_median, 4) AS peers, round(median / nullif(peers_median, 0), 2) AS ratio
FROM rank_stats
ORDER BY ratio DESC NULLS LAST, run_id, name, rank
