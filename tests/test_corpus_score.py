"""The diagnosis measured by labelled runs: what counts as right, the figures by cause, and the page that shows them."""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replay.cli.main import main
from replay.corpus.collect import scored, sources
from replay.corpus.labelled import Fault, read_case
from replay.corpus.score import Score, figures
from replay.corpus.tally import tally, uncovered
from replay.expert.load import load_rules
from replay.resources import folder

CORPORA = folder("corpora")
RECORDED = sorted(path.parent.name for path in (CORPORA / "recorded").glob("*/truth.json"))
DOCS = Path(__file__).parents[1] / "docs" / "accuracy.md"
SCORER = Path(__file__).parents[2] / "shared" / "score_cases.py"


def labelled(tmp_path: Path, name: str, **truth: object) -> Path:
    """Return a folder with one corpus under another label."""
    shutil.copytree(CORPORA / name / "logs", tmp_path / "runs" / name / "logs")
    (tmp_path / "runs" / name / "truth.json").write_text(json.dumps({"cause": None, "ranks": None, **truth}))
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("truth", "top1", "clean"),
    [
        ({"cause": "rank-killed", "ranks": [1]}, True, True),
        ({"cause": ["rank-crashed", "rank-killed"]}, True, True),
        ({"cause": ["rank-killed"], "ranks": [2]}, False, True),
        ({"cause": "device-oom", "also": ["rank-killed"]}, False, True),
        ({"cause": "device-oom"}, False, False),
        ({"cause": None}, False, False),
    ],
)
def test_what_is_right(tmp_path: Path, truth: dict[str, object], top1: bool, clean: bool) -> None:
    (one,) = scored(sources(labelled(tmp_path, "rank-killed", **truth)))
    assert (one.top1, one.clean, one.proof) == (top1, clean, True)


def test_figures_by_cause() -> None:
    def one(case: str, fault: Fault | None, found: str | None, *roots: tuple[str, bool]) -> Score:
        faults = (fault,) if fault else ()
        return Score(
            case, (), not fault or bool(found), True, True, True, False, faults, (found,) * len(faults), roots, ()
        )

    killed, oom = Fault(cause=("rank-killed", "node-lost")), Fault(cause=("device-oom",))
    scores = [
        one("a", killed, "node-lost", ("node-lost", True)),
        one("b", killed, None, ("device-oom", False)),
        one("c", oom, "device-oom", ("device-oom", True)),
        one("d", None, None),
    ]
    assert [(t.cause, t.runs, t.top1, t.precision, t.recall) for t in tally(scores)] == [
        ("device-oom", 1, 1, 0.5, 1.0), ("node-lost", 1, 1, 1.0, 1.0), ("rank-killed", 1, 0, None, 0.0),
    ]  # fmt: skip
    total = figures(scores)
    assert (total.cases, total.faults, total.found, total.roots) == (4, 3, 2, 3)
    names = {cause.id for cause in uncovered(scores, load_rules().taxonomy)}
    assert "node-lost" not in names
    assert {"fabric-manager", "workaround-in-force"} <= names
    assert "barrier-stall" not in names, "a symptom is nobody's label"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = labelled(tmp_path, "rank-killed", cause="rank-killed", ranks=[1])
    assert main(["corpus", "score", str(place)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^rank-killed +1 +1 +1\.000 +1\.000$", said, re.MULTILINE)
    assert said.splitlines()[-1].startswith("cases 1  top1 1  top3 1  clean 1  proof 1  unknown 0  precision 1.000")
    (place / "rank-killed" / "truth.json").write_text('{"cause": "device-oom", "ranks": null}')
    assert main(["corpus", "score", str(place), "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["case"], row["top1"], row["truth"]) == ("rank-killed", False, ["device-oom"])


@pytest.mark.parametrize(
    ("truth", "says"),
    [("{", "truth.json: Invalid JSON"), ('{"ranks": []}', "truth.json: cause: Field required"), (None, "no labelled")],
)
def test_labels_that_are_wrong(
    tmp_path: Path, truth: str | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a" / "logs").mkdir(parents=True)
    if truth is not None:
        (tmp_path / "a" / "truth.json").write_text(truth)
    assert main(["corpus", "score", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.skipif(not SCORER.exists(), reason="the scorer is not beside this checkout")
def test_the_figures_are_the_scorers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = labelled(tmp_path, "rank-killed", cause="rank-killed", ranks=[1])
    labelled(tmp_path, "uneven-batches", cause="device-oom")
    main(["corpus", "score", str(place)])
    ours = capsys.readouterr().out.splitlines()[-1]
    replay = f"{sys.executable} -m replay.cli.main"
    done = subprocess.run(
        [sys.executable, str(SCORER), str(place), "--replay", replay], capture_output=True, check=False
    )
    assert done.stdout.decode().splitlines()[-1] == ours


@pytest.mark.parametrize("name", random.Random("recorded").sample(RECORDED, min(8, len(RECORDED))))
def test_a_recording_is_read_as_its_label_says(name: str) -> None:
    (one,) = scored([source for source in sources(CORPORA / "recorded") if source.name == name])
    assert one.is_good, one.said


def test_the_page_tells_of_the_corpora_that_are_there() -> None:
    text = DOCS.read_text()
    told = {cause for cause, *_ in re.findall(r"^\| ([a-z0-9-]+) \| ([0-9]+) \|", text, re.MULTILINE)}
    missing = set(re.findall(r"`([a-z0-9-]+)`", text.partition("## Not covered")[2]))
    labels = [read_case(path.parent).truth for path in CORPORA.rglob("truth.json")]
    assert all(told & set(fault.cause) for truth in labels for fault in truth.wrong)
    assert not told & missing
