"""Synthetic runs: lines that parse back, consequences that follow, bytes that depend on the seed alone."""

import json
from pathlib import Path

import pytest

from replay.errors import UsageError
from replay.synth import Scenario, write


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _text(folder: Path) -> str:
    return "\n".join(content.decode(errors="replace") for content in _files(folder).values())


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    scenario = Scenario.model_validate({"faults": [{"kind": "dead-rank", "ranks": [5]}]})
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        write(scenario, tmp_path / name, seed)
    assert _files(tmp_path / "a") == _files(tmp_path / "b")
    assert _files(tmp_path / "a/logs") != _files(tmp_path / "c/logs")


def test_a_folder_of_logs_is_not_written_into(tmp_path: Path) -> None:
    write(Scenario(), tmp_path)
    with pytest.raises(UsageError, match="not empty"):
        write(Scenario(), tmp_path)


def test_a_healthy_run_ends_on_every_rank(tmp_path: Path) -> None:
    write(Scenario(launcher="plain"), tmp_path)
    text = (tmp_path / "logs/train.log").read_text()
    assert text.count("training finished") == 8
    assert "Watchdog" not in text
    assert json.loads((tmp_path / "truth.json").read_text())["cause"] is None


def test_the_others_time_out_where_a_rank_is_killed(tmp_path: Path) -> None:
    """On one node the agent is faster than any watchdog: it stops the others, and its table has the exit code."""
    scenario = {
        "launcher": "plain",
        "topology": {"nodes": 1, "gpus": 4},
        "faults": [{"kind": "dead-rank", "ranks": [2]}],
    }
    write(Scenario.model_validate(scenario), tmp_path)
    text = (tmp_path / "logs/train.log").read_text()
    assert text.count("closing signal SIGTERM") == 3
    assert "failed (exitcode: -9) local_rank: 2" in text
    assert "Watchdog" not in text


def test_watchdogs_speak_after_the_timeout(tmp_path: Path) -> None:
    """A rank that skips an operation stops all: the numbers are those of the operation, and the time is the timeout."""
    faults = [{"kind": "skipped-collective", "ranks": [2], "bucket": 1, "step": 3}]
    scenario = Scenario.model_validate({"launcher": "plain", "timeout_s": 300, "faults": faults})
    write(scenario, tmp_path)
    told = [
        line
        for line in (tmp_path / "logs/train.log").read_text().splitlines()
        if "[Rank" in line and "Watchdog caught" in line
    ]
    heads = [line for line in told if "WorkNCCL(SeqNum=" in line and "terminated" not in line and "what():" not in line]
    assert len(heads) == 8
    assert all("SeqNum=13, OpType=ALLREDUCE" in line and "Timeout(ms)=300000) ran for 300" in line for line in heads)
