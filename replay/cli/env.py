"""`replay env`: what to export so that the next run's logs tell more."""

import json
import shlex
import sys
import textwrap
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen

if TYPE_CHECKING:
    from replay.explain.environment import Cost, Setting

NEWEST = "2.13"
"""Version of torch that is taken where none is named: the newest that the settings were looked up for."""
_WIDTH = 100


class Goal(StrEnum):
    """What the next run is to tell of."""

    HANG = "hang"
    RECOMPILES = "recompiles"
    NUMERICS = "numerics"
    PERF = "perf"


class EnvFormat(StrEnum):
    """How the settings are written."""

    SH = "sh"
    JSON = "json"


def env(
    goal: Annotated[Goal, typer.Option("--for", help="What the next run's logs are to tell of.", show_default=False)],
    torch: Annotated[str, typer.Option("--torch", metavar="VERSION", help="Version of torch of that run.")] = NEWEST,
    nccl: Annotated[
        str | None,
        typer.Option("--nccl", metavar="VERSION", help="Its version of NCCL; without, what all versions take."),
    ] = None,
    output: Annotated[EnvFormat, typer.Option("--format", "-f", help="How to write the settings.")] = EnvFormat.SH,
) -> None:
    """Print what to export before the next run, right for its versions, and what it was measured to cost."""
    from replay.expert.load import load_rules
    from replay.explain.environment import settings

    chosen = settings(goal.value, torch, nccl, load_rules())
    if output is EnvFormat.JSON:
        said = {"schema": 1, "goal": goal.value, "torch": torch, "nccl": nccl, "settings": [asdict(s) for s in chosen]}
        screen.write(json.dumps(said, indent=1, ensure_ascii=sys.stdout.isatty()) + "\n")
        return
    versions = f"torch {torch} and " + (f"NCCL {nccl}" if nccl else "any NCCL (--nccl VERSION for more)")
    lines = _remark(f"{goal.value}: for {versions}. On every host, before the launcher starts the ranks.")
    lines += _remark("torchrun --redirects 3 --log-dir DIR gives each rank files of its own.")
    for setting in sorted(chosen, key=lambda s: s.is_optional):
        lines += ["", *_setting(setting)]
    screen.write("\n".join(lines) + "\n")


def _setting(setting: "Setting") -> list[str]:
    export = f"export {setting.name}={shlex.quote(setting.value)}"
    lines = _remark(f"{'only if the rest does not tell: ' if setting.is_optional else ''}{setting.tells}")
    for cost in setting.costs:
        lines += _remark(f"measured: {_cost(cost)}")
    return [*lines, f"# {export}" if setting.is_optional else export]


def _cost(cost: "Cost") -> str:
    from replay.report.wording import size

    return f"{size(cost.bytes)} on each rank per {cost.per} ({cost.on})"


def _remark(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
