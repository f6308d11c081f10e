"""The recurrence: a rank works for its own time, comes to an operation, and leaves it after the last has come.

Arrivals are the rows of all ranks, sorted by rank and then in the rank's order. Operations that depend on nothing that
is left are one level; a level is computed at once, so that a run of 10,000 ranks costs one loop over its operations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


_KNOTS, _KNOTS_SHARE = 100, 0.1
"""More operations than these, and than this share of all, that wait for each other have no order."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Arrivals level by level: `order` lists them, `levels` cuts it; within a level they are sorted by operation."""

    order: Ints
    levels: Ints
    knots: int
    """Operations that wait for each other: each was let go with the ranks that had come."""


def schedule(who: Ints, what: Ints, enter: Floats) -> Schedule | None:
    """Return in which order the operations can take place; None where too many of them wait for each other.

    `who` and `what` are the rank and the operation of each arrival (indices), `enter` [s] says which of two operations
    that wait for each other came first.
    """
    number = len(who)
    at = np.flatnonzero(np.append(True, who[1:] != who[:-1])) if number else np.zeros(0, np.int64)
    stop = np.append(at[1:], number)
    size = np.bincount(what, minlength=1)
    come = np.zeros(len(size), np.int64)
    order, cuts, knots = [], [0], 0
    waiting = at.copy()
    """Arrivals at which ranks stand, in any order."""
    ends = np.zeros(number, np.bool_)
    ends[stop - 1] = True
    new = waiting
    while len(waiting):
        np.add.at(come, what[new], 1)
        ready = come[what[waiting]] >= size[what[waiting]]
        if not ready.any():
            first = what[waiting[np.argmin(enter[waiting])]]
            ready = what[waiting] == first
            size[first] = 0  # whoever comes later finds it done
            knots += 1
            if knots > max(_KNOTS, _KNOTS_SHARE * len(size)):
                return None
        now = waiting[ready]
        now = now[np.argsort(what[now], kind="stable")]
        order.append(now)
        cuts.append(cuts[-1] + len(now))
        new = now[~ends[now]] + 1
        waiting = np.concatenate([waiting[~ready], new])
    return Schedule(np.concatenate(order) if order else np.zeros(0, np.int64), np.array(cuts), knots)


@dataclass(frozen=True, slots=True)
class Course:
    """Times of a run [s]: when each arrival came, when the last of its operation had come, when it left."""

    enter: Floats
    start: Floats
    leave: Floats


def replay(plan: Schedule, own: Floats, *, who: Ints, what: Ints, after: Floats, waits: Flags, begin: Floats) -> Course:
    """Return when ranks come and leave.

    `own` is the time of a rank before an arrival, `after` how long after the last one it leaves (after itself where it
    does not wait) [s]; `begin` is the first moment of each rank.
    """
    order = plan.order
    free = begin.copy()
    ranks, owns, afters, waiting = who[order], own[order], after[order], waits[order]
    operations = what[order]
    comes, starts, leaves = np.empty(len(order)), np.empty(len(order)), np.empty(len(order))
    heads = np.append(True, operations[1:] != operations[:-1])
    heads[plan.levels[:-1]] = True
    numbers = np.cumsum(heads) - 1
    firsts = np.flatnonzero(heads)
    for low, high in zip(plan.levels[:-1].tolist(), plan.levels[1:].tolist(), strict=True):
        rank = ranks[low:high]
        come = free[rank] + owns[low:high]
        head = numbers[low]
        last = numbers[high - 1]
        if head == last:
            start = np.full(high - low, come.max())
        else:
            start = np.maximum.reduceat(come, firsts[head : last + 1] - low)[numbers[low:high] - head]
        leave = np.where(waiting[low:high], start, come) + afters[low:high]
        free[rank] = leave
        comes[low:high], starts[low:high], leaves[low:high] = come, start, leave
    enter, start_of, gone = np.empty_like(comes), np.empty_like(comes), np.empty_like(comes)
    enter[order], start_of[order], gone[order] = comes, starts, leaves
    return Course(enter, start_of, gone)
