"""From a finding to a folder: its script, the one with the advised change, the bug report, and a record (repro.json).

A cause that no script can show gets its report all the same.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from replay.errors import InputError, UsageError
from replay.report.model import Finding
from replay.repro import fill, loop, sandbox, trusted, verify
from replay.repro.fill import Wanted
from replay.repro.outcome import Outcome, Status
from replay.repro.recipe import recipe_for
from replay.repro.redact.shown import Shown
from replay.repro.report import Bug, Unmasked, redacted_note, render_report
from replay.repro.script import Plan, render
from replay.repro.shrink import WORLD, shrink
from replay.run import Run

SCRIPT, FIXED, LOGS, GRAPH = "repro.py", "fixed.py", "logs", "graph.py"
RECORD, REPORT, NAMES = "repro.json", "REPORT.md", "REPORT.names.json"


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done beside writing the script."""

    run: bool = False
    shrink: bool = False
    check_fix: bool = False
    device: str = "auto"
    trust: bool = False
    seed: int = 0
    redact: bool = True
    wanted: Wanted = field(default_factory=Wanted)

    @property
    def runs(self) -> bool:
        """Whether the script is run at all."""
        return self.run or self.shrink or self.check_fix


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
    """Write the script and the bug report of a finding into a folder, and run, shrink and check it as ordered.

    Raises UsageError where the recipe cannot do what was asked for, InputError where the folder is not for this,
    CannotTell where a script cannot be run; nothing is written then.
    """
    if orders.trust and not orders.run:
        trusted.refuse_without_run()
    plan = fill.plan(run, finding, orders.wanted) if recipe_for(finding.cause) is not None else None
    if plan is not None and orders.device == "cuda":
        plan = replace(plan, device="cuda")
    if plan is not None and orders.runs and _has_device(plan, orders):
        sandbox.needs_torch()
    _make_room(out)
    outcome = _unshown(finding) if plan is None else _outcome(plan, finding, "written")
    _record(outcome, out)  # whose folder it is stands there also if somebody stops what comes now
    if plan is not None:
        plan, outcome = _script(plan, finding, out, orders, told)
        _record(outcome, out)
    _report(Bug(run, finding, outcome, plan), out, redact=orders.redact)
    return outcome


def _make_room(out: Path) -> None:
    """Make the folder, or take away what an earlier call has left in it: nothing of another finding stays.

    Raises InputError if somebody else's files are in it.
    """
    if out.is_dir() and not (out / RECORD).is_file() and any(out.iterdir()):
        raise InputError(f"{out}: has files that are not of `replay repro`; name another folder")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder")
    out.mkdir(parents=True, exist_ok=True)
    for name in (SCRIPT, FIXED, GRAPH, REPORT, NAMES):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / LOGS, ignore_errors=True)


def _has_device(plan: Plan, orders: Orders) -> bool:
    return not plan.on_cuda or (orders.device != "cpu" and sandbox.has_cuda())


def _script(
    plan: Plan, finding: Finding, out: Path, orders: Orders, told: Callable[[str], None]
) -> tuple[Plan, Outcome]:
    (out / SCRIPT).write_text(render(plan), encoding="ascii")
    if not _has_device(plan, orders):
        why = "this script needs a GPU; it was written and not run"
        return plan, replace(_outcome(plan, finding, "needs CUDA"), why=why)
    if orders.runs:
        return _run(plan, finding, out, orders, told)
    return plan, _outcome(plan, finding, "written")


def _record(outcome: Outcome, out: Path) -> None:
    (out / RECORD).write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")


def _report(bug: Bug, out: Path, *, redact: bool) -> None:
    """Write the bug report, and the list of what was replaced in it for its owner only."""
    names = out / NAMES
    if not redact:
        (out / REPORT).write_text(render_report(bug, Unmasked()), encoding="utf-8", errors="replace")
        return
    masks = Shown(bug.run, bug.texts(), bug.proof())
    text = render_report(bug, masks)
    replaced = masks.replaced(text)
    (out / REPORT).write_text(text + redacted_note(replaced), encoding="utf-8", errors="replace")
    kinds: dict[str, dict[str, str]] = {}
    for kind, name, new in replaced:
        kinds.setdefault(kind, {})[name] = new
    with os.fdopen(os.open(names, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps(kinds, indent=1) + "\n")


def _run(plan: Plan, finding: Finding, out: Path, orders: Orders, told: Callable[[str], None]) -> tuple[Plan, Outcome]:
    torch = sandbox.needs_torch()
    told(f"running {SCRIPT} on {plan.world} ranks")
    trial = loop.try_plan(plan, verify.expected(plan, finding), keep_logs=out / LOGS)
    runs, interrupted = 1, False
    shrunk: tuple[str, ...] = ()
    if orders.shrink and trial.verdict.verified:

        def oracle(smaller: Plan) -> bool:  # twice: what shows it now and then is no script to hand on
            wanted = verify.expected(smaller, finding)
            return all(loop.try_plan(smaller, wanted).verdict.verified for _ in range(2))

        best = shrink(plan, oracle, told, orders.seed)
        shrunk = _taken_away(plan, best.plan)
        plan, runs, interrupted = replace(best.plan, tight=True), runs + best.runs, best.interrupted
        (out / SCRIPT).write_text(render(plan), encoding="ascii")
        if shrunk and not interrupted:  # its logs, and how long it takes, are what is handed on
            trial = loop.try_plan(plan, verify.expected(plan, finding), keep_logs=out / LOGS)
    outcome = _outcome(plan, finding, "verified" if trial.verdict.verified else "not verified")
    outcome = replace(
        outcome, why=trial.verdict.why_not, found=trial.verdict.found, seconds=round(trial.ended.seconds, 1),
        torch=torch, network=trial.ended.network, runs=runs, interrupted=interrupted, shrunk=shrunk,
    )  # fmt: skip
    return plan, _check_fix(plan, finding, out, outcome, told) if orders.check_fix and not interrupted else outcome


def _taken_away(before: Plan, after: Plan) -> tuple[str, ...]:
    """What a smaller plan lacks, in words."""
    changed = [
        f"{'ranks' if name == WORLD else name} {before.value(name)} to {value.value}"
        for name, value in after.values.items()
        if value.value != before.value(name)
    ]
    return (*changed, *(f"the lines of {name}" for name in sorted(after.without - before.without)))


def _check_fix(plan: Plan, finding: Finding, out: Path, outcome: Outcome, told: Callable[[str], None]) -> Outcome:
    fix = plan.recipe.fix_of(plan.cause, sandbox.needs_torch())
    if fix is None:
        return replace(outcome, fix="none", fix_says="the recipe knows no change that a script can show")
    (out / FIXED).write_text(render(plan, fix), encoding="ascii")
    if outcome.status != "verified":
        return replace(outcome, fix="not checked", fix_says="the script does not show the cause")
    told(f"running {FIXED}: {fix.says}")
    verdict = loop.try_fix(plan, fix, verify.expected(plan, finding)).verdict
    says = fix.says if verdict.verified else f"{fix.says}: {verdict.why_not}"
    return replace(outcome, fix="gone" if verdict.verified else "not gone", fix_says=says)


def _unshown(finding: Finding) -> Outcome:
    why = "it lies in a machine, a network or a version, or no recipe is known yet"
    return Outcome(
        finding=finding.id, cause=finding.cause, recipe="", status="no script", why=why, script="", lines=0, world=0,
        odd=(), ranks_in_logs=finding.ranks, values={},
    )  # fmt: skip


def _outcome(plan: Plan, finding: Finding, status: Status) -> Outcome:
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
