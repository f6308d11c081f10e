-- One stream over all event tables: kind, severity and a line for a person.

CREATE OR REPLACE TEMP TABLE _events (run_id INTEGER, rank INTEGER, host VARCHAR, pid BIGINT, t_lo DOUBLE, t_hi DOUBLE, kind VARCHAR, severity VARCHAR,
    ref_table VARCHAR, summary VARCHAR, complete BOOLEAN, file_id INTEGER, line_no BIGINT);

-- @needs problems
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'problem', 'warning', 'problems', concat_ws(': ', kind, text), complete, file_id, line_no FROM problems;
-- @needs log_messages
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'message', IF(level = 'critical', 'error', coalesce(level, 'info')), 'log_messages', text, complete, file_id, line_no FROM log_messages;
-- @needs env
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'setting', 'debug', 'env', name || '=' || value, complete, file_id, line_no FROM env;
-- @needs packages
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'package', 'debug', 'packages', concat_ws(' ', name, version, 'for ' || built_for), complete, file_id, line_no FROM packages;
-- @needs compiles
INSERT INTO _events
SELECT run_id, rank, host, pid, t_lo, t_hi, IF(is_recompile, 'recompile', 'compile'), CASE WHEN status = 'failed' THEN 'error' WHEN is_recompile AND NOT coalesce(is_framework, FALSE) THEN 'warning' ELSE 'info' END,
    'compiles', concat_ws(' ', IF(is_recompile, 'recompile', 'compile'), coalesce(fn, 'a frame'), '[' || compile_id || ']', round(duration_s, 3) || ' s', fail_type), complete, file_id, line_no
FROM compiles;
-- @needs guard_failures
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'guard-failure', IF(coalesce(is_framework, FALSE), 'info', 'warning'), 'guard_failures', concat_ws(' ', 'guard failed', '[' || failed_id || ']:', reason), complete, file_id, line_no FROM guard_failures;
-- @needs recompile_limits
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'recompile-limit', 'warning', 'recompile_limits', concat_ws(' ', limit_name, limit_value, 'reached by', fn), complete, file_id, line_no FROM recompile_limits;
-- @needs graph_breaks
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'graph-break', CASE WHEN is_fatal THEN 'error' WHEN is_framework THEN 'debug' ELSE 'info' END, 'graph_breaks', concat_ws(' ', 'graph break:', coalesce(gb_type, reason)), complete, file_id, line_no FROM graph_breaks;
-- @needs graphs
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'graph', 'debug', 'graphs', concat_ws(' ', kind, 'graph', '[' || compile_id || ']') || coalesce(', ' || ops || ' ops', ''), complete, file_id, line_no FROM graphs;
-- @needs cache_events
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'cache', IF(event = 'corrupt', 'warning', 'debug'), 'cache_events', concat_ws(' ', cache, 'cache', event, reason), complete, file_id, line_no FROM cache_events;
-- @needs autotune
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'autotune', 'debug', 'autotune', concat_ws(' ', op, shape, choice, time_ms || ' ms'), complete, file_id, line_no FROM autotune WHERE is_best;
-- @needs cudagraphs
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'cudagraph', IF(event IN ('overwritten', 'error'), 'error', 'info'), 'cudagraphs', concat_ws(' ', 'cudagraph', event, reason), complete, file_id, line_no FROM cudagraphs;
-- @needs comms
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'communicator', 'info', 'comms', concat_ws(' ', fn, event, 'rank ' || comm_rank, 'of ' || nranks, comm_id), complete, file_id, line_no FROM comms WHERE event IN ('start', 'complete', 'destroy', 'abort', 'finalize', 'revoke');
-- @needs net_devices
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'network', 'debug', 'net_devices', concat_ws(' ', transport, name, address, IF(NOT usable, 'not usable', NULL)), complete, file_id, line_no FROM net_devices;
-- @needs nccl_warnings
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'nccl-warning', IF(level IN ('warn', 'attn'), 'warning', 'info'), 'nccl_warnings', text, complete, file_id, line_no FROM nccl_warnings;
-- @needs ras_reports
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'ras', IF(comm_rank IS NULL, 'info', 'warning'), 'ras_reports', text, complete, file_id, line_no FROM ras_reports;
-- @needs collectives
INSERT INTO _events
SELECT run_id, rank, host, pid, t_lo, t_hi, 'collective', IF(state = 'timed-out', 'error', 'debug'), 'collectives',
    concat_ws(' ', op, '#' || coalesce(logged_seq, nth), count || ' x ' || dtype, 'root ' || root, 'peer ' || peer, 'on ' || comm, state), complete, file_id, line_no
FROM collectives;
-- @needs mismatches
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'mismatch', 'error', 'mismatches', concat_ws(' ', aspect, 'differs:', mine, 'here,', theirs, 'on rank ' || other_rank), complete, file_id, line_no FROM mismatches;
-- @needs timeouts
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'timeout', 'error', 'timeouts', concat_ws(' ', kind, 'timeout', 'of ' || op, '#' || logged_seq, 'after ' || ran_ms || ' ms'), complete, file_id, line_no FROM timeouts;
-- @needs peer_losses
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'peer-loss', 'error', 'peer_losses', concat_ws(' ', 'connection', kind, 'by ' || peer, '(' || layer || ')'), complete, file_id, line_no FROM peer_losses;
-- @needs exceptions
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'exception', IF(is_uncaught, 'error', 'warning'), 'exceptions', concat_ws(': ', type, message), complete, file_id, line_no FROM exceptions;
-- @needs crashes
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'crash', 'error', 'crashes', coalesce(text, signal), complete, file_id, line_no FROM crashes;
-- @needs exits
INSERT INTO _events
SELECT run_id, coalesce(of_rank, rank), coalesce(of_host, host), coalesce(of_pid, pid), coalesce(t_lo, t_exit), coalesce(t_hi, t_exit), 'exit', IF(code = 0, 'info', 'error'), 'exits',
    concat_ws(' ', reporter, 'says: rank ' || of_rank, 'exited with', coalesce(signal, code::VARCHAR)), complete, file_id, line_no
FROM exits;
-- @needs signals
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'signal', 'warning', 'signals', concat_ws(' ', signal, direction, 'to ' || of_pid, reason), complete, file_id, line_no FROM signals;
-- @needs device_faults
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'device-fault', 'error', 'device_faults', concat_ws(' ', kind, code, bus_id, text), complete, file_id, line_no FROM device_faults;
-- @needs memory
INSERT INTO _events
SELECT run_id, rank, host, pid, t_lo, t_hi, 'memory', IF(kind IN ('cuda-oom', 'host-oom', 'alloc-failed'), 'error', 'debug'), 'memory', concat_ws(' ', kind, round(coalesce(requested_mb, used_mb), 1) || ' MiB'), complete, file_id, line_no
FROM memory;
-- @needs activities
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'activity', 'info', 'activities', text, complete, file_id, line_no FROM activities WHERE phase <> 'progress';
-- @needs step_lines
INSERT INTO _events
SELECT s.run_id, s.rank, s.host, s.pid, s.t_lo, s.t_hi, 'step', 'info', 'step_lines', concat_ws(' ', 'step ' || s.step || coalesce('/' || s.total, ''), 'epoch ' || s.epoch, l.text), s.complete, s.file_id, s.line_no
FROM step_lines AS s
LEFT JOIN (SELECT file_id, line_no, string_agg(name || ' ' || text, ' ' ORDER BY rowid) AS text FROM metrics GROUP BY ALL) AS l USING (file_id, line_no);
-- @needs flight_records
INSERT INTO _events SELECT run_id, rank, host, pid, t_lo, t_hi, 'flight-record', 'debug', 'flight_records', concat_ws(' ', op, '#' || collective_seq, state, group_name), complete, file_id, line_no FROM flight_records;

-- Time first, then place: what a stream wrote in one moment stays in its order
INSERT INTO events (
    seq, run_id, rank, host, pid, t_lo, t_hi, kind, severity, ref_table, summary, complete, file_id, line_no)
SELECT row_number() OVER (ORDER BY run_id, coalesce(t_lo, t_hi) NULLS LAST, t_hi, file_id, line_no, ref_table, summary), run_id, rank, host, pid, t_lo, t_hi, kind, severity, ref_table,
    left(summary, 400), complete, file_id, line_no
FROM _events
ORDER BY 1
