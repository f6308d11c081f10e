"""How many findings of labelled runs that a CPU can show does a script show: python bench/repro_cases.py DIR [CASE ...]

DIR holds folders with `logs/` and `truth.json`; without names of cases all are taken. Per case the first root that is
right counts, else the first hazard that is. Exit code 1 below 90 %.
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replay.errors import ReplayError
from replay.repro.make import Orders, make
from replay.repro.recipe import recipe_for
from replay.run import open_run

LEAST = 0.9


def one(case: Path) -> str | None:
    """Return `verified` or what came instead; None where no recipe or no right finding is there."""
    cause = json.loads((case / "truth.json").read_text(encoding="utf-8"))["cause"]
    right = [] if cause is None else [cause] if isinstance(cause, str) else cause
    with tempfile.TemporaryDirectory() as folder:
        try:
            with open_run([case / "logs"], db=Path(folder) / "run.duckdb") as run:
                findings = run.report().findings
                found = [f for f in findings if f.cause in right and f.root] or [
                    f for f in findings if f.cause in right
                ]
                shown = [f for f in found if (r := recipe_for(f.cause)) is not None and r.needs == "cpu"]
                if not shown:
                    return None
                outcome = make(run, shown[0], Path(folder) / "out", Orders(run=True, device="cpu"), lambda _: None)
                return "verified" if outcome.status == "verified" else f"{outcome.cause}: {outcome.why} {outcome.found}"
        except ReplayError as error:
            return str(error)


def main() -> int:
    """Measure all cases, print one line each and the share at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    cases = sorted(path.parent for path in args.folder.glob("*/truth.json"))
    if unknown := set(args.cases) - {case.name for case in cases}:
        parser.error(f"{min(unknown)}: no such case in {args.folder}")
    cases = [case for case in cases if not args.cases or case.name in args.cases]
    answers = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for case, answer in zip(cases, pool.map(one, cases), strict=True):
            if answer is not None:
                answers.append(answer)
                print(f"{case.name:<40} {answer}", flush=True)
    good = answers.count("verified")
    print(f"{good} of {len(answers)} verified ({100 * good / max(len(answers), 1):.0f} %)")
    return 0 if good >= LEAST * len(answers) else 1


if __name__ == "__main__":
    sys.exit(main())
