-- what the rules concluded
SELECT finding_id, kind, is_root, cause, ranks_text(ranks) AS ranks, impact, certainty, round(cost_s, 3) AS cost_s, round(lost_s, 3) AS lost_rank_s, summary
FROM findings
ORDER BY try_cast(finding_id[2:] AS INTEGER)
