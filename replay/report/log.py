"""The merged log: lines of all ranks as one stream, in time order where times are known."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.store.database import cursor

CLASSES = ("parsed", "continuation", "plain", "malformed")
MOST_RANKS = 1_000_000
AROUND_LINES = 5
"""Lines of the same file that --around shows before and after each line of evidence."""
AROUND_SECONDS = 1.0
"""What other ranks wrote within this time of it is shown as well."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines to give. Everything that is None does not filter."""

    ranks: frozenset[int] | None = None
    grep: str | None = None
    kind: str | None = None
    """Form of the line: the production of the grammar that took it; `*` stands for anything."""
    line_class: str | None = None
    around: str | None = None
    """Finding whose evidence the lines must stand near."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; `t` is in seconds since 1970, None where neither it nor a line before it has a stamp."""

    t: float | None
    run: int | None
    rank: int | None
    line_class: str
    form: str | None
    file: str
    line: int
    text: str


def parse_ranks(text: str) -> frozenset[int]:
    """Return the ranks that `0-6,8` names. Raises UsageError for another form and for ranks that no run has."""
    ranks: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise UsageError(f"ranks are written like 0-6,8, not {text!r}")
        span = range(int(first), int(last or first) + 1)
        if not span or span.stop > MOST_RANKS:
            raise UsageError(f"{part!r} names no ranks; they are written like 0-6,8, the lower one first")
        ranks.update(span)
    return frozenset(ranks)


def lines(con: DuckDBPyConnection, wanted: LogFilter) -> Iterator[LogLine]:
    """Give the lines that pass the filter.

    Raises UsageError if the filter names a class, a finding or a pattern that there is not.
    """
    query, values = _query(con, wanted)
    found = cursor(con)  # of its own: the caller may ask the connection meanwhile
    found.execute(query, values)
    while rows := found.fetchmany(1000):
        yield from (LogLine(*row) for row in rows)


def _query(con: DuckDBPyConnection, wanted: LogFilter) -> tuple[str, dict[str, object]]:
    """Lines without a stamp stay behind the last line of their file that has one."""
    conditions: list[str] = ["TRUE"]
    values: dict[str, object] = {}
    if wanted.ranks is not None:
        conditions.append("ordered.rank IN (SELECT unnest($ranks))")
        values["ranks"] = sorted(wanted.ranks)
    if wanted.grep is not None:
        _check_pattern(con, wanted.grep)
        conditions.append("regexp_matches(ordered.text, $grep)")
        values["grep"] = wanted.grep
    if wanted.kind is not None:
        conditions.append("ordered.form GLOB $kind")
        values["kind"] = wanted.kind
    if wanted.line_class is not None:
        if wanted.line_class not in CLASSES:
            raise UsageError(f"--class is one of {', '.join(CLASSES)}, not {wanted.line_class!r}")
        conditions.append("ordered.class = $class")
        values["class"] = wanted.line_class
    near = ""
    if wanted.around is not None:
        near = _near(con, wanted.around, values)
        conditions.append("(EXISTS (FROM near WHERE near.file_id = ordered.file_id AND abs(near.line_no - "
                          "ordered.line_no) <= $around_lines) OR EXISTS (FROM near WHERE near.run_id = ordered.run_id "
                          "AND abs(near.t - ordered.at_time) <= $around_seconds))")  # fmt: skip
    limit = ""
    if wanted.limit is not None:
        limit = "LIMIT $limit"
        values["limit"] = wanted.limit
    return (
        f"""
        WITH {near} ordered AS (
            SELECT l.*, last_value(l.t_lo IGNORE NULLS) OVER (PARTITION BY l.file_id ORDER BY l.line_no) AS at_time
            FROM lines AS l
        )
        SELECT at_time, run_id, ordered.rank, class, form, coalesce(f.path, ''), line_no, text
        FROM ordered LEFT JOIN (SELECT file_id, path FROM files) AS f USING (file_id)
        WHERE {" AND ".join(conditions)}
        ORDER BY run_id NULLS LAST, at_time NULLS FIRST, file_id, line_no
        {limit}
        """,
        values,
    )


def _near(con: DuckDBPyConnection, finding_id: str, values: dict[str, object]) -> str:
    found = con.execute("SELECT count(*) FROM findings WHERE finding_id = ?", [finding_id]).fetchone()
    if not found or not found[0]:
        known = [i for (i,) in con.execute("SELECT finding_id FROM findings ORDER BY finding_id").fetchall()]
        raise UsageError(f"no finding {finding_id}; there {_there_are(known)}")
    values |= {"finding": finding_id, "around_lines": AROUND_LINES, "around_seconds": AROUND_SECONDS}
    return """
        near AS (
            SELECT e.file_id, e.line_no, e.t, f.run_id FROM evidence AS e JOIN findings AS f USING (finding_id)
            WHERE e.finding_id = $finding
        ),
    """


def _there_are(ids: list[str]) -> str:
    return f"are {', '.join(ids)}" if len(ids) > 1 else f"is {ids[0]}" if ids else "is none"


def _check_pattern(con: DuckDBPyConnection, pattern: str) -> None:
    """DuckDB's patterns are RE2: linear in the length of the text, whatever the pattern."""
    try:
        con.execute("SELECT regexp_matches('', $1)", [pattern])
    except duckdb.Error as error:
        reason = re.sub(r"^.*?Error: ", "", str(error).splitlines()[0])
        raise UsageError(f"--grep {pattern!r}: {reason}") from error
