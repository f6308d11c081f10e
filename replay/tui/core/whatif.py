"""The run without something, beside the run as it was: which causes there are, which are taken out, what comes of
it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection

from replay.report.model import Finding
from replay.report.wording import duration, ranks_phrase, visible
from replay.simulate import Cause, Change, Outcome, Phases, WhatIf, Without
from replay.simulate.model import KINDS
from replay.tui.core.spans import RUNNING, WAITING, Spans

_SLOW = "slow"
SHOWN = 64
"""Ranks of which spans are made: no screen has room for the lanes of more."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that can be taken out of the run: a cause, or a setting (`cause` is None) that would have been
    otherwise.
    """

    key: str
    name: str
    told: str
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What comes of a change, and what the ranks that it changes most did and would do; None where nothing can be
    said. The model tells work and waiting of both.
    """

    outcome: Outcome
    was: Spans | None
    would_be: Spans | None


class Trials:
    """One run, read when first asked for, and tried with one change after the other."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id
        self._run: WhatIf | None = None

    def tried(self, con: DuckDBPyConnection, change: Change) -> Tried:
        """Return the run with a change; an empty change tells what can be taken out of it."""
        if self._run is None:
            self._run = WhatIf(con, self._run_id)
        found = self._run.changed(change)
        shown = most_changed(found.outcome, SHOWN)
        return Tried(found.outcome, _spans(self._run.phases(shown)), _spans(self._run.phases(shown, found.course)))


def items(outcome: Outcome) -> tuple[Item, ...]:
    """Return what can be taken out of a run, from the outcome of an empty change."""
    made = [
        Item(f"{n}", _name(cause), f"{cause.times:,} times, {duration(cause.own_s)} itself", cause)
        for n, cause in enumerate(outcome.causes)
        if cause.what in {*KINDS, _SLOW}
    ]
    if any(item.cause and item.cause.what == "compiles" for item in made):
        made.append(Item("cache", "a cold compile cache", "as if it had held everything"))
    if any(item.cause and item.cause.what == "recompiles" for item in made):
        made.append(Item("guards", "recompiles at different moments", "as if ranks agreed on guards"))
    return tuple(made)


def _name(cause: Cause) -> str:
    who = ranks_phrase(cause.ranks)
    if cause.what == _SLOW:
        return f"the slowness of {who}"
    return f"{cause.what} on {who}"


def change(listed: Iterable[Item], out: frozenset[str], ranks: Sequence[int]) -> Change:
    """Return the change that takes some items out, by their keys; ranks are those of the run.

    What is named twice is taken out once: compiles hold recompiles.
    """
    cut: dict[str, set[int]] = {}
    for item in listed:
        if item.key in out and item.cause is not None:
            cut.setdefault(item.cause.what, set()).update(item.cause.ranks)
    if "compiles" in cut and "recompiles" in cut:
        cut["recompiles"] -= cut["compiles"]
    slow = cut.pop(_SLOW, set())
    everyone = set(ranks)
    return Change(
        without=tuple(
            Without(what, () if members == everyone else tuple(sorted(members)))
            for what, members in cut.items()
            if members
        ),
        as_median=tuple(sorted(slow)),
        warm_cache="cache" in out,
        guard_collectives="guards" in out,
    )


def of_finding(listed: Iterable[Item], finding: Finding | None) -> str | None:
    """Return the key of the item that a finding is about: told in a file of its evidence, of its ranks and no
    others.
    """
    if finding is None:
        return None
    files = {proof.file for proof in finding.evidence}
    for item in listed:
        if item.cause is not None and item.cause.path in files and set(item.cause.ranks) == set(finding.ranks):
            return item.key
    return None


def most_changed(outcome: Outcome, most: int) -> list[int]:
    """Return the ranks to be shown, of those that are: which something is taken from, and whose waiting changes
    most.
    """
    order = sorted(outcome.ranks, key=lambda r: (-abs(r.own_s), -abs(r.waited_s - r.waits_s), r.rank))
    return sorted(r.rank for r in order[:most])


def limits(outcome: Outcome) -> list[str]:
    """Return where the model does not hold, in words that are safe to show."""
    return [visible(limit.text + (f"; to know: {limit.enable}" if limit.enable else "")) for limit in outcome.limits]


def _spans(made: Phases | None) -> Spans | None:
    if made is None:
        return None
    count = len(made.rank)
    none = np.full(count, -1, dtype=np.int64)
    states = np.where(made.waits, WAITING, RUNNING).astype(np.uint8)
    return Spans(
        rank=made.rank.astype(np.int32),
        t_lo=made.t_lo,
        t_hi=made.t_hi,
        state=states,
        step=none,
        detail=none.astype(np.int32),
        details=(),
        place=none,
    )
