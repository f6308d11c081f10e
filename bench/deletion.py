"""What the diagnosis says once the lines that decided it are gone: a rule that guesses names another cause then.

    python bench/deletion.py [DIR ...] [--case NAME] [--rounds 2] [--jobs 1]

DIR are folders of labelled runs (default: corpora/). Of each run that is diagnosed rightly, the evidence lines of the
first finding are deleted from a copy of the logs and the copy is diagnosed; with more rounds, the lines of the new
answer are deleted too. The answer must become one of

    unknown    no root cause
    less sure  the same cause, less certain
    same       the same cause, by other lines
    named      another root that the label lets stand (a part or an effect of the fault)

and never WRONG: a root cause of certainty 0.5 and more that the label does not know, or on other ranks.
"""

import argparse
import bz2
import concurrent.futures
import gzip
import lzma
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.corpus.labelled import Case, Fault, Truth, read_cases
from replay.expert.roots import LIKELY
from replay.report.model import Finding, Report
from replay.run import open_run

HERE = Path(__file__).resolve().parent
PACKERS: dict[str, Any] = {".gz": gzip, ".bz2": bz2, ".xz": lzma}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said after a round: `outcome` as above, `lines` deleted in this round, `roots` named."""

    case: str
    round: int
    lines: int
    outcome: str
    before: str
    roots: str


def deciding(report: Report, truth: Truth) -> Finding | None:
    """Return the finding whose lines are to go: the first, or of a run with a hazard alone that hazard."""
    named = [f for f in report.findings if f.certainty >= LIKELY]
    return next((f for f in named if truth.kind != "hazard" or truth.is_right(f)), None)


def delete_lines(logs: Path, finding: Finding) -> int:
    """Delete the evidence lines of the finding from the files under `logs`; return how many went."""
    gone: defaultdict[str, set[int]] = defaultdict(set)
    for item in finding.evidence:
        if item.line is not None:
            gone[item.file].add(item.line)
    for name, numbers in gone.items():
        path = logs / name
        opener = PACKERS[path.suffix].open if path.suffix in PACKERS else open
        with opener(path, "rb") as file:
            lines = file.read().split(b"\n")
        with opener(path, "wb") as file:
            file.write(b"\n".join(line for number, line in enumerate(lines, 1) if number not in numbers))
    return sum(map(len, gone.values()))


def causes(report: Report) -> list[Finding]:
    """Return the root causes."""
    return [f for f in report.findings if f.root and f.kind == "cause" and f.certainty >= LIKELY]


def judge(before: Finding, report: Report, truth: Truth) -> str:
    """Return the outcome: see the top."""
    roots = causes(report)
    if truth.kind == "hazard":
        return "WRONG" if roots else "unknown"
    right = [f for f in roots if truth.is_right(f) or any(is_part(f, fault) for fault in truth.wrong)]
    if any(f not in right and (f.cause not in truth.allowed or f.cause in truth.cause) for f in roots):
        return "WRONG"
    if not roots:
        return "unknown"
    if not right:
        return "named"
    return "less sure" if max(f.certainty for f in right) < before.certainty else "same"


def is_part(finding: Finding, fault: Fault) -> bool:
    """Tell whether the finding names the fault on some of its ranks: the lines of the others are gone."""
    return finding.cause in fault.cause and bool(finding.ranks) and set(finding.ranks) <= set(fault.ranks or ())


def said(finding: Finding) -> str:
    return f"{finding.rule}@{','.join(map(str, finding.ranks))}:{finding.certainty:.2f}"


def answers(case: Case, rounds: int) -> list[Answer]:
    """Delete and ask again, until nothing is named, the answer is wrong, or no line is left to delete."""
    found: list[Answer] = []
    with tempfile.TemporaryDirectory() as scratch:
        logs = Path(scratch, "logs")
        shutil.copytree(case.logs, logs)
        report = diagnosis(logs, Path(scratch, "0.duckdb"))
        first = deciding(report, case.truth)
        if first is None or (judge(first, report, case.truth) in ("WRONG", "unknown") and case.truth.kind != "hazard"):
            return found
        for number in range(1, rounds + 1):
            gone = delete_lines(logs, first)
            if not gone:
                break
            report = diagnosis(logs, Path(scratch, f"{number}.duckdb"))
            outcome = judge(first, report, case.truth)
            roots = " ".join(said(f) for f in causes(report))
            found.append(Answer(case.name, number, gone, outcome, said(first), roots))
            following = deciding(report, case.truth)
            if outcome in ("unknown", "WRONG") or following is None:
                break
            first = following
    return found


def diagnosis(logs: Path, database: Path) -> Report:
    with open_run([logs], db=database) as run:
        return run.report()


def main() -> int:
    """Print each answer but the honest ones, then how many there were of each; end with 1 if one was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[HERE.parent / "corpora"], metavar="DIR")
    parser.add_argument("--case", action="append", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    wanted = parser.parse_args()
    cases = [case for folder in wanted.folders for case in read_cases(folder)]
    cases = [case for case in cases if case.truth.wrong and (not wanted.case or case.name in wanted.case)]
    counts: Counter[str] = Counter()
    with concurrent.futures.ProcessPoolExecutor(wanted.jobs) as pool:
        for found in pool.map(answers, cases, [wanted.rounds] * len(cases)):
            for one in found:
                counts[one.outcome] += 1
                print(
                    f"{one.case:42} {one.round} {one.outcome:9} {one.before} - {one.lines} lines: {one.roots}",
                    flush=True,
                )
    print(f"{len(cases)} runs: " + ", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    return int(counts["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
