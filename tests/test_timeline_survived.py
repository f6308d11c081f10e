"""Exceptions that a rank survived, as its other lines tell."""

from typing import Any

import pytest
from factory import insert, make_db

from replay.sources.model import Hints
from replay.timeline.derive import derive
from replay.timeline.identify import identify

AT = {"writer_id": 1, "file_id": 1}
STEP = ("step_lines", {"step": 9})
END = ("activities", {"kind": "train-end", "phase": "point"})
FAILED = ("exits", {"code": 1, "of_rank": 1, "reporter": "torchrun"})


@pytest.mark.parametrize(
    ("behind", "is_uncaught"),
    [
        ([STEP], False),
        ([END], False),
        ([], True),
        ([STEP, FAILED], True),  # buffered output may come behind the traceback
    ],
)
def test_a_rank_that_goes_on_survived(behind: list[tuple[str, dict[str, Any]]], *, is_uncaught: bool) -> None:
    con = make_db()
    insert(con, "files", file_id=1, path="rank1.log", kind="text", run_key="", rank=1, lines=4)
    insert(con, "writers", writer_id=1, file_id=1, prefix_rank=1)
    insert(con, "exceptions", **AT, line_no=1, type="ConnectionError", is_uncaught=True)
    for line_no, (table, columns) in enumerate(behind, start=2):
        insert(con, table, **AT, line_no=line_no, **columns)
    identify(con, Hints())
    derive(con)
    assert con.execute("SELECT is_uncaught FROM exceptions").fetchall() == [(is_uncaught,)]
