-- One event, two sources: what torch prints and what it writes to a trace are the same. The printed row stays, with what only
-- the trace knows; the trace's row goes. Ids come again after a reset: the k-th in one source is the k-th in the other.

CREATE OR REPLACE TEMP TABLE _traces AS SELECT file_id FROM files WHERE kind = 'trace';

CREATE OR REPLACE TEMP TABLE _twice (file_id INTEGER, line_no BIGINT, row_no BIGINT, keep BIGINT);

-- @needs _traces compiles
INSERT INTO _twice
WITH numbered AS (
    SELECT rowid AS row_no, run_id, rank, pid, compile_id, file_id, line_no, file_id IN (FROM _traces) AS is_trace,
        row_number() OVER (PARTITION BY run_id, rank, compile_id, file_id IN (FROM _traces) ORDER BY file_id, line_no) AS k
    FROM compiles WHERE compile_id IS NOT NULL AND rank IS NOT NULL
)
SELECT b.file_id, b.line_no, b.row_no, a.row_no
FROM numbered AS a JOIN numbered AS b USING (run_id, rank, compile_id, k) WHERE b.is_trace AND NOT a.is_trace;

-- @needs _twice compiles
UPDATE compiles SET end_lo = coalesce(compiles.end_lo, x.end_lo), end_hi = coalesce(compiles.end_hi, x.end_hi),
    duration_s = coalesce(x.duration_s, compiles.duration_s), is_recompile = coalesce(compiles.is_recompile OR x.is_recompile, compiles.is_recompile, x.is_recompile),
    restart = greatest(compiles.restart, x.restart), fn = coalesce(compiles.fn, x.fn), fn_file = coalesce(compiles.fn_file, x.fn_file),
    fn_line = coalesce(compiles.fn_line, x.fn_line), user_file = coalesce(compiles.user_file, x.user_file),
    user_line = coalesce(compiles.user_line, x.user_line), is_framework = coalesce(compiles.is_framework, x.is_framework),
    status = coalesce(nullif(compiles.status, 'started'), x.status, compiles.status), backend = coalesce(compiles.backend, x.backend),
    fail_type = coalesce(compiles.fail_type, x.fail_type), fail_reason = coalesce(compiles.fail_reason, x.fail_reason)
FROM (SELECT t.keep, c.* FROM _twice AS t JOIN compiles AS c ON c.rowid = t.row_no) AS x
WHERE compiles.rowid = x.keep;

-- @needs _twice compiles
DELETE FROM compiles WHERE rowid IN (SELECT row_no FROM _twice);

-- @needs _traces guard_failures
DELETE FROM guard_failures WHERE rowid IN (
    WITH numbered AS (
        SELECT rowid AS row_no, run_id, rank, compile_id, failed_id, nth, file_id IN (FROM _traces) AS is_trace,
            row_number() OVER (PARTITION BY run_id, rank, compile_id, failed_id, nth, file_id IN (FROM _traces) ORDER BY file_id, line_no) AS k
        FROM guard_failures WHERE compile_id IS NOT NULL AND rank IS NOT NULL
    )
    SELECT b.row_no FROM numbered AS a JOIN numbered AS b USING (run_id, rank, compile_id, failed_id, nth, k) WHERE b.is_trace AND NOT a.is_trace
);

-- @needs _traces graph_breaks
DELETE FROM graph_breaks WHERE rowid IN (
    WITH numbered AS (
        SELECT rowid AS row_no, run_id, rank, compile_id, file_id IN (FROM _traces) AS is_trace,
            row_number() OVER (PARTITION BY run_id, rank, compile_id, file_id IN (FROM _traces) ORDER BY file_id, line_no) AS k
        FROM graph_breaks WHERE compile_id IS NOT NULL AND rank IS NOT NULL
    )
    SELECT b.row_no FROM numbered AS a JOIN numbered AS b USING (run_id, rank, compile_id, k) WHERE b.is_trace AND NOT a.is_trace
);

-- @needs _traces cache_events
DELETE FROM cache_events WHERE rowid IN (
    WITH numbered AS (
        SELECT rowid AS row_no, run_id, rank, compile_id, cache, event, file_id IN (FROM _traces) AS is_trace,
            row_number() OVER (PARTITION BY run_id, rank, compile_id, cache, event, file_id IN (FROM _traces) ORDER BY file_id, line_no) AS k
        FROM cache_events WHERE compile_id IS NOT NULL AND rank IS NOT NULL
    )
    SELECT b.row_no FROM numbered AS a JOIN numbered AS b USING (run_id, rank, compile_id, cache, event, k) WHERE b.is_trace AND NOT a.is_trace
);

-- @needs _traces graphs
DELETE FROM graphs WHERE rowid IN (
    WITH numbered AS (
        SELECT rowid AS row_no, run_id, rank, compile_id, kind, file_id IN (FROM _traces) AS is_trace,
            row_number() OVER (PARTITION BY run_id, rank, compile_id, kind, file_id IN (FROM _traces) ORDER BY file_id, line_no) AS k
        FROM graphs WHERE compile_id IS NOT NULL AND rank IS NOT NULL
    ), lone AS (
        -- ranks are compared by their texts, which the two sources print differently: where a rank has the trace alone, all keep it
        SELECT run_id, kind FROM (SELECT run_id, kind, rank, bool_and(is_trace) AS only_trace FROM numbered GROUP BY ALL) GROUP BY ALL
        HAVING bool_or(only_trace)
    )
    SELECT b.row_no FROM numbered AS a JOIN numbered AS b USING (run_id, rank, compile_id, kind, k)
    WHERE b.is_trace AND NOT a.is_trace AND NOT EXISTS (FROM lone AS l WHERE l.run_id = b.run_id AND l.kind = b.kind)
);

-- A folder of torch_compile_debug repeats what the log or the trace told, under no rank and no id
CREATE OR REPLACE TEMP TABLE _debugs AS SELECT file_id FROM files WHERE kind = 'compile-debug';

-- @needs _debugs graphs
DELETE FROM graphs WHERE file_id IN (FROM _debugs)
    AND EXISTS (FROM graphs AS g WHERE g.run_id = graphs.run_id AND g.kind = graphs.kind AND g.file_id NOT IN (FROM _debugs));

-- @needs _debugs graph_breaks
DELETE FROM graph_breaks WHERE file_id IN (FROM _debugs) AND EXISTS (
    FROM graph_breaks AS g
    WHERE g.run_id = graph_breaks.run_id AND g.file_id NOT IN (FROM _debugs) AND g.reason = graph_breaks.reason
        AND g.user_file IS NOT DISTINCT FROM graph_breaks.user_file AND g.user_line IS NOT DISTINCT FROM graph_breaks.user_line
);

-- @needs graph_ops
DELETE FROM graph_ops WHERE (file_id IN (FROM _traces) OR file_id IN (FROM _debugs))
    AND NOT EXISTS (FROM graphs AS g WHERE g.file_id = graph_ops.file_id AND g.line_no = graph_ops.graph_line)
