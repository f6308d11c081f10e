"""What each rank was doing, as columns: the spans of the table `states`, asked for a moment or for a row of cells."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.tui.core.track import PART, in_parts

STATES = (
    "unknown",
    "starting",
    "tracing",
    "compiling",
    "running",
    "waiting",
    "saving",
    "loading",
    "evaluating",
    "failed",
    "gone",
)
"""Names of states, in the order of their codes."""
RUNNING, WAITING = STATES.index("running"), STATES.index("waiting")
NOTHING = 255
"""Code of a cell in which nothing is known."""

_WEIGHT = np.array([0.2, 0.5, 3, 3, 1, 1.2, 3, 3, 2, 1000, 1], dtype=np.float64)
"""How much a second of each state counts for the picture of a cell: what is rare and matters is not to be lost in
it.
"""

_DRAWN = "s.run_id = $run AND s.rank IS NOT NULL AND s.t_lo IS NOT NULL AND s.t_hi >= s.t_lo"

Cells = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Doing:
    """What a rank was doing at a moment: times in s since 1970; `late` are the ranks it waited for, `line` where it
    is told.
    """

    rank: int
    state: str
    t_lo: float
    t_hi: float
    step: int | None
    op: str | None
    late: tuple[int, ...]
    file_id: int | None
    line_no: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that do the same at a moment; `late` are those they wait for, `since` when the first of them began [s
    since 1970].
    """

    state: str
    op: str | None
    late: tuple[int, ...]
    ranks: tuple[int, ...]
    since: float


class Spans:
    """The spans of one run, ordered by rank and time."""

    def __init__(
        self,
        *,
        rank: NDArray[np.int32],
        t_lo: NDArray[np.float64],
        t_hi: NDArray[np.float64],
        state: NDArray[np.uint8],
        step: NDArray[np.int64],
        detail: NDArray[np.int32],
        details: Sequence[tuple[str | None, tuple[int, ...]]],
        place: NDArray[np.int64],
    ) -> None:
        self.t_lo, self.t_hi, self.state = t_lo, t_hi, state
        self._step, self._detail, self._details, self._place = step, detail, details, place
        self.ranks, first = np.unique(rank, return_index=True)
        """Ranks that have spans, ascending."""
        self._bounds = np.append(first, len(rank))
        self._row = np.repeat(np.arange(len(self.ranks)), np.diff(self._bounds))
        self._t0 = float(t_lo.min()) if len(t_lo) else 0.0
        self._width = (float(t_hi.max()) - self._t0 + 1.0) if len(t_hi) else 1.0
        # One number that rises over ranks and times: a moment of all ranks is found by one search.
        self._key = self._row * self._width + (t_lo - self._t0)
        self._seconds: NDArray[np.float64] | None = None
        self._usual: NDArray[np.float64] | None = None
        self._at: tuple[float, list[Group]] = (float("nan"), [])

    def __len__(self) -> int:
        return len(self.state)

    def lane(self, rank: int) -> slice:
        """Return the spans of a rank."""
        row = int(np.searchsorted(self.ranks, rank))
        if row >= len(self.ranks) or self.ranks[row] != rank:
            return slice(0, 0)
        return slice(int(self._bounds[row]), int(self._bounds[row + 1]))

    def moment(self, t: float) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ranks that were doing something at a time, and their spans."""
        if not len(self):
            return np.empty(0, np.int32), np.empty(0, np.int64)
        inside = min(max(t - self._t0, 0.0), self._width)
        rows = np.arange(len(self.ranks))
        found = np.searchsorted(self._key, rows * self._width + inside, side="right") - 1
        valid = (found >= 0) & (self._row[found] == rows)
        valid &= (self.t_lo[found] <= t) & (t <= self.t_hi[found])
        return self.ranks[valid], found[valid]

    def doing(self, span: int) -> Doing:
        """Return one span in words."""
        op, late = self._details[int(self._detail[span])] if self._detail[span] >= 0 else (None, ())
        step, place = int(self._step[span]), int(self._place[span])
        return Doing(
            rank=int(self.ranks[self._row[span]]),
            state=STATES[int(self.state[span])],
            t_lo=float(self.t_lo[span]),
            t_hi=float(self.t_hi[span]),
            step=step if step >= 0 else None,
            op=op,
            late=late,
            file_id=place >> 40 if place >= 0 else None,
            line_no=place & (2**40 - 1) if place >= 0 else None,
        )

    def at(self, t: float, rank: int) -> Doing | None:
        """Return what a rank was doing at a time."""
        lane = self.lane(rank)
        span = lane.start + int(np.searchsorted(self.t_lo[lane], t, side="right")) - 1
        if span < lane.start or self.t_hi[span] < t:
            return None
        return self.doing(span)

    def wait_for(self, rank: int, late: Iterable[int], t: float) -> Doing | None:
        """Return the span, nearest to a time, in which a rank waited for one of some ranks."""
        lane, wanted = self.lane(rank), frozenset(late)
        known = [n for n, (_, ranks) in enumerate(self._details) if wanted.intersection(ranks)]
        found = lane.start + np.flatnonzero(np.isin(self._detail[lane], known))
        if not len(found):
            return None
        away = np.maximum(np.maximum(self.t_lo[found] - t, t - self.t_hi[found]), 0.0)
        return self.doing(int(found[away.argmin()]))

    def groups_at(self, t: float) -> list[Group]:
        """Return what goes on at a time, the fewest ranks first: the odd one matters."""
        if self._at[0] == t:
            return self._at[1]
        ranks, spans = self.moment(t)
        keys = self.state[spans].astype(np.int64) * (len(self._details) + 2) + self._detail[spans] + 1
        groups = []
        for key in np.unique(keys):
            members = keys == key
            doing = self.doing(int(spans[members][0]))
            since = float(self.t_lo[spans[members]].min())
            groups.append(Group(doing.state, doing.op, doing.late, tuple(ranks[members].tolist()), since))
        groups.sort(key=lambda group: (len(group.ranks), group.ranks))
        self._at = (t, groups)
        return groups

    def cells(self, rank: int, edges: NDArray[np.float64]) -> Cells:
        """Return the state that fills each cell between neighbouring edges most, what is rare and matters counting
        more.
        """
        lane = self.lane(rank)
        count = len(edges) - 1
        first = lane.start + max(int(np.searchsorted(self.t_hi[lane], edges[0], side="right")), 0)
        last = lane.start + int(np.searchsorted(self.t_lo[lane], edges[-1], side="left"))
        best, share = np.full(count, NOTHING, dtype=np.uint8), np.zeros(count)
        if first >= last:
            return best
        lo, hi, state = self.t_lo[first:last], self.t_hi[first:last], self.state[first:last]
        for code in np.unique(state):
            mine = state == code
            start, length = lo[mine], hi[mine] - lo[mine]
            before = np.concatenate(([0.0], np.cumsum(length)))
            at = np.searchsorted(start, edges, side="right") - 1
            inside = np.where(at >= 0, before[at] + np.minimum(edges - start[at], length[at]), 0.0)
            mass = np.diff(inside) * _WEIGHT[code]
            # A span shorter than what a float of this size can tell still has its place.
            won = mass > share
            best[won], share[won] = code, mass[won]
        return best

    def seconds(self) -> NDArray[np.float64]:
        """Return how long each rank (row) was in each state (column) [s]."""
        if self._seconds is None:
            width = len(STATES)
            flat = np.bincount(
                self._row * width + self.state, weights=self.t_hi - self.t_lo, minlength=len(self.ranks) * width
            )
            self._seconds = np.asarray(flat.reshape(-1, width), dtype=np.float64)
        return self._seconds

    def usual(self) -> NDArray[np.float64]:
        """Return how long the median rank was in each state [s]."""
        if self._usual is None:
            self._usual = np.median(self.seconds(), axis=0)
        return self._usual

    def last_states(self) -> Cells:
        """Return the code of the last state of each rank."""
        return np.asarray(self.state[self._bounds[1:] - 1], dtype=np.uint8)


def load(con: DuckDBPyConnection, run_id: int) -> Spans:
    """Read the spans of a run."""
    rows = con.execute(
        """
        SELECT op, late, row_number() OVER (ORDER BY op, late) - 1 AS detail
        FROM (SELECT DISTINCT op, late FROM states WHERE run_id = ? AND state = 'waiting') ORDER BY detail
        """,
        [run_id],
    ).fetchall()
    held = con.execute(
        f"SELECT rank, count(*) FROM states AS s WHERE {_DRAWN} GROUP BY rank ORDER BY rank", {"run": run_id}
    ).fetchall()
    rank, t_lo, t_hi, state, step, detail, place = in_parts(
        con,
        f"""
        WITH details AS (
            SELECT op, late, (row_number() OVER (ORDER BY op, late) - 1)::INTEGER AS detail
            FROM (SELECT DISTINCT op, late FROM states WHERE run_id = $run AND state = 'waiting')
        )
        SELECT s.rank::INTEGER AS rank, s.t_lo, s.t_hi,
            (coalesce(list_position($states, s.state), 1) - 1)::UTINYINT AS state, coalesce(s.step, -1) AS step,
            coalesce(d.detail, -1) AS detail, coalesce(s.file_id::BIGINT * 1099511627776 + s.line_no, -1) AS place
        FROM states AS s
        LEFT JOIN details AS d
            ON s.state = 'waiting' AND d.op IS NOT DISTINCT FROM s.op AND d.late IS NOT DISTINCT FROM s.late
        WHERE {_DRAWN} AND s.rank BETWEEN $low AND $high ORDER BY s.rank, s.t_lo, s.t_hi
        """,
        {"run": run_id, "states": list(STATES)},
        _parts(held),
        sum(count for _, count in held),
    )
    details = [(op, tuple(r for r in late or () if r is not None)) for op, late, _ in rows]
    return Spans(rank=rank, t_lo=t_lo, t_hi=t_hi, state=state, step=step, detail=detail, details=details, place=place)


def _parts(held: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """First and last ranks of parts of about PART rows, from how many each rank holds."""
    parts: list[tuple[int, int]] = []
    rows = PART
    for rank, count in held:
        if rows + count > PART:
            parts.append((rank, rank))
            rows = 0
        parts[-1] = (parts[-1][0], rank)
        rows += count
    return parts or [(0, -1)]
