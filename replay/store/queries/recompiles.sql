-- recompiles of your code: which rank, which function, which guard, how long
SELECT rank, compile_id, fn, user_file, user_line, kind, source, expected, actual, round(duration_s, 3) AS seconds, path, line_no
FROM recompiles
