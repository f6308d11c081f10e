"""The closed loop: a plan's script is written, run, and its logs are diagnosed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from replay.errors import InputError
from replay.repro import sandbox, verify
from replay.repro.recipe import Fix
from replay.repro.sandbox import Ended, Limits
from replay.repro.script import Plan, render
from replay.repro.verify import Expected, Verdict

SCRIPT = "repro.py"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a script: its text, how it ended and what was found in its logs."""

    script: str
    ended: Ended
    verdict: Verdict


def try_plan(plan: Plan, wanted: Expected, *, keep_logs: Path | None = None) -> Trial:
    """Run a plan's script and compare what its logs show with what is expected; `keep_logs` gets a copy of them."""
    text = render(plan)
    with _ran(text, plan, keep_logs) as (ended, logs):
        return Trial(text, ended, _judged(ended, logs, wanted))


def try_fix(plan: Plan, fix: Fix, wanted: Expected, *, keep_logs: Path | None = None) -> Trial:
    """Run the script with the advised change; verified if it ends and the cause is gone."""
    text = render(plan, fix)
    with _ran(text, plan, keep_logs) as (ended, logs):
        if ended.code is None:
            return Trial(text, ended, Verdict(False, (), f"the changed script did not end in {ended.seconds:.0f} s"))
        if ended.code != 0:
            return Trial(text, ended, Verdict(False, (), f"the changed script ended with exit code {ended.code}"))
        return Trial(text, ended, verify.vanished(verify.read(logs), wanted))


def limits_of(plan: Plan) -> Limits:
    """Return the bounds for a plan's script: it ends by itself, and is given a little more time than that."""
    seconds = plan.recipe.seconds + 30.0
    return Limits(seconds=seconds, memory=None) if plan.on_cuda else Limits(seconds=seconds)


@contextmanager
def _ran(text: str, plan: Plan, keep_logs: Path | None) -> Iterator[tuple[Ended, Path]]:
    with tempfile.TemporaryDirectory(prefix="replay-repro-") as folder:
        work = Path(folder)
        script = work / SCRIPT
        script.write_text(text, encoding="ascii")
        ended = sandbox.run(script, work, limits_of(plan))
        if keep_logs is not None:
            shutil.rmtree(keep_logs, ignore_errors=True)
            shutil.copytree(work / "logs", keep_logs)
        yield ended, work / "logs"


def _judged(ended: Ended, logs: Path, wanted: Expected) -> Verdict:
    try:
        verdict = verify.judge(verify.read(logs), wanted)
        if ended.code is None and not verdict.verified:
            return replace(verdict, why_not=f"{verdict.why_not}; the script did not end in {ended.seconds:.0f} s")
        return verdict
    except InputError as error:
        return Verdict(False, (), f"{str(error).rpartition(': ')[2]} (exit code {ended.code})")
