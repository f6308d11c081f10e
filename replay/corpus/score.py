"""How well the diagnosis of a labelled run agrees with its label.

Only findings of certainty 0.5 and more count, since only those can be roots. Per run:

    top1     the first finding is a root, names the fault and the ranks; healthy: there is no root
    top3     a right cause stands among the first three findings
    clean    no other cause is a root, and no symptom stands as a root beside a cause
    proof    each evidence line of the first finding stands where it says
    unknown  no root was named where something was wrong: honest, but no answer
"""

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from replay.corpus.labelled import Case, Fault
from replay.expert.roots import LIKELY
from replay.report.model import Evidence, Finding, Report

_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True, slots=True)
class Score:
    """One run, scored. `faults` are those it has and `found` those a root names; `roots` are the causes that stand as
    roots, without those that the label lets stand beside; `said` are the first findings.
    """

    case: str
    truth: tuple[str, ...]
    top1: bool
    top3: bool
    clean: bool
    proof: bool
    unknown: bool
    faults: tuple[Fault, ...]
    found: tuple[str | None, ...]
    """Of each fault the cause that a root names, None where none does."""
    roots: tuple[tuple[str, bool], ...]
    """Cause of each root, and whether it is right."""
    said: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """The answer is right, says nothing wrong beside, and can be looked up."""
        return self.top1 and self.clean and self.proof


def score(case: Case, report: Report) -> Score:
    """Score the report on a labelled run."""
    truth = case.truth
    findings = [finding for finding in report.findings if finding.certainty >= LIKELY]
    roots = [finding for finding in findings if finding.root and finding.kind == "cause"]
    faults = truth.wrong
    if truth.kind == "hazard":
        named = [finding for finding in findings if finding.kind == "hazard" and truth.is_right(finding)]
        first, top1, top3 = (named[0] if named else None), bool(named), bool(named)
        hits, counted, clean, unknown = named, [*named[:1], *roots], not roots, False
    else:
        first = findings[0] if findings else None
        top1 = (first is not None and first in roots and truth.is_right(first)) if faults else not roots
        top3 = any(finding.cause in fault.cause for finding in findings[:3] for fault in faults) if faults else top1
        symptoms = any(finding.root and finding.kind == "symptom" for finding in findings)
        hits, counted = roots, [finding for finding in roots if finding.cause not in truth.also]
        clean = all(finding.cause in truth.allowed for finding in roots) and not (roots and symptoms)
        unknown = bool(faults) and not roots
    return Score(
        case.name,
        truth.cause,
        top1,
        top3,
        clean,
        _is_proven(case, first) if first is not None else not faults,
        unknown,
        faults,
        tuple(next((f.cause for f in hits if fault.is_told_by(f)), None) for fault in faults),
        tuple((finding.cause, truth.is_right(finding)) for finding in counted),
        tuple(_said(finding) for finding in findings[:4]) or ("nothing",),
    )


def _said(finding: Finding) -> str:
    ranks = f" on {','.join(map(str, finding.ranks))}" if finding.ranks else ""
    return f"{finding.cause}{ranks}{' (root)' if finding.root else ''}"


def _is_proven(case: Case, finding: Finding) -> bool:
    """Tell whether there is evidence, and each line of it stands in its file; entries of binary files have no line."""
    return bool(finding.evidence) and all(
        _stands(case.logs, item) for item in finding.evidence if item.line is not None or not item.at
    )


def _stands(logs: Path, item: Evidence) -> bool:
    said = item.text.encode("utf8", "replace").decode("utf8", "replace").strip().rstrip("…").strip()
    lines = lines_of(logs / item.file)
    return bool(said) and item.line is not None and 1 <= item.line <= len(lines) and said in lines[item.line - 1]


@cache
def lines_of(path: Path) -> tuple[str, ...]:
    """Return the lines of a log file, decompressed; none where there is no such file."""
    if not path.is_file():
        return ()
    with _OPENERS.get(path.suffix, _plain)(path) as file:
        data: bytes = file.read()
    return tuple(line.decode("utf8", "replace") for line in data.split(b"\n"))


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb")


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over scored runs. Precision: right roots among roots; recall: faults that a root names."""

    cases: int
    top1: int
    top3: int
    clean: int
    proof: int
    unknown: int
    faults: int
    found: int
    roots: int

    @property
    def precision(self) -> float | None:
        """Faults found per root; None where nothing was named."""
        return self.found / self.roots if self.roots else None

    @property
    def recall(self) -> float | None:
        """Share of the faults that a root names; None where there were none."""
        return self.found / self.faults if self.faults else None


def figures(scores: Sequence[Score]) -> Figures:
    """Add up."""

    def count(values: Iterable[bool]) -> int:
        return sum(map(bool, values))

    return Figures(
        len(scores),
        count(s.top1 for s in scores),
        count(s.top3 for s in scores),
        count(s.clean for s in scores),
        count(s.proof for s in scores),
        count(s.unknown for s in scores),
        sum(len(s.faults) for s in scores),
        sum(cause is not None for s in scores for cause in s.found),
        sum(len(s.roots) for s in scores),
    )
