-- Lines without a stamp lie between their neighbours of the same rank in the same file. How long before its first stamp a rank
-- was heard is not known, nor how long behind its last: it may have hung for hours. What else bounds them: timeline/order.py.

UPDATE lines SET t_lo = b.t_lo, t_hi = b.t_hi
FROM (
    SELECT file_id, line_no, IF(before IS NULL, NULL, least(before, after)) AS t_lo, IF(after IS NULL, NULL, greatest(before, after)) AS t_hi
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
