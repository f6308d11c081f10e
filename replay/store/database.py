"""The database file: where it lies, how it comes to be, and how it is opened.

A database is built beside its place and renamed, so a reader never sees half of one and a killed ingest leaves the old
one. After that nobody writes to it: a DuckDB writer would lock out every other reader, and logs are evidence.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from replay.errors import InputError
from replay.resources import cache_dir
from replay.store import schema

STORAGE_VERSION = "v1.2.0"
"""DuckDB's file format: the oldest that has zstd, so that clients since 1.2 open it."""

SCRATCH = ".building-"
ALIAS = "run"

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_WHILE_READING = "192MB"
_WHILE_MAKING = "1GB"
"""DuckDB may hold so much while derived tables are made; what it holds beyond that it keeps beside the database."""
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_READING = _CONFIG | {"allocator_bulk_deallocation_flush_threshold": "1MB"}
"""A run may be looked at for hours: what a query needed goes back to the system when it ends."""


class NotOurs(InputError):
    """A file that is no run database, or a damaged one: whoever named it may want to keep it."""


@contextmanager
def sparing(con: DuckDBPyConnection) -> Iterator[None]:
    """Keep what DuckDB holds in memory small while rows are only added: it writes them out, and does not need them.
    Rows come from one thread; more of DuckDB's own would cost time to agree.
    """
    con.execute(f"SET memory_limit = '{_WHILE_READING}'")
    con.execute("SET threads = 1")
    try:
        yield
    finally:
        con.execute(f"SET memory_limit = '{_WHILE_MAKING}'")
        con.execute("RESET threads")


@contextmanager
def building(path: Path) -> Iterator[DuckDBPyConnection]:
    """Give an empty database with all tables to fill; put it at `path` if the block ends without an error.

    Raises InputError if the place cannot be written.
    """
    scratch = _scratch(path)
    try:
        made = scratch / "run.duckdb"
        con = _writable(made)
        try:
            con.execute("BEGIN")
            schema.create(con)
            con.execute("COMMIT")
            yield con
        finally:
            con.close()
        _publish(made, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def rebuilding(path: Path) -> Iterator[DuckDBPyConnection]:
    """Give a writable copy of the database at `path`; it takes its place if the block ends without an error."""
    scratch = _scratch(path)
    try:
        made = scratch / "run.duckdb"
        shutil.copyfile(path, made)
        con = _writable(made)
        try:
            yield con
        finally:
            con.close()
        _publish(made, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def open_database(path: Path) -> DuckDBPyConnection:
    """Open a finished database to read: no other file can be reached, and no setting changed.

    Raises NotOurs if the file is none of ours or is damaged, InputError if it was made with another schema.
    """
    con = _readable(path)
    try:
        version = meta(con)["schema"]
        is_whole = path.stat().st_size >= _size(con)
    except (duckdb.Error, KeyError) as error:
        con.close()
        raise NotOurs(f"{path}: a DuckDB database, but not one that replay made") from error
    if not is_whole:
        con.close()
        raise NotOurs(f"{path}: damaged, its end is missing")
    if version != str(schema.SCHEMA_VERSION):
        con.close()
        raise InputError(
            f"{path}: made by another version of replay (schema {version}, this one reads {schema.SCHEMA_VERSION}); "
            "read the logs again"
        )
    return con


def export(path: Path, query: str, target: Path) -> None:
    """Write the answer to a query on a finished database to a Parquet file, the only file that it can reach."""
    con = _attached(path)
    try:
        con.execute(f"SET allowed_paths = ['{_quoted(target)}']")
        _lock(con)
        con.execute(f"COPY ({query.strip().rstrip(';')}) TO '{_quoted(target)}' (FORMAT parquet)")
    finally:
        con.close()


def cursor(con: DuckDBPyConnection) -> DuckDBPyConnection:
    """Return a second cursor on an opened database: for another thread, or a result that is read bit by bit."""
    second = con.cursor()
    second.execute(f'USE "{_name(con)}"')
    return second


def meta(con: DuckDBPyConnection) -> dict[str, str]:
    """Return the properties of a database (name -> value); names that occur often are left out."""
    rows = con.execute("SELECT name, any_value(value) FROM meta GROUP BY name HAVING count(*) = 1").fetchall()
    return dict(rows)


def write_meta(con: DuckDBPyConnection, values: dict[str, str]) -> None:
    """Replace properties of a database that is being built."""
    for name, value in values.items():
        con.execute("DELETE FROM meta WHERE name = ?", [name])
        con.execute("INSERT INTO meta VALUES (?, ?)", [name, value])


def keep_copy(con: DuckDBPyConnection, path: Path) -> None:
    """Put a copy of the database that is being built at `path`, as it is now."""
    con.execute("CHECKPOINT")
    scratch = _scratch(path)
    try:
        shutil.copyfile(_file_of(con), scratch / "run.duckdb")
        _publish(scratch / "run.duckdb", path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class LastUsed:
    """What `@` stands for: the database, the logs that it was made from (absolute paths) and the hints as JSON."""

    path: Path
    logs: tuple[str, ...]
    hints: str


def remember(path: Path, logs: list[str], hints: str) -> None:
    """Note which logs were used last, for `@`. A cache that cannot be written is no reason to fail."""
    note = {"database": str(path), "logs": logs, "hints": hints}
    try:
        folder = cache_dir()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=SCRATCH)
        with os.fdopen(handle, "w") as file:
            json.dump(note, file)
        os.replace(name, folder / "last.json")
    except (OSError, InputError):
        return


def last_used() -> LastUsed:
    """Return what was used last. Raises InputError if there is none."""
    try:
        note = json.loads((cache_dir() / "last.json").read_text())
        return LastUsed(Path(note["database"]), tuple(note["logs"]), str(note["hints"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("@: no run was looked at before; name the logs") from error


def is_database(path: Path) -> bool:
    """Tell whether a file is a DuckDB database, by its content. A pipe is none; to open it would eat it."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except (OSError, ValueError):  # a name with NUL in it
        return False


def _writable(path: Path) -> DuckDBPyConnection:
    making = {"storage_compatibility_version": STORAGE_VERSION, "memory_limit": _WHILE_MAKING}
    return duckdb.connect(str(path), config=_CONFIG | making)


def _size(con: DuckDBPyConnection) -> int:
    """Bytes that the blocks of an opened database take: what is missing is told else only where it is read."""
    query = "SELECT max(total_blocks * block_size) FROM pragma_database_size()"
    return next((int(size) for (size,) in con.execute(query).fetchall()), 0)


def _readable(path: Path) -> DuckDBPyConnection:
    """DuckDB hands out a path's old content where it is open in this process and was replaced since: a different name
    of the user for each content makes it refuse, and then the file is attached to another instance.
    """
    try:
        facts = path.stat()
        content = {"custom_user_agent": f"replay-{facts.st_ino}-{facts.st_mtime_ns}"}
        return duckdb.connect(str(path), read_only=True, config=_READING | _LOCKED | content)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such database") from error
    except OSError as error:
        raise NotOurs(f"{path}: cannot be read ({error.strerror})") from error
    except duckdb.ConnectionException:
        con = _attached(path)
        _lock(con)
        return con
    except duckdb.Error as error:
        raise NotOurs(f"{path}: not a run database ({_first_line(error)})") from error


def _attached(path: Path) -> DuckDBPyConnection:
    con = duckdb.connect(config=_READING | {"temp_directory": f"{path}.tmp"})
    con.execute(f"ATTACH '{_quoted(path)}' AS {ALIAS} (TYPE duckdb, READ_ONLY)")
    con.execute(f"USE {ALIAS}")
    return con


def _lock(con: DuckDBPyConnection) -> None:
    for name, value in _LOCKED.items():
        con.execute(f"SET {name} = {value}")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _name(con: DuckDBPyConnection) -> str:
    row = con.execute("SELECT current_database()").fetchone()
    return str(row[0]) if row else ALIAS


def _file_of(con: DuckDBPyConnection) -> Path:
    row = con.execute("SELECT path FROM duckdb_databases() WHERE database_name = ?", [_name(con)]).fetchone()
    assert row is not None, "every connection has a current database"
    return Path(row[0])


def _scratch(path: Path) -> Path:
    """Make a private folder beside `path`: nobody else may read what is built in it."""
    try:
        if _is_cache(path.parent):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=path.parent, prefix=SCRATCH))
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be written ({error.strerror}); name a database with --db or a folder in "
            "REPLAY_CACHE_DIR"
        ) from error


def _is_cache(folder: Path) -> bool:
    try:
        return folder == cache_dir()
    except InputError:
        return False


def _publish(made: Path, path: Path) -> None:
    try:
        made.chmod(0o600)
        os.replace(made, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
