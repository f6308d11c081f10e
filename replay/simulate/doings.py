"""What ranks did besides their steps, and between which arrivals: compiling, saving, loading, evaluating."""

from dataclasses import dataclass, fields, replace

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Doings:
    """Spans of one kind, sorted by rank, then begin; times in s since 1970."""

    rank: Ints
    begin: Floats
    until: Floats
    """Where it ends, at the earliest."""
    is_open: Flags
    """Its end was not logged."""
    label: NDArray[np.object_]
    """What is the same on several ranks: a function and how often it was compiled before."""
    file_id: Ints
    line_no: Ints

    def of(self, ranks: Ints) -> "Doings":
        """Return the spans of these ranks only."""
        return self._picked(np.isin(self.rank, ranks))

    def since(self, origin: float) -> "Doings":
        """Return them with times since another moment."""
        return replace(self, begin=self.begin - origin, until=self.until - origin)

    def _picked(self, which: Flags) -> "Doings":
        return Doings(*(getattr(self, field.name)[which] for field in fields(self)))


_COMPILES = """
    SELECT rank, t_lo AS begin, coalesce(end_hi, t_lo + duration_s, t_hi, t_lo) AS until,
        coalesce(duration_s, end_hi) IS NULL AS is_open,
        concat_ws(' ', coalesce(fn_file, ''), coalesce(fn_line, -1), coalesce(fn, ''), coalesce(nth, -1)) AS label,
        file_id, line_no
    FROM compiles
    WHERE run_id = ? AND rank IS NOT NULL AND t_lo IS NOT NULL AND {which}
    ORDER BY rank, begin, file_id, line_no
"""
_STATES = """
    SELECT rank, t_lo AS begin, t_hi AS until, FALSE AS is_open, '' AS label, file_id, line_no
    FROM states WHERE run_id = ? AND state = '{which}' ORDER BY rank, begin
"""
_QUERIES = {
    "recompiles": _COMPILES.format(which="coalesce(is_recompile, FALSE)"),
    "compiles": _COMPILES.format(which="NOT coalesce(is_recompile, FALSE)"),
    "saves": _STATES.format(which="saving"),
    "loads": _STATES.format(which="loading"),
    "evals": _STATES.format(which="evaluating"),
}


def read(con: DuckDBPyConnection, run_id: int) -> dict[str, Doings]:
    """Return the spans of a run by kind; the kinds do not share spans (`compiles` are the first ones only)."""
    found = {}
    for what, query in _QUERIES.items():
        rows = con.execute(query, [run_id]).fetchnumpy()
        found[what] = Doings(
            rank=np.asarray(rows["rank"], np.int64),
            begin=np.asarray(rows["begin"], np.float64),
            until=np.asarray(rows["until"], np.float64),
            is_open=np.asarray(rows["is_open"], np.bool_),
            label=np.asarray(rows["label"], object),
            file_id=np.asarray(rows["file_id"], np.int64),
            line_no=np.asarray(rows["line_no"], np.int64),
        )
    return found


@dataclass(frozen=True, slots=True)
class Places:
    """Parts of spans by arrival: arrival, span, seconds of it before the rank left that arrival."""

    arrival: Ints
    span: Ints
    seconds: Floats


def place(spans: Doings, index: Ints, *, who: Ints, before: Floats, gone: Floats) -> Places:
    """Return between which arrivals spans lie; those of one rank that overlap count once.

    `index` are the ranks of the spans as `who` numbers them; arrivals are sorted by rank and time, and the time of each
    lies between `before` and `gone` [s, since the same moment as the spans'].
    """
    if not len(index) or not len(who):
        return Places(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    begin, until = spans.begin, spans.until
    width = float(max(gone.max(), until.max()) - min(before.min(), begin.min())) + 1.0
    zero = float(min(before.min(), begin.min()))
    ends = who * width + (gone - zero)
    low, high = index * width + (begin - zero), index * width + (until - zero)
    reached = np.maximum.accumulate(high)
    low = np.maximum(low, np.append(low[0], reached[:-1]))
    first = np.searchsorted(ends, low, side="left")
    last = np.maximum(np.searchsorted(ends, np.maximum(high, low), side="left"), first)
    first, last = np.minimum(first, len(who) - 1), np.minimum(last, len(who) - 1)
    count = last - first + 1
    span = np.repeat(np.arange(len(index)), count)
    arrival = first[span] + np.arange(len(span)) - np.repeat(np.cumsum(count) - count, count)
    mine = who[arrival] == index[span]
    span, arrival = span[mine], arrival[mine]
    begins = who[arrival] * width + (before[arrival] - zero)
    seconds = np.maximum(np.minimum(high[span], ends[arrival]) - np.maximum(low[span], begins), 0.0)
    return Places(arrival, span, seconds)
