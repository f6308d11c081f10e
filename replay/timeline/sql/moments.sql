-- The moments of a run at which ranks came to a meeting or left it, in the order of their streams, and the ends of processes.
-- $run: runs.run_id

CREATE OR REPLACE TEMP TABLE _moments AS
WITH slack AS (
    -- what is left between a host's times and the reference's; a host of which nothing is known takes no part
    SELECT h.rank, CASE WHEN (SELECT count(DISTINCT o.host) FROM _homes_of AS o WHERE o.run_id = $run) = 1 OR c.host = c.ref_host THEN 0
        ELSE 2 * greatest(c.bound_s, 0.001) END AS s
    FROM _homes_of AS h LEFT JOIN clocks AS c ON c.run_id = h.run_id AND c.host = h.host WHERE h.run_id = $run
    UNION ALL
    SELECT rank, 0 FROM writers WHERE run_id = $run AND rank IS NOT NULL
        AND NOT EXISTS (FROM _homes_of AS h WHERE h.run_id = $run) GROUP BY rank
), told AS (
    SELECT rank, place, nth, FALSE AS is_leave, enter_file AS file_id, enter_line::DOUBLE AS line_no, enter_lo AS lo, enter_hi AS hi
    FROM _meetings WHERE run_id = $run AND enter_line IS NOT NULL
    UNION ALL
    -- a leave without a line of its own lies between its line and the next
    SELECT rank, place, nth, TRUE, coalesce(leave_file, enter_file), coalesce(leave_line, enter_line + 0.5), leave_lo, leave_hi
    FROM _meetings WHERE run_id = $run AND coalesce(leave_line, enter_line) IS NOT NULL
    UNION ALL
    -- a process says all after its agent started it and before somebody sees its end
    SELECT b.rank, NULL, NULL, b.is_end, l.file_id, IF(b.is_end, 9e15, -1), b.lo, b.hi
    FROM _bounds_of AS b JOIN (SELECT DISTINCT file_id, rank FROM lines WHERE run_id = $run AND rank IS NOT NULL) AS l USING (rank)
    WHERE b.run_id = $run
)
SELECT dense_rank() OVER (ORDER BY t.file_id, t.rank) - 1 AS stream,
    IF(t.place IS NULL, -1, dense_rank() OVER (ORDER BY t.place NULLS LAST, t.nth) - 1) AS meeting, t.is_leave,
    coalesce(t.lo - s.s, '-infinity'::DOUBLE) AS t_lo, coalesce(t.hi + s.s, 'infinity'::DOUBLE) AS t_hi, s.s AS slack, t.file_id, t.rank, t.line_no
FROM told AS t JOIN slack AS s USING (rank) WHERE s.s IS NOT NULL
ORDER BY stream, t.line_no, t.is_leave
