"""Figures by cause over scored runs, and what of the taxonomy no run shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from replay.corpus.score import Score
from replay.expert.taxonomy import Cause, Taxonomy


@dataclass(frozen=True, slots=True)
class Tally:
    """One cause: runs with it, those whose first finding is right, how often a root named it rightly and at all."""

    cause: str
    runs: int
    top1: int
    found: int
    named: int
    right: int

    @property
    def precision(self) -> float | None:
        """Share of its roots that are right; None where no root names it."""
        return self.right / self.named if self.named else None

    @property
    def recall(self) -> float | None:
        """Share of its faults that a root names; None where no run has it."""
        return self.found / self.runs if self.runs else None


def tally(scores: Sequence[Score]) -> list[Tally]:
    """Return the figures by cause, in order of their ids.

    A fault that may go by several names counts for the one that was found, else for the first.
    """
    faults = [
        (cause or fault.cause[0], s.top1, cause) for s in scores for fault, cause in zip(s.faults, s.found, strict=True)
    ]
    roots = [root for s in scores for root in s.roots]
    names = sorted({name for name, _, _ in faults} | {name for name, _ in roots})
    return [
        Tally(
            name,
            sum(of == name for of, _, _ in faults),
            sum(of == name and top1 for of, top1, _ in faults),
            sum(of == name and found is not None for of, _, found in faults),
            sum(of == name for of, _ in roots),
            sum(of == name and is_right for of, is_right in roots),
        )
        for name in names
    ]


def uncovered(scores: Sequence[Score], taxonomy: Taxonomy) -> list[Cause]:
    """Return the causes and hazards that no run shows; symptoms follow from others and have no label."""
    shown = {cause for s in scores for fault in s.faults for cause in fault.cause}
    return [cause for cause in taxonomy.values() if cause.kind != "symptom" and cause.id not in shown]
