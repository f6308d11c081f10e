"""What was handed over and what is missing: files, ranks, and what each rank's log could have shown."""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from replay.report import outlook
from replay.report.model import Unseen
from replay.report.wording import count, ranks_phrase, ranks_text


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file; counts are lines, `size` bytes on disk."""

    path: str
    kind: str
    encoding: str
    size: int
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    stream: str | None
    wrapper: str
    lines: int
    parsed: int
    continuation: int
    plain: int
    malformed: int
    duplicate_of: str | None


@dataclass(frozen=True, slots=True)
class InventoryView:
    """All files, the world they tell of, what is missing of it, and what was odd about the input."""

    files: tuple[FileInfo, ...]
    ranks_expected: int | None
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    missing: tuple[str, ...]
    problems: tuple[str, ...]
    unseen: tuple[Unseen, ...]


def build(con: DuckDBPyConnection) -> InventoryView:
    """Return the inventory of the database."""
    files = _files(con)
    row = con.execute("""
        SELECT (SELECT max(ranks_expected) FROM runs),
               (SELECT coalesce(list(DISTINCT rank ORDER BY rank), []) FROM ranks WHERE heard AND rank IS NOT NULL),
               (SELECT coalesce(list(DISTINCT host ORDER BY host), []) FROM ranks WHERE host IS NOT NULL)
    """).fetchone()
    assert row is not None, "a query of constants has one row"
    expected, ranks, hosts = row[0], tuple(row[1]), tuple(row[2])
    return InventoryView(
        files=files,
        ranks_expected=expected,
        ranks=ranks,
        hosts=hosts,
        missing=_missing(con, files, expected, ranks),
        problems=_problems(con),
        unseen=outlook.unseen(con),
    )


def _files(con: DuckDBPyConnection) -> tuple[FileInfo, ...]:
    rows = con.execute("""
        SELECT f.path, f.kind, f.encoding, f.size, coalesce(w.ranks, []), coalesce(w.hosts, []), f.stream, f.wrapper,
               coalesce(f.lines, 0), coalesce(f.parsed, 0), coalesce(f.continuation, 0), coalesce(f.plain, 0),
               coalesce(f.malformed, 0), d.path
        FROM files AS f
        LEFT JOIN (
            SELECT file_id, list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL) AS ranks,
                   list(DISTINCT host ORDER BY host) FILTER (host IS NOT NULL) AS hosts
            FROM writers GROUP BY file_id
        ) AS w ON w.file_id = f.file_id
        LEFT JOIN files AS d ON d.file_id = f.duplicate_of
        ORDER BY f.path
    """).fetchall()
    return tuple(
        FileInfo(
            path or "", kind or "", encoding or "", size or 0, tuple(ranks), tuple(hosts), stream, wrapper or "", *rest
        )
        for path, kind, encoding, size, ranks, hosts, stream, wrapper, *rest in rows
    )


def _missing(
    con: DuckDBPyConnection, files: tuple[FileInfo, ...], expected: int | None, ranks: tuple[int, ...]
) -> tuple[str, ...]:
    """What a run of this size should have left and did not."""
    found = []
    if expected and len(ranks) < expected:
        silent = sorted(set(range(expected)) - set(ranks))
        found.append(
            f"{len(silent)} of {count(expected, 'rank')} wrote nothing that was handed over: {ranks_text(silent)}"
        )
    by_stream = {stream: {r for f in files if f.stream == stream for r in f.ranks} for stream in ("stdout", "stderr")}
    for stream, having in by_stream.items():
        lacking = sorted(set(ranks) - having)
        if having and lacking:
            found.append(f"{len(lacking)} of {count(len(ranks), 'rank')} have no {stream}: {ranks_phrase(lacking)}")
    unknown = con.execute("SELECT count(*) FROM writers WHERE rank IS NULL").fetchone()
    if unknown and unknown[0] and ranks:
        found.append(f"{count(unknown[0], 'writer')} of unknown rank (--rank-from REGEX or --world-size N may help)")
    return tuple(found)


def _problems(con: DuckDBPyConnection) -> tuple[str, ...]:
    """Problems of one kind and text together, with the first place of each."""
    rows = con.execute("""
        SELECT p.kind, p.text, count(*),
               arg_min(f.path, (p.file_id, p.line_no)), arg_min(p.line_no, (p.file_id, p.line_no))
        FROM problems AS p LEFT JOIN files AS f USING (file_id)
        GROUP BY p.kind, p.text ORDER BY p.kind, p.text
    """).fetchall()
    found = []
    for kind, text, number, path, line in rows:
        place = f" ({path}{f':{line}' if line else ''})" if path else ""
        found.append(f"{kind}: {text}{place}{f', {number:,} times' if number > 1 else ''}")
    return tuple(found)
