"""The rules of the package on the cases beside them, and the questions why and why not."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from expert_book import make_book, rule
from factory import insert, make_db

from replay.errors import UsageError
from replay.expert.cases import Bench, Case, cases_of, fill, run_cases
from replay.expert.check import check
from replay.expert.engine import Session, diagnose
from replay.expert.load import load_rules
from replay.expert.mutants import mutants, survivors
from replay.expert.rivals import silent_cause
from replay.expert.rule import Conclude, Rule, Step
from replay.expert.why import rivals, why, why_not
from replay.expert.yamlfile import RuleError
from replay.store import schema

BOOK = load_rules()


@pytest.mark.parametrize("name", [r.id for r in BOOK])
def test_a_rule_has_cases(name: str) -> None:
    cases = cases_of(BOOK.by_id[name])
    assert any(case.finds for case in cases), "no case in which it fires"
    assert any(case.silent for case in cases), "no case in which it stays silent"


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(BOOK, BOOK)


def test_the_cases_of_the_rules_hold(bench: Bench) -> None:
    assert [(r.rule, r.case, r.fault) for r in bench.results(BOOK) if r.fault] == []


def test_no_condition_of_a_rule_can_go_without_a_case_noticing(bench: Bench) -> None:
    assert [f"{s.rule}: {s.what}" for s in survivors(bench, BOOK)] == []


def test_a_mutant_leaves_out_one_condition(tmp_path: Path) -> None:
    when = (
        "[{a: {from: compiles, where: \"fn = 'f' and duration_s > 2\"}}, {b: {from: graphs, same: [rank]}},"
        " {rest: {from: compiles, where: rest.rowid = a.rowid}}, {run: {from: runs}}]"
    )
    unless = "[{from: steps, where: other.rank = a.rank}, [{c: {from: stalls}}, {d: {from: exits, after: c}}]]"
    book = make_book(tmp_path, rule(when, "{ranks: a.rank}", unless=unless))
    con = make_db()
    assert [m.what for m in mutants(book.rules[0], Session.over(con, book).catalog)] == [
        "step a: fn = 'f'", "step a: duration_s > 2", "step b", "step b: same rank", "unless 1",
        "unless 1, other: other.rank = a.rank", "unless 2", "unless 2, d", "unless 2, d: after c",
    ]  # fmt: skip


def test_a_survivor_is_a_condition_that_no_case_needs(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles, where: \"fn = 'f' and duration_s > 2\"}}]", "{}"))
    cases = tmp_path / "rule0.cases.yaml"
    fires = "- {name: it, rows: {compiles: [{rank: 1, fn: f, duration_s: 3.0}]}, finds: [{ranks: []}]"
    cases.write_text(fires + ", silenced_by: [{compiles: {fn: g}}]}\n")
    assert [s.what for s in survivors(Bench(book, book), book)] == ["step a: duration_s > 2"]
    cases.write_text(fires + ", silenced_by: [{compiles: {fn: g}}, {compiles: {duration_s: 1.0}}]}\n")
    assert [s.what for s in survivors(Bench(book, book), book)] == []


def test_cases_near_another(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles, where: fn = 'f'}}]", "{ranks: a.rank}"))
    cases = tmp_path / "rule0.cases.yaml"
    cases.write_text(
        "- {name: it, rows: {compiles: [{rank: 1, fn: f}, {rank: 2, fn: g}]}, finds: [{ranks: [1]}],\n"
        "   silenced_by: [{compiles: null}, {compiles: {fn: g}}, {compiles: [{fn: h}]}, {compiles: [null]}],\n"
        "   unmoved_by: [{compiles: [{}, null]}, {compiles: [{}, {}, {rank: 3, fn: i}]}]}\n"
        "- {name: other, like: it, but: {compiles: [{}, {fn: f}]}, finds: [{ranks: [1, 2]}]}\n"
        "- {name: none, rows: {graphs: [{rank: 1}]}, silent: true, fired_by: [{compiles: [{rank: 1, fn: f}]}]}\n"
    )
    assert [r.fault for r in run_cases(book, book)] == [None] * 10
    for wrong, says in (
        ("- {name: a, like: b, but: {graphs: null}, silent: true}", "cases.yaml:1:3: no earlier case 'b'"),
        ("- {name: a, rows: {grafs: [{}]}, silent: true}", "there is no table grafs"),
        ("- {name: a, rows: {graphs: [{of: 1}]}, silent: true}", "graphs has no column of"),
        ("- {name: a, rows: {graphs: [{}]}, silent: true, fired_by: [{steps: null}]}", "no rows of steps to change"),
        ("- {name: a, rows: {graphs: [{}]}, silent: true, silenced_by: [{graphs: null}]}", "silenced_by is for a case"),
        ("- {name: a, rows: {graphs: [{}]}, but: {graphs: null}, silent: true}", "like and but go together"),
        ("- {name: a, silent: true}\n- {name: a, silent: true}", "the case 'a' is there twice"),
    ):
        cases.write_text(wrong + "\n")
        with pytest.raises(RuleError, match=re.escape(says)):
            run_cases(book, book)


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


def test_the_rivals_of_a_finding_and_why_they_lost() -> None:
    con = stalled()
    insert(con, "exits", run_id=1, of_rank=2, signal="SIGKILL", t_lo=50.0, t_hi=50.0)
    insert(con, "signals", run_id=1, signal="SIGKILL", direction="sent", t_lo=49.0, t_hi=49.0)
    diagnose(con, BOOK)
    found = {rival.rule: rival for rival in rivals(con, "F1")}
    assert found["recompile-by-kind"].why == "F1 holds it as a part"
    assert found["recompile-by-kind"].finding_id == "F2"
    killed = found["rank-killed"]
    assert (killed.cause, killed.finding_id) == ("rank-killed", None)
    assert killed.why == "the launcher sent the signal"
    assert rivals(con, "F99") == []


def test_each_veto_of_a_cause_says_what_it_means() -> None:
    causes = [rule for rule in BOOK.rules if silent_cause(rule, BOOK.taxonomy)]
    mute = {
        f"{rule.id} {number}"
        for rule in causes
        for number, chain in enumerate(rule.vetoes, 1)
        if not any(step.because for _, step in chain)
    }
    assert len(causes) > 80
    assert not mute


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


def test_the_example_of_the_manual_works_beside_the_tools_own_rules(tmp_path: Path) -> None:
    manual = Path(__file__).parents[1] / "docs" / "rules.md"
    texts = re.findall(r"```yaml\n(.*?)```", manual.read_text(), re.DOTALL)
    for name, text in zip(("hub-refused.yaml", "hub-refused.cases.yaml", "taxonomy.yaml"), texts, strict=True):
        assert f"`mine/{name}`" in manual.read_text()
        (tmp_path / name).write_text(text)
    book = load_rules([tmp_path])
    own = [book.by_id["hub-refused"]]
    assert [str(fault) for fault in check(book, own)] == []
    assert [result.fault for result in run_cases(book, own)] == [None, None]


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
