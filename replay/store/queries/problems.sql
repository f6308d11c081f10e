-- what was odd about the input
SELECT p.kind, p.text, f.path, p.line_no
FROM problems AS p
LEFT JOIN files AS f USING (file_id)
ORDER BY p.kind, f.path, p.line_no
