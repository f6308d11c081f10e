"""A replayed run as spans of own time and of waiting, for whoever draws it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.simulate.history import History
from replay.simulate.recurrence import Course
from replay.simulate.told import heads


@dataclass(frozen=True, slots=True)
class Phases:
    """Spans without overlap, by rank and time. Times in s since 1970; `waits` tells waiting from own time."""

    rank: NDArray[np.int64]
    t_lo: NDArray[np.float64]
    t_hi: NDArray[np.float64]
    waits: NDArray[np.bool_]


def phases(told: History, course: Course, ranks: Sequence[int]) -> Phases:
    """Return what some ranks do in a course of a history: before each arrival their own work, then the operation."""
    of = np.flatnonzero(np.isin(told.ranks, ranks)[told.who])
    before = np.where(heads(told.who)[of], told.begin[told.who[of]], course.leave[of - 1])
    edges = np.stack([before, course.enter[of], course.leave[of]], axis=1) + told.origin
    waits = np.tile([False, True], len(of))
    lo, hi = edges[:, :2].ravel(), edges[:, 1:].ravel()
    kept = hi > lo
    return Phases(np.repeat(told.ranks[told.who[of]], 2)[kept], lo[kept], hi[kept], waits[kept])
