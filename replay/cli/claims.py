"""`replay claims`: what is said of PyTorch, decided on the torch that is installed."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen

if TYPE_CHECKING:
    from replay.repro.claims import Decided


class ClaimsFormat(StrEnum):
    """How verdicts are written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def claims(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="Which claims (default: all).")] = None,
    *,
    listed: Annotated[bool, typer.Option("--list", help="Name the claims and run nothing.")] = False,
    output: Annotated[
        ClaimsFormat, typer.Option("--format", "-f", help="How to write the verdicts.")
    ] = ClaimsFormat.TEXT,
) -> None:
    """Say which claims about torch.compile with distributed training hold here, by running a script for each.

    Confirmed, refuted, or cannot tell here (another version, or a GPU, is needed).
    """
    from replay.repro.claims import chosen, decide

    wanted = chosen(names or [])
    if listed:
        screen.write("".join(f"{claim.id:<26}{claim.claim}\n" for claim in wanted))
        return
    decided = []
    try:
        for claim in wanted:
            one = decide(claim)
            decided.append(one)
            if output is ClaimsFormat.TEXT:
                screen.write(f"{one.verdict:<12}{one.id:<26}{one.claim}\n{'':<38}{one.detail}\n")
            else:
                sys.stderr.write(f"replay: {one.id}: {one.verdict}\n")
    except KeyboardInterrupt:
        _write(decided, output)
        raise
    _write(decided, output)


def _write(decided: "list[Decided]", output: ClaimsFormat) -> None:
    if output is ClaimsFormat.JSON:
        screen.write(json.dumps([asdict(one) for one in decided], indent=1) + "\n")
    elif output is ClaimsFormat.MARKDOWN:
        screen.write(_page(decided))


def _page(decided: "list[Decided]") -> str:
    import platform

    from replay.report.markdown import escaped

    versions = sorted({one.torch for one in decided})
    lines = [
        "# Claims, and what torch does",
        "",
        f"Measured by `replay claims --format markdown` with torch {', '.join(versions)}, Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}. Each verdict holds for that version; "
        "`replay claims` measures on yours.",
        "The scripts stand in `replay/repro/claims/claims.yaml`.",
        "",
        "| id | claim | verdict | what was seen |",
        "|---|---|---|---|",
    ]
    lines += [f"| {one.id} | {escaped(one.claim)} | {one.verdict} | {escaped(one.detail)} |" for one in decided]
    return "\n".join(lines) + "\n"
