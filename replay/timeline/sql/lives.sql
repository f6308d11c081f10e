-- From when to when a process can have said anything: an agent tells which ranks it is about to start, and a launcher sees the
-- end. A time that names a whole second may be anywhere in it.

CREATE OR REPLACE TEMP TABLE _bounds_of (run_id INTEGER, rank INTEGER, is_end BOOLEAN, lo DOUBLE, hi DOUBLE);

-- @needs env
INSERT INTO _bounds_of
SELECT run_id, unnest(regexp_extract_all(value, '[0-9]+')::INTEGER[]) AS rank, FALSE, min(t_lo), NULL
FROM env WHERE name = 'global_ranks' AND t_lo IS NOT NULL GROUP BY run_id, value;

-- @needs exits
INSERT INTO _bounds_of
SELECT run_id, of_rank, TRUE, NULL, min(coalesce(t_exit + 1, t_hi))
FROM exits WHERE of_rank IS NOT NULL AND coalesce(t_exit, t_hi) IS NOT NULL AND (code IS NOT NULL OR signal IS NOT NULL) GROUP BY ALL
