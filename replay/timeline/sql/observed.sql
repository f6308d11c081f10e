-- What could have been seen of each rank. What one rank logged all would have: they share their settings, as a rule.

CREATE OR REPLACE TEMP TABLE _evidence (run_id INTEGER, rank INTEGER, what VARCHAR);

-- @needs compiles
INSERT INTO _evidence SELECT DISTINCT run_id, rank, unnest(['compiles', 'recompiles']) FROM compiles;
-- @needs guard_failures
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'recompiles' FROM guard_failures;
-- @needs graph_breaks
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'graph_breaks' FROM graph_breaks;
-- @needs graphs
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'graphs' FROM graphs;
-- @needs cache_events
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'cache' FROM cache_events;
-- @needs comms
INSERT INTO _evidence SELECT DISTINCT run_id, rank, unnest(['nccl-init', 'nccl-warn']) FROM comms;
-- @needs channels
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'nccl-channels' FROM channels;
-- @needs nccl_warnings
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'nccl-warn' FROM nccl_warnings;
-- @needs collectives
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'nccl-coll' FROM collectives WHERE source IN ('nccl-coll', 'nccl-call');
-- @needs timeouts
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'watchdog' FROM timeouts;
-- @needs exceptions
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'watchdog' FROM exceptions;
-- @needs flight_records
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'flight-recorder' FROM flight_records;
-- @needs step_lines
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'steps' FROM step_lines;
-- @needs metrics
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'metrics' FROM metrics;
-- @needs env
INSERT INTO _evidence SELECT DISTINCT run_id, rank, 'env' FROM env;
-- @needs exits
INSERT INTO _evidence SELECT DISTINCT run_id, NULL::INTEGER, 'exit' FROM exits;

INSERT INTO _evidence
SELECT DISTINCT w.run_id, w.rank, unnest(['compiles', 'recompiles', 'graph_breaks', 'graphs', 'cache'])
FROM files AS f JOIN writers AS w USING (file_id) WHERE f.kind = 'trace';

INSERT INTO _evidence
SELECT DISTINCT w.run_id, w.rank, 'watchdog' FROM files AS f JOIN writers AS w USING (file_id) WHERE f.stream = 'stderr' AND f.lines > 0;

INSERT INTO observed (
    run_id, rank, what, is_on, how)
WITH told AS (
    SELECT DISTINCT run_id, rank, what FROM _evidence WHERE run_id IS NOT NULL
), shared AS (
    SELECT DISTINCT run_id, what FROM told WHERE what NOT IN ('steps', 'metrics', 'exit', 'env', 'watchdog', 'flight-recorder')
)
SELECT run_id, rank, what, TRUE, 'its lines' FROM told WHERE rank IS NOT NULL OR what = 'exit'
UNION ALL
SELECT s.run_id, k.rank, s.what, TRUE, 'another rank logged it'
FROM shared AS s JOIN ranks AS k USING (run_id)
WHERE k.heard AND NOT EXISTS (FROM told AS t WHERE t.run_id = s.run_id AND t.rank = k.rank AND t.what = s.what)
UNION ALL
-- NCCL told of its communicators, and no rank of any operation: COLL was not among its subsystems
SELECT s.run_id, k.rank, 'nccl-coll', FALSE, 'NCCL_DEBUG_SUBSYS lacks COLL'
FROM shared AS s JOIN ranks AS k USING (run_id)
WHERE s.what = 'nccl-init' AND k.heard AND NOT EXISTS (FROM shared AS o WHERE o.run_id = s.run_id AND o.what = 'nccl-coll')
ORDER BY ALL
