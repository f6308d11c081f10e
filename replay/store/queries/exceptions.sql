-- Python exceptions
SELECT run_id, rank, type, message, category, user_file, user_line, user_fn
FROM exceptions
ORDER BY run_id, t_lo NULLS LAST, rank, file_id, line_no
