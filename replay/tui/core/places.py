"""Places that only the database can find: a line by its name, the events of a line, the first difference."""

from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.report.wording import ranks_phrase
from replay.tui.core.story import Ref


def events_at(
    con: DuckDBPyConnection, run_id: int, file_id: int | None, line_no: int | None
) -> tuple[int | None, int | None, list[int]]:
    """Return the line and the numbers (events.seq) of the events that it told, the worst first."""
    rows = con.execute(
        """
        SELECT seq FROM events WHERE run_id = ? AND file_id = ? AND line_no = ?
        ORDER BY list_position(['error', 'warning', 'info', 'debug'], severity), seq
        """,
        [run_id, file_id, line_no],
    ).fetchall()
    return file_id, line_no, [seq for (seq,) in rows]


def of_line(con: DuckDBPyConnection, file_id: int, line_no: int | None) -> tuple[Ref, str]:
    """Return the place of a line and what is to be said of it. Raises UsageError if the file has no such line."""
    row = con.execute(
        "SELECT run_id, rank, t_lo FROM lines WHERE file_id = ? AND line_no = ?", [file_id, line_no]
    ).fetchone()
    if row is None:
        raise UsageError(f"no line {line_no} in this file")
    return Ref(row[0] if row[0] is not None else 1, file_id, line_no, row[1], row[2]), ""


def of_path(con: DuckDBPyConnection, path: str, line_no: int) -> tuple[Ref, str]:
    """Return the place of `path:line`; the end of a path is enough where only one file has it.

    Raises UsageError where none or more than one has it.
    """
    files = con.execute(
        """
        SELECT file_id, path FROM files WHERE path = $1 OR ends_with(path, '/' || $1)
        ORDER BY path = $1 DESC, path LIMIT 3
        """,
        [path],
    ).fetchall()
    if not files:
        raise UsageError(f"no file {path}")
    if len(files) > 1 and files[0][1] != path:
        raise UsageError(f"{path} is more than one file: {', '.join(p for _, p in files)}")
    ref, _ = of_line(con, files[0][0], line_no)
    return ref, f"{files[0][1]}:{line_no}"


def first_difference(con: DuckDBPyConnection, run_id: int) -> tuple[Ref | None, str]:
    """Return the first place where ranks (or runs) that must agree part, None if there is none; and what to say."""
    row = con.execute(
        """
        SELECT d.file_id, d.line_no, l.rank, l.t_lo, d.name, d.step, d.value, d.other_value, d.ranks, d.other_run
        FROM divergences AS d LEFT JOIN lines AS l USING (file_id, line_no)
        WHERE d.run_id = ? AND d.file_id IS NOT NULL ORDER BY d.step NULLS FIRST, l.t_lo NULLS LAST, d.name LIMIT 1
        """,
        [run_id],
    ).fetchone()
    if row is None:
        return None, "no difference between ranks was found where they must agree"
    file_id, line_no, rank, t, name, step, value, other, ranks, other_run = row
    who = f"run {run_id}" if other_run is not None else ranks_phrase(ranks or ()) or "some ranks"
    than = f"in run {other_run}" if other_run is not None else "on the others"
    at = f" at step {step}" if step is not None else ""
    return Ref(run_id, file_id, line_no, rank, t), f"first difference{at}: {name} is {value} on {who}, {other} {than}"
