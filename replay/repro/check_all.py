"""Runs every recipe that needs no GPU, and its fix, and records what came of it: python -m replay.repro.check_all

The record lies beside this module, one file per minor version of torch (checked/2.13.json); with names of causes only
their rows are made anew. `diagnose` may print advice as `fix:` where the check of its cause passed.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replay.repro import fill, loop, sandbox, verify
from replay.repro.checked import FOLDER, minor
from replay.repro.recipe import Recipe, causes


def check(cause: str, recipe: Recipe, *, with_fix: bool = True) -> dict[str, object]:
    """Run a recipe's script, and its fix if it has one and it is asked for; return what came of them."""
    plan = fill.default_plan(recipe, cause)
    wanted = verify.expected(plan)
    trial = loop.try_plan(plan, wanted)
    fix = recipe.fix_of(cause, sandbox.needs_torch())
    asked = with_fix and trial.verdict.verified
    fixed = loop.try_fix(plan, fix, wanted).verdict if fix is not None and asked else None
    return {
        "recipe": recipe.recipe,
        "cause": cause,
        "verified": trial.verdict.verified,
        "why": trial.verdict.why_not or (fixed.why_not if fixed is not None else ""),
        "seconds": round(trial.ended.seconds, 1),
        "fix": None if fixed is None else fixed.verified,
        "fix_says": fix.says if fix is not None else "",
        "stand_in": recipe.shows[cause].stand_in,
    }


def main() -> int:
    """Check the causes that the command line names, all of them if it names none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="scripts at a time")
    args = parser.parse_args()
    torch = sandbox.needs_torch()
    on_cpu = [(c, r) for c, r in causes() if r.needs == "cpu"]
    if unknown := set(args.causes) - {cause for cause, _ in on_cpu}:
        parser.error(f"{min(unknown)}: no recipe shows it without a GPU")
    wanted = [(c, r) for c, r in on_cpu if not args.causes or c in args.causes]
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = []
        for row in pool.map(lambda pair: check(*pair), wanted):
            rows.append(row)
            verdict = "verified" if row["verified"] else f"not verified: {row['why']}"
            fix = {True: "fix: gone", False: "fix: NOT gone", None: ""}[row["fix"]]  # type: ignore[index]
            sys.stdout.write(f"{row['cause']:<32} {row['recipe']:<18} {row['seconds']:>5} s  {verdict}  {fix}\n")
            sys.stdout.flush()
    _record(FOLDER / f"{minor(torch)}.json", rows, [(r.recipe, c) for c, r in on_cpu])
    bad = [row["cause"] for row in rows if not row["verified"] or row["fix"] is False]
    sys.stdout.write(f"{len(rows) - len(bad)} of {len(rows)} verified, with their fix where there is one\n")
    return 1 if bad else 0


def _record(file: Path, rows: list[dict[str, object]], order: list[tuple[str, str]]) -> None:
    """Put rows into the record in the order of the recipes; what no recipe shows any more is left out of it."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    known = {(row["recipe"], row["cause"]): row for row in [*old, *rows]}
    file.parent.mkdir(exist_ok=True)
    kept = [known[key] for key in order if key in known]
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
