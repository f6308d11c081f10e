"""Databases are built whole or not at all, open only to readers, and are the same however they came to be."""

import stat
from pathlib import Path

import duckdb
import pytest
from factory import make_db

from replay.errors import InputError
from replay.parse.model import Counts, Segment
from replay.resources import cache_dir
from replay.sources.model import Hints, Identity, Line, Problem, SourceFile
from replay.store import database, fingerprint, schema
from replay.store.merge import merge
from replay.store.writer import TableSink


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "x.duckdb"


def build(place: Path, **notes: str) -> None:
    with database.building(place) as con:
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION)} | notes)


def test_a_built_database_is_private_and_alone(place: Path) -> None:
    build(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [p.name for p in place.parent.iterdir()] == ["x.duckdb"]
    assert database.is_database(place)


def interrupted(place: Path) -> None:
    with database.building(place) as con:
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION), "tool": "new"})
        raise KeyboardInterrupt


def test_an_interrupted_build_leaves_the_old_one(place: Path) -> None:
    build(place, tool="old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(place)
    assert database.meta(database.open_database(place))["tool"] == "old"
    assert [p.name for p in place.parent.iterdir()] == ["x.duckdb"]


def test_any_duckdb_client_opens_it(place: Path) -> None:
    build(place, tool="t")
    con = duckdb.connect(str(place), read_only=True)
    assert con.execute("SELECT value FROM meta WHERE name = 'tool'").fetchall() == [("t",)]
    assert con.execute("SELECT ranks_text([0, 1, 2, 5])").fetchall() == [("0-2,5",)]
    tags = con.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'x'").fetchall()
    assert database.STORAGE_VERSION in str(tags)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO meta VALUES ('a', 'b')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH '/tmp/other.duckdb'",
        "COPY meta TO '/tmp/out.csv'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "EXPORT DATABASE '/tmp/out'",
    ],
)
def test_an_open_database_is_locked(place: Path, statement: str) -> None:
    build(place)
    with pytest.raises(duckdb.Error):
        database.open_database(place).execute(statement)


def test_a_replaced_database_is_not_read_from_memory(place: Path) -> None:
    build(place, tool="old")
    first = database.open_database(place)
    build(place, tool="new")
    second = database.open_database(place)
    assert [database.meta(con)["tool"] for con in (first, second)] == ["old", "new"]
    assert database.meta(database.cursor(second))["tool"] == "new"
    with pytest.raises(duckdb.Error):
        second.execute("SELECT * FROM read_text('/etc/passwd')")


def test_a_cursor_sees_the_same_tables(place: Path) -> None:
    build(place, tool="t")
    con = database.open_database(place)
    assert database.meta(database.cursor(con))["tool"] == "t"
    assert database.meta(con.cursor())["tool"] == "t"


def test_what_is_no_run_database_is_an_input_error(tmp_path: Path, place: Path) -> None:
    text = tmp_path / "text.duckdb"
    text.write_text("not a database " * 100)
    with pytest.raises(InputError, match=r"text\.duckdb: not a run database"):
        database.open_database(text)
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).close()
    with pytest.raises(InputError, match="not one that replay made"):
        database.open_database(other)
    build(place, schema="0")
    with pytest.raises(InputError, match="another version"):
        database.open_database(place)
    with pytest.raises(InputError, match="no such database"):
        database.open_database(tmp_path / "none.duckdb")


def test_a_place_that_cannot_be_made_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--db or a folder in REPLAY_CACHE_DIR"):
        build(tmp_path / "file" / "x.duckdb")


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("REPLAY_CACHE_DIR", raising=False)
    assert cache_dir() == Path("/xdg/replay")
    monkeypatch.setenv("REPLAY_CACHE_DIR", "/mine")
    assert cache_dir() == Path("/mine")
    monkeypatch.delenv("REPLAY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "replay"


def test_the_last_one_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path))
    with pytest.raises(InputError, match="no run was looked at"):
        database.last_used()
    database.remember(Path("/x.duckdb"), ["/logs"], "{}")
    assert database.last_used() == database.LastUsed(Path("/x.duckdb"), ("/logs",), "{}")


# ------------------------------------------------------------------ fingerprints


def source(number: int, path: str, digest: str, twin: int | None = None) -> SourceFile:
    return SourceFile(number, path, None, "text", "plain", 1, digest, duplicate_of=twin)


def test_a_fingerprint_is_kept_and_compared() -> None:
    files = [source(1, "a", "1"), source(2, "b", "2", 1)]
    con = make_db()
    first = fingerprint.take(files, Hints(), [])
    fingerprint.store(con, first)
    assert fingerprint.stored(con) == first
    renumbered = [source(2, "a", "1"), source(3, "b", "2", 2)]
    assert fingerprint.take(renumbered, Hints(), []) == first
    assert fingerprint.take([source(1, "a", "x"), files[1]], Hints(), []).files[0] != first.files[0]
    assert not fingerprint.take(files, Hints(year=2024), []).same_parse(first)


def test_other_rules_leave_the_parse(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("id: x")
    plain, mine = fingerprint.take([], Hints(), []), fingerprint.take([], Hints(), [tmp_path])
    assert plain != mine
    assert plain.same_but_rules(mine)


def test_keys_are_readable_and_differ_by_hint() -> None:
    one, two = fingerprint.key(["/runs/my job"], Hints()), fingerprint.key(["/runs/my job"], Hints(year=2020))
    assert one.startswith("my_job-")
    assert one != two
    assert fingerprint.key([], Hints()).startswith("run-")


# ------------------------------------------------------------------ merging


def ingest(sink: TableSink, number: int, path: str, content: list[tuple[int, str]]) -> None:
    """A stand-in for parsing: one line and one event per (rank, text), events out of order as blocks end."""
    file = source(number, path, "")
    segments = []
    for line_no, (rank, text) in enumerate(content, 1):
        identity = Identity(rank=rank)
        line = Line(number, line_no, 0, text, text, identity)
        segments.append(Segment(line, "", {}, text, identity, float(line_no), writer_id=sink.writer(file, identity)))
        sink.line(line, segments[-1].writer_id, "plain", None, None)
    for segment in reversed(segments):
        sink.row("log_messages", segment, text=segment.text)
        if segment.text == "odd":
            sink.row("problems", segment, kind="torn", text=path)
            sink.problem(Problem("truncated", path, number))
    sink.file(file, Counts(len(content), 0, 0, len(content), 0), ends_whole=True)


def contents(con: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[object, ...]]]:
    return {t.name: con.execute(f"FROM {t.name}").fetchall() for t in schema.base_tables()}


def test_merging_equals_a_fresh_ingest(tmp_path: Path) -> None:
    old = {"b": [(0, "x"), (1, "odd")], "c": [(2, "gone")], "d": [(3, "u"), (2, "v"), (3, "odd")]}
    new = {"a": [(9, "new"), (8, "odd")], "b": old["b"], "c": [(2, "changed")], "d": old["d"]}
    base = tmp_path / "base.duckdb"
    with database.building(tmp_path / "old.duckdb") as con:
        sink = TableSink(con)
        for number, (path, content) in enumerate(old.items(), 1):
            ingest(sink, number, path, content)
        sink.flush()
        database.keep_copy(con, base)

    def fresh(only: set[str]) -> TableSink:
        sink = TableSink(make_db())
        for number, (path, content) in enumerate(new.items(), 1):
            if path in only:
                ingest(sink, number, path, content)
        sink.flush()
        return sink

    whole, part = fresh(set(new)), fresh({"a", "c"})
    merge(part.con, base, kept={1: 2, 3: 4}, duplicates={})
    assert contents(part.con) == contents(whole.con)
    assert contents(part.con)["log_messages"]
    assert part.con.execute("FROM recompiles").fetchall() == []
