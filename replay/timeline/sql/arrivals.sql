-- When each rank came to an operation that was matched over ranks, and when it left it.

-- @needs _aligned
INSERT INTO arrivals (run_id, rank, comm_id, source, nth, op, t, t_exit, t_next, file_id, line_no)
SELECT a.run_id, a.rank, a.comm_id, a.source, a.spot, m.op, a.t, a.t_exit, lead(a.t) OVER (PARTITION BY a.run_id, a.rank ORDER BY a.t, a.place),
    a.place.file_id, a.place.line_no
FROM _aligned AS a JOIN matched AS m ON m.run_id = a.run_id AND m.comm_id = a.comm_id AND m.source = a.source AND m.nth = a.spot
WHERE a.source IN ('nccl-coll', 'nccl-call', 'app', 'flight-recorder') AND a.t IS NOT NULL
ORDER BY a.run_id, a.rank, a.t, a.place
