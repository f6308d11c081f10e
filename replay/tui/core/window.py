"""The span of time that lanes show: zoom and pan, edges of cells, and what the ruler above them says."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

SHORTEST_S = 1e-3
"""Nothing is known closer than a millisecond."""
_TICKS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time [s since 1970] inside the whole run."""

    t_lo: float
    t_hi: float
    first: float
    last: float

    @property
    def span(self) -> float:
        """Its length [s]."""
        return self.t_hi - self.t_lo

    @property
    def is_whole(self) -> bool:
        """True where all of the run is in it."""
        return self.t_lo <= self.first and self.t_hi >= self.last

    def is_as(self, other: "Window") -> bool:
        """True where another shows the same: times closer than a microsecond are one."""
        return abs(self.t_lo - other.t_lo) < 1e-6 and abs(self.t_hi - other.t_hi) < 1e-6

    def edges(self, cells: int) -> NDArray[np.float64]:
        """Return the times between cells, one more than there are cells."""
        return np.linspace(self.t_lo, self.t_hi, cells + 1)

    def cell(self, t: float, cells: int) -> int | None:
        """Return the cell of a time, None where it lies outside."""
        if not self.t_lo <= t <= self.t_hi:
            return None
        return min(int((t - self.t_lo) / self.span * cells), cells - 1)

    def time(self, cell: float, cells: int) -> float:
        """Return the time in the middle of a cell."""
        return self.t_lo + (cell + 0.5) / cells * self.span

    def zoomed(self, factor: float, around: float) -> "Window":
        """Return a window of `factor` times the length that keeps a time where it is; never more than the run."""
        span = min(max(self.span * factor, SHORTEST_S), self.last - self.first)
        share = (around - self.t_lo) / self.span if self.t_lo <= around <= self.t_hi else 0.5
        return self._clamped(around - share * span, span)

    def moved(self, shares: float) -> "Window":
        """Return the window moved by a share of its length."""
        return self._clamped(self.t_lo + shares * self.span, self.span)

    def holding(self, t: float) -> "Window":
        """Return the window, moved as little as puts a time into it and not onto its rim."""
        rim = 0.1 * self.span
        if t < self.t_lo + rim:
            return self._clamped(t - 2 * rim, self.span)
        if t > self.t_hi - rim:
            return self._clamped(t - self.span + 2 * rim, self.span)
        return self

    def around(self, t_lo: float, t_hi: float) -> "Window":
        """Return a window in which a span fills about half."""
        span = min(max((t_hi - t_lo) * 2, 0.02 * (self.last - self.first), SHORTEST_S), self.last - self.first)
        return self._clamped((t_lo + t_hi) / 2 - span / 2, span)

    def _clamped(self, t_lo: float, span: float) -> "Window":
        t_lo = min(max(t_lo, self.first), max(self.last - span, self.first))
        return Window(t_lo, t_lo + span, self.first, self.last)


def whole(first: float, last: float) -> Window:
    """Return the window of a whole run; a run of no length gets some."""
    room = max((last - first) * 0.01, SHORTEST_S)
    return Window(first - room, last + room, first - room, last + room)


@dataclass(frozen=True, slots=True)
class Mark:
    """A word on the ruler at a cell; `is_joint`: a line goes down through the lanes."""

    cell: int
    text: str
    is_joint: bool


def ruler(
    window: Window, cells: int, begin: float, steps: Sequence[int], bounds: Sequence[float], *, room: int = 8
) -> list[Mark]:
    """Return the marks over `cells` cells: steps where they have room, else ticks of time since `begin`.

    `bounds` are the ends of the steps [s since 1970], ascending.
    """
    first, last = bisect_left(bounds, window.t_lo), bisect_right(bounds, window.t_hi)
    inside = last - first
    if not inside or inside * 3 > cells:
        return ticks(window, cells, begin)
    ends = [window.cell(bounds[n], cells) or 0 for n in range(first, last)]
    begins = [0, *ends]
    named = [f"step {steps[n]}" if n < len(steps) else "" for n in range(first, last + 1)]
    # Where not all have room it is the long steps that are named: they are what is looked at.
    lengths = [end - start for start, end in zip(begins, [*ends, cells], strict=True)]
    free, shown = np.ones(cells + room, dtype=np.bool_), set()
    for n in sorted(range(len(begins)), key=lambda n: -lengths[n]):
        place = slice(begins[n], begins[n] + len(named[n]) + 1)
        if lengths[n] and named[n] and begins[n] + len(named[n]) <= cells and free[place].all():
            free[place] = False
            shown.add(n)
    return [Mark(cell, named[n] if n in shown else "", n > 0) for n, cell in enumerate(begins) if n or 0 in shown]


def laid(marks: Sequence[Mark], cells: int, cursor: int | None) -> str:
    """Return the words of marks in one row. One that the cursor's mark would write into moves beside it, or goes."""
    row = [" "] * cells
    ends = [m.cell for m in marks if m.text]
    for n, mark in enumerate(m for m in marks if m.text):
        at, free = mark.cell, ends[n + 1] - 1 if n + 1 < len(ends) else cells
        if cursor is not None and at <= cursor < at + len(mark.text):
            at = cursor + 1 if cursor + 1 + len(mark.text) <= free else cursor - len(mark.text)
        if at >= 0 and not any(c != " " for c in row[max(at - 1, 0) : at + len(mark.text)]):
            row[at : at + len(mark.text)] = mark.text
    if cursor is not None:
        row[cursor : cursor + 1] = "▼"
    return "".join(row[:cells])


def ticks(window: Window, cells: int, begin: float) -> list[Mark]:
    """Return marks of time since `begin`, at round numbers."""
    unit = _round(window.span / max(cells // 14, 1))
    return _regular(window, cells, begin, unit, lambda n: since(n * unit, unit))


def numbers(window: Window, cells: int) -> list[Mark]:
    """Return marks with the numbers of events, from 1, where their order is all that is known."""
    unit = max(_round(window.span / max(cells // 14, 1)), 1.0)
    return _regular(window, cells, 0.0, unit, lambda n: f"{n * unit + 1:,.0f}" if n >= 0 else "")


def _regular(window: Window, cells: int, begin: float, unit: float, text: Callable[[int], str]) -> list[Mark]:
    """Marks at every `unit` since `begin`."""
    first = int(np.ceil((window.t_lo - begin) / unit))
    marks = []
    for n in range(first, first + cells):
        cell = window.cell(begin + n * unit, cells)
        if cell is None:
            break
        marks.append(Mark(cell, text(n), False))
    return marks


def _round(wanted: float) -> float:
    """The next round number that is not smaller."""
    exponent = np.floor(np.log10(max(wanted, 1e-9)))
    return float(next((m * 10**exponent for m in (*_TICKS, 10) if m * 10**exponent >= wanted), wanted))


def clock(t: float) -> str:
    """Return a stamp as the log's own clock shows it: `23:51:45.270`."""
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S.%f")[:-3]


def since(seconds: float, unit: float = 0.001) -> str:
    """Return a time since the begin of the run: `+12.3 s`, with as many digits as the unit needs."""
    digits = max(0, min(3, int(-np.floor(np.log10(unit) + 1e-9)))) if unit < 1 else 0
    if abs(seconds) >= 7200 and unit >= 60:
        return f"{seconds / 3600:+.1f} h"
    return f"{seconds:+,.{digits}f} s"
