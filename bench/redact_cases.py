"""Is the diagnosis of redacted logs that of the logs: python bench/redact_cases.py DIR [CASE ...]

DIR holds folders with `logs/`; without names of cases all are taken. Compared are causes, ranks, times, certainty and
the lines of proof (`replay/repro/redact/same.py`); lines that are understood otherwise are counted. Exit code 1 if a
diagnosis differs.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from replay.errors import ReplayError
from replay.repro.redact.files import redact


def one(logs: Path) -> tuple[list[str], int]:
    """Return how the diagnosis of the redacted logs differs, a sentence each, and how many lines do."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = redact([str(logs)], Path(folder) / "out")
        except ReplayError as error:
            return [str(error)], 0
    return done.differences, done.otherwise


def main() -> int:
    """Redact all cases, print one line each and the share at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    args = parser.parse_args()
    cases = sorted(path.parent for path in args.folder.glob("*/logs"))
    if unknown := set(args.cases) - {case.name for case in cases}:
        parser.error(f"{min(unknown)}: no such case in {args.folder}")
    wrong = 0
    cases = [case for case in cases if not args.cases or case.name in args.cases]
    for case in cases:
        differs, otherwise = one(case / "logs")
        wrong += bool(differs)
        lines = f", {otherwise} lines otherwise" if otherwise else ""
        print(f"{case.name:<40} {'; '.join(differs) or 'the same'}{lines}", flush=True)
    print(f"{len(cases) - wrong} of {len(cases)} the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
