-- What ranks agreed on at each operation that they share (sql/operations.sql puts them side by side).

-- @needs collectives
INSERT INTO matched (
    run_id, comm_id, source, nth, op, ranks, missing, odd, agreed, odd_aspect, majority, minority, is_last, skipped, first_enter, last_enter, last_rank, file_id, line_no)
WITH reference AS (
    SELECT run_id, comm_id, source, spot, sig, op, n
    FROM (
        SELECT run_id, comm_id, source, spot, sig, any_value(op) AS op, count(*) AS n, min(rank) AS low FROM _aligned GROUP BY ALL
    )
    QUALIFY row_number() OVER (PARTITION BY run_id, comm_id, source, spot ORDER BY n DESC, low) = 1
), members AS (
    SELECT run_id, comm_id, source, rank, min(spot) AS first, max(spot) AS last, max(pos) AS last_pos, any_value(start) AS start, any_value(shift) AS shift,
        bool_and(has_counter) AS has_counter
    FROM _aligned GROUP BY ALL
), ends AS (
    SELECT run_id, comm_id, source, max(last) AS last, min(first) AS first FROM members GROUP BY ALL
), missing AS (
    -- A rank misses an operation if it stopped before it, or if a shift says that it left it out and it stopped soon after;
    -- else its line was lost
    SELECT r.run_id, r.comm_id, r.source, r.spot, list(m.rank ORDER BY m.rank) AS ranks,
        list(m.rank ORDER BY m.rank) FILTER (r.spot <= m.last) AS skipped
    FROM reference AS r
    JOIN members AS m USING (run_id, comm_id, source)
    LEFT JOIN _aligned AS a ON a.run_id = r.run_id AND a.comm_id = r.comm_id AND a.source = r.source AND a.spot = r.spot AND a.rank = m.rank
    WHERE a.rank IS NULL AND r.source NOT IN ('watchdog', 'fingerprint')
        AND (r.spot > m.last OR (m.shift > 0 AND r.spot >= m.start AND r.spot < m.start + m.shift AND m.last - r.spot < 64))
    GROUP BY ALL
), whole AS (
    SELECT a.run_id, a.comm_id, a.source, a.spot, any_value(r.op) AS op, list(a.rank ORDER BY a.rank) AS ranks,
        list(a.rank ORDER BY a.rank) FILTER (a.sig <> r.sig) AS odd,
        any_value(r.sig) AS majority, min(a.sig) FILTER (a.sig <> r.sig) AS minority,
        min(a.t) AS first_enter, max(a.t) AS last_enter, arg_max(a.rank, (a.t, -a.rank)) AS last_rank, count(a.t) AS timed, count(*) AS n,
        arg_min(a.place, (a.rank)) FILTER (a.sig <> r.sig) AS odd_place, arg_max(a.place, (coalesce(a.t, 0), -a.rank)) AS last_place
    FROM _aligned AS a JOIN reference AS r USING (run_id, comm_id, source, spot)
    GROUP BY ALL
)
SELECT w.run_id, w.comm_id, w.source, w.spot, w.op, w.ranks, coalesce(m.ranks, []), coalesce(w.odd, []), list_filter(w.ranks, lambda x: NOT list_contains(coalesce(w.odd, []), x)),
    CASE WHEN w.odd IS NULL THEN NULL
        WHEN split_part(w.majority, '|', 1) <> split_part(w.minority, '|', 1) THEN 'op'
        WHEN split_part(w.majority, '|', 3) <> split_part(w.minority, '|', 3) THEN 'dtype'
        WHEN split_part(w.majority, '|', 2) <> split_part(w.minority, '|', 2) THEN 'count'
        WHEN w.source IN ('watchdog', 'fingerprint', 'flight-recorder') THEN 'count'
        WHEN split_part(w.majority, '|', 4) <> split_part(w.minority, '|', 4) THEN 'root'
        ELSE 'redop' END,
    w.majority, w.minority, w.spot = e.last, coalesce(m.skipped, []), IF(w.timed = w.n, w.first_enter, NULL), IF(w.timed = w.n, w.last_enter, NULL),
    IF(w.timed = w.n, w.last_rank, NULL),
    coalesce(w.odd_place, w.last_place).file_id, coalesce(w.odd_place, w.last_place).line_no
FROM whole AS w
JOIN ends AS e USING (run_id, comm_id, source)
LEFT JOIN missing AS m USING (run_id, comm_id, source, spot)
ORDER BY w.run_id, w.comm_id, w.source, w.spot;

-- Sends and receives: the k-th from a to b with the k-th that b posts from a. Both ends must have been heard. A log that was
-- cut ends where it ends; an end that is missing was skipped for sure if its rank went further behind the last one than it
-- ever did between two of them.
-- @needs collectives
INSERT INTO matched (
    run_id, comm_id, source, nth, op, ranks, missing, odd, agreed, odd_aspect, majority, minority, is_last, skipped, first_enter, last_enter, last_rank, file_id, line_no)
WITH placed AS (
    SELECT *, row_number() OVER (PARTITION BY run_id, comm_id, source, rank ORDER BY file_id, line_no) AS place,
        count(*) OVER (PARTITION BY run_id, comm_id, source, rank) AS places
    FROM collectives
), ends AS (
    SELECT run_id, comm_id, source, rank, comm_rank, op, coalesce(peer, root) AS peer, count, dtype, logged_seq, file_id, line_no, place, places,
        row_number() OVER (PARTITION BY run_id, comm_id, source, comm_rank, op, coalesce(peer, root) ORDER BY file_id, line_no) - 1 AS k
    FROM placed
    WHERE op IN ('send', 'recv') AND comm_id IS NOT NULL AND rank IS NOT NULL AND comm_rank IS NOT NULL AND coalesce(complete, TRUE)
), heard AS (
    SELECT DISTINCT run_id, comm_id, source, comm_rank, rank FROM ends
), spaced AS (
    SELECT run_id, comm_id, source, rank, op, peer, place, places, place - lag(place) OVER (
        PARTITION BY run_id, comm_id, source, rank, op, peer ORDER BY place) AS space
    FROM ends
), ahead AS (
    SELECT run_id, comm_id, source, rank, op, peer FROM spaced
    GROUP BY ALL HAVING count(space) > 1 AND any_value(places) - max(place) >= max(space)
), pairs AS (
    SELECT coalesce(s.run_id, r.run_id) AS run_id, coalesce(s.comm_id, r.comm_id) AS comm_id, coalesce(s.source, r.source) AS source,
        coalesce(s.comm_rank, r.peer) AS sender, coalesce(r.comm_rank, s.peer) AS receiver, coalesce(s.k, r.k) AS k,
        s.rank AS send_rank, r.rank AS recv_rank, s.count AS sent, r.count AS received, s.dtype AS send_dtype, r.dtype AS recv_dtype,
        coalesce(s.file_id, r.file_id) AS file_id, coalesce(s.line_no, r.line_no) AS line_no,
        count(*) OVER (PARTITION BY coalesce(s.run_id, r.run_id), coalesce(s.comm_id, r.comm_id), coalesce(s.source, r.source),
            coalesce(s.comm_rank, r.peer), coalesce(r.comm_rank, s.peer)) - 1 AS last_k
    FROM (FROM ends WHERE op = 'send') AS s
    FULL JOIN (FROM ends WHERE op = 'recv') AS r
        ON r.run_id = s.run_id AND r.comm_id = s.comm_id AND r.source = s.source AND r.comm_rank = s.peer AND r.peer = s.comm_rank AND r.k = s.k
), usual AS (
    SELECT run_id, comm_id, source, sender, receiver, mode(sent ORDER BY sent) AS count, mode(send_dtype ORDER BY send_dtype) AS dtype
    FROM pairs WHERE sent = received AND send_dtype IS NOT DISTINCT FROM recv_dtype GROUP BY ALL
)
SELECT p.run_id, p.comm_id, p.source, p.k, IF(p.send_rank IS NULL, 'recv', 'send'),
    list_filter([p.send_rank, p.recv_rank], lambda x: x IS NOT NULL),
    CASE WHEN p.recv_rank IS NULL THEN [b.rank] WHEN p.send_rank IS NULL THEN [a.rank] ELSE [] END,
    -- of two that differ the one that does what was not usual between them
    CASE WHEN p.recv_rank IS NULL THEN [b.rank] WHEN p.send_rank IS NULL THEN [a.rank]
        WHEN NOT coalesce(p.sent <> p.received OR p.send_dtype <> p.recv_dtype, FALSE) THEN []
        WHEN p.sent = u.count AND p.send_dtype IS NOT DISTINCT FROM u.dtype THEN [p.recv_rank]
        WHEN p.received = u.count AND p.recv_dtype IS NOT DISTINCT FROM u.dtype THEN [p.send_rank]
        ELSE list_sort([p.send_rank, p.recv_rank]) END AS odd,
    list_filter([p.send_rank, p.recv_rank], lambda x: x IS NOT NULL AND NOT list_contains(odd, x)),
    CASE WHEN p.sent <> p.received THEN 'count' WHEN p.send_dtype <> p.recv_dtype THEN 'dtype'
        WHEN p.send_rank IS NULL OR p.recv_rank IS NULL THEN 'peer' END,
    IF(p.send_rank IS NULL, 'no send', 'send|' || coalesce(p.sent, -1) || '|' || coalesce(p.send_dtype, '')) || '|' || p.sender || '->' || p.receiver,
    IF(p.recv_rank IS NULL, 'no recv', 'recv|' || coalesce(p.received, -1) || '|' || coalesce(p.recv_dtype, '')) || '|' || p.sender || '->' || p.receiver,
    p.k = p.last_k, IF(h.rank IS NULL, [], [h.rank]), NULL, NULL, NULL, p.file_id, p.line_no
FROM pairs AS p
LEFT JOIN usual AS u USING (run_id, comm_id, source, sender, receiver)
JOIN heard AS a ON a.run_id = p.run_id AND a.comm_id = p.comm_id AND a.source = p.source AND a.comm_rank = p.sender
JOIN heard AS b ON b.run_id = p.run_id AND b.comm_id = p.comm_id AND b.source = p.source AND b.comm_rank = p.receiver
LEFT JOIN ahead AS h ON h.run_id = p.run_id AND h.comm_id = p.comm_id AND h.source = p.source
    AND h.rank = CASE WHEN p.recv_rank IS NULL THEN b.rank WHEN p.send_rank IS NULL THEN a.rank END
    AND h.op = IF(p.recv_rank IS NULL, 'recv', 'send') AND h.peer = IF(p.recv_rank IS NULL, p.sender, p.receiver)
ORDER BY p.run_id, p.comm_id, p.source, p.sender, p.receiver, p.k;

-- What checks of torch said of pairs of ranks. Each rank has a voice, also where only another one quotes it; most voices are
-- the reference. A report that names the culprits itself is taken at its word. The texts name ranks inside a group: where a rank calls
-- itself by another number than its own, the others' numbers are those that they call themselves by.
-- @needs mismatches
INSERT INTO matched (
    run_id, comm_id, source, nth, op, ranks, missing, odd, agreed, odd_aspect, majority, minority, is_last, skipped, first_enter, last_enter, last_rank, file_id, line_no)
WITH groups AS (
    SELECT run_id, bool_or(group_rank <> rank) AS is_sub FROM mismatches GROUP BY run_id
), members AS (
    SELECT run_id, group_rank, any_value(rank) AS rank FROM mismatches WHERE group_rank IS NOT NULL AND rank IS NOT NULL
    GROUP BY ALL HAVING count(DISTINCT rank) = 1
), named AS (
    SELECT m.*, IF(g.is_sub, o.rank, m.other_rank) AS other
    FROM mismatches AS m JOIN groups AS g USING (run_id)
    LEFT JOIN members AS o ON o.run_id = m.run_id AND o.group_rank = m.other_rank
), voices AS (
    SELECT DISTINCT ON (run_id, rank, logged_seq, aspect) *
    FROM (
        SELECT run_id, rank, logged_seq, aspect, mine AS value, op, FALSE AS is_named, file_id, line_no
        FROM named WHERE other_rank IS NOT NULL
        UNION ALL
        SELECT run_id, other, logged_seq, aspect, coalesce(theirs, 'not ' || mine), other_op, TRUE, file_id, line_no
        FROM named WHERE other <> rank
    )
    WHERE rank IS NOT NULL AND value IS NOT NULL
    ORDER BY run_id, rank, logged_seq, aspect, is_named, file_id, line_no
), sides AS (
    SELECT run_id, logged_seq, aspect, value, count(*) AS n, list(rank ORDER BY rank) AS ranks, min(rank) AS low, any_value(op) AS op,
        arg_min({'f': file_id, 'l': line_no}, (is_named, file_id, line_no)) AS place
    FROM voices GROUP BY ALL
), chosen AS (
    SELECT * FROM sides QUALIFY row_number() OVER (PARTITION BY run_id, logged_seq, aspect ORDER BY n DESC, low) = 1
), odd AS (
    SELECT s.run_id, s.logged_seq, s.aspect, c.op, c.value AS majority, list_sort(flatten(list(s.ranks)) || any_value(c.ranks)) AS ranks,
        list_sort(flatten(list(s.ranks))) AS odd, arg_min(s.value, s.low) AS minority, arg_min(s.place, s.low) AS place, FALSE AS is_report
    FROM sides AS s JOIN chosen AS c ON c.run_id = s.run_id AND c.logged_seq IS NOT DISTINCT FROM s.logged_seq AND c.aspect = s.aspect
    WHERE s.value <> c.value
    GROUP BY s.run_id, s.logged_seq, s.aspect, c.op, c.value
    UNION ALL
    SELECT run_id, logged_seq, aspect, any_value(op), any_value(theirs), list(DISTINCT rank ORDER BY rank), list(DISTINCT rank ORDER BY rank),
        any_value(mine), min({'f': file_id, 'l': line_no}), TRUE
    FROM mismatches WHERE other_rank IS NULL AND rank IS NOT NULL GROUP BY run_id, logged_seq, aspect
)
SELECT run_id, NULL, 'check', logged_seq, op, ranks, [], odd, list_filter(ranks, lambda x: NOT list_contains(odd, x)), IF(aspect = 'shape', 'count', aspect), majority, minority, TRUE, [], NULL, NULL, NULL, place.f, place.l
FROM odd
QUALIFY row_number() OVER (PARTITION BY run_id, logged_seq ORDER BY is_report DESC,
    list_position(['sequence', 'op', 'dtype', 'shape', 'root', 'params', 'version', 'device'], aspect) NULLS LAST, place) = 1
ORDER BY run_id, logged_seq;

-- Communicators and who is in them
-- @needs comms
INSERT INTO comm_groups (
    run_id, comm_id, kind, nranks, ranks, started, completed, file_id, line_no)
SELECT run_id, comm_id, 'nccl', max(nranks), list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL),
    coalesce(list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL AND event = 'start'), []),
    coalesce(list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL AND event = 'complete'), []),
    min(place).file_id, min(place).line_no
FROM (SELECT *, {'file_id': file_id, 'line_no': line_no} AS place FROM comms)
WHERE comm_id IS NOT NULL
GROUP BY run_id, comm_id
ORDER BY run_id, comm_id;

-- @needs collectives
INSERT INTO comm_groups (
    run_id, comm_id, kind, nranks, ranks, started, completed, file_id, line_no)
SELECT run_id, comm_id, IF(bool_or(source LIKE 'nccl%'), 'nccl', 'c10d'), max(nranks), list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL),
    [], [], min({'file_id': file_id, 'line_no': line_no}).file_id, min({'file_id': file_id, 'line_no': line_no}).line_no
FROM collectives
WHERE comm_id IS NOT NULL AND NOT EXISTS (FROM comm_groups AS g WHERE g.run_id = collectives.run_id AND g.comm_id = collectives.comm_id)
GROUP BY run_id, comm_id
ORDER BY run_id, comm_id
