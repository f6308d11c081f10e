"""The corpora: each is whole, and the tool says of each what its truth says, with lines that stand where it says."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from replay.report import text
from replay.resources import folder
from replay.run import open_run

CORPORA = folder("corpora")
TRUTHS = {path.parent.name: json.loads(path.read_text()) for path in sorted(CORPORA.glob("*/truth.json"))}


def driver() -> ModuleType:
    """Return corpora/make.py as a module."""
    spec = importlib.util.spec_from_file_location("corpora_make", CORPORA / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def diagnose(logs: Path, database: Path) -> dict[str, Any]:
    """Return what `replay diagnose LOGS --format json` says."""
    command = [
        sys.executable,
        "-m",
        "replay.cli.main",
        "diagnose",
        str(logs),
        "--format",
        "json",
        "--db",
        str(database),
    ]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def root_causes(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings that stand as root causes, in the order of the report."""
    return [f for f in answer["findings"] if f["root"] and f["kind"] == "cause" and f["certainty"] >= 0.5]


@pytest.fixture(scope="module", params=TRUTHS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Name of a corpus and the answer on it."""
    name = str(request.param)
    return name, diagnose(CORPORA / name / "logs", tmp_path_factory.mktemp("db") / "run.duckdb")


def test_the_root_cause_is_the_truth(case: tuple[str, dict[str, Any]]) -> None:
    name, answer = case
    truth, roots = TRUTHS[name], root_causes(answer)
    if truth["cause"] is None:
        assert roots == []
        assert answer["verdict"] == "healthy"
        return
    assert roots, answer["findings"]
    first = answer["findings"][0]
    assert first == roots[0]
    assert first["cause"] in truth["cause"]
    if truth["ranks"] is not None:
        assert first["ranks"] == truth["ranks"]
    assert {f["cause"] for f in roots} <= {*truth["cause"], *truth["also"]}


def test_every_evidence_line_stands_where_it_says(case: tuple[str, dict[str, Any]]) -> None:
    name, answer = case
    for finding in answer["findings"]:
        assert finding["evidence"], finding
        for item in finding["evidence"]:
            lines = (CORPORA / name / "logs" / item["file"]).read_bytes().split(b"\n")
            line = lines[item["line"] - 1].decode(errors="replace")
            assert item["text"].strip(), item
            assert item["text"].strip().rstrip("…") in line


def test_every_line_is_accounted_for(case: tuple[str, dict[str, Any]]) -> None:
    name, answer = case
    coverage = answer["coverage"]
    files = [path.read_bytes() for path in (CORPORA / name / "logs").rglob("*") if path.is_file()]
    assert coverage["lines"] == sum(text.count(b"\n") + (not text.endswith(b"\n") and text != b"") for text in files)
    assert coverage["lines"] == sum(coverage[kind] for kind in ("parsed", "continuation", "plain", "malformed"))


def test_attempts_in_one_console_are_told_apart_and_what_recurs_is_said(tmp_path: Path) -> None:
    with open_run([CORPORA / "restarts-one-console" / "logs"], db=tmp_path / "run.duckdb") as run:
        report = run.report()
        assert [(r.attempt, r.outcome) for r in report.runs] == [(0, "failed"), (1, "hung"), (2, "failed")]
        first, again = report.roots
        assert [(f.run, f.ranks, f.evidence[0].line) for f in (first, again)] == [(1, (1,), 16), (3, (1,), 109)]
        assert first.fingerprint == again.fingerprint
        assert "The same as F1, again in run 3 (attempt 2)." in text.render(report, text.Style(80))


def test_jobs_of_one_file_are_runs_of_their_own(tmp_path: Path) -> None:
    with open_run([CORPORA / "jobs-appended" / "logs"], db=tmp_path / "run.duckdb") as run:
        assert [(r.outcome, r.ranks_seen, r.last_step) for r in run.report().runs] == [
            ("failed", 3, 4),
            ("completed", 3, 9),
        ]
        assert [f.run for f in run.report().roots] == [1]


def test_faults_that_have_nothing_to_do_with_each_other_are_roots_each(tmp_path: Path) -> None:
    with open_run([CORPORA / "two-faults" / "logs"], db=tmp_path / "run.duckdb") as run:
        roots = [(f.cause, f.ranks) for f in run.report().roots]
    assert roots == [("rank-exception", (1,)), ("straggler-dataloader", (3,))]


def test_each_corpus_is_whole_small_and_listed() -> None:
    maker = driver()
    assert maker.names() == sorted(TRUTHS)
    listed = (CORPORA / "README.md").read_text()
    for name, truth in TRUTHS.items():
        logs = [path for path in (CORPORA / name / "logs").rglob("*") if path.is_file()]
        assert any(path.stat().st_size for path in logs), name
        assert sum(path.stat().st_size for path in logs) <= maker.MOST_BYTES, name
        assert truth["why"], name
        assert f"| `{name}` |" in listed


def test_making_a_corpus_leaves_the_same_files_and_the_same_fault(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, str(CORPORA / "make.py"), "rank-exception", "--into", str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    made = tmp_path / "rank-exception" / "logs"
    for kept in (CORPORA / "rank-exception" / "logs").rglob("std*.log"):
        assert list(made.rglob("/".join(kept.parts[-3:]))), kept
    (said,) = (path for path in made.rglob("2/stderr.log"))
    assert "KeyError: 'axolotl'" in said.read_text()


def test_an_unknown_name_is_an_error_of_usage() -> None:
    done = subprocess.run([sys.executable, str(CORPORA / "make.py"), "no-such"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"no corpus no-such" in done.stderr
