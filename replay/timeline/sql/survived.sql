-- Exceptions that did not end their rank, as other lines of the rank tell: it took further steps or came to its end.
-- A launcher that saw the rank fail, or a failure of nobody it names, knows better: buffered output comes late.

-- @needs exceptions
CREATE OR REPLACE TEMP TABLE _alive AS
SELECT run_id, rank, file_id, line_no, FALSE AS is_end FROM step_lines WHERE rank IS NOT NULL
UNION ALL
SELECT run_id, rank, file_id, line_no, TRUE FROM activities WHERE rank IS NOT NULL AND kind = 'train-end' AND phase = 'point';

-- @needs exceptions
CREATE OR REPLACE TEMP TABLE _deaths AS
SELECT run_id, of_rank AS rank FROM exits WHERE code <> 0 OR signal IS NOT NULL OR is_first
UNION ALL SELECT run_id, rank FROM crashes
UNION ALL SELECT run_id, rank FROM timeouts;

-- @needs exceptions
UPDATE exceptions SET is_uncaught = FALSE
WHERE is_uncaught AND rank IS NOT NULL
    AND EXISTS (
        FROM _alive AS a WHERE a.run_id = exceptions.run_id AND a.rank = exceptions.rank
            AND (a.is_end OR a.file_id = exceptions.file_id)
            AND (a.file_id <> exceptions.file_id OR a.line_no > exceptions.line_no)
    )
    AND NOT EXISTS (
        FROM _deaths AS d WHERE d.run_id = exceptions.run_id AND coalesce(d.rank = exceptions.rank, TRUE)
    );
