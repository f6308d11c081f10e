-- The last thing that each rank said of what it did. Stamps decide between files, places within one.

CREATE OR REPLACE TEMP TABLE _said_last (run_id INTEGER, rank INTEGER, kind VARCHAR, summary VARCHAR, t DOUBLE, file_id INTEGER, line_no BIGINT);

-- @needs step_lines
INSERT INTO _said_last SELECT run_id, rank, 'step', 'reported step ' || step, coalesce(t_hi, t_lo), file_id, line_no FROM step_lines WHERE step IS NOT NULL;
-- @needs activities
INSERT INTO _said_last SELECT run_id, rank, IF(kind = 'train-end', 'done', 'activity'), coalesce(text, kind), coalesce(t_hi, t_lo), file_id, line_no FROM activities;
-- @needs compiles
INSERT INTO _said_last
SELECT run_id, rank, 'compile', IF(is_recompile, 'recompiled ', 'compiled ') || coalesce(fn, compile_id, ''), coalesce(end_hi, t_hi, t_lo), file_id, line_no FROM compiles;
-- @needs collectives
INSERT INTO _said_last
SELECT run_id, rank, 'collective', op || coalesce(' #' || coalesce(logged_seq, nth), '') || coalesce(' on ' || comm, ''), coalesce(exit_hi, t_hi, t_lo), file_id, line_no FROM collectives;
-- @needs exceptions
INSERT INTO _said_last SELECT run_id, rank, 'exception', concat_ws(': ', type, message), coalesce(t_hi, t_lo), file_id, line_no FROM exceptions;
-- @needs timeouts
INSERT INTO _said_last SELECT run_id, rank, 'timeout', concat_ws(' ', kind, 'timeout', 'of ' || op, '#' || logged_seq), coalesce(t_hi, t_lo), file_id, line_no FROM timeouts;
-- @needs crashes
INSERT INTO _said_last SELECT run_id, rank, 'crash', coalesce(text, signal), coalesce(t_hi, t_lo), file_id, line_no FROM crashes;
-- @needs log_messages
INSERT INTO _said_last SELECT run_id, rank, 'message', text, coalesce(t_hi, t_lo), file_id, line_no FROM log_messages;

INSERT INTO last_words (
    run_id, rank, kind, summary, t, silent_s, file_id, line_no)
SELECT k.run_id, k.rank, coalesce(w.kind, 'plain'), left(coalesce(w.summary, l.text), 400), coalesce(w.t, k.last_t), round(r.t_last - k.last_t, 6),
    coalesce(w.file_id, k.last_file), coalesce(w.line_no, k.last_line)
FROM ranks AS k
JOIN runs AS r USING (run_id)
LEFT JOIN (
    SELECT run_id, rank, arg_max({'kind': kind, 'summary': summary, 't': t, 'f': file_id, 'l': line_no}, (coalesce(t, '-infinity'::DOUBLE), file_id, line_no, kind)) AS x
    FROM _said_last WHERE rank IS NOT NULL GROUP BY ALL
) AS b ON b.run_id = k.run_id AND b.rank = k.rank
LEFT JOIN LATERAL (SELECT b.x.kind AS kind, b.x.summary AS summary, b.x.t AS t, b.x.f AS file_id, b.x.l AS line_no) AS w ON TRUE
LEFT JOIN lines AS l ON l.file_id = k.last_file AND l.line_no = k.last_line
WHERE k.heard
ORDER BY k.run_id, k.rank
