-- graph breaks of your code, the most frequent first
SELECT count(*) AS times, ranks_text(list(DISTINCT rank)) AS ranks, user_file, user_line, user_fn, kind, any_value(reason) AS reason
FROM graph_breaks
WHERE NOT coalesce(is_framework, FALSE)
GROUP BY user_file, user_line, user_fn, kind
ORDER BY times DESC, user_file, user_line
