"""Rows that go in come out again, whatever is in them."""

import math

import numpy as np
import pytest
from factory import make_db
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.parse.model import Counts, Segment
from replay.sources.model import Identity, Line, Problem, SourceFile
from replay.store import writer
from replay.store.writer import TableSink, insert_columns

CON = make_db()
"""For tests that run many times; making the tables takes longer than they do."""


def line(number: int = 1, raw: str = "hello", *, whole: bool = True) -> Line:
    return Line(7, number, 100, raw, raw, Identity(), None, whole)


def segment(**changes: object) -> Segment:
    values: dict[str, object] = {"t": 12.5, "writer_id": 3} | changes
    return Segment(line=line(), header="", head={}, text="hello", identity=Identity(), **values)  # type: ignore[arg-type]


def test_common_columns_come_from_the_segment_and_can_be_overridden() -> None:
    con = make_db()
    sink = TableSink(con)
    sink.row("step_lines", segment(), step=4)
    sink.row("step_lines", segment(torn=True), step=5, line_no=99, t_lo=1.0)
    sink.flush()
    rows = con.execute(
        "SELECT writer_id, t_lo, t_hi, file_id, line_no, complete, step, run_id FROM step_lines"
    ).fetchall()
    assert rows == [(3, 12.5, 12.5, 7, 1, True, 4, None), (3, 1.0, 12.5, 7, 99, False, 5, None)]


def test_an_unknown_column_is_an_error() -> None:
    sink = TableSink(make_db())
    with pytest.raises(KeyError, match="nonsense"):
        sink.row("step_lines", segment(), nonsense=1)
    with pytest.raises(KeyError):
        sink.row("no_table", segment())


def test_nan_and_infinities_survive() -> None:
    con = make_db()
    insert_columns(con, "metrics", {"value": [1, math.nan, math.inf, None, -math.inf, 2.5]})
    values = [v for (v,) in con.execute("SELECT value FROM metrics").fetchall()]
    assert math.isnan(values[1])
    assert values[:1] + values[2:] == [1.0, math.inf, None, -math.inf, 2.5]


def test_a_late_value_of_another_size_does_not_lose_the_batch() -> None:
    con = make_db()
    count = 3000
    insert_columns(
        con,
        "metrics",
        {"step": [1] * count + [2**63, 2**40, "17", "x"], "name": [None] * count + ["a", 5, "\ud800", "n\0l"]},
    )
    rows = con.execute("SELECT step, name FROM metrics OFFSET 3000").fetchall()
    assert rows == [(None, "a"), (2**40, "5"), (17, "?"), (None, "n\0l")]


def test_an_int_beyond_32_bits_in_a_short_column_is_null() -> None:
    con = make_db()
    insert_columns(con, "rings", {"channel": [2**40, 3]})
    assert con.execute("SELECT channel FROM rings").fetchall() == [(None,), (3,)]


value = st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"step": value, "value": value, "name": value, "complete": value}), min_size=1))
def test_any_value_goes_in(rows: list[dict[str, object]]) -> None:
    CON.execute("DELETE FROM metrics")
    sink = TableSink(CON)
    for row in rows:
        sink.add("metrics", **row)  # type: ignore[arg-type]
    sink.flush()
    names = [name for (name,) in CON.execute("SELECT name FROM metrics").fetchall()]
    wanted = [r["name"] if r["name"] is None else str(r["name"]) for r in rows]
    assert names == [n if n is None else n.encode("utf-8", "replace").decode() for n in wanted]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1), st.lists(st.text(), min_size=1))
def test_good_values_come_back_exactly(numbers: list[int | None], texts: list[str]) -> None:
    CON.execute("DELETE FROM metrics; DELETE FROM env")
    insert_columns(CON, "metrics", {"step": numbers})  # type: ignore[dict-item]
    insert_columns(CON, "env", {"value": texts})  # type: ignore[dict-item]
    assert [v for (v,) in CON.execute("SELECT step FROM metrics").fetchall()] == numbers
    assert [v for (v,) in CON.execute("SELECT value FROM env").fetchall()] == texts


def test_writers_are_interned_by_file_and_identity() -> None:
    con = make_db()
    sink = TableSink(con)
    one = SourceFile(1, "a", None, "text", "plain", 1, "d", run_key="k")
    two = SourceFile(2, "b", None, "text", "plain", 1, "d")
    numbers = [
        sink.writer(one, Identity(rank=3)),
        sink.writer(one, Identity(rank=4)),
        sink.writer(one, Identity(rank=3)),
        sink.writer(two, Identity(rank=3)),
    ]
    sink.flush()
    assert numbers == [0, 1, 0, 2]
    rows = con.execute("SELECT writer_id, file_id, run_key, prefix_rank FROM writers ORDER BY 1").fetchall()
    assert rows == [(0, 1, "k", 3), (1, 1, "k", 4), (2, 2, "", 3)]


def test_lines_and_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FLUSH_ROWS", 2)
    con = make_db()
    sink = TableSink(con)
    for number in (1, 2, 3):
        sink.line(line(number, "x" * (400 + number - 1)), 0, "plain", None, None)
    sink.file(SourceFile(7, "a", None, "text", "plain", 9, "d"), Counts(3, 0, 0, 3, 0), ends_whole=False)
    sink.problem(Problem("torn", "a line is torn", 7, 2))
    sink.flush()
    assert con.execute("SELECT line_no, length(text), text[-1] FROM lines").fetchall() == [
        (1, 400, "x"),
        (2, 400, "…"),
        (3, 400, "…"),
    ]
    assert con.execute("SELECT lines, plain, ends_whole FROM files").fetchall() == [(3, 3, False)]
    assert con.execute("SELECT kind, file_id, line_no FROM problems").fetchall() == [("torn", 7, 2)]


def test_numpy_is_what_bool_columns_are_made_of() -> None:
    con = make_db()
    insert_columns(con, "compiles", {"is_recompile": [True, None, False], "duration_s": [np.float64(1.5), 2, None]})  # type: ignore[dict-item]
    assert con.execute("SELECT is_recompile, duration_s FROM compiles").fetchall() == [
        (True, 1.5),
        (None, 2.0),
        (False, None),
    ]
