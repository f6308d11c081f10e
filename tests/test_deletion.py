"""Without the lines that decided it, a diagnosis becomes weaker or unknown, never another confident cause."""

import random
import shutil
import sys
from pathlib import Path

import pytest

from replay.corpus.labelled import Case, Truth, read_case, read_cases
from replay.report.model import Report
from replay.resources import folder

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import deletion

SHARED = Path(__file__).parents[2] / "shared" / "cases"
CHOSEN = 20


def chosen() -> list[Case]:
    """The corpora with a fault, and some of the labelled cases beside this checkout, the same ones each time."""
    cases = [case for case in read_cases(folder("corpora")) if case.truth.wrong]
    if SHARED.is_dir():
        named = sorted(path.parent for path in SHARED.glob("*/truth.json"))
        faulty = [path for path in named if read_case(path).truth.wrong]
        cases += [read_case(path) for path in random.Random("deletion").sample(faulty, CHOSEN)]
    return cases


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_without_its_lines_no_other_cause_is_named(case: Case) -> None:
    assert [(a.before, a.roots) for a in deletion.answers(case, 1) if a.outcome == "WRONG"] == []


def test_the_lines_go_and_the_answer_with_them(tmp_path: Path) -> None:
    case = read_case(folder("corpora") / "rank-killed")
    shutil.copytree(case.logs, tmp_path / "logs")
    first = deletion.deciding(deletion.diagnosis(tmp_path / "logs", tmp_path / "a.duckdb"), case.truth)
    assert first is not None
    before = sum(path.read_bytes().count(b"\n") for path in (tmp_path / "logs").rglob("*.log"))
    assert deletion.delete_lines(tmp_path / "logs", first) == len({(e.file, e.line) for e in first.evidence})
    assert sum(path.read_bytes().count(b"\n") for path in (tmp_path / "logs").rglob("*.log")) < before
    answer = deletion.answers(case, 3)
    assert [a.outcome for a in answer] == ["same", "unknown"]  # the launcher says twice how the rank ended


def test_another_confident_cause_is_wrong(tmp_path: Path) -> None:
    case = read_case(folder("corpora") / "rank-killed")
    report: Report = deletion.diagnosis(case.logs, tmp_path / "run.duckdb")
    first = deletion.deciding(report, case.truth)
    assert first is not None
    assert deletion.judge(first, report, case.truth) == "same"
    assert deletion.judge(first, report, Truth(cause=("device-oom",), ranks=(1,))) == "WRONG"
    assert deletion.judge(first, report, Truth(cause=("rank-killed",), ranks=(2,))) == "WRONG"
    assert deletion.judge(first, report, Truth(cause=("rank-killed",), ranks=(1, 2))) == "same"
    assert deletion.judge(first, report, Truth(cause=("device-oom",), also=("rank-killed",))) == "named"
