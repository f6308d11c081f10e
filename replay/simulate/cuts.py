"""What a change takes from the ranks' own times: each kind of change turned into seconds by arrival."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.simulate import doings
from replay.simulate.doings import Doings, Places
from replay.simulate.history import History
from replay.simulate.medians import medians

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LEAST = 2
"""Undisturbed times from which a rank has a usual one."""
_MADE_OF = 0.3
"""Share of what an arrival took beyond the usual from which a compile is taken to have made it that long: the backward
pass is compiled later, and no line tells of it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Seconds taken from own times before arrivals (negative: added), and where the log tells of it."""

    what: str
    rank: int
    """Index of the rank."""
    arrival: Ints
    seconds: Floats
    times: int
    file_id: int | None = None
    line_no: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The own time of each arrival taken apart: what was heard to be done in it, and what it takes as a rule."""

    history: History
    kinds: dict[str, Doings]
    places: dict[str, Places]
    seconds: dict[str, Floats]
    """By kind and arrival, as far as lines tell."""
    usual: Floats
    """What the rank needs before such an arrival when nothing is heard of [s]; NaN where that is not known."""


def take_apart(history: History, kinds: dict[str, Doings]) -> Work:
    """Find out what of each own time was what."""
    number = len(history.who)
    own, before, gone = history.own, history.before, history.gone
    places, seconds = {}, {}
    disturbed = np.zeros(number, np.bool_)
    mine = {}
    for what, all_spans in kinds.items():
        spans = all_spans.of(history.ranks)
        index = np.searchsorted(history.ranks, spans.rank)
        found = doings.place(spans.since(history.origin), index, who=history.who, before=before, gone=gone)
        mine[what], places[what] = spans, found
        seconds[what] = np.minimum(np.bincount(found.arrival, found.seconds, number), own)
        disturbed[found.arrival] = True
    return Work(history, mine, places, seconds, _usual(history, own, ~disturbed))


def _usual(history: History, own: Floats, calm: Flags) -> Floats:
    """The median of a rank's own calm times of a kind; else that of the other ranks before the same operation."""
    lowest = int(history.kind.min(initial=0))
    width = int(history.kind.max(initial=0)) - lowest + 1
    _, group = np.unique(history.who * width + (history.kind - lowest), return_inverse=True)
    calm = calm & (history.kind >= 0)
    usual = medians(own[calm], group[calm], int(group.max(initial=0)) + 1, _LEAST)[group]
    ends = int(history.what.max(initial=0)) + 1
    peers = medians(own[calm], history.what[calm], ends)[history.what]
    return np.where(np.isnan(usual), peers, usual)


def without(work: Work, what: str, ranks: tuple[int, ...]) -> list[Cut]:
    """Return what it takes from each rank if a kind of doing is not there; `ranks` are global, () for all."""
    spans, found = work.kinds[what], work.places[what]
    own = work.history.own
    told = work.seconds[what]
    other = np.sum([s for name, s in work.seconds.items() if name != what], axis=0)
    excess = np.maximum(own - np.nan_to_num(work.usual, nan=np.inf) - other, 0.0)
    is_open = np.zeros(len(own), np.bool_)
    is_open[found.arrival[spans.is_open[found.span]]] = True
    is_compile = what in ("recompiles", "compiles")
    made = is_compile & (is_open | (told >= _MADE_OF * excess))
    cut = np.where(made, np.maximum(told, excess), told)
    cuts = []
    for index in np.unique(work.history.who[found.arrival]).tolist():
        rank = int(work.history.ranks[index])
        if ranks and rank not in ranks:
            continue
        at = np.unique(found.arrival[work.history.who[found.arrival] == index])
        told_of = np.flatnonzero(spans.rank == rank)
        first = told_of[0]
        place = int(spans.file_id[first]), int(spans.line_no[first])
        cuts.append(Cut(what, index, at, cut[at], len(told_of), *place))
    return cuts


def as_median(history: History, ranks: tuple[int, ...]) -> list[Cut]:
    """Return what it takes from ranks to need before each operation what the others that share it do, in the median.

    A rank that shares none with others has no cut.
    """
    own = history.own
    slow = np.isin(history.ranks, ranks)[history.who]
    met = (history.what < history.operations) & (history.kind >= 0)
    # before its first operation a rank starts, and ranks do not start at one moment
    medians_of = medians(own[met & ~slow], history.what[met & ~slow], int(history.what.max(initial=0)) + 1)
    usual = medians_of[history.what]
    found = []
    for index in np.flatnonzero(np.isin(history.ranks, ranks)).tolist():
        mine = np.flatnonzero((history.who == index) & met & ~np.isnan(usual))
        if len(mine):
            found.append(Cut("slow", index, mine, own[mine] - usual[mine], len(mine)))
    return found


def all_at_once(work: Work) -> list[Cut]:
    """Return what changes if all ranks compile a function again when the first of them does."""
    history, spans, found = work.history, work.kinds["recompiles"], work.places["recompiles"]
    own = np.zeros(len(history.who))
    for cut in without(work, "recompiles", ()):
        own[cut.arrival] += cut.seconds
    groups: dict[str, list[int]] = {}
    for label, arrival in zip(spans.label[found.span].tolist(), found.arrival.tolist(), strict=True):
        groups.setdefault(label, []).append(arrival)
    added = np.zeros(len(history.who))
    for arrivals in groups.values():
        first = min(arrivals, key=lambda a: float(history.enter[a]))
        at = _same_time(history, first)
        added[at] = np.maximum(added[at], own[arrivals].max())
    net = own - added
    return [
        Cut("guard-collectives", index, at, net[at], int((own[at] > 0).sum()))
        for index in range(len(history.ranks))
        if len(at := np.flatnonzero((history.who == index) & ((own > 0) | (added > 0))))
    ]


def _same_time(history: History, arrival: int) -> Ints:
    """The arrivals that ranks were on their way to when one came to its own: the same operation where it is shared."""
    same = np.flatnonzero(history.what == history.what[arrival])
    others = np.setdiff1d(np.arange(len(history.ranks)), history.who[same])
    firsts = np.searchsorted(history.who, others)
    passed = np.bincount(history.who[history.enter < history.enter[arrival]], minlength=len(history.ranks))[others]
    count = np.bincount(history.who, minlength=len(history.ranks))[others]
    return np.concatenate([same, firsts + np.minimum(passed, count - 1)])


def warm(work: Work, hits: dict[int, float]) -> tuple[list[Cut], int]:
    """Return what it takes from each rank if its compiles took what they take where the cache was hit.

    `hits` are the seconds that compiling took in all, by rank, of ranks that found all in the cache; without any the
    whole of a compile is cut, which is the most that a cache can save. Last, how many ranks are cut so.
    """
    found = [*without(work, "compiles", ()), *without(work, "recompiles", ())]
    total: dict[int, float] = {}
    for cut in found:
        total[cut.rank] = total.get(cut.rank, 0.0) + float(cut.seconds.sum())
    if not hits:
        return found, len(total)
    kept = float(np.median(list(hits.values())))
    warmed = []
    for cut in found:
        if int(work.history.ranks[cut.rank]) in hits or not total[cut.rank]:
            continue
        share = max(1 - kept / total[cut.rank], 0.0)
        warmed.append(Cut(cut.what, cut.rank, cut.arrival, cut.seconds * share, cut.times, cut.file_id, cut.line_no))
    return warmed, 0
