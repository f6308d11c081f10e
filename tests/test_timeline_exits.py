"""Whom an end is about: launchers name a rank, a local rank or a process, and tell of one end more than once."""

from typing import Any

import duckdb
import pytest
from factory import insert, make_db

from replay.sources.model import Hints
from replay.timeline.derive import derive
from replay.timeline.identify import identify

Rows = list[tuple[Any, ...]]


def run(*exits: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """Two hosts with two ranks each, a file a rank, and a launcher's file with these ends."""
    con = make_db()
    for rank in range(4):
        host = "a" if rank < 2 else "b"
        insert(con, "files", file_id=rank + 1, path=f"rank{rank}.log", kind="text", run_key="", rank=rank, lines=1)
        insert(
            con,
            "writers",
            writer_id=rank + 1,
            file_id=rank + 1,
            prefix_rank=rank,
            local_rank=rank % 2,
            host=host,
            pid=100 + rank,
        )
        insert(con, "lines", writer_id=rank + 1, file_id=rank + 1, line_no=1, t_lo=1.0, t_hi=1.0, text="x")
    insert(con, "files", file_id=9, path="launcher.log", kind="text", run_key="", lines=len(exits))
    insert(con, "writers", writer_id=9, file_id=9)
    for number, columns in enumerate(exits, start=1):
        insert(con, "lines", writer_id=9, file_id=9, line_no=number, text="x")
        insert(con, "exits", **{"writer_id": 9, "file_id": 9, "line_no": number} | columns)
    identify(con, Hints())
    derive(con)
    return con


def ends(con: duckdb.DuckDBPyConnection) -> Rows:
    return con.execute("SELECT of_rank, line_no FROM exits ORDER BY line_no").fetchall()


@pytest.mark.parametrize(
    ("columns", "rank"),
    [
        ({"of_pid": 103}, 3),
        ({"of_pid": 103, "of_host": "b"}, 3),
        ({"of_pid": 103, "of_host": "a"}, None),
        ({"of_local_rank": 1, "of_host": "b"}, 3),
        ({"of_local_rank": 1}, None),
        ({"of_pid": 999}, None),
        ({"of_rank": 2, "of_pid": 103}, 2),
    ],
)
def test_an_end_finds_its_rank(columns: dict[str, Any], rank: int | None) -> None:
    assert ends(run({"code": -9, "signal": "SIGKILL"} | columns)) == [(rank, 1)]


def test_the_agents_line_and_its_table_are_one_end() -> None:
    line = {"reporter": "torchrun", "pid": 50, "of_pid": 101, "of_local_rank": 1, "code": -11, "t_lo": 5.0, "t_hi": 5.0}
    table = {"reporter": "torchrun", "of_pid": 101, "of_local_rank": 1, "of_rank": 1, "code": -11, "is_first": True}
    con = run(line, table)
    assert ends(con) == [(1, 2)]
    assert con.execute("SELECT pid FROM exits").fetchall() == [(50,)]


def test_a_table_that_has_another_year_than_its_log_goes_by_the_log() -> None:
    year = 365 * 86400.0
    line = {"reporter": "torchrun", "of_pid": 101, "code": 1, "t_lo": 2 * year, "t_hi": 2 * year}
    table = {
        "reporter": "torchrun",
        "of_pid": 101,
        "of_rank": 1,
        "code": 1,
        "is_first": True,
        "t_lo": year,
        "t_hi": year + 1,
    }
    assert run(line, table).execute("SELECT t_lo, t_hi FROM exits").fetchall() == [(2 * year, 2 * year)]


def test_an_attempt_that_has_no_table_keeps_its_line() -> None:
    first = {"reporter": "torchrun", "of_pid": 101, "code": 1}
    last = {"reporter": "torchrun", "of_pid": 102, "of_rank": 2, "code": 1, "is_first": True}
    assert ends(run(first, last)) == [(1, 1), (2, 2)]


def test_a_worker_of_a_data_loader_is_part_of_its_rank() -> None:
    assert ends(run({"writer_id": 3, "file_id": 3, "reporter": "dataloader", "of_pid": 7, "signal": "SIGKILL"})) == [
        (2, 1)
    ]
