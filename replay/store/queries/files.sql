-- the files: what they are and how much of each was understood
SELECT path, kind, lines, parsed, continuation, plain, malformed, wrapper
FROM files
ORDER BY path
