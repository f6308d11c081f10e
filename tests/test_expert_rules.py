"""The rules of the package on the cases beside them, and the questions why and why not."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from expert_book import make_book, rule
from factory import insert, make_db

from replay.errors import UsageError
from replay.expert.cases import Case, cases_of, fill, run_cases
from replay.expert.check import check
from replay.expert.engine import diagnose
from replay.expert.load import load_rules, read_book
from replay.expert.rule import Conclude, Rule, Step
from replay.expert.why import why, why_not
from replay.store import schema

BOOK = load_rules()


@pytest.mark.parametrize("name", [r.id for r in BOOK])
def test_a_rule_has_cases(name: str) -> None:
    cases = cases_of(BOOK.by_id[name])
    assert any(case.finds for case in cases), "no case in which it fires"
    assert any(case.silent for case in cases), "no case in which it stays silent"


def test_the_cases_of_the_rules_hold() -> None:
    assert [(r.rule, r.case, r.fault) for r in run_cases(BOOK, BOOK) if r.fault] == []


def stalled() -> duckdb.DuckDBPyConnection:
    con = make_db()
    case = next(iter(cases_of(BOOK.by_id["recompile-barrier-stall"])))
    fill(con, [case.rows])
    return con


def test_why_is_a_tree() -> None:
    con = stalled()
    diagnose(con, BOOK)
    proof = why(con, "F1")
    assert (proof.cause, proof.is_root) == ("recompile-barrier-stall", True)
    assert [line.step for line in proof.lines][:3] == ["failure", "recompile", "stall"]
    assert [(how, effect.cause) for how, effect in proof.effects] == [("absorbs", "recompile-dynamic-shape")]
    assert proof.effects[0][1].causes == ("F1",)
    with pytest.raises(UsageError, match="no finding F9; there are F1, F2"):
        why(con, "F9")


@pytest.mark.parametrize(
    ("change", "failed", "says"),
    [
        ("SELECT 1", None, "It did fire: 1 findings."),
        ("DELETE FROM stalls", "stall", "Step stall: stalls is empty; 1 fitted the steps before."),
        ("UPDATE stalls SET lost_s = 0", "stall", "Step stall: none of 1 rows of stalls passes its conditions; 1"),
        ("UPDATE stalls SET late_rank = 1", "stall", "Step stall: 1 of 1 rows of stalls pass its conditions"),
        ("DELETE FROM ranks WHERE rank > 1; INSERT INTO compiles SELECT * REPLACE (1 AS rank) FROM compiles",
         "unless 1",
         "unless 1 holds for all 1."),
        ("INSERT INTO observed VALUES (1, 2, 'recompiles', FALSE, '')", None, "It cannot tell: recompiles not logged."),
    ],
)  # fmt: skip
def test_why_not(change: str, failed: str | None, says: str) -> None:
    con = stalled()
    con.execute(change)
    answer = why_not(con, BOOK.by_id["recompile-barrier-stall"], BOOK)
    assert answer.failed == failed
    assert says in answer.text


def test_why_not_asks_a_database_that_is_only_read(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "run.duckdb") as con:
        schema.create(con)
        con.execute("INSERT INTO runs (run_id) VALUES (1)")
    with duckdb.connect(tmp_path / "run.duckdb", read_only=True) as con:
        answer = why_not(con, BOOK.by_id["recompile-barrier-stall"], BOOK)
    assert answer.text == "Step failure: guard_failures is empty."


def test_a_case_that_does_not_hold_says_what_was_found(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}]", "{ranks: a.rank}"))
    (tmp_path / "rule0.cases.yaml").write_text(
        "- {name: one, rows: {compiles: [{rank: 1}]}, silent: true}\n"
        "- {name: two, rows: {compiles: [{rank: 1}]}, finds: [{ranks: [2]}]}\n"
        "- {name: three, rows: {compiles: [{rank: 1}]}, finds: [{ranks: [1]}]}\n"
    )
    assert [r.fault for r in run_cases(book, book)] == [
        "0 findings expected, found recompile-other on [1]", "ranks is [1], not [2]", None,
    ]  # fmt: skip


def test_the_example_of_the_manual_works(tmp_path: Path) -> None:
    manual = Path(__file__).parents[1] / "docs" / "rules.md"
    example, cases = re.findall(r"```yaml\n(.*?)```", manual.read_text(), re.DOTALL)
    book = make_book(tmp_path, example)
    (tmp_path / "rule0.yaml").rename(tmp_path / "rank-killed.yaml")
    (tmp_path / "rank-killed.cases.yaml").write_text(cases)
    book = read_book([tmp_path])
    assert [str(fault) for fault in check(book)] == []
    assert [result.fault for result in run_cases(book, book)] == [None, None]


def test_the_manual_names_every_field() -> None:
    manual = (Path(__file__).parents[1] / "docs" / "rules.md").read_text()
    for model in (Step, Conclude, Rule):
        for name, field in model.model_fields.items():
            spelt = field.alias or name
            assert re.search(rf"(`|^ *){spelt}(`|:)", manual, re.MULTILINE), spelt


def test_a_case_is_one_thing() -> None:
    given: dict[str, Any] = {"name": "x", "rows": {}}
    with pytest.raises(ValueError, match="either finds something or is silent"):
        Case.model_validate(given)
    with pytest.raises(ValueError, match="either finds something or is silent"):
        Case.model_validate({**given, "silent": True, "finds": [{"ranks": [1]}]})


def test_insert_is_of_the_factory() -> None:
    con = make_db()
    insert(con, "runs", run_id=1)
    diagnose(con, BOOK)
    assert con.execute("SELECT count(*) FROM findings").fetchone() == (0,)
