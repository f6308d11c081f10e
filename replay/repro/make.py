"""From a finding to a folder: the script, the one with the advised change, and repro.json that tells the outcome."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from replay.errors import UsageError
from replay.report.model import Finding
from replay.repro import fill, loop, sandbox, trusted, verify
from replay.repro.fill import Wanted
from replay.repro.recipe import recipe_for
from replay.repro.script import Plan, render
from replay.repro.shrink import shrink
from replay.run import Run

SCRIPT, FIXED, RECORD = "repro.py", "fixed.py", "repro.json"


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done beside writing the script."""

    run: bool = False
    shrink: bool = False
    check_fix: bool = False
    device: str = "auto"
    trust: bool = False
    seed: int = 0
    wanted: Wanted = field(default_factory=Wanted)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `status`: written, verified, not verified, needs CUDA. `fix`: gone, not gone, or None."""

    finding: str
    cause: str
    recipe: str
    status: str
    why: str
    script: str
    lines: int
    world: int
    odd: tuple[int, ...]
    ranks_in_logs: tuple[int, ...]
    values: dict[str, Any]
    found: tuple[tuple[str, tuple[int, ...]], ...] = ()
    seconds: float | None = None
    torch: str | None = None
    runs: int = 0
    interrupted: bool = False
    fix: str | None = None
    fix_says: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether what was asked for did not come out as it should."""
        return self.status == "not verified" or self.fix not in {None, "gone"}


def chosen(run: Run, name: str | None) -> Finding:
    """Return the finding of that id, or the first root that a script can show, or the first root.

    Raises UsageError if there is none.
    """
    findings = run.report().findings
    if name is not None:
        for finding in findings:
            if finding.id == name:
                return finding
        raise UsageError(f"{name}: no such finding; there are {', '.join(f.id for f in findings) or 'none'}")
    roots = run.report().roots
    if not roots:
        raise UsageError("no root cause was found, so there is nothing to show")
    return next((f for f in roots if recipe_for(f.cause)), roots[0])


def make(run: Run, finding: Finding, out: Path, orders: Orders, told: Callable[[str], None]) -> Outcome:
    """Write the script of a finding into a folder, and run, shrink and check it as ordered.

    Raises UsageError where no recipe shows the cause, CannotTell where a script cannot be run.
    """
    plan = fill.plan(run, finding, orders.wanted)
    out.mkdir(parents=True, exist_ok=True)
    (out / SCRIPT).write_text(render(plan), encoding="ascii")
    needs_gpu = plan.recipe.needs == "cuda"
    outcome = _outcome(plan, finding, "written")
    if needs_gpu and (orders.device == "cpu" or not sandbox.has_cuda()):
        outcome = replace(outcome, status="needs CUDA", why="this script needs a GPU; it was written and not run")
    elif orders.run or orders.shrink or orders.check_fix:
        outcome = _run(plan, finding, out, orders, told)
    elif orders.trust:
        trusted.refuse_without_run()
    (out / RECORD).write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    return outcome


def _run(plan: Plan, finding: Finding, out: Path, orders: Orders, told: Callable[[str], None]) -> Outcome:
    torch = sandbox.needs_torch()
    told(f"running {SCRIPT} on {plan.world} ranks")
    trial = loop.try_plan(plan, verify.expected(plan, finding), keep_logs=out / "logs")
    runs, interrupted = 1, False
    if orders.shrink and trial.verdict.verified:

        def oracle(smaller: Plan) -> bool:
            return loop.try_plan(smaller, verify.expected(smaller, finding)).verdict.verified

        best = shrink(plan, oracle, told, orders.seed)
        plan, runs, interrupted = replace(best.plan, tight=True), runs + best.runs, best.interrupted
        (out / SCRIPT).write_text(render(plan), encoding="ascii")
    outcome = _outcome(plan, finding, "verified" if trial.verdict.verified else "not verified")
    outcome = replace(
        outcome, why=trial.verdict.why_not, found=trial.verdict.found, seconds=round(trial.ended.seconds, 1),
        torch=torch, runs=runs, interrupted=interrupted,
    )  # fmt: skip
    return _check_fix(plan, finding, out, outcome, told) if orders.check_fix and not interrupted else outcome


def _check_fix(plan: Plan, finding: Finding, out: Path, outcome: Outcome, told: Callable[[str], None]) -> Outcome:
    fix = plan.recipe.fix_of(plan.cause)
    if fix is None:
        return replace(outcome, fix="none", fix_says="the recipe knows no change that a script can show")
    (out / FIXED).write_text(render(plan, fix), encoding="ascii")
    if outcome.status != "verified":
        return replace(outcome, fix="not checked", fix_says="the script does not show the cause")
    told(f"running {FIXED}: {fix.says}")
    verdict = loop.try_fix(plan, fix, verify.expected(plan, finding)).verdict
    says = fix.says if verdict.verified else f"{fix.says}: {verdict.why_not}"
    return replace(outcome, fix="gone" if verdict.verified else "not gone", fix_says=says)


def _outcome(plan: Plan, finding: Finding, status: str) -> Outcome:
    return Outcome(
        finding=finding.id,
        cause=plan.cause,
        recipe=plan.recipe.recipe,
        status=status,
        why="",
        script=SCRIPT,
        lines=len(render(plan).splitlines()),
        world=plan.world,
        odd=plan.odd,
        ranks_in_logs=finding.ranks,
        values={name: value.value for name, value in plan.values.items()},
    )
