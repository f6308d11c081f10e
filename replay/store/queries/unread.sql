-- lines that look like PyTorch's or NCCL's and that no grammar takes
SELECT f.path, l.line_no, l.text
FROM lines AS l
JOIN files AS f USING (file_id)
WHERE l.class = 'malformed'
ORDER BY f.path, l.line_no
