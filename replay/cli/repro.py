"""`replay repro`: a script that shows a finding, run and verified."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen
from replay.cli.source import Source, reads_logs
from replay.errors import UsageError

if TYPE_CHECKING:
    from replay.report.model import Finding
    from replay.repro.make import Orders
    from replay.repro.outcome import Outcome


class Device(StrEnum):
    """Where a script runs."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class ReproFormat(StrEnum):
    """How the outcome is written."""

    TEXT = "text"
    JSON = "json"


@reads_logs
def repro(
    source: Source,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the script goes.")] = Path("repro"),
    run: Annotated[
        bool, typer.Option("--run", help="Run it, and diagnose its logs: verified if they show the same.")
    ] = False,
    shrink: Annotated[bool, typer.Option("--shrink", help="Make it smaller while it stays verified.")] = False,
    check_fix: Annotated[
        bool, typer.Option("--check-fix", help="Run it with the advised change too: the cause must be gone.")
    ] = False,
    device: Annotated[
        Device, typer.Option("--device", help="Where it runs; auto: on a GPU what needs one.")
    ] = Device.AUTO,
    ranks: Annotated[int | None, typer.Option("--ranks", metavar="N", min=1, max=64, help="Number of ranks.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another value; may be given again.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="With --run: also run code that lies in the logs, after showing it.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Order in which --shrink tries.")] = 0,
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Keep names of hosts, people, paths and code in REPORT.md.")
    ] = False,
    output: Annotated[ReproFormat, typer.Option("--format", "-f", help="How to write the outcome.")] = ReproFormat.TEXT,
) -> None:
    """Write a script that fails as a finding says (LOGS... F2; default: the first root), run it, and write REPORT.md.

    The bug report has the sections of PyTorch's issue form, also where no script can show the cause.
    """
    from replay.repro.fill import Wanted
    from replay.repro.make import Orders, chosen, make

    finding = _finding_named(source.logs)
    wanted = Wanted(ranks, dict(_pair(text) for text in parameter or ()))
    orders = Orders(run, shrink, check_fix, device.value, trust, seed, not no_redact, wanted)
    for name in source.logs:
        if (place := Path(name).expanduser()).is_dir() and out.resolve().is_relative_to(place.resolve()):
            raise UsageError(f"{out}: lies inside the logs; name another folder with --out")
    with source.open() as opened:
        shown = chosen(opened, finding)
        outcome = make(opened, shown, out, orders, _tell)
        if not outcome.interrupted:
            _carried(source, shown, orders, out)
    if output is ReproFormat.JSON:
        screen.write(json.dumps(asdict(outcome), indent=1) + "\n")
    else:
        screen.write("\n".join(_text(outcome, out)) + "\n")
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.is_bad:
        raise typer.Exit(1)
    if outcome.status in {"needs CUDA", "no script"} and (run or shrink or check_fix):
        raise typer.Exit(3)


def _finding_named(logs: list[str]) -> str | None:
    """Take the finding's id, as F1, off the end of what was named."""
    last = logs[-1].upper()
    if len(logs) > 1 and last.startswith("F") and last[1:].isdigit() and not Path(logs[-1]).exists():
        logs.pop()
        return last
    return None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text}: is no NAME=VALUE")
    return name, value


def _tell(text: str) -> None:
    sys.stderr.write(f"replay: {text}\n")


def _carried(source: Source, finding: "Finding", orders: "Orders", out: Path) -> None:
    """Name the scripts that lie in the logs; with trust, show and run them, and make one that shows it smaller."""
    from replay.report.wording import visible
    from replay.repro import trusted
    from replay.repro.make import GRAPH

    wanted = trusted.expected(finding.cause)
    for script in trusted.carried(source.logs):
        name = visible(str(script.path))
        if not (orders.trust and orders.run):
            _tell(f"{name}: code out of the logs, not run (--run --trust shows and runs it)")
            continue

        def show(text: str, name: str = name) -> None:
            _tell(f"{name}: is run now:")
            sys.stderr.write("".join(f"    {visible(line)}\n" for line in text.splitlines()))

        ran = trusted.run_carried(script, wanted, show, trust=orders.trust)
        how = "did not end" if ran.ended.code is None else f"ended with exit code {ran.ended.code}"
        shows = f"shows {finding.cause}" if ran.verdict.verified else f"does not show {finding.cause}"
        _tell(f"{name}: {how} after {ran.ended.seconds:.0f} s and {shows}: {visible(ran.ended.tail[-200:])}")
        if orders.shrink and ran.verdict.verified:
            smallest = trusted.minify(ran, wanted, _tell)
            (out / GRAPH).write_text(smallest.text, encoding="utf-8")
            _tell(f"{out / GRAPH}: the smallest graph that shows it, {len(smallest.text.splitlines())} lines")


def _text(outcome: "Outcome", out: Path) -> list[str]:
    from replay.report.wording import ranks_phrase, visible
    from replay.repro.make import REPORT

    where = ranks_phrase(outcome.odd) if len(outcome.odd) < outcome.world else "all ranks"
    rows = [("finding", f"{outcome.finding} {outcome.cause}")]
    if outcome.script:
        rows.append(("script", f"{out / outcome.script}, {outcome.lines} lines, recipe {outcome.recipe}"))
        rows.append(("ranks", f"{outcome.world}, the fault on {where}"))
    if outcome.seconds is not None:
        again = f", {outcome.runs} runs" if outcome.runs > 1 else ""
        stopped = ", stopped before the end" if outcome.interrupted else ""
        rows.append(("run", f"{outcome.seconds} s, torch {outcome.torch}, {outcome.network}{again}{stopped}"))
    found = ", ".join(f"{cause} ({ranks_phrase(ranks) or 'whole run'})" for cause, ranks in outcome.found)
    rows.append(("status", outcome.status + (f": {outcome.why}" if outcome.why else "")))
    if outcome.status == "not verified":
        rows.append(("found", found or "nothing"))
    if outcome.fix is not None:
        rows.append(("fix", f"{outcome.fix}: {outcome.fix_says}"))
    rows.append(("report", f"{out / REPORT}, to paste into an issue; read it before you do"))
    return [f"{name:<9}{visible(text)}" for name, text in rows]
