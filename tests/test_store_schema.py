"""The schema file says all there is to say about the tables, and its documentation is current."""

from pathlib import Path

import pytest
from factory import insert, make_db
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.store import docs, schema

CON = make_db()


def test_every_table_and_column_is_documented() -> None:
    tables = schema.tables()
    assert len(tables) > 50
    assert all(t.doc and t.section and t.columns and all(c.doc for c in t.columns) for t in tables.values())
    for table in tables.values():
        assert table.has_common == (table.section == "event" or table.name == "problems"), table.name


def test_the_tables_of_the_database_are_those_of_the_file() -> None:
    made = CON.execute(
        "SELECT table_name, list(column_name ORDER BY ordinal_position) FROM information_schema.columns c "
        "JOIN information_schema.tables t USING (table_name) WHERE table_type = 'BASE TABLE' GROUP BY ALL"
    ).fetchall()
    assert dict(made) == {t.name: [c.name for c in t.columns] for t in schema.tables().values()}


def test_a_line_of_another_form_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text("-- section input\n\nCREATE TABLE a ( -- b\n    c INTEGER\n);\n")
    monkeypatch.setattr(schema, "HERE", tmp_path)
    with pytest.raises(ValueError, match=r"schema\.sql:4: not a column with its documentation: c INTEGER"):
        schema.tables.__wrapped__()


def test_schema_md_is_current() -> None:
    place = Path(docs.__file__).parent.parent.parent / "docs" / "schema.md"
    assert place.read_text() == docs.render(), "run python -m replay.store.docs"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40)))
def test_ranks_text_names_each_rank_once(ranks: list[int]) -> None:
    row = CON.execute("SELECT ranks_text(?::INTEGER[])", [ranks]).fetchone()
    assert row is not None
    named: list[int] = []
    for part in filter(None, row[0].split(",")):
        first, _, last = part.partition("-")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(set(ranks))


def test_busbw_follows_nccl_tests() -> None:
    row = CON.execute("SELECT busbw('allreduce', 1e9, 8, 1.0), busbw('allgather', 1e9, 8, 0.5), busbw('x', 1, 8, 0)")
    assert row.fetchone() == (1.75, 1.75, None)


def test_recompiles_shows_the_users_only() -> None:
    con = make_db()
    common = {"run_id": 1, "rank": 2, "writer_id": 5, "file_id": 1, "line_no": 10, "fn": "forward"}
    insert(con, "files", file_id=1, path="a.log")
    insert(con, "compiles", compile_id="4/0", is_recompile=False, is_framework=False, **common)
    insert(con, "compiles", compile_id="4/1", is_recompile=True, is_framework=False, **common)
    insert(con, "compiles", compile_id="5/1", is_recompile=True, is_framework=True, **common)
    failure = common | {"compile_id": "4/1", "compile_line": common["line_no"]}
    insert(con, "guard_failures", nth=0, kind="size", cause="recompile-dynamic-shape", **failure)
    insert(con, "guard_failures", nth=1, kind="dtype", **failure)
    insert(con, "guard_failures", nth=0, kind="other", **(failure | {"writer_id": 6}))
    rows = con.execute("SELECT rank, compile_id, kind, cause, path, line_no FROM recompiles").fetchall()
    assert rows == [(2, "4/1", "size", "recompile-dynamic-shape", "a.log", 10)]


def test_env_diff_names_the_ranks_of_each_value() -> None:
    con = make_db()
    for rank, value in enumerate(["Ring", "Ring", "Tree"]):
        insert(con, "env", run_id=1, rank=rank, name="NCCL_ALGO", value=value)
        insert(con, "env", run_id=1, rank=rank, name="NCCL_DEBUG", value="INFO")
    assert con.execute("FROM env_diff").fetchall() == [
        (1, "NCCL_ALGO", "Ring", [0, 1]),
        (1, "NCCL_ALGO", "Tree", [2]),
    ]


def test_first_errors_cache_rate_and_oom() -> None:
    con = make_db()
    insert(con, "files", file_id=1, path="a.log")
    for seq, (rank, severity) in enumerate([(0, "info"), (0, "error"), (1, "error"), (0, "error")]):
        insert(con, "events", seq=seq, run_id=1, rank=rank, severity=severity, summary=str(seq), file_id=1, line_no=seq)
    assert con.execute("SELECT rank, summary, path FROM first_errors").fetchall() == [
        (0, "1", "a.log"),
        (1, "2", "a.log"),
    ]
    for event in ("hit", "miss", "miss", "bypass", "save"):
        insert(con, "cache_events", run_id=1, rank=0, cache="fx", event=event)
    assert con.execute("FROM cache_rate").fetchall() == [(1, 0, "fx", 1, 2, 1, 0.25)]
    insert(con, "memory", run_id=1, rank=0, kind="cuda-oom", file_id=1)
    insert(con, "memory", run_id=1, rank=0, kind="rss", file_id=1)
    assert con.execute("SELECT kind, path FROM oom").fetchall() == [("cuda-oom", "a.log")]


def test_agreement_tells_where_members_first_differed() -> None:
    con = make_db()
    for nth, odd in ((0, []), (1, [2]), (2, [2]), (3, []), (4, None)):
        insert(con, "matched", run_id=1, comm_id="c", source="nccl-coll", nth=nth, odd=odd)
    insert(con, "matched", run_id=1, comm_id="d", source="nccl-coll", nth=7, odd=[])
    rows = con.execute("SELECT comm_id, first_odd, last_alike FROM agreement").fetchall()
    assert rows == [("c", 1, 3), ("d", None, 7)]
