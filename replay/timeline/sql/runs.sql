-- Runs: by folder and attempt, and within a file where a rank begins again after its end, where a launcher starts its ranks
-- anew, where steps begin anew after an end, or where the same steps begin again under another label ("mode=compiled").

CREATE OR REPLACE TEMP TABLE _marks (file_id INTEGER, rank INTEGER, line_no BIGINT, begins BOOLEAN, pid BIGINT);

-- @needs activities
INSERT INTO _marks
SELECT r.file_id, coalesce(r.rank, -1), a.line_no, a.kind = 'init', NULL
FROM activities AS a JOIN _ranks AS r USING (writer_id)
WHERE a.kind = 'init' OR (a.kind = 'train-end' AND a.phase = 'point');

-- @needs exceptions
INSERT INTO _marks
SELECT r.file_id, coalesce(r.rank, -1), e.line_no, FALSE, NULL
FROM exceptions AS e JOIN _ranks AS r USING (writer_id) WHERE e.is_uncaught;

-- @needs crashes
INSERT INTO _marks SELECT r.file_id, coalesce(r.rank, -1), c.line_no, FALSE, NULL FROM crashes AS c JOIN _ranks AS r USING (writer_id);

-- @needs comms
INSERT INTO _marks
SELECT m.file_id, m.comm_rank, m.first_line, TRUE, m.pid FROM _members AS m
WHERE EXISTS (FROM _members AS o WHERE o.file_id = m.file_id AND o.comm_rank = m.comm_rank AND o.pid <> m.pid);

-- How often each rank began again, up to each of its beginnings; a process that is another is a new beginning
CREATE OR REPLACE TEMP TABLE _boundaries AS
WITH ordered AS (
    SELECT file_id, rank, line_no, begins, pid, lag(begins) OVER w AS before,
        max(pid) OVER (PARTITION BY file_id, rank ORDER BY line_no, begins ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS pid_before
    FROM _marks WINDOW w AS (PARTITION BY file_id, rank ORDER BY line_no, begins)
), counted AS (
    SELECT file_id, rank, line_no, begins, sum(IF(begins AND (NOT before OR pid <> pid_before), 1, 0)) OVER (
        PARTITION BY file_id, rank ORDER BY line_no, begins) AS gen
    FROM ordered
), crowd AS (
    SELECT file_id, count(DISTINCT rank) AS ranks FROM _marks GROUP BY file_id
)
SELECT c.file_id, c.gen::INTEGER AS gen, min(c.line_no) AS line_no, NULL::VARCHAR AS label
FROM counted AS c JOIN crowd AS n USING (file_id)
WHERE c.begins AND c.gen > 0
GROUP BY c.file_id, c.gen, n.ranks
HAVING count(DISTINCT c.rank) * 2 >= n.ranks;

-- Consoles that hold all attempts of a launcher, or jobs one behind the other: files in which ranks write, none of them by attempts
CREATE OR REPLACE TEMP TABLE _consoles AS
SELECT f.file_id FROM files AS f
WHERE EXISTS (FROM _ranks AS r WHERE r.file_id = f.file_id AND r.rank IS NOT NULL)
    AND NOT EXISTS (FROM files AS o WHERE o.run_key = f.run_key AND o.attempt > 0)
    AND NOT EXISTS (FROM _boundaries AS b WHERE b.file_id = f.file_id);

-- torchrun says once an attempt which process failed, and of the last one in a table too; what comes behind is the next attempt
-- @needs exits
INSERT INTO _boundaries
WITH failed AS (
    SELECT e.file_id, coalesce(e.pid, r.pid) AS agent, max(e.line_no) AS line_no, max(coalesce(l.t_hi, l.t_lo)) AS t
    FROM exits AS e JOIN _ranks AS r USING (writer_id) JOIN lines AS l ON l.file_id = e.file_id AND l.line_no = e.line_no
    WHERE e.reporter = 'torchrun' AND e.is_first IS NULL AND e.file_id IN (SELECT file_id FROM _consoles)
        AND NOT EXISTS (FROM exits AS o WHERE o.file_id = e.file_id AND o.of_pid = e.of_pid AND o.is_first IS NOT NULL)
    GROUP BY e.file_id, agent, e.of_pid
), attempts AS (
    SELECT *, row_number() OVER (PARTITION BY file_id, agent ORDER BY line_no) AS nth FROM failed WHERE agent IS NOT NULL
), ended AS (
    SELECT file_id, nth, max(line_no) AS line_no, max(t) AS t FROM attempts GROUP BY ALL
)
SELECT e.file_id, e.nth::INTEGER, e.line_no + 1, NULL FROM ended AS e
WHERE EXISTS (FROM exits AS o WHERE o.file_id = e.file_id AND o.reporter = 'torchrun' AND o.line_no > e.line_no)
    OR EXISTS (
        FROM lines AS l JOIN _ranks AS r USING (writer_id)
        WHERE l.file_id = e.file_id AND l.line_no > e.line_no AND r.rank IS NOT NULL AND l.t_lo = l.t_hi AND l.t_lo > e.t);

-- Jobs one behind the other: an end was told, and later, by the clock too, ranks are at their first step again
-- @needs exits step_lines
INSERT INTO _boundaries
WITH stepped AS (
    SELECT s.file_id, coalesce(r.rank, -1) AS rank, s.line_no, s.step, l.t_lo AS t, lag(s.line_no) OVER w AS line_before, lag(s.step) OVER w AS step_before,
        lag(l.t_lo) OVER w AS t_before, first(s.step) OVER w AS step_first
    FROM step_lines AS s JOIN _ranks AS r USING (writer_id) JOIN lines AS l ON l.file_id = s.file_id AND l.line_no = s.line_no
    WHERE s.file_id IN (SELECT file_id FROM _consoles) AND s.file_id NOT IN (SELECT file_id FROM _boundaries)
        AND s.step IS NOT NULL AND l.t_lo = l.t_hi
    WINDOW w AS (PARTITION BY s.file_id, coalesce(r.rank, -1) ORDER BY s.line_no)
), again AS (
    SELECT s.file_id, s.rank, s.line_no, max(l.line_end) AS ended, max(l.t) AS t_ended
    FROM stepped AS s
    JOIN (
        SELECT e.file_id, e.line_no AS line_end, l.t_lo AS t FROM exits AS e JOIN lines AS l ON l.file_id = e.file_id AND l.line_no = e.line_no
    ) AS l ON l.file_id = s.file_id AND l.line_end BETWEEN s.line_before AND s.line_no AND coalesce(l.t BETWEEN s.t_before - 1 AND s.t, TRUE)
    WHERE s.step <= s.step_first AND s.step < s.step_before AND s.t > s.t_before
    GROUP BY ALL
), counted AS (
    SELECT *, row_number() OVER (PARTITION BY file_id, rank ORDER BY line_no) AS gen FROM again
), crowd AS (
    SELECT file_id, count(DISTINCT rank) AS ranks FROM stepped GROUP BY file_id
)
SELECT c.file_id, c.gen::INTEGER,  -- the rest of a launcher's table has its time
    (SELECT min(l.line_no) FROM lines AS l WHERE l.file_id = c.file_id AND l.line_no > min(c.ended) AND coalesce(l.t_hi, l.t_lo, 'infinity'::DOUBLE) > coalesce(min(c.t_ended), '-infinity'::DOUBLE)), NULL
FROM counted AS c JOIN crowd AS n USING (file_id)
GROUP BY c.file_id, c.gen, n.ranks
HAVING count(DISTINCT c.rank) * 2 >= n.ranks;

-- The same steps once more under another label: texts on step lines that stand in one block each, steps going back between
-- @needs step_lines metrics
INSERT INTO _boundaries
WITH labels AS (
    SELECT m.file_id, coalesce(r.rank, -1) AS rank, m.name, m.text, m.step, m.line_no,
        lag(m.text) OVER w AS text_before, lag(m.step) OVER w AS step_before
    FROM metrics AS m JOIN _ranks AS r USING (writer_id)
    WHERE m.value IS NULL AND m.step IS NOT NULL AND m.epoch IS NULL
        AND NOT EXISTS (FROM _boundaries AS b WHERE b.file_id = m.file_id)
    WINDOW w AS (PARTITION BY m.file_id, coalesce(r.rank, -1), m.name ORDER BY m.line_no)
), blocks AS (
    SELECT file_id, rank, name, text, min(line_no) AS line_no, min(step) AS first_step, count(*) AS steps,
        count(*) FILTER (text IS DISTINCT FROM text_before) AS blocks,
        bool_and(step <= step_before) FILTER (text <> text_before) AS goes_back
    FROM labels GROUP BY ALL
), names AS (
    SELECT file_id, name FROM blocks
    GROUP BY ALL
    HAVING count(DISTINCT text) > 1 AND bool_and(blocks = 1 AND steps > 1 AND coalesce(goes_back, TRUE))
        AND min(first_step) = max(first_step)
        AND NOT bool_or(lower(text) IN ('train', 'training', 'eval', 'evaluation', 'val', 'valid', 'validation', 'test', 'warmup'))
), chosen AS (
    SELECT file_id, min(name) AS name FROM names GROUP BY file_id
), parts AS (
    SELECT b.file_id, b.text, min(b.line_no) AS line_no, b.name || '=' || b.text AS label
    FROM blocks AS b JOIN chosen USING (file_id, name) GROUP BY ALL
)
SELECT file_id, (row_number() OVER (PARTITION BY file_id ORDER BY line_no) - 1)::INTEGER, line_no, label FROM parts;

-- Files of a whole launcher: no rank writes there, and others of the same folder have attempts or keys of their own
CREATE OR REPLACE TEMP TABLE _shared AS
WITH places AS (
    SELECT f.file_id, f.run_key AS key, coalesce(f.attempt, 0) AS attempt, bool_or(r.rank IS NOT NULL) AS has_rank
    FROM files AS f LEFT JOIN _ranks AS r USING (file_id) WHERE f.kind NOT IN ('empty', 'binary', 'unreadable', 'source')
    GROUP BY ALL
)
SELECT p.file_id, p.key FROM places AS p
WHERE NOT coalesce(p.has_rank, FALSE) AND (
    (p.attempt = 0 AND EXISTS (FROM places AS o WHERE o.key = p.key AND o.attempt > 0))
    OR (p.key = '' AND EXISTS (FROM places AS o WHERE o.key <> '')
        AND NOT EXISTS (FROM places AS o WHERE o.key = '' AND o.has_rank)));

CREATE OR REPLACE TEMP TABLE _parts AS
SELECT f.file_id, f.run_key AS key, coalesce(f.attempt, 0) AS attempt, coalesce(b.gen, 0) AS gen, b.label,
    coalesce(b.line_no, 0) AS first_line,
    coalesce(lead(b.line_no) OVER (PARTITION BY f.file_id ORDER BY b.gen), 9223372036854775807) - 1 AS last_line
FROM files AS f
LEFT JOIN (
    SELECT file_id, gen, IF(gen = 0, 0, line_no) AS line_no, label FROM _boundaries
    UNION ALL
    SELECT DISTINCT file_id, 0, 0, NULL FROM _boundaries AS b
    WHERE NOT EXISTS (FROM _boundaries AS z WHERE z.file_id = b.file_id AND z.gen = 0)
) AS b USING (file_id)
WHERE f.kind NOT IN ('binary', 'unreadable', 'source');

-- Lines without a stamp have their bounds from neighbours; those of another run are none
UPDATE lines SET t_lo = greatest(lines.t_lo, s.t_first), t_hi = least(lines.t_hi, s.t_last)
FROM (
    SELECT p.file_id, p.first_line, p.last_line, min(l.t_lo) AS t_first, max(l.t_hi) AS t_last
    FROM _parts AS p JOIN lines AS l ON l.file_id = p.file_id AND l.line_no BETWEEN p.first_line AND p.last_line AND l.t_lo = l.t_hi
    WHERE p.file_id IN (SELECT file_id FROM _boundaries)
    GROUP BY ALL
) AS s
WHERE lines.file_id = s.file_id AND lines.line_no BETWEEN s.first_line AND s.last_line AND lines.t_lo < lines.t_hi
    AND (lines.t_lo < s.t_first OR lines.t_hi > s.t_last) AND greatest(lines.t_lo, s.t_first) <= least(lines.t_hi, s.t_last);

-- Numbers in time order: folders by their first stamp, then by name; attempts and restarts in their order
CREATE OR REPLACE TEMP TABLE _runs AS
WITH whole AS (
    SELECT p.key, p.attempt, p.gen, any_value(p.label) AS label, min(p.file_id) AS file_id
    FROM _parts AS p
    WHERE p.file_id NOT IN (SELECT file_id FROM _shared)
    GROUP BY ALL
), begun AS (
    SELECT run_key AS key, min(t_first) AS t FROM files GROUP BY run_key
)
SELECT (row_number() OVER (ORDER BY b.t NULLS LAST, w.key, w.attempt, w.gen))::INTEGER AS run_id, w.key, w.attempt, w.gen,
    w.label
FROM whole AS w LEFT JOIN begun AS b USING (key);

INSERT INTO runs (run_id, key, name, attempt)
SELECT run_id, concat_ws('/', nullif(key, ''), IF(attempt > 0 OR n > 1, 'attempt_' || attempt, NULL), IF(gen > 0, 'restart_' || gen, NULL)),
    coalesce(concat_ws(', ', nullif(key, ''), IF(n > 1, 'attempt ' || attempt, NULL), label, IF(gen > 0 AND label IS NULL, 'restart ' || gen, NULL)), ''),
    attempt + IF(label IS NULL, gen, 0)
FROM (SELECT *, count(*) FILTER (TRUE) OVER (PARTITION BY key) - count(*) FILTER (gen > 0) OVER (PARTITION BY key) AS n FROM _runs);

-- Writers belong to the first run of their file; lines of later runs in the same file are moved below
CREATE OR REPLACE TEMP TABLE _file_runs AS
SELECT p.file_id, r.run_id FROM _parts AS p JOIN _runs AS r USING (key, attempt, gen)
WHERE p.gen = 0 AND p.file_id NOT IN (SELECT file_id FROM _shared);

CREATE OR REPLACE TEMP TABLE _line_runs AS
SELECT l.file_id, l.line_no, r.run_id
FROM _parts AS p JOIN _runs AS r USING (key, attempt, gen)
JOIN lines AS l ON l.file_id = p.file_id AND l.line_no BETWEEN p.first_line AND p.last_line
WHERE p.gen > 0;

-- Lines of a launcher belong to the run that was going on; those before the first to the first, those without time to the last
INSERT INTO _line_runs
WITH begun AS (
    SELECT w.key, f.run_id, min(l.t_lo) AS t
    FROM _file_runs AS f JOIN lines AS l USING (file_id) JOIN _runs AS w ON w.run_id = f.run_id
    WHERE l.t_lo IS NOT NULL GROUP BY ALL
), known AS (
    SELECT s.file_id, b.run_id, b.t FROM _shared AS s JOIN begun AS b ON s.key = '' OR b.key = s.key
), edges AS (
    SELECT s.file_id, min(w.run_id) AS first_run, max(w.run_id) AS last_run
    FROM _shared AS s JOIN _runs AS w ON s.key = '' OR w.key = s.key GROUP BY s.file_id
)
SELECT l.file_id, l.line_no,
    CASE WHEN coalesce(l.t_lo, l.t_hi) IS NULL THEN e.last_run
        ELSE coalesce((SELECT arg_max(k.run_id, (k.t, k.run_id)) FROM known AS k WHERE k.file_id = l.file_id AND k.t <= coalesce(l.t_lo, l.t_hi)), e.first_run) END
FROM lines AS l JOIN edges AS e USING (file_id);

INSERT INTO _file_runs
SELECT s.file_id, min(l.run_id) FROM _shared AS s JOIN _line_runs AS l USING (file_id) GROUP BY s.file_id;

UPDATE writers SET run_id = r.run_id, rank = r.rank, how = r.how
FROM (
    SELECT w.writer_id, f.run_id, w.rank,
        coalesce(w.how, IF((SELECT count(*) FROM _ranks AS o WHERE o.key = w.key AND o.attempt = w.attempt) = 1, 'single', 'none')) AS how
    FROM _ranks AS w LEFT JOIN _file_runs AS f USING (file_id)
) AS r
WHERE writers.writer_id = r.writer_id;

-- What rows get: a host or process that the writer does not say is that of its rank, where it has one only
CREATE OR REPLACE TEMP TABLE _fill AS
SELECT w.writer_id, w.run_id, w.rank, coalesce(r.host, h.host) AS host, coalesce(r.pid, h.pid) AS pid
FROM writers AS w JOIN _ranks AS r USING (writer_id)
LEFT JOIN _homes AS h ON h.key = r.key AND h.attempt = r.attempt AND h.rank = r.rank
