"""Follows the causal chain by one link: from a wait to the rank that was late, from there to what it did, to why.

Each link is asked of the tables that timeline filled; where they tell nothing, the findings' own story is followed
backwards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from duckdb import DuckDBPyConnection

from replay.report.wording import duration, ranks_phrase, visible

_UNHEARD = {"silent": "which had said its last word", "never heard": "which was never heard"}
"""A rank of which nothing is known at a time, by what its state says."""
_NEAR_LINES = 40
"""How far behind the line of an event its block may reach, where evidence stands."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where one stands: a run, a time [s since 1970], a rank, and the line of an event or of evidence."""

    run_id: int
    t: float
    rank: int | None
    file_id: int | None
    line_no: int | None
    late: tuple[int, ...] = ()
    """Ranks that this rank waits for at this time, by its states."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A link followed: `said` tells what it is. Without a line there is none to follow."""

    said: str
    file_id: int | None = None
    line_no: int | None = None
    rank: int | None = None
    t: float | None = None

    @property
    def is_end(self) -> bool:
        """True where the chain goes no further."""
        return self.file_id is None


_Link = Callable[[DuckDBPyConnection, Spot], Hop | None]


def follow(con: DuckDBPyConnection, spot: Spot, been: frozenset[tuple[int | None, int | None]] = frozenset()) -> Hop:
    """Return the next link from effect to cause. `been` are the lines (file, number) that this chain came by, with the
    one that it began at.
    """
    links: tuple[_Link, ...] = (_guard, _compile, _operation, _stall, _wait, _absent, _told)
    for link in links:
        hop = link(con, spot)
        if hop is not None and (hop.is_end or (hop.file_id, hop.line_no) not in been):
            return hop
    return Hop(
        "the chain begins here" if len(been) > 1 else "nothing that these logs tell leads further back from here"
    )


def _row(con: DuckDBPyConnection, query: str, **values: Any) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = con.execute(query, values).fetchone()
    return row


def _guard(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """A failed guard is where a recompile begins."""
    row = _row(
        con,
        "SELECT reason, user_file, user_line FROM guard_failures WHERE file_id = $file AND line_no = $line LIMIT 1",
        file=spot.file_id,
        line=spot.line_no,
    )
    if row is None:
        return None
    at = f", used at {row[1]}:{row[2]}" if row[1] else ""
    return Hop(f"the chain begins here: {visible(row[0] or 'a guard failed')}{visible(at)}")


def _compile(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """A recompile comes from the guard that failed."""
    made = _row(
        con,
        """
        SELECT coalesce(fn, 'a frame'), compile_id, is_recompile FROM compiles
        WHERE file_id = $file AND line_no = $line ORDER BY is_recompile DESC LIMIT 1
        """,
        file=spot.file_id,
        line=spot.line_no,
    )
    if made is None:
        return None
    guard = _row(
        con,
        """
        SELECT file_id, line_no, rank, t_lo, reason FROM guard_failures
        WHERE file_id = $file AND compile_line = $line ORDER BY nth LIMIT 1
        """,
        file=spot.file_id,
        line=spot.line_no,
    )
    if guard is None:
        if not made[2]:
            return None
        return Hop(f"why {visible(made[0])} was compiled again was not logged (TORCH_LOGS=recompiles logs it)")
    return Hop(f"{visible(made[0])} was compiled again because a guard failed: {visible(guard[4] or '')}", *guard[:4])


def _operation(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """An operation in which ranks did not agree leads to the odd one, and one that was waited in to who came last."""
    row = _row(
        con,
        """
        SELECT m.op, m.nth, m.odd, m.missing, m.last_rank, m.last_enter - m.first_enter, m.file_id, m.line_no,
            m.odd_aspect, m.comm_id, m.source
        FROM collectives AS c
        JOIN matched AS m ON m.run_id = c.run_id AND m.comm_id = c.comm_id AND m.source = c.source AND m.nth = c.nth
        WHERE c.file_id = $file AND c.line_no = $line LIMIT 1
        """,
        file=spot.file_id,
        line=spot.line_no,
    )
    if row is None:
        return None
    op, nth, odd, missing, last, wait, file_id, line_no, aspect, comm, source = row
    apart = tuple(odd or ()) or tuple(missing or ())
    who = apart or (() if last is None or not wait or wait < 0.001 else (last,))
    if not who or spot.rank in who:
        return None
    issued = _row(
        con,
        """
        SELECT file_id, line_no, rank, t_lo FROM collectives
        WHERE run_id = $run AND comm_id = $comm AND source = $source AND rank = $rank AND nth <= $nth ORDER BY nth
            DESC LIMIT 1
        """,
        run=spot.run_id, comm=comm, source=source, rank=who[0], nth=nth,
    )  # fmt: skip
    place = issued or (file_id, line_no, who[0], None)
    if odd:
        return Hop(f"{op} #{nth}: {ranks_phrase(odd)} differs in {aspect or 'something'}", *place)
    if missing:
        return Hop(f"{op} #{nth}: {ranks_phrase(missing)} did not come; this is the last that was issued", *place)
    return Hop(f"{op} #{nth}: rank {last} came last, {duration(wait)} after the first", *place)


def _stall(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """Whoever waits leads to who was late, and there to what it did meanwhile."""
    row = _row(
        con,
        """
        SELECT late_rank, waiting, wait_s, t_lo, t_hi, late_doing, late_file, late_line, step, op FROM stalls
        WHERE run_id = $run AND (late_rank = $rank OR list_contains(waiting, $rank)) AND (
            (t_lo - 0.001 <= $t AND $t <= t_hi + 0.001)
            OR (file_id = $file AND line_no = $line) OR (late_file = $file AND late_line = $line))
        ORDER BY coalesce(file_id = $file AND line_no = $line, FALSE) DESC, coalesce(late_file = $file AND late_line =
            $line, FALSE) DESC, t_hi - t_lo LIMIT 1
        """,
        run=spot.run_id, rank=spot.rank, t=spot.t, file=spot.file_id, line=spot.line_no,
    )  # fmt: skip
    if row is None:
        return None
    late, waiting, wait_s, t_lo, t_hi, doing, late_file, late_line, step, op = row
    at = " ".join(filter(None, (f"in {op}" if op else "", f"at step {step}" if step is not None else "")))
    said = f"{ranks_phrase(waiting or ())} waited {duration(wait_s or 0)} for rank {late} {at}".rstrip()
    hop = _did(con, spot.run_id, late, (t_lo, t_hi), said)
    if hop is not None:
        return None if (hop.file_id, hop.line_no) == (spot.file_id, spot.line_no) else hop
    if late_file is None or (late_file, late_line) == (spot.file_id, spot.line_no):
        return None
    meanwhile = f", which was {doing}" if doing and doing != "unknown" else ""
    return Hop(said + meanwhile, late_file, late_line, late, t_hi)


def _did(con: DuckDBPyConnection, run_id: int, rank: int, span: tuple[float, float], said: str) -> Hop | None:
    """What a rank did in a span of time that takes time: its compile, else what it said that it was doing."""
    made = _row(
        con,
        """
        SELECT file_id, line_no, rank, t_lo, concat_ws(' ', coalesce(fn, 'a frame'), '[' || compile_id || ']'),
            is_recompile FROM compiles
        WHERE run_id = $run AND rank = $rank AND t_lo <= $hi + 0.001 AND coalesce(end_hi, t_hi + coalesce(duration_s,
            0), t_hi) >= $lo - 0.001
        ORDER BY coalesce(is_recompile AND NOT coalesce(is_framework, FALSE), FALSE) DESC, duration_s DESC NULLS LAST,
            t_lo LIMIT 1
        """,
        run=run_id, rank=rank, lo=span[0], hi=span[1],
    )  # fmt: skip
    if made is not None:
        again = "compiled again" if made[5] else "compiled"
        return Hop(f"{said}, which {again}: {visible(made[4])}", *made[:4])
    act = _row(
        con,
        """
        SELECT file_id, line_no, rank, t_lo, coalesce(kind, 'other'), text FROM activities
        WHERE run_id = $run AND rank = $rank AND t_lo BETWEEN $lo - 0.001 AND $hi + 0.001 AND kind IN ('save', 'load',
            'eval', 'data', 'preprocess', 'download', 'exhausted')
        ORDER BY duration_s DESC NULLS LAST, t_lo LIMIT 1
        """,
        run=run_id, rank=rank, lo=span[0], hi=span[1],
    )  # fmt: skip
    return None if act is None else Hop(f"{said}; meanwhile: {visible(act[5] or act[4])}", *act[:4])


def _wait(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """A rank that waits by its states leads to the rank that had not come, at the same moment."""
    if not spot.late:
        return None
    late = spot.late[0]
    row = _row(
        con,
        """
        SELECT state, t_lo, t_hi, summary, file_id, line_no FROM states
        WHERE run_id = $run AND rank = $rank AND t_lo <= $t AND $t <= t_hi ORDER BY t_lo DESC LIMIT 1
        """,
        run=spot.run_id, rank=late, t=spot.t,
    )  # fmt: skip
    if row is None:
        return None
    state, t_lo, t_hi, summary, file_id, line_no = row
    said = f"waits for {ranks_phrase(spot.late)}"
    if state in {"compiling", "tracing"} and (hop := _did(con, spot.run_id, late, (t_lo, t_hi), said)):
        return hop
    if file_id is None:
        return None
    was = _UNHEARD.get(summary or "") if state == "unknown" else f"which was {state}: {visible(summary or '')}"
    return Hop(f"{said}, {was or 'of which nothing is told'}".rstrip(": "), file_id, line_no, late, t_lo)


def _absent(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """Who gave up waiting leads to who did not come, and to what that rank did instead: there the chain begins."""
    own = _row(
        con,
        """
        SELECT waiting FROM absentees WHERE run_id = $run AND rank = $rank
            AND coalesce(doing_file, file_id) = $file AND coalesce(doing_line, line_no) = $line LIMIT 1
        """,
        run=spot.run_id, rank=spot.rank, file=spot.file_id, line=spot.line_no,
    )  # fmt: skip
    if own is not None:
        return Hop(
            f"the chain begins here: this is what rank {spot.rank} did while {ranks_phrase(own[0] or ())} waited for it"
        )
    row = _row(
        con,
        """
        SELECT rank, waiting, op, how, doing, coalesce(doing_file, file_id), coalesce(doing_line, line_no), since, t
            FROM absentees
        WHERE run_id = $run AND (list_contains(waiting, $rank) OR (wait_file = $file AND wait_line = $line)) AND rank
            IS DISTINCT FROM $rank
        ORDER BY coalesce(wait_file = $file AND wait_line = $line, FALSE) DESC, abs(coalesce(t, 0) - $t), rank LIMIT 1
        """,
        run=spot.run_id, rank=spot.rank, file=spot.file_id, line=spot.line_no, t=spot.t,
    )  # fmt: skip
    if row is None or row[5] is None:
        return None
    rank, waiting, op, how, doing, file_id, line_no, _, _ = row
    said = f"{ranks_phrase(waiting or ())} gave up waiting for rank {rank}" + (f" in {op}" if op else "")
    known = {"silent": "it gave no timeout and lived", "named": "the others name it", "behind": "it is behind"}.get(
        how, how
    )
    instead = f"; it was {doing}" if doing and doing != "unknown" else ""
    return Hop(f"{said} ({known}){instead}", file_id, line_no, rank)


def _told(con: DuckDBPyConnection, spot: Spot) -> Hop | None:
    """The story of the finding that this line is evidence of, one step back; from an effect into its cause."""
    here = _row(
        con,
        """
        SELECT e.finding_id, e.nth, e.step_name, f.is_root FROM evidence AS e JOIN findings AS f USING (finding_id)
        WHERE f.run_id = $run AND (e.rank IS NOT DISTINCT FROM $rank OR e.rank IS NULL) AND e.file_id = $file AND
            e.line_no BETWEEN $line AND $line + $near
        ORDER BY f.is_root DESC, f.kind NOT IN ('cause', 'symptom'), e.line_no - $line, TRY_CAST(f.finding_id[2:] AS
            INTEGER), e.nth LIMIT 1
        """,
        run=spot.run_id, rank=spot.rank, file=spot.file_id, line=spot.line_no, near=_NEAR_LINES,
    )  # fmt: skip
    if here is None:
        return None
    finding, _, step, is_root = here
    before = _row(
        con,
        """
        WITH steps AS (SELECT step_name, min(nth) AS nth FROM evidence WHERE finding_id = $finding GROUP BY step_name)
        SELECT e.file_id, e.line_no, e.rank, e.t, e.label FROM evidence AS e
        WHERE e.finding_id = $finding AND e.nth = (
            SELECT max(nth) FROM steps WHERE nth < (SELECT nth FROM steps WHERE step_name IS NOT DISTINCT FROM $step))
        """,
        finding=finding, step=step,
    )  # fmt: skip
    if before is not None:
        return Hop(f"{finding}: {visible(before[4] or '')}", *before[:4])
    if is_root:
        return Hop(f"the chain of {finding} begins here")
    cause = _row(
        con,
        """
        SELECT e.file_id, e.line_no, e.rank, e.t, x.cause_id, f.summary
        FROM explains AS x JOIN findings AS f ON f.finding_id = x.cause_id
        JOIN evidence AS e ON e.finding_id = x.cause_id
        WHERE x.effect_id = $finding ORDER BY f.is_root DESC, e.nth DESC LIMIT 1
        """,
        finding=finding,
    )
    if cause is None:
        return None
    return Hop(f"{finding} is explained by {cause[4]}: {visible(cause[5] or '')}", *cause[:4])
