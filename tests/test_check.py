"""Checks for CI: what passes is promised, so what was not logged, or did not end, is never green."""

import json
from pathlib import Path

import duckdb
import pytest
from factory import insert, make_db

from replay.cli.main import main
from replay.errors import UsageError
from replay.expert.cases import cases_of
from replay.expert.causes import causes_of, needs
from replay.expert.load import RuleBook, load_rules
from replay.report.check import Answer, Wanted, check
from replay.report.measures import MEASURES
from replay.resources import folder
from replay.store import schema

RECOMPILED = str(folder("corpora") / "recompile-one-rank" / "logs")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def book() -> RuleBook:
    return load_rules()


def run(outcome: str = "completed", expected: int | None = 2, heard: int = 2) -> duckdb.DuckDBPyConnection:
    con = make_db()
    insert(con, "runs", run_id=1, outcome=outcome, ranks_expected=expected, ranks_seen=heard)
    for rank in range(heard):
        insert(con, "ranks", run_id=1, rank=rank, heard=True)
        insert(con, "files", file_id=rank + 1, path=f"{rank}.log")
        insert(con, "writers", writer_id=rank, file_id=rank + 1, run_id=1, rank=rank)
    return con


def compiled(con: duckdb.DuckDBPyConnection, rank: int, line: int, **columns: object) -> None:
    told = {
        "fn": "forward",
        "fn_file": "/srv/model.py",
        "fn_line": 7,
        "is_recompile": True,
        "evidence": "recompile-block",
    }
    place = {"run_id": 1, "rank": rank, "file_id": rank + 1, "line_no": line, "writer_id": rank}
    insert(con, "compiles", **place, compile_id=f"0/{line}", **{**told, **columns})


def asked(con: duckdb.DuckDBPyConnection, book: RuleBook, **wanted: object) -> Answer:
    (answer,) = check(con, Wanted(**wanted), book)  # type: ignore[arg-type]  # a test's own shorthand
    return answer


NONE = {"most": (("recompiles", 0),)}


def test_what_counts_is_the_rank_with_the_most(book: RuleBook) -> None:
    con = run()
    for line in (3, 4, 5):
        compiled(con, 1, line)
    compiled(con, 0, 9)
    answer = asked(con, book, most=(("recompiles", 2),))
    assert (answer.verdict, answer.number) == ("failed", 3)
    assert {(p.path, p.line) for p in answer.places} == {("1.log", 3), ("1.log", 4), ("1.log", 5)}
    assert asked(con, book, most=(("recompiles", 3),)).verdict == "passed"


def test_nothing_logged_is_never_green(book: RuleBook) -> None:
    con = run()
    answer = asked(con, book, **NONE)
    assert answer.verdict == "cannot-tell"
    assert any("TORCH_LOGS" in way for way in answer.enable)
    assert asked(con, book, **NONE, logged=frozenset({"recompiles"})).verdict == "passed"


def test_lines_with_a_compile_id_do_not_show_that_recompiles_were_logged(book: RuleBook) -> None:
    con = run()
    compiled(con, 0, 3, is_recompile=False, evidence="log")  # as a graph break of TORCH_LOGS=graph_breaks leaves
    assert asked(con, book, **NONE).verdict == "cannot-tell"
    compiled(con, 0, 4, is_recompile=False, evidence="log", backend="inductor")
    assert asked(con, book, **NONE).verdict == "passed"


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("recompiles", "passed"),
        ("+dynamo,graph_breaks", "passed"),
        ("graph_breaks", "cannot-tell"),
        ("recompilesx", "cannot-tell"),
    ],
)
def test_a_setting_that_was_printed_tells_what_was_logged(book: RuleBook, value: str, verdict: str) -> None:
    con = run()
    insert(con, "env", run_id=1, rank=0, name="TORCH_LOGS", value=value)
    assert asked(con, book, **NONE).verdict == verdict


@pytest.mark.parametrize("outcome", ["failed", "hung", "stopped", "unknown", "running"])
def test_a_run_that_did_not_end_well_is_never_green(book: RuleBook, outcome: str) -> None:
    con = run(outcome)
    logged = frozenset({"recompiles"})
    assert asked(con, book, **NONE, logged=logged).verdict == "cannot-tell"
    said = asked(con, book, **NONE, logged=logged, ended=True).verdict
    assert said == ("passed" if outcome in ("unknown", "running") else "cannot-tell")
    compiled(con, 0, 3)
    assert asked(con, book, **NONE).verdict == "failed"  # what did happen did


def test_ranks_that_are_not_heard_keep_it_from_being_green(book: RuleBook) -> None:
    con = run(expected=4)
    answer = asked(con, book, **NONE, logged=frozenset({"recompiles"}))
    assert (answer.verdict, "2 ranks of 4" in answer.text) == ("cannot-tell", True)


def test_a_rank_whose_stderr_is_missing_is_not_seen(book: RuleBook) -> None:
    con = run()
    con.execute("UPDATE files SET stream = IF(file_id = 1, 'stderr', 'stdout')")
    compiled(con, 0, 3)
    answer = asked(con, book, most=(("recompiles", 1),))
    assert (answer.verdict, "on rank 1" in answer.text) == ("cannot-tell", True)


@pytest.mark.parametrize("pattern", ["forward", "model.py", "/srv/*", "model.py:7", "for*"])
def test_allowed_frames_do_not_count(book: RuleBook, pattern: str) -> None:
    con = run()
    compiled(con, 0, 3)
    assert asked(con, book, **NONE, allowed=(pattern,)).verdict == "passed"
    assert asked(con, book, **NONE, allowed=("model.py:8", "forwards", "odel.py")).verdict == "failed"


def test_expect_is_exact_on_every_rank(book: RuleBook) -> None:
    con = run()
    insert(con, "graphs", run_id=1, rank=0, file_id=1, line_no=1, writer_id=0, kind="dynamo", compile_id="0/0")
    insert(con, "graphs", run_id=1, rank=0, file_id=1, line_no=9, writer_id=0, kind="forward", compile_id="0/0")
    one = {"exactly": (("graphs", 1),)}
    assert asked(con, book, **one).verdict == "failed"  # rank 1 made none
    insert(con, "graphs", run_id=1, rank=1, file_id=2, line_no=1, writer_id=1, kind="dynamo", compile_id="0/0")
    assert asked(con, book, **one).verdict == "passed"
    insert(con, "graphs", run_id=1, rank=1, file_id=2, line_no=5, writer_id=1, kind="dynamo", compile_id="1/0")
    assert asked(con, book, **one).verdict == "failed"


def test_breaks_of_library_code_do_not_count_and_show_that_breaks_were_logged(book: RuleBook) -> None:
    con = run()
    place = {"run_id": 1, "rank": 0, "file_id": 1, "writer_id": 0}
    insert(con, "graph_breaks", **place, line_no=1, is_framework=True, file="torch/nn/parallel/distributed.py", line=3)
    none = {"most": (("graph_breaks", 0),)}
    assert asked(con, book, **none).verdict == "passed"
    insert(con, "graph_breaks", **place, line_no=2, user_file="train.py", user_line=5, reason="print")
    insert(con, "graph_breaks", **place, line_no=9, user_file="train.py", user_line=5, reason="print")
    answer = asked(con, book, **none)
    assert (answer.verdict, answer.number) == ("failed", 1)  # one place


def test_a_forbidden_cause_fails_where_it_is_found(book: RuleBook) -> None:
    con = run("failed")
    insert(con, "findings", finding_id="F1", run_id=1, cause="rank-killed", certainty=0.9, ranks=[1], summary="Killed.")
    insert(con, "evidence", finding_id="F1", nth=0, path="1.log", line_no=4, rank=1)
    answer = asked(con, book, forbidden=("rank-*",))
    assert (answer.verdict, answer.places[0].path, answer.places[0].line) == ("failed", "1.log", 4)
    assert asked(con, book, forbidden=("device-oom",)).verdict == "cannot-tell"


def test_a_forbidden_cause_passes_only_where_its_rules_could_see_it(book: RuleBook) -> None:
    con = run()
    assert asked(con, book, forbidden=("rank-killed",)).verdict == "passed"  # the run ended well
    assert asked(con, book, forbidden=("recompile-dtype",)).verdict == "cannot-tell"


def test_each_run_is_checked(book: RuleBook) -> None:
    con = run()
    insert(con, "runs", run_id=2, outcome="failed", ranks_seen=1)
    insert(con, "ranks", run_id=2, rank=0, heard=True)
    wanted = Wanted(most=(("exceptions", 0),))
    assert [(a.run, a.verdict) for a in check(con, wanted, book)] == [(1, "passed"), (2, "cannot-tell")]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(), "nothing to check"),
        (Wanted(most=(("recompile", 0),)), "nothing is counted by the name recompile"),
        (Wanted(forbidden=("rank-kiled",)), "is rank-killed meant"),
        (Wanted(most=(("recompiles", 0),), logged=frozenset({"recompile"})), "is recompiles meant"),
    ],
)
def test_bad_use_is_an_error(book: RuleBook, wanted: Wanted, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(run(), wanted, book)


def test_every_measure_is_counted(book: RuleBook) -> None:
    for name in MEASURES:
        assert asked(run(), book, most=((name, 0),)).verdict in ("passed", "cannot-tell")


def test_rules_conclude_what_their_cases_show_them_to(book: RuleBook) -> None:
    for rule in book:
        able = causes_of(rule, book)
        assert able
        assert able <= book.taxonomy.keys()
        found = {item["cause"] for case in cases_of(rule) for item in case.finds if "cause" in item}
        assert found <= able, rule.id
        assert needs(rule) >= set(rule.requires)


def test_measures_name_what_can_be_observed() -> None:
    known = schema.tables()["observed"].columns
    text = next(column.doc for column in known if column.name == "what")
    assert all(measure.what is None or measure.what in text for measure in MEASURES.values())


def test_the_command_ends_as_the_answers_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", RECOMPILED, "--max", "recompiles=2", "--max", "graph_breaks=0"]) == 0
    assert main(["check", RECOMPILED, "--max", "recompiles=0", "--allow", "forward"]) == 0
    capsys.readouterr()
    assert main(["check", RECOMPILED, "--max", "recompiles=0", "--width", "80"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAILED")
    assert "stderr.log:" in said
    assert main(["check", RECOMPILED, "--forbid", "recompile-barrier-stall"]) == 1
    assert main(["check", RECOMPILED, "--max", "nccl_warnings=0", "--max", "recompiles=2"]) == 3
    assert main(["check", RECOMPILED, "--max", "recompiles"]) == 2
    capsys.readouterr()
    assert main(["check", RECOMPILED, "--max", "recompiles=0", "-f", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["checks"][0]["verdict"]) == (1, "failed")
