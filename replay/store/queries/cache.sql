-- how often compile caches were hit
SELECT rank, cache, hits, misses, bypasses, round(hit_rate, 3) AS hit_rate
FROM cache_rate
