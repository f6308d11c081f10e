"""What a lane looks like: a state for each cell of time, and where warnings and errors are. Made once for each span
of time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.tui.core.book import Book
from replay.tui.core.lanes import Lane
from replay.tui.core.spans import NOTHING, STATES, Cells, Spans
from replay.tui.core.track import Track
from replay.tui.core.window import Window

_SAMPLE = 15
"""Members of a group that its picture is made of."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`codes` are states, NOTHING where none is known; `severe` are codes of SEVERITIES, 0 where there is no
    warning.
    """

    codes: Cells
    severe: Cells
    states: frozenset[int]
    """The states that are in it."""
    severities: frozenset[int]
    """The warnings and errors that are in it."""


class Pictures:
    """The pictures of one run. A cursor that moves within the span of time that is shown changes none of them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._ranks = np.asarray(book.ranks, dtype=np.int64)
        self._shown: tuple[Window, int] | None = None
        self._edges: NDArray[np.float64] = np.empty(0)
        self._severe: NDArray[np.uint8] = np.empty((0, 0), np.uint8)
        self._made: dict[tuple[int, ...], Picture] = {}

    def of(self, lane: Lane, window: Window, cells: int) -> Picture:
        """Return the picture of a lane over a span of time in so many cells."""
        if self._shown != (window, cells):
            self._shown, self._edges = (window, cells), window.edges(cells)
            self._severe = severities(self._book.track, self._ranks, window, cells)
            self._made.clear()
        found = self._made.get(lane.ranks)
        if found is None:
            rows = np.searchsorted(self._ranks, lane.ranks)
            states, severe = codes(lane.ranks, self._book.spans, self._edges), self._severe[rows].max(axis=0)
            found = Picture(
                states, severe, frozenset(np.unique(states).tolist()) - {NOTHING}, frozenset(severe.tolist()) - {0}
            )
            self._made[lane.ranks] = found
        return found


def codes(ranks: tuple[int, ...], spans: Spans, edges: NDArray[np.float64]) -> Cells:
    """Return the states of a rank over cells; of a group what most of its members were doing."""
    if len(ranks) == 1:
        return spans.cells(ranks[0], edges)
    step = max(len(ranks) // _SAMPLE, 1)
    rows = np.stack([spans.cells(rank, edges) for rank in ranks[::step][:_SAMPLE]])
    counts = np.stack([(rows == code).sum(axis=0) for code in range(len(STATES))])
    best = counts.argmax(axis=0).astype(np.uint8)
    return np.where(counts.max(axis=0) > 0, best, NOTHING).astype(np.uint8)


def severities(track: Track, ranks: NDArray[np.int64], window: Window, cells: int) -> NDArray[np.uint8]:
    """Return the worst warning or error of each rank (row) in each cell (column), 0 where there is none."""
    found = np.zeros((len(ranks), cells), dtype=np.uint8)
    inside = track.severe[slice(*np.searchsorted(track.t[track.severe], [window.t_lo, window.t_hi]))]
    inside = inside[np.isin(track.rank[inside], ranks)]
    if len(inside):
        columns = ((track.t[inside] - window.t_lo) / window.span * cells).astype(np.int64)
        rows = np.searchsorted(ranks, track.rank[inside])
        np.maximum.at(found, (rows, np.minimum(columns, cells - 1)), track.severity[inside])
    return found
