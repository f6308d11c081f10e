"""A finding as a script: its text, and the command that writes and runs it.

The command runs as a process of its own: it can be stopped with all that it started, and a program with threads, as a
screen
is, had better not fork.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.report.model import Finding
from replay.report.wording import ranks_phrase, visible
from replay.repro import fill
from replay.repro.script import render
from replay.run import Run


@dataclass(frozen=True, slots=True)
class Script:
    """The script of a finding; without any `why_not` tells why there is none."""

    text: str = ""
    told: str = ""
    why_not: str = ""


def script(con: DuckDBPyConnection, database: Path, finding: Finding) -> Script:
    """Return the script that shows a finding, made but not written."""
    try:
        plan = fill.plan(Run(con, database, ()), finding)
    except UsageError as error:
        return Script(why_not=visible(str(error)))
    text = render(plan)
    where = ranks_phrase(plan.odd) if len(plan.odd) < plan.world else "all ranks"
    needs = ", needs a GPU" if plan.recipe.needs == "cuda" else ""
    told = (
        f"recipe {plan.recipe.recipe}, {len(text.splitlines())} lines, {plan.world} ranks, the fault on {where}{needs}"
    )
    return Script(text, told)


def folder(finding_id: str) -> Path:
    """Return where the script and its report go, from where the command was called."""
    return Path(f"repro-{finding_id}")


def command(database: Path, finding_id: str, *, run: bool) -> list[str]:
    """Return the command that writes the script, and runs and checks it."""
    made = [sys.executable, "-m", "replay.cli.main", "repro", str(database), finding_id, "--format", "json"]
    return [*made, "--out", str(folder(finding_id)), *(["--run", "--check-fix"] if run else [])]


def result(finding_id: str, code: int, output: str, errors: str) -> tuple[list[str], bool]:
    """Return what came of the command, in lines that are safe to show, and whether it is bad."""
    try:
        told: dict[str, Any] = json.loads(output)
    except ValueError:
        return [visible(line) for line in errors.splitlines()[-4:]] or [f"it ended with exit code {code}"], True
    why = f": {told['why']}" if told["why"] else ""
    lines = [
        f"{told['status']}{why}, in {folder(finding_id)}/ with REPORT.md, to paste into an issue; read it before you do"
    ]
    if told["seconds"] is not None:
        lines.append(f"run: {told['seconds']} s, torch {told['torch']}, {told['network']}")
    if told["fix"] is not None:
        lines.append(f"with the advised change the cause is {told['fix']}: {told['fix_says']}")
    return [visible(line) for line in lines], code != 0
