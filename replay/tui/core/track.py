"""The events of one run as columns: what the cursor steps over.

A million events are a few plain arrays (time, rank, kind, severity, number), so that a step never asks the database.
Only
the words of the events that are on the screen are fetched (`pages`).
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

SEVERITIES = ("debug", "info", "warning", "error")
STEP = frozenset({"step"})
COLLECTIVE = frozenset({"collective", "flight-record"})
RECOMPILE = frozenset({"recompile", "recompile-limit"})
_KEPT_SELECTIONS = 24
PART = 1 << 17
"""About so many rows are read from the database at once."""

Positions = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which events count: those of a rank (None: any), of some kinds (None: all), in the filter (`marks`, None: no
    filter).

    `version` tells one filter from another.
    """

    rank: int | None = None
    kinds: frozenset[str] | None = None
    version: int = 0


class Track:
    """Events of one run in their order. A position is a place in that order, from 0."""

    def __init__(
        self,
        *,
        t: NDArray[np.float64],
        rank: NDArray[np.int32],
        kind: NDArray[np.uint8],
        severity: NDArray[np.uint8],
        seq: NDArray[np.int64],
        kinds: tuple[str, ...],
    ) -> None:
        self.is_timed = not len(t) or not bool(np.isnan(t).all())
        """False where no event has a stamp: then `t` is only their order."""
        self.t = t if self.is_timed else np.arange(len(t), dtype=np.float64)
        """Time [s since 1970]; it never falls."""
        self.rank = rank
        """Global rank, -1 where it is not known."""
        self.kind = kind
        self.severity = severity
        self.severe = np.flatnonzero(severity >= SEVERITIES.index("warning")).astype(np.int32)
        """Positions of warnings and errors."""
        self.seq = seq
        """events.seq, by which words are fetched."""
        self.kinds = kinds
        self.filter: NDArray[np.bool_] | None = None
        self.version = 0
        self._selections: OrderedDict[Chosen, Positions] = OrderedDict()

    def __len__(self) -> int:
        return len(self.t)

    def set_filter(self, marks: NDArray[np.bool_] | None) -> None:
        """Let only marked events count from now on; None: all."""
        self.filter = marks
        self.version += 1
        self._selections.clear()

    def positions(self, rank: int | None = None, kinds: frozenset[str] | None = None) -> Positions:
        """Return the positions of the events that count, in order."""
        chosen = Chosen(rank, kinds, self.version)
        found = self._selections.get(chosen)
        if found is None:
            found = self._select(rank, kinds)
            self._selections[chosen] = found
            while len(self._selections) > _KEPT_SELECTIONS:
                self._selections.popitem(last=False)
        return found

    def _select(self, rank: int | None, kinds: frozenset[str] | None) -> Positions:
        if rank is None and kinds is None and self.filter is None:
            return np.arange(len(self), dtype=np.int32)
        marks = np.ones(len(self), dtype=np.bool_) if self.filter is None else self.filter.copy()
        if rank is not None:
            marks &= self.rank == rank
        if kinds is not None:
            codes = [n for n, name in enumerate(self.kinds) if name in kinds]
            marks &= np.isin(self.kind, codes)
        return np.flatnonzero(marks).astype(np.int32)

    def beside(
        self, position: int, direction: int, rank: int | None = None, kinds: frozenset[str] | None = None
    ) -> int | None:
        """Return the next position (direction 1) or the one before (-1) that counts; None at the end."""
        found = self.positions(rank, kinds)
        place = _before(found, position + 1) if direction > 0 else _before(found, position) - 1
        return int(found[place]) if 0 <= place < len(found) else None

    def index(self, position: int, rank: int | None = None) -> int:
        """Return how many events that count stand before a position."""
        return _before(self.positions(rank), position)

    def at(self, t: float, rank: int | None = None) -> int | None:
        """Return the last position that counts at a time or before it; the first one where all are later."""
        found = self.positions(rank)
        if not len(found):
            return None
        return int(found[max(_before(found, int(np.searchsorted(self.t, t, "right"))) - 1, 0)])

    def kind_of(self, position: int) -> str:
        """Return the kind of the event at a position."""
        return self.kinds[int(self.kind[position])]

    def rank_of(self, position: int) -> int | None:
        """Return the rank of the event at a position, None where it is not known."""
        rank = int(self.rank[position])
        return None if rank < 0 else rank

    def between(self, t_lo: float, t_hi: float) -> slice:
        """Return the positions of the events of a span of time."""
        return slice(int(np.searchsorted(self.t, t_lo, "left")), int(np.searchsorted(self.t, t_hi, "right")))


def _before(found: Positions, position: int) -> int:
    """How many positions lie before one. A number of another type would have the whole array converted."""
    return int(np.searchsorted(found, found.dtype.type(position), side="left"))


def load(con: DuckDBPyConnection, run_id: int) -> Track:
    """Read the events of a run."""
    kinds = tuple(
        k
        for (k,) in con.execute("SELECT DISTINCT kind FROM events WHERE run_id = ? ORDER BY kind", [run_id]).fetchall()
    )
    count, low, high = con.execute(
        "SELECT count(*), coalesce(min(seq), 0), coalesce(max(seq), 0) FROM events WHERE run_id = ?", [run_id]
    ).fetchall()[0]
    t, rank, kind, severity, seq = in_parts(
        con,
        """
        SELECT coalesce(t_lo, t_hi, 'nan'::DOUBLE) AS t, coalesce(rank, -1)::INTEGER AS rank,
            (list_position($kinds, kind) - 1)::UTINYINT AS kind,
            (list_position(['debug', 'info', 'warning', 'error'], severity) - 1)::UTINYINT AS severity, seq
        FROM events WHERE run_id = $run AND seq BETWEEN $low AND $high ORDER BY seq
        """,
        {"run": run_id, "kinds": list(kinds)},
        [(part, min(part + PART, high + 1) - 1) for part in range(low, high + 1, PART)],
        count,
    )
    return Track(t=_without_falls(t), rank=rank, kind=kind, severity=severity, seq=seq, kinds=kinds)


def in_parts(
    con: DuckDBPyConnection, query: str, values: dict[str, Any], parts: Iterable[tuple[int, int]], count: int
) -> list[NDArray[Any]]:
    """Return the columns of a query that is asked for one part ($low to $high, inclusive; at least one) after the
    other; `count` rows in all.

    At once its answer would stand in memory three times: sorted, as it is handed over, and as columns.
    """
    columns: list[NDArray[Any]] = []
    done = 0
    for low, high in parts:
        found = list(con.execute(query, values | {"low": low, "high": high}).fetchnumpy().values())
        columns = columns or [np.empty(count, part.dtype) for part in found]
        for column, part in zip(columns, found, strict=True):
            column[done : done + len(part)] = part
        done += len(found[0])
    return columns


def _without_falls(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times that never fall: events without a stamp stand at the last one before them."""
    if not len(t):
        return t
    known = np.where(np.isnan(t), -np.inf, t)
    filled = np.maximum.accumulate(known)
    return np.where(np.isinf(filled), np.nan, filled)
