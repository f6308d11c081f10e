"""Does a script show what the logs show? Its own logs go through the same pipeline, and the findings are compared."""

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from replay.errors import InputError
from replay.report.model import Finding, Report
from replay.repro.script import Plan
from replay.run import open_run

Relation = Literal["exactly", "either", "all", "any"]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a script must show: a cause, and the ranks it lies on.

    `exactly` these ranks; `either`: these or all the others; `all`: these, or no rank in particular; `any`: the logs do
    not say whose fault it is.
    """

    cause: str
    ranks: frozenset[int]
    relation: Relation
    as_root: bool
    others: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the pipeline found in a script's logs, and whether that is what was expected."""

    verified: bool
    found: tuple[tuple[str, tuple[int, ...]], ...]
    """Roots, first ones first: cause and ranks."""
    why_not: str = ""


def expected(plan: Plan, finding: Finding | None = None) -> Expected:
    """Return what the script of a plan must show; without a finding, what the recipe claims by itself."""
    relation: Relation = "exactly"
    if plan.recipe.ranks == "whole" or len(plan.odd) == plan.world:
        relation = "all"
    elif finding is not None and not finding.ranks:
        relation = "any"
    elif plan.recipe.two_sides:
        relation = "either"
    others = frozenset(range(plan.world)) - set(plan.odd)
    return Expected(plan.cause, frozenset(plan.odd), relation, finding.root if finding is not None else True, others)


def read(logs: Path) -> Report:
    """Return the report of a script's logs.

    Raises InputError if it left none.
    """
    if not any(p.stat().st_size for p in logs.rglob("*") if p.is_file()):
        raise InputError(f"{logs}: the script wrote no logs")
    with (
        tempfile.TemporaryDirectory(prefix="replay-") as folder,
        open_run([logs], db=Path(folder) / "run.duckdb") as run,
    ):
        return run.report()


def judge(report: Report, wanted: Expected) -> Verdict:
    """Compare the findings with what was expected."""
    roots = tuple((f.cause, f.ranks) for f in report.findings if f.root)
    same_cause = [f for f in report.findings if f.cause == wanted.cause]
    # A symptom, a hazard or a note is no root where it stands alone: then it only has to be there.
    counted = [f for f in same_cause if f.root or not wanted.as_root or f.kind != "cause"]
    if any(_same_ranks(f.ranks, wanted) for f in counted):
        return Verdict(True, roots)
    if counted:
        return Verdict(False, roots, f"{wanted.cause} was found, on other ranks: {_ranks(counted[0].ranks)}")
    if same_cause:
        return Verdict(False, roots, f"{wanted.cause} was found, but something else explains it")
    return Verdict(False, roots, f"{wanted.cause} was not found")


def vanished(report: Report, wanted: Expected) -> Verdict:
    """Return whether a cause is no longer found: what must be so of the script with the advised change."""
    roots = tuple((f.cause, f.ranks) for f in report.findings if f.root)
    left = [f for f in report.findings if f.cause == wanted.cause and f.certainty >= 0.5]
    outcomes = {run.outcome for run in report.runs}
    if left:
        return Verdict(False, roots, f"{wanted.cause} is still found")
    if outcomes & {"failed", "hung"}:
        return Verdict(False, roots, f"the run {'hung' if 'hung' in outcomes else 'failed'} all the same")
    return Verdict(True, roots)


def _same_ranks(found: Collection[int], wanted: Expected) -> bool:
    if wanted.relation == "any":
        return True
    if wanted.relation == "all":
        return not found or set(found) == wanted.ranks
    if wanted.relation == "either":
        return set(found) in (wanted.ranks, wanted.others)
    return set(found) == wanted.ranks


def _ranks(ranks: Collection[int]) -> str:
    return ", ".join(map(str, ranks)) or "none in particular"
