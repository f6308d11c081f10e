"""What must hold of the engine for all tables and all orders of rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from expert_book import make_book, rule
from factory import insert, make_db
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.expert.engine import diagnose, infer
from replay.expert.load import RuleBook

RULES = (
    rule(
        "[{a: {from: compiles, where: is_recompile}}, {b: {from: stalls, same: {late_rank: a.rank}, overlaps: a}}]",
        "{per: a.rank, ranks: a.rank, cost: sum(b.lost_s), certainty: 0.9, explains: [recompile-dtype]}",
    ),
    rule("[{f: {from: guard_failures}}, {a: {from: compiles, same: [rank, compile_id]}}]",
         "{per: f.rank, ranks: f.rank, cost: sum(a.duration_s)}", id="recompile-dtype"),
    rule("[{f: {from: findings, where: certainty > 0.1}}, "
         "{e: {from: exceptions, where: 'list_contains(f.ranks, rank)'}}]",
         "{per: e.rank, certainty: 0.8, absorbs: [recompile-dtype]}", id="rank-exception", layer="environment"),
)  # fmt: skip

TIME = st.sampled_from([None, 1.0, 2.0, 2.5, 3.0])
RANK = st.sampled_from([None, 0, 1])
ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"table": st.just("compiles"), "rank": RANK, "t_lo": TIME, "is_recompile": st.just(True),
             "compile_id": st.sampled_from([None, "0/1", "0/2"]), "duration_s": st.sampled_from([None, 1.0, 2.0])}
        ),
        st.fixed_dictionaries(
            {"table": st.just("guard_failures"), "rank": RANK, "compile_id": st.sampled_from([None, "0/1"])}
        ),
        st.fixed_dictionaries(
            {"table": st.just("stalls"), "late_rank": RANK, "t_lo": TIME, "lost_s": st.sampled_from([1.0, 4.0])}
        ),
        st.fixed_dictionaries({"table": st.just("exceptions"), "rank": RANK, "t_lo": TIME}),
    ),
    max_size=9,
)  # fmt: skip

quickly = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> RuleBook:
    return make_book(tmp_path_factory.mktemp("rules"), *RULES)


def fill(rows: Sequence[dict[str, Any]]) -> Any:
    con = make_db()
    insert(con, "runs", run_id=1)
    for number, row in enumerate(rows, 1):
        columns = {name: value for name, value in row.items() if name != "table"}
        if row["table"] == "stalls":
            columns["t_hi"] = None if row["t_lo"] is None else row["t_lo"] + 1
        elif "t_lo" in row:
            columns |= {"t_hi": row["t_lo"]}
        if row["table"] == "compiles":
            columns |= {"end_lo": row["t_lo"], "end_hi": row["t_lo"]}
        insert(con, row["table"], run_id=1, file_id=1, line_no=number, **columns)
    return con


def findings(rows: Sequence[dict[str, Any]], book: RuleBook) -> dict[Any, Any]:
    con = fill(rows)
    with con.cursor() as reader:
        found, problems = infer(reader, book)
    assert problems == []
    return {f.key: f for f in found}


@quickly
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(book: RuleBook, rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(book.rules)
    random.shuffle(shuffled)
    answers = []
    for one in (book, RuleBook(tuple(shuffled), book.taxonomy, book.knowledge)):
        con = fill(rows)
        diagnose(con, one)
        answers.append(
            [
                con.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
                for table in ("findings", "evidence", "explains")
            ]
        )
    assert answers[0] == answers[1]


@quickly
@given(rows=ROWS, data=st.data())
def test_less_evidence_is_never_surer(book: RuleBook, rows: list[dict[str, Any]], data: Any) -> None:
    before = findings(rows, book)
    if rows:
        gone = data.draw(st.integers(0, len(rows) - 1))
        after = findings(rows[:gone] + rows[gone + 1 :], book)
        for key, finding in after.items():
            assert finding.certainty <= before[key].certainty


@quickly
@given(rows=ROWS, data=st.data())
def test_rows_of_one_step_do_not_change_the_sum_of_another(
    book: RuleBook, rows: list[dict[str, Any]], data: Any
) -> None:
    summed = {"recompile-other": "stalls", "recompile-dtype": "compiles"}
    before = findings(rows, book)
    if rows:
        twice = data.draw(st.sampled_from(rows))
        for key, finding in findings([*rows, dict(twice)], book).items():
            if summed.get(finding.rule) not in (None, twice["table"]):
                assert finding.lost_s == before[key].lost_s


@quickly
@given(rows=ROWS)
def test_null_never_joins(book: RuleBook, rows: list[dict[str, Any]]) -> None:
    blind = [{**row, "rank": None} if "rank" in row else {**row, "late_rank": None} for row in rows]
    assert findings(blind, book) == {}


@quickly
@given(rows=ROWS)
def test_a_finding_is_bounded_by_its_premises(book: RuleBook, rows: list[dict[str, Any]]) -> None:
    found = findings(rows, book)
    for finding in found.values():
        if finding.premises:
            assert finding.certainty <= max(found[key].certainty for key in finding.premises)


def test_the_file_of_a_rule_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = make_book(tmp_path / "a", *RULES), make_book(tmp_path / "b", *reversed(RULES))
    assert [r.id for r in one] == [r.id for r in two]
