"""The engine on small tables: what joins, what time means, what is counted, and how sure a finding is."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from expert_book import make_book, rule
from factory import insert, make_db

from replay.expert.engine import diagnose
from replay.expert.load import RuleBook
from replay.expert.outcome import verdict
from replay.expert.why import why
from replay.expert.yamlfile import RuleError

Rows = list[dict[str, Any]]


def db(ranks: int = 4, runs: int = 1, **run: Any) -> duckdb.DuckDBPyConnection:
    con = make_db()
    for run_id in range(1, runs + 1):
        insert(con, "runs", run_id=run_id, **run)
        for rank in range(ranks):
            insert(con, "ranks", run_id=run_id, rank=rank, heard=True, host=f"h{rank // 2}")
    insert(con, "files", file_id=1, path="a.log")
    return con


def compile_row(con: duckdb.DuckDBPyConnection, line: int, t: float | None = None, **columns: Any) -> None:
    """Insert a compile of one second at a line, with the line."""
    given = {
        "run_id": 1,
        "rank": 0,
        "file_id": 1,
        "line_no": line,
        "t_lo": t,
        "t_hi": t,
        "is_framework": False,
    } | columns
    end = None if t is None else t + 1
    insert(con, "compiles", **({"end_lo": end, "end_hi": end} | given))
    insert(con, "lines", run_id=1, file_id=1, line_no=line, rank=given["rank"], text=f"[rank0]: line {line}", t_lo=t)


def stall_row(con: duckdb.DuckDBPyConnection, line: int, t: float | None, **columns: Any) -> None:
    end = None if t is None else t + 1
    given = {"run_id": 1, "late_rank": 0, "waiting": [1], "lost_s": 1.0, "t_lo": t, "t_hi": end, "file_id": 1}
    insert(con, "stalls", **(given | {"line_no": line} | columns))


def found(con: duckdb.DuckDBPyConnection, book: RuleBook, table: str = "findings") -> Rows:
    diagnose(con, book)
    cursor = con.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def test_a_rule_sees_one_run(tmp_path: Path) -> None:
    con = db(runs=2)
    compile_row(con, 1)
    stall_row(con, 2, 1.0, run_id=2)
    assert found(con, make_book(tmp_path, rule("[{a: {from: compiles}}, {b: {from: stalls}}]"))) == []
    assert [f["run_id"] for f in found(con, make_book(tmp_path, rule("[{b: {from: stalls}}]")))] == [2]


def test_same_takes_the_nearest_step_and_null_equals_nothing(tmp_path: Path) -> None:
    book = make_book(
        tmp_path,
        rule("[{a: {from: compiles, where: frame = 0}}, {b: {from: compiles, where: frame = 1, same: [rank, host]}}]"),
    )
    con = db()
    compile_row(con, 1, frame=0, host=None)
    compile_row(con, 2, frame=1, host=None)
    assert found(con, book) == []
    compile_row(con, 3, frame=0, host="h", rank=1)
    compile_row(con, 4, frame=1, host="h", rank=1)
    assert len(found(con, book)) == 1


@pytest.mark.parametrize(("optional", "ranks"), [("false", [2]), ("true", [1])])
def test_same_passes_over_optional_steps(tmp_path: Path, optional: str, ranks: list[int]) -> None:
    steps = (
        "[{a: {from: compiles, where: frame = 1}}, {b: {from: compiles, where: frame = 2, optional: %s}}, "
        "{c: {from: compiles, same: [rank], where: frame = 3}}]"
    )
    con = db()
    for line, (rank, frame) in enumerate([(1, 1), (2, 2), (1, 3), (2, 3)], 1):
        compile_row(con, line, rank=rank, frame=frame)
    book = make_book(tmp_path, rule(steps % optional, "{ranks: c.rank}"))
    assert [f["ranks"] for f in found(con, book)] == [ranks]


def test_same_may_name_a_step_and_a_column(tmp_path: Path) -> None:
    steps = "[{a: {from: compiles}}, {b: {from: stalls}}, {c: {from: compiles, same: {%s}, where: frame = 7}}]"
    con = db()
    compile_row(con, 1, rank=2)
    compile_row(con, 2, rank=2, frame=7)
    stall_row(con, 3, 1.0, late_rank=0)
    assert found(con, make_book(tmp_path, rule(steps % "rank: a"))) != []
    assert found(con, make_book(tmp_path, rule(steps % "rank: b.late_rank"))) == []


def test_bare_names_are_the_steps_own_and_words_of_sql_may_name_steps(tmp_path: Path) -> None:
    text = rule(
        "[{select_: {from: rank_stats, where: first > last and name = 'fwd_ms'}}, "
        "{end: {from: compiles, same: [rank], where: rank = select_.rank and nth = 1}}]",
        "{ranks: end.rank}",
        say="'{end.fn} {select_.first}'",
    )
    con = db()
    insert(con, "rank_stats", run_id=1, rank=3, name="fwd_ms", first=2.0, last=1.0)
    compile_row(con, 1, rank=3, nth=1, fn="f")
    compile_row(con, 2, rank=2, nth=1, fn="f")
    assert [(f["ranks"], f["summary"]) for f in found(con, make_book(tmp_path, text))] == [([3], "f 2")]


def test_exists_is_one_witness(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1, 1.0, duration_s=2.0)
    for line in (5, 4, 3):
        stall_row(con, line, 1.0, wait_s=float(line))
    text = rule(
        "[{a: {from: compiles}}, {b: {from: stalls, exists: true, overlaps: a, label: 'wait {b.wait_s}'}}]",
        "{cost: sum(a.duration_s)}",
        say="'waited {b.wait_s}'",
    )
    book = make_book(tmp_path, text)
    (one,) = found(con, book)
    assert (one["lost_s"], one["summary"]) == (2.0, "waited 3")
    assert [(e["step_name"], e["line_no"], e["label"]) for e in found(con, book, "evidence")][1:] == [
        ("b", 3, "wait 3")
    ]


def test_absence_counts_only_where_it_could_have_been_seen(tmp_path: Path) -> None:
    text = rule("[{a: {from: compiles}}, {b: {from: graph_breaks, same: [rank], absent: true}}]", "{ranks: a.rank}")
    con = db()
    book = make_book(tmp_path, text)
    compile_row(con, 1, rank=0)
    compile_row(con, 2, rank=1)
    assert found(con, book) == []
    insert(con, "observed", run_id=1, rank=0, what="graph_breaks", is_on=False)
    insert(con, "observed", run_id=1, rank=1, what="graph_breaks", is_on=True)
    assert [f["ranks"] for f in found(con, book)] == [[1]]
    insert(con, "graph_breaks", run_id=1, rank=1)
    assert found(con, book) == []


def test_absence_in_a_whole_run_needs_all_ranks(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}, {b: {from: graph_breaks, absent: true}}]"))
    con = db()
    compile_row(con, 1)
    insert(con, "observed", run_id=1, rank=0, what="graph_breaks", is_on=True)
    assert len(found(con, book)) == 1
    insert(con, "observed", run_id=1, rank=1, what="graph_breaks", is_on=False)
    assert found(con, book) == []


def test_a_rule_may_begin_with_what_is_absent(tmp_path: Path) -> None:
    text = rule("[{b: {from: exceptions, absent: true}}, {a: {from: compiles}}]", "{ranks: a.rank}")
    con = db()
    compile_row(con, 1, rank=2)
    assert [f["ranks"] for f in found(con, make_book(tmp_path, text))] == [[2]]


@pytest.mark.parametrize(("count", "rows", "fires"), [("min: 3", 2, False), ("min: 3", 3, True), ("max: 2", 3, False)])
def test_count(tmp_path: Path, count: str, rows: int, fires: bool) -> None:
    book = make_book(tmp_path, rule(f"[{{a: {{from: compiles, count: {{{count}}}}}}}]"))
    con = db()
    insert(con, "observed", run_id=1, rank=0, what="compiles", is_on=True)
    for line in range(rows):
        compile_row(con, line + 1)
    assert bool(found(con, book)) == fires


def test_share_of_the_ranks_that_were_heard(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles, across: rank, min_share: 0.9}}]", "{ranks: a.rank}"))
    con = db(ranks=4)
    for rank in range(3):
        compile_row(con, rank + 1, rank=rank)
        compile_row(con, rank + 11, rank=rank)
        insert(con, "observed", run_id=1, rank=rank, what="compiles", is_on=True)
    assert [f["ranks"] for f in found(con, book)] == [[0, 1, 2]]
    insert(con, "observed", run_id=1, rank=3, what="compiles", is_on=True)
    assert found(con, book) == []


def test_share_without_observed_is_of_all_ranks(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles, across: rank, min_share: 0.9}}]"))
    con = db(ranks=4)
    for rank in range(3):
        compile_row(con, rank + 1, rank=rank)
    assert found(con, book) == []
    compile_row(con, 4, rank=3)
    assert len(found(con, book)) == 1


def test_a_veto_of_several_steps_needs_them_all(tmp_path: Path) -> None:
    text = rule(
        "[{a: {from: compiles}}]",
        unless="[[{e: {from: exceptions, same: [rank]}}, {x: {from: exits, where: x.of_rank = e.rank}}]]",
    )
    con = db()
    book = make_book(tmp_path, text)
    compile_row(con, 1)
    insert(con, "exceptions", run_id=1, rank=0)
    assert len(found(con, book)) == 1
    insert(con, "exits", run_id=1, of_rank=0)
    assert found(con, book) == []


TIMES = [
    # relation, time of the stall (one second long) against a compile from 10 to 11, its certainty or None
    ("overlaps: a", 10.5, 0.9),
    ("overlaps: a", 11.0, 0.9),
    ("overlaps: a", 11.1, None),
    ("overlaps: a", None, 0.72),
    ("within: {a: 5}", 16.0, 0.9),
    ("within: {a: 5}", 16.1, None),
    ("after: a", 10.0, 0.9),
    ("after: a", 9.9, None),
    ("after: a.end", 10.5, None),
    ("after: a.end", 11.0, 0.9),
    ("before: a", 9.0, 0.9),
    ("before: a", 10.1, None),
    ("after: a", None, 0.72),
]


@pytest.mark.parametrize(("relation", "t", "certainty"), TIMES)
def test_time(tmp_path: Path, relation: str, t: float | None, certainty: float | None) -> None:
    book = make_book(tmp_path, rule(f"[{{a: {{from: compiles}}}}, {{b: {{from: stalls, {relation}}}}}]"))
    con = db()
    compile_row(con, 1, 10.0)
    stall_row(con, 2, t)
    assert [f["certainty"] for f in found(con, book)] == ([] if certainty is None else [certainty])


def test_bounds_that_allow_both_are_possible(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}, {b: {from: exceptions, after: a}}]"))
    con = db()
    compile_row(con, 1, 10.0, writer_id=1)
    insert(con, "exceptions", run_id=1, rank=1, t_lo=9.0, t_hi=11.0, writer_id=2, line_no=1, file_id=1)
    assert [f["certainty"] for f in found(con, book)] == [0.72]


def test_within_a_stream_the_place_decides(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}, {b: {from: exceptions, after: a}}]"))
    con = db()
    compile_row(con, 5, 10.0, writer_id=1)
    insert(con, "exceptions", run_id=1, rank=0, t_lo=10.0, t_hi=10.0, writer_id=1, line_no=4, file_id=1)
    assert found(con, book) == []
    insert(con, "exceptions", run_id=1, rank=0, writer_id=1, line_no=6, file_id=1)
    assert [f["certainty"] for f in found(con, book)] == [0.9]


def test_a_launcher_tells_of_an_end_after_it_came(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: exits}}, {b: {from: stalls, after: a}}]"))
    con = db()
    insert(con, "exits", run_id=1, t_lo=20.0, t_hi=20.0, file_id=1, line_no=1)
    stall_row(con, 2, 10.0)
    assert [f["certainty"] for f in found(con, book)] == [0.72]


def test_several_proofs_the_surest_counts(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}, {b: {from: stalls, overlaps: a}}]"))
    con = db()
    compile_row(con, 1, 10.0)
    stall_row(con, 2, None)
    stall_row(con, 3, 10.0)
    assert [f["certainty"] for f in found(con, book)] == [0.9]


def test_sums_run_over_distinct_rows_of_their_step(tmp_path: Path) -> None:
    text = rule(
        "[{a: {from: compiles}}, {b: {from: stalls}}]",
        "{per: a.rank, cost: 'sum(b.lost_s) + sum(a.duration_s)', waiting: b.waiting}",
        say="'{count(a)} {count(b)} {avg(b.lost_s)} {ranks_text(b.waiting)} {list(a.fn)} {last(a.fn)} {min(b.lost_s)}'",
    )
    con = db()
    for line, fn in ((1, "g"), (2, "f")):
        compile_row(con, line, float(line), duration_s=0.25, fn=fn)
    for line in (3, 4, 5):
        stall_row(con, line, 1.0, lost_s=2.0, waiting=[1, line - 2])
    (one,) = found(con, make_book(tmp_path, text))
    assert (one["lost_s"], one["waiting"]) == (6.5, [1, 2, 3])
    assert one["summary"] == "2 3 2 1-3 f, g f 2"


def test_evidence_is_first_last_and_largest_with_the_firsts_ahead(tmp_path: Path) -> None:
    con = db()
    for line, t, size in ((10, 3.0, 1.0), (20, 1.0, 2.0), (30, 2.0, 9.0), (40, 4.0, 1.0)):
        compile_row(con, line, t, duration_s=size, rank=line // 10 - 1)
    stall_row(con, 20, 1.0)
    insert(con, "lines", run_id=1, file_id=1, line_no=20, rank=1, text="x" * 500)
    book = make_book(tmp_path, rule("[{a: {from: compiles, label: 'took {a.duration_s:s}'}}, {b: {from: stalls}}]"))
    rows = found(con, book, "evidence")
    assert [(e["nth"], e["step_name"], e["line_no"], e["label"], e["rank"]) for e in rows] == [
        (0, "a", 20, "took 2 s", 1),
        (1, "b", 20, "b", 1),
        (2, "a", 40, "took 1 s", 3),
        (3, "a", 30, "took 9 s", 2),
    ]
    assert (rows[2]["text"], rows[2]["path"]) == ("[rank0]: line 40", "a.log")


def test_a_step_may_say_where_its_line_is_or_that_it_shows_none(tmp_path: Path) -> None:
    con = db()
    stall_row(con, 7, 1.0, late_file=1, late_line=9)
    compile_row(con, 9)
    text = rule("[{a: {from: compiles, evidence: false}}, {b: {from: stalls, line: {file: late_file, no: late_line}}}]")
    assert [(e["step_name"], e["line_no"]) for e in found(con, make_book(tmp_path, text), "evidence")] == [("b", 9)]


def test_an_entry_of_a_binary_file_is_evidence_by_its_place(tmp_path: Path) -> None:
    con = db()
    insert(con, "flight_records", run_id=1, rank=2, file_id=1, at="entries[57]", op="allreduce")
    (row,) = found(con, make_book(tmp_path, rule("[{a: {from: flight_records}}]")), "evidence")
    assert (row["line_no"], row["at"], row["text"], row["rank"]) == (None, "entries[57]", "entries[57]", 2)


def test_per_tells_findings_apart_and_null_is_a_value_of_it(tmp_path: Path) -> None:
    con = db()
    for line, fn in enumerate(["f", "f", "g", None], 1):
        compile_row(con, line, fn=fn, rank=line - 1)
    rows = found(con, make_book(tmp_path, rule("[{a: {from: compiles}}]", "{per: a.fn, ranks: a.rank}")))
    assert sorted(f["ranks"] for f in rows) == [[0, 1], [2], [3]]
    assert len({f["fingerprint"] for f in rows}) == 3


def test_fingerprints_are_equal_over_attempts(tmp_path: Path) -> None:
    con = db(runs=2)
    compile_row(con, 1, user_file="/tmp/attempt_0/train.py", pid=4711)
    compile_row(con, 2, user_file="/tmp/attempt_1/train.py", pid=4712, run_id=2)
    text = rule("[{a: {from: compiles}}]", "{per: [a.user_file, a.pid]}")
    rows = found(con, make_book(tmp_path, text))
    assert {f["run_id"] for f in rows} == {1, 2}
    assert len({f["fingerprint"] for f in rows}) == 1


def test_what_was_not_logged_cannot_be_told(tmp_path: Path) -> None:
    con = db(ranks=4)
    compile_row(con, 1)
    book = make_book(tmp_path, rule("[{a: {from: compiles}}]", requires="[recompiles]"))
    assert [f["certainty"] for f in found(con, book)] == [0.9]
    insert(con, "observed", run_id=1, rank=0, what="recompiles", is_on=False)
    assert found(con, book) == []
    insert(con, "observed", run_id=1, rank=1, what="recompiles", is_on=True)
    assert [f["certainty"] for f in found(con, book)] == [round(0.9 * 0.85, 4)]


def test_causes_that_rows_say(tmp_path: Path) -> None:
    text = rule("[{a: {from: guard_failures}}]", id="recompile-by", cause="'{a.cause}'")
    con = db()
    for cause in ("recompile-dtype", "recompile-stride", None, "recompile-nonsense"):
        insert(con, "guard_failures", run_id=1, cause=cause)
    rows = found(con, make_book(tmp_path, text))
    assert sorted(f["cause"] for f in rows) == ["recompile-dtype", "recompile-stride"]
    (problem,) = con.execute("SELECT text FROM problems WHERE kind = 'rule'").fetchall()
    assert "recompile-nonsense" in problem[0]


def test_advice_goes_by_version(tmp_path: Path) -> None:
    text = rule(
        "[{a: {from: compiles}}]",
        advice="[{if: torch >= 2.6 and nccl < 2.20, then: 'new {a.fn}'}, {if: torch < 2.6, then: old}, {then: other}]",
    )
    book = make_book(tmp_path, text)
    said = []
    for torch, nccl in (("2.13.0+cpu", "2.18.1"), ("2.5.1", None), ("2.13.0", "2.21.5"), (None, None)):
        con = db(torch=torch, nccl=nccl)
        compile_row(con, 1, fn="f")
        said.append(found(con, book)[0]["advice"])
    assert said == ["new f", "old", "other", "other"]


def test_repro_takes_values_of_the_rows(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1, fn="f", nth=2)
    text = rule("[{a: {from: compiles}}]", repro="{recipe: r, with: {fn: a.fn, n: 'max(a.nth)', world: 2}}")
    assert (
        found(con, make_book(tmp_path, text))[0]["repro"] == '{"recipe": "r", "with": {"fn": "f", "n": 2, "world": 2}}'
    )


def test_knowledge_is_a_table(tmp_path: Path) -> None:
    con = db()
    insert(con, "exits", run_id=1, of_rank=2, signal="SIGSEGV", file_id=1, line_no=1)
    text = rule(
        "[{a: {from: exits}}, {s: {from: know_signals, same: [signal], where: \"stands_for = 'crashed'\"}}]",
        say="'{s.number}'",
    )
    assert found(con, make_book(tmp_path, text))[0]["summary"] == "11"


CHAIN = (
    rule("[{a: {from: compiles}}]", "{per: a.rank, ranks: a.rank, certainty: 0.6}"),
    rule(
        "[{f: {from: findings, where: \"cause = 'recompile-other'\"}}, "
        "{b: {from: stalls, where: 'list_contains(f.ranks, late_rank)'}}]",
        "{ranks: b.late_rank, certainty: 0.95, absorbs: recompile-other}",
        id="recompile-barrier-stall", layer="interplay", say="'{f.summary} again'",
    ),
    rule(
        "[{f: {from: findings, where: \"rule = 'recompile-barrier-stall'\", exists: true}}]",
        "{certainty: 1.0}", id="compile-skew-timeout", layer="interplay",
    ),
)  # fmt: skip


def test_findings_are_steps_of_rules_and_bound_their_certainty(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1, rank=0)
    compile_row(con, 2, rank=1)
    stall_row(con, 3, 1.0, late_rank=1)
    rows = {f["rule"]: f for f in found(con, make_book(tmp_path, *CHAIN)) if f["ranks"] != [0]}
    assert rows.keys() == {"recompile-other", "recompile-barrier-stall", "compile-skew-timeout"}
    assert rows["recompile-barrier-stall"]["certainty"] == 0.6
    assert rows["recompile-barrier-stall"]["summary"] == "found again"
    assert rows["recompile-barrier-stall"]["ranks"] == [1]


def test_premises_are_rows_and_why_shows_the_chain(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1, rank=1)
    stall_row(con, 3, 1.0, late_rank=1)
    ids = {f["rule"]: f["finding_id"] for f in found(con, make_book(tmp_path, *CHAIN))}
    first, second, third = (
        ids[name] for name in ("recompile-other", "recompile-barrier-stall", "compile-skew-timeout")
    )
    rows = con.execute("SELECT finding_id, premise_id FROM premises ORDER BY ALL").fetchall()
    assert sorted(rows) == sorted([(second, first), (third, second)])
    proof = why(con, third)
    (stall,) = proof.premises
    (compiled,) = stall.premises
    assert (stall.finding_id, compiled.finding_id, compiled.premises) == (second, first, ())
    assert [line.line_no for line in compiled.lines] == [1]
    assert stall.effects == ()  # what it absorbs is what it builds on, and told once
    (tmp_path / "alone").mkdir()
    found(con, make_book(tmp_path / "alone", CHAIN[0]))
    assert con.execute("SELECT count(*) FROM premises").fetchone() == (0,)


def test_a_rule_that_fails_on_odd_data_is_a_problem_and_the_others_go_on(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1, fn="no number")
    con.execute("BEGIN")
    bad = rule("[{a: {from: compiles}}]", "{cost: 'sum(a.fn::INTEGER)'}")
    rows = found(con, make_book(tmp_path, bad, rule("[{a: {from: compiles}}]", id="recompile-dtype")))
    con.execute("COMMIT")
    assert [f["rule"] for f in rows] == ["recompile-dtype"]
    assert con.execute("SELECT text FROM problems").fetchone()[0].startswith("rule recompile-other could not be asked")


def test_a_mistake_of_a_rule_is_an_error_with_its_place(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1)
    book = make_book(tmp_path, rule("[{a: {from: compiles, where: colour = 1}}]"))
    with pytest.raises(RuleError, match=r"rule0.yaml:5:36: compiles has no column colour"):
        diagnose(con, book)


def test_a_second_diagnosis_replaces_the_first(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1)
    book = make_book(tmp_path, rule("[{a: {from: compiles}}]"))
    first = found(con, book), found(con, book, "evidence")
    assert (found(con, book), found(con, book, "evidence")) == first
    con.execute("DELETE FROM compiles")
    assert found(con, book) == found(con, book, "evidence") == []


def test_verdict(tmp_path: Path) -> None:
    book = make_book(tmp_path, rule("[{a: {from: compiles}}]"))
    con = db(outcome="completed")
    diagnose(con, book)
    assert verdict(con) == "healthy"
    con.execute("UPDATE runs SET outcome = 'unknown'")
    assert verdict(con) == "insufficient"
    compile_row(con, 1)
    diagnose(con, book)
    assert verdict(con) == "cause"


def test_an_optional_step_adds_evidence_and_nothing_else(tmp_path: Path) -> None:
    text = rule(
        "[{a: {from: compiles}}, {b: {from: stalls, same: {late_rank: a.rank}, overlaps: a, optional: true}}]",
        "{per: a.rank, ranks: a.rank, cost: sum(b.lost_s)}",
        say="'{a.fn}{coalesce('' waited '' || b.lost_s, '''')}'",
    )
    con = db()
    compile_row(con, 1, rank=0, fn="f")
    compile_row(con, 2, rank=1, fn="g", t=10.0)
    stall_row(con, 3, 10.0, late_rank=1)
    book = make_book(tmp_path, text)
    rows = sorted(found(con, book), key=lambda f: f["ranks"])
    assert [(f["summary"], f["lost_s"], f["certainty"]) for f in rows] == [("f", None, 0.9), ("g waited 1.0", 1.0, 0.9)]
    evidence = found(con, book, "evidence")
    assert sorted((e["step_name"], e["line_no"]) for e in evidence) == [("a", 1), ("a", 2), ("b", 3)]


def test_a_witness_among_findings_bounds_certainty_too(tmp_path: Path) -> None:
    con = db()
    compile_row(con, 1)
    stall_row(con, 2, 1.0)
    rows = {f["rule"]: f for f in found(con, make_book(tmp_path, *CHAIN))}
    assert rows["compile-skew-timeout"]["certainty"] == 0.6


@pytest.mark.parametrize(
    ("waiting", "said"),
    [([3], "Rank 3 waited"), ([2, 0, 1], "Ranks 0-2 waited"), ([], "An unnamed process waited")],
)
def test_a_sentence_names_one_rank_several_or_none(tmp_path: Path, waiting: list[int], said: str) -> None:
    con = db()
    stall_row(con, 1, 1.0, waiting=waiting)
    text = rule("[{a: {from: stalls}}]", say="'{ranks_phrase(a.waiting)} waited'")
    assert [f["summary"] for f in found(con, make_book(tmp_path, text))] == [said]


def test_ranks_phrase_is_no_capital_within_a_sentence(tmp_path: Path) -> None:
    con = db()
    stall_row(con, 1, 1.0, waiting=[1])
    text = rule("[{a: {from: stalls}}]", say="'so {ranks_phrase(a.waiting)} waited'")
    assert [f["summary"] for f in found(con, make_book(tmp_path, text))] == ["so rank 1 waited"]
