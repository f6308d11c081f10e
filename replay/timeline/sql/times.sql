-- Lines without a stamp lie between their neighbours of the same rank in the same file.

UPDATE lines SET t_lo = b.t_lo, t_hi = b.t_hi
FROM (
    SELECT file_id, line_no, least(before, coalesce(after, before)) AS t_lo, greatest(after, coalesce(before, after)) AS t_hi
    FROM (
        SELECT l.file_id, l.line_no, l.t_lo,
            last_value(l.t_hi IGNORE NULLS) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before,
            first_value(l.t_lo IGNORE NULLS) OVER (w ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS after
        FROM lines AS l LEFT JOIN _ranks AS r USING (writer_id)
        WINDOW w AS (PARTITION BY l.file_id, coalesce(r.rank, -1) ORDER BY l.line_no)
    )
    WHERE t_lo IS NULL AND (before IS NOT NULL OR after IS NOT NULL)
) AS b
WHERE lines.file_id = b.file_id AND lines.line_no = b.line_no
