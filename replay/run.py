"""The library's front door: logs in, a run that can be asked out. What the commands do, a notebook can do with this.

    with open_run(["./logs"]) as run:
        print(run.report().verdict, run.sql("FROM recompiles").rows)

It knows the order of the stages and nothing of what they do. They are imported where they run: a run that was read
before opens without them.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb
from duckdb import DuckDBPyConnection

from replay.errors import InputError, UsageError
from replay.resources import cache_dir
from replay.sources.model import Batch, Hints, Inventory, SourceFile
from replay.store import database, fingerprint, schema
from replay.store.fingerprint import Fingerprint
from replay.store.merge import merge

if TYPE_CHECKING:
    from replay.report.inventory import InventoryView
    from replay.report.log import LogFilter, LogLine
    from replay.report.model import Finding, Report

KEEP_PARSED_BYTES = 16 * 2**20
"""From this size of input on, parsed rows are kept, so that only changed files are read again; less is read at once."""
RUNNING_SECONDS = 60.0
"""How long an answer about a run that still writes holds if its files did not change: then it may have come to hang."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an ingest is: the stage, and of reading the bytes done and all bytes (as on disk)."""

    stage: str
    done: int = 0
    total: int = 0


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Table:
    """The answer to a query, whole."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to a query, to be read bit by bit: it may be larger than memory."""

    columns: tuple[str, ...]
    cursor: DuckDBPyConnection

    def batches(self, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """Give the rows, so many at a time. Raises UsageError if one cannot be computed."""
        try:
            while batch := self.cursor.fetchmany(rows):
                yield batch
        except duckdb.Error as error:
            raise UsageError(f"SQL: {one_line(error)}") from error


class Run:
    """Logs that were read. Everything is answered from the database, which nobody writes to any more."""

    def __init__(self, con: DuckDBPyConnection, path: Path, logs: Sequence[str]) -> None:
        self.con = con
        """Read-only connection; it can reach no file and no setting can be changed."""
        self.path = path
        """The database file."""
        self.logs = tuple(logs)
        """What the user called the logs."""
        self._report: Report | None = None

    def report(self) -> "Report":
        """Return the report: verdict, findings with their evidence, and what could not be seen."""
        if self._report is None:
            from replay.report.build import build

            self._report = build(self.con)
        return self._report

    def findings(self) -> "tuple[Finding, ...]":
        """Return the findings, roots first."""
        return self.report().findings

    def sql(self, query: str, parameters: Sequence[Any] = ()) -> Table:
        """Return the answer to a query in SQL.

        Raises UsageError, with DuckDB's words in one line, if the query is wrong.
        """
        result = self.ask(query, parameters)
        return Table(result.columns, [row for batch in result.batches(1000) for row in batch])

    def ask(self, query: str, parameters: Sequence[Any] = ()) -> Result:
        """Return the answer to a query as `sql` does, without reading its rows yet.

        Raises UsageError if the query is wrong or empty.
        """
        cursor = self.cursor()
        try:
            cursor.execute(query, list(parameters) or None)
        except duckdb.Error as error:
            raise UsageError(f"SQL: {one_line(error)}") from error
        if cursor.description is None:
            raise UsageError("SQL: the query is empty")
        return Result(tuple(c[0] for c in cursor.description), cursor)

    def export(self, query: str, file: Path) -> None:
        """Write the answer to a query to a Parquet file.

        Raises UsageError if the query is wrong, InputError if the file cannot be written.
        """
        try:
            database.export(self.path, query, Path(os.path.abspath(file)))
        except duckdb.IOException as error:
            raise InputError(f"{file}: cannot be written ({one_line(error)})") from error
        except duckdb.Error as error:
            raise UsageError(f"SQL: {one_line(error)}") from error

    def inventory(self) -> "InventoryView":
        """Return what was handed over and what is missing."""
        from replay.report.inventory import build

        return build(self.con)

    def log(self, wanted: "LogFilter | None" = None) -> "Iterator[LogLine]":
        """Give the lines of all ranks as one stream, in time order where times are known."""
        from replay.report.log import LogFilter, lines

        return lines(self.con, wanted or LogFilter())

    def cursor(self) -> DuckDBPyConnection:
        """Return a cursor of its own, for another thread or while a result is being read."""
        return database.cursor(self.con)

    def close(self) -> None:
        """Close the database."""
        self.con.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if isinstance(error, duckdb.Error) and "Corrupt database" in str(error):
            raise InputError(f"{self.path}: is damaged; remove it and read the logs again") from error


def open_run(
    paths: Sequence[str | Path],
    *,
    hints: Hints | None = None,
    db: Path | None = None,
    rules: Sequence[Path] = (),
    progress: ProgressCallback | None = None,
) -> Run:
    """Read logs, or take the database of an earlier reading if nothing changed since, and return the run.

    `paths` are files, folders, globs, `-` for stdin, one `.duckdb`, or `@` for the last one used; `db` is where the
    database goes (default: the cache); `rules` are folders of rules beside the tool's own.

    Raises InputError if they cannot be read or the database cannot be written.
    """
    given = [str(p) for p in paths]
    if not given:
        raise UsageError("no logs were named")
    for folder in rules:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of rules")
    if given == ["@"]:
        return _last_used(hints, db, rules, progress)
    if len(given) == 1 and database.is_database(Path(given[0])):
        _refuse_for_database(given[0], hints, db, rules)
        place = Path(given[0]).resolve()
        run = _opened(place, given)
        database.remember(place, [], "{}")
        return run
    hints = hints or Hints()
    from replay.sources.discover import discover

    inventory = discover(given, hints)
    if not inventory.files:
        raise InputError(f"{', '.join(given)}: no files in there")
    place = _place(given, hints, inventory, db)
    now = fingerprint.take(inventory.files, hints, rules)
    kept = None if db else place.with_suffix(".parsed")
    logs = [p if p == "-" else os.path.abspath(p) for p in given]
    _bring_up_to_date(_Job(place, kept, inventory, hints, now, rules, progress or (lambda _: None)), logs)
    database.remember(place, logs, json.dumps(asdict(hints)))
    return _opened(place, given)


def _refuse_for_database(name: str, hints: Hints | None, db: Path | None, rules: Sequence[Path]) -> None:
    """What is said about reading logs says nothing about a database: better an error than an option without effect."""
    if rules:
        raise UsageError(f"{name}: rules are applied when logs are read; name the logs instead of the database")
    if (hints is not None and hints != Hints()) or db is not None:
        raise UsageError(f"{name}: this option is for reading logs; name the logs instead of the database")


@dataclass(frozen=True, slots=True)
class _Job:
    place: Path
    kept: Path | None
    """Where parsed rows are kept for the next time; None: nowhere."""
    inventory: Inventory
    hints: Hints
    now: Fingerprint
    rules: Sequence[Path]
    progress: ProgressCallback


def _opened(place: Path, given: Sequence[str]) -> Run:
    return Run(database.open_database(place), place, given)


def _last_used(hints: Hints | None, db: Path | None, rules: Sequence[Path], progress: ProgressCallback | None) -> Run:
    """The last logs again: read anew where they changed, from their database where they are gone."""
    last = database.last_used()
    if not last.logs or not all(Path(p).exists() for p in last.logs):
        return _opened(last.path, ["@"])
    same = hints is None or hints == Hints()
    run = open_run(
        last.logs,
        hints=Hints(**json.loads(last.hints)) if same else hints,
        db=db or (last.path if same else None),
        rules=rules,
        progress=progress,
    )
    run.logs = ("@",)
    return run


def _place(given: list[str], hints: Hints, inventory: Inventory, db: Path | None) -> Path:
    """Where the database goes: never inside the logs, which it would change."""
    if db is None:
        names = [f"{inventory.files[0].digest}/stdin" if p == "-" else os.path.realpath(p) for p in given]
        db = cache_dir() / f"{fingerprint.key(names, hints)}.duckdb"
    place = Path(os.path.abspath(db))
    root = inventory.root
    if root is not None and root.is_dir() and place.is_relative_to(root.resolve()):
        raise InputError(f"{place}: the database would lie inside the logs; name another place with --db")
    if place.is_dir():
        raise InputError(f"{place}: is a folder; --db names the database file")
    return place


def _bring_up_to_date(job: _Job, logs: list[str]) -> None:
    old = _stored(job)
    if old == job.now:
        return
    if old is not None and old.same_but_rules(job.now):
        with database.rebuilding(job.place) as con:
            _forget(con, "finding")
            fingerprint.store(con, job.now)
            _diagnose(con, job)
        return
    with database.building(job.place) as con:
        notes = {"schema": str(schema.SCHEMA_VERSION), "made_at": f"{time.time():.0f}", "logs": json.dumps(logs)}
        database.write_meta(con, notes)
        fingerprint.store(con, job.now)
        with database.sparing(con):
            _read(con, job)
        _derive(con, job)
        _diagnose(con, job)


def _stored(job: _Job) -> Fingerprint | None:
    """What the database at the job's place was made from; None where there is none that can be used.

    Raises InputError for a file that the user named and that would be lost.
    """
    if not job.place.is_file():
        return None
    try:
        con = database.open_database(job.place)
    except database.NotOurs as error:
        if job.kept is None:
            raise InputError(f"{error}; it is left as it is: name another file with --db") from None
        return None
    except InputError:
        return None
    with con:
        made_at = float(database.meta(con).get("made_at", "0"))
        running = con.execute("SELECT count(*) FROM runs WHERE outcome = 'running'").fetchone()
        if running and running[0] and time.time() - made_at > RUNNING_SECONDS:
            return None
        return fingerprint.stored(con)


def _read(con: DuckDBPyConnection, job: _Job) -> None:
    """Fill the base tables: rows of unchanged files from the last time where they were kept, the rest by parsing."""
    from replay.grammar.executor import shared
    from replay.parse.anchor import anchor
    from replay.parse.pipeline import parse_file
    from replay.sources.read import read_batches
    from replay.store.writer import TableSink

    unchanged = _unchanged(job)
    near = anchor(job.inventory.files, job.hints, shared())
    changed = [f for f in job.inventory.files if f.file_id not in unchanged.values()]
    total = sum(f.size for f in changed)
    done = 0
    sink = TableSink(con)
    con.execute("BEGIN")
    for file in changed:
        file.near = near
        reading = _Reading(file, read_batches(file, job.hints, sink.problem), job.progress, done, total)
        counts = parse_file(file, reading, sink, job.hints, shared())
        sink.file(file, counts, ends_whole=reading.ends_whole)
        done += file.size
    sink.flush()
    con.execute("COMMIT")
    if unchanged and job.kept:
        merge(con, job.kept, unchanged, {f.file_id: f.duplicate_of for f in job.inventory.files})
    if job.kept:
        if sum(f.size for f in job.inventory.files) >= KEEP_PARSED_BYTES:
            database.keep_copy(con, job.kept)
        else:
            job.kept.unlink(missing_ok=True)
    for problem in job.inventory.problems:  # after the copy: discovery finds them anew each time
        sink.problem(problem)
    sink.flush()


def _unchanged(job: _Job) -> dict[int, int]:
    """Files that were parsed before as they are now: number then -> number now."""
    if job.kept is None or not job.kept.is_file():
        return {}
    try:
        con = database.open_database(job.kept)
    except InputError:
        return {}
    with con:
        then = fingerprint.stored(con)
        if not then.same_parse(job.now):
            return {}
        numbers = dict(con.execute("SELECT path, file_id FROM files").fetchall())
    notes = dict(then.files)
    return {
        numbers[path]: file.file_id
        for file, (path, note) in zip(job.inventory.files, job.now.files, strict=True)
        if notes.get(path) == note and path in numbers
    }


class _Reading:
    """The batches of a file on their way to the parser, watched for progress and for the file's end."""

    def __init__(
        self, file: SourceFile, batches: Iterator[Batch], progress: ProgressCallback, done: int, total: int
    ) -> None:
        self._file, self._batches, self._progress, self._done, self._total = file, batches, progress, done, total
        self.ends_whole: bool | None = None

    def __iter__(self) -> Iterator[Batch]:
        self._progress(Progress("reading", self._done, self._total))
        for batch in self._batches:
            yield batch
            if batch:
                last = batch[-1]
                self.ends_whole = last.whole
                # Offsets of a compressed file run past its size on disk.
                here = min(last.byte_offset + len(last.raw), self._file.size)
                self._progress(Progress("reading", self._done + here, self._total))


def _derive(con: DuckDBPyConnection, job: _Job) -> None:
    from replay.timeline.derive import derive
    from replay.timeline.identify import identify

    job.progress(Progress("ordering"))
    con.execute("""
        UPDATE files SET t_first = l.first, t_last = l.last
        FROM (SELECT file_id, min(t_lo) AS first, max(t_hi) AS last FROM lines GROUP BY file_id) AS l
        WHERE files.file_id = l.file_id
    """)
    con.execute("BEGIN")
    identify(con, job.hints)
    derive(con)
    con.execute("COMMIT")


def _diagnose(con: DuckDBPyConnection, job: _Job) -> None:
    from replay.expert.engine import diagnose
    from replay.expert.load import load_rules
    from replay.simulate import costs

    job.progress(Progress("diagnosing"))
    con.execute("BEGIN")
    diagnose(con, load_rules(job.rules))
    costs.fill(con)
    con.execute("COMMIT")


def _forget(con: DuckDBPyConnection, section: str) -> None:
    for table in schema.tables().values():
        if table.section == section:
            con.execute(f"DELETE FROM {table.name}")


def one_line(error: Exception) -> str:
    """Return DuckDB's message without its drawing of the query, in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith(("LINE ", "^")))
