"""What to export: right for the versions, known variables only, costs only where they were measured."""

import csv
import json
import re
import subprocess
from pathlib import Path

import pytest

from replay.cli.env import NEWEST
from replay.cli.main import main
from replay.errors import UsageError
from replay.expert.conclude import version_holds
from replay.expert.load import RuleBook, load_rules
from replay.explain.codes import Codes
from replay.explain.environment import Goal, Setting, settings

GOALS: tuple[Goal, ...] = ("hang", "recompiles", "numerics", "perf")
TORCH = ["2.0", "2.1.2", "2.2.2", "2.3", "2.5.1", "2.6.0", "2.8", "2.9.1", "2.13.0+cpu"]
NCCL = [None, "2.14.3", "2.18.1", "2.21.5", "2.26.2", "2.31.2"]


@pytest.fixture(scope="module")
def book() -> RuleBook:
    return load_rules()


def chosen(goal: Goal, torch: str, nccl: str | None, book: RuleBook) -> dict[str, Setting]:
    return {s.name: s for s in settings(goal, torch, nccl, book) if not s.is_optional}


@pytest.mark.parametrize(
    ("goal", "torch", "present", "absent"),
    [
        ("hang", "2.13", {"TORCH_FR_BUFFER_SIZE": "2000"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE"}),
        ("hang", "2.4", {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}, {"TORCH_FR_BUFFER_SIZE"}),
        ("hang", "2.1", {"TORCH_LOGS": "recompiles,graph_breaks"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE"}),
        ("recompiles", "2.6", {"TORCH_LOGS": "recompiles_verbose,graph_breaks"}, set()),
        ("recompiles", "2.1.2", {"TORCH_LOGS": "recompiles,graph_breaks"}, {"TORCH_TRACE"}),
        ("recompiles", "2.0.1", {"TORCH_COMPILE_DEBUG": "1"}, {"TORCH_LOGS", "TORCH_TRACE"}),
        ("numerics", "2.13", {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}, set()),
    ],
)
def test_settings_are_those_of_the_version(
    goal: Goal, torch: str, present: dict[str, str], absent: set[str], book: RuleBook
) -> None:
    found = chosen(goal, torch, None, book)
    assert present.items() <= {name: s.value for name, s in found.items()}.items()
    assert not absent & found.keys()


def test_nccls_version_decides_its_subsystems(book: RuleBook) -> None:
    assert chosen("hang", "2.13", "2.31.2", book)["NCCL_DEBUG_SUBSYS"].value.endswith("DESTROY")
    assert "BOOTSTRAP" not in chosen("hang", "2.13", "2.18", book)["NCCL_DEBUG_SUBSYS"].value
    assert "NCCL_DEBUG_TIMESTAMP_LEVELS" not in chosen("hang", "2.13", "2.21", book)
    assert "NCCL_DEBUG_TIMESTAMP_LEVELS" in chosen("hang", "2.13", "2.27", book)


def test_every_setting_is_a_variable_that_the_version_has(book: RuleBook) -> None:
    known = {fact["name"]: fact for fact in Codes(book).table("variables")}
    for goal in GOALS:
        for torch in TORCH:
            for nccl in NCCL:
                versions = {"torch": torch} | ({"nccl": nccl} if nccl else {})
                for setting in settings(goal, torch, nccl, book):
                    fact = known[setting.name]
                    if fact["since"] and fact["of"] in versions:
                        assert version_holds(f"{fact['of']} >= {fact['since']}", versions), (setting.name, versions)
                    if fact["until"] and fact["of"] in versions:
                        assert version_holds(f"{fact['of']} <= {fact['until']}", versions), (setting.name, versions)


def test_no_setting_is_one_that_does_nothing(book: RuleBook) -> None:
    codes = Codes(book)
    for goal in GOALS:
        for setting in settings(goal, NEWEST, "2.31.2", book):
            (meaning,) = (m for m in codes.named(setting.name, setting.value) if m.what == "variable")
            assert "does not do what it seems to" not in meaning.look


def test_a_cost_is_shown_where_it_was_measured_and_nowhere_else(book: RuleBook) -> None:
    with book.knowledge["know_logging_costs"].open(newline="") as lines:
        measured = {(row["name"], row["value"]): row for row in csv.DictReader(lines)}
    for goal in GOALS:
        for setting in settings(goal, "2.13", "2.27.7", book):
            row = measured.get((setting.name, setting.value)) or measured.get((setting.name, ""))
            told = [cost.bytes for cost in setting.costs if cost.per == "compiled graph"]
            assert told == ([int(row["bytes_per_graph"])] if row else [])
    volume = chosen("hang", "2.13", "2.27.7", book)["NCCL_DEBUG"].costs[0]
    assert (volume.on, volume.bytes) == ("NCCL 2.27.7", 6257)


@pytest.mark.parametrize(("torch", "nccl"), [("two", None), ("2", None), ("2.6", "new")])
def test_a_version_that_is_none_is_an_error(torch: str, nccl: str | None, book: RuleBook) -> None:
    with pytest.raises(UsageError, match="is no version"):
        settings("hang", torch, nccl, book)


@pytest.mark.parametrize("goal", GOALS)
def test_the_command_prints_what_a_shell_takes(
    goal: Goal, capsys: pytest.CaptureFixture[str], tmp_path: Path, book: RuleBook
) -> None:
    assert main(["env", "--for", goal, "--torch", "2.6", "--nccl", "2.21.5"]) == 0
    script = tmp_path / "env.sh"
    script.write_text(capsys.readouterr().out + "env\n")
    done = subprocess.run(
        ["/bin/sh", "-eu", str(script)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    told = dict(re.findall(r"^([A-Z_]+)=(.*)$", done.stdout, re.MULTILINE))
    assert {name: s.value for name, s in chosen(goal, "2.6", "2.21.5", book).items()}.items() <= told.items()


def test_the_command_writes_json_and_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--for", "hang", "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["torch"], document["settings"][0]["is_optional"]) == (NEWEST, False)
    assert main(["env", "--for", "speed"]) == 2
    assert main(["env", "--for", "hang", "--torch", "x"]) == 2
    assert main(["env"]) == 2
