"""Says for every row which run it belongs to and which rank of it wrote it.

Parsing only knows what a line says of its writer. Here the sources are weighed against each other (a prefix, NCCL's own
place in the world, the launcher's folders, the user's hint), runs are told apart, and the answer is written into all
tables, so that no later stage has to ask again.
"""

from duckdb import DuckDBPyConnection

from replay.sources.model import Hints
from replay.store import schema
from replay.timeline.statements import Runner


def identify(con: DuckDBPyConnection, hints: Hints) -> None:
    """Fill runs, writers.run_id, rank and how, the same in all event tables and lines, and collectives.comm_id.

    `hints.world_size` bounds ranks and is expected. `hints.rank_from` was applied when files were found: it only
    changes what `how` says. Ranks that contradict each other become rows of `problems`.
    """
    runner = Runner(con)
    events = [t.name for t in schema.tables().values() if t.has_common and runner.has(t.name)]
    _drop_copies(con, events)
    runner.run("who", {"world": hints.world_size, "hinted": hints.rank_from is not None})
    runner.run("times")
    runner.run("runs")
    con.execute("UPDATE runs SET ranks_expected = ?", [hints.world_size])
    if "problems" not in events:
        events.append("problems")
    for table in events:
        _fill(con, table)
    con.execute("UPDATE lines SET run_id = f.run_id, rank = f.rank FROM _fill AS f WHERE lines.writer_id = f.writer_id")
    _move(con, [*events, "lines"])
    runner.run("twice")
    runner.run("comms")
    runner.drop()


def _drop_copies(con: DuckDBPyConnection, events: list[str]) -> None:
    """Rows of a file that is a copy are counted in the other one."""
    copies = con.execute("SELECT count(*) FROM files WHERE duplicate_of IS NOT NULL").fetchone()
    if copies and copies[0]:
        for table in events:
            if table != "problems":
                con.execute(
                    f"DELETE FROM {table} WHERE file_id IN (SELECT file_id FROM files WHERE duplicate_of IS NOT NULL)"
                )


def _fill(con: DuckDBPyConnection, table: str) -> None:
    """Bring run, rank, host, process and bounds of time into an event table; what a row says itself stays."""
    con.execute(f"""
        UPDATE {table} SET run_id = f.run_id, rank = coalesce({table}.rank, f.rank),
            host = coalesce({table}.host, f.host), pid = coalesce({table}.pid, f.pid)
        FROM _fill AS f WHERE {table}.writer_id = f.writer_id
    """)
    con.execute(f"""
        UPDATE {table} SET t_lo = l.t_lo, t_hi = l.t_hi
        FROM lines AS l
        WHERE {table}.t_lo IS NULL AND l.t_lo IS NOT NULL
            AND l.file_id = {table}.file_id AND l.line_no = {table}.line_no
    """)
    con.execute(f"""
        UPDATE {table} SET run_id = f.run_id
        FROM _file_runs AS f WHERE {table}.run_id IS NULL AND {table}.file_id = f.file_id
    """)
    if table == "exits":
        con.execute("UPDATE exits SET rank = NULL")  # a launcher's row; of_rank says whom it is about


def _move(con: DuckDBPyConnection, tables: list[str]) -> None:
    """Bring rows of lines that belong to another run than the rest of their file into that run."""
    moved = con.execute("SELECT count(*) FROM _line_runs").fetchone()
    if moved and moved[0]:
        for table in tables:
            con.execute(f"""
                UPDATE {table} SET run_id = r.run_id
                FROM _line_runs AS r WHERE {table}.file_id = r.file_id AND {table}.line_no = r.line_no
            """)
