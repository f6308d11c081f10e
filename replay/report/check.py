"""Checks for CI: what a run may and may not do, answered from its logs: passed, failed, or cannot tell.

A green answer is a promise, so it needs more than an empty table: the thing would have been logged on every rank, and
the end of the run was seen. Whoever knows better (the command line set TORCH_LOGS, the exit code was 0) says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.expert.catalog import WHATS
from replay.expert.causes import causes_of, needs
from replay.expert.conditions import similar
from replay.expert.load import RuleBook
from replay.report.measures import ENDINGS, MEASURES, WITNESSES
from replay.report.outlook import enabling
from replay.report.wording import count, ranks_phrase

Verdict = Literal["passed", "failed", "cannot-tell"]

_PLACES_KEPT = 5
_LIKELY = 0.5
"""Certainty from which a forbidden cause fails a check: that from which a finding can be a root."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks: largest and exact numbers by measure, causes (or patterns of causes) that must not be found,
    frames (function, file, file:line, as patterns) that do not count, what is known to have been logged, and whether
    the run is known to have ended well.
    """

    most: tuple[tuple[str, int], ...] = ()
    exactly: tuple[tuple[str, int], ...] = ()
    forbidden: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    logged: frozenset[str] = frozenset()
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One thing that a check counted."""

    rank: int | None
    what: str
    where: str
    path: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one check in one run. `number` is the largest of all ranks; `enable` says how to make it tell."""

    check: str
    run: int
    verdict: Verdict
    text: str
    number: int | None
    places: tuple[Place, ...]
    enable: tuple[str, ...]


def check(con: DuckDBPyConnection, wanted: Wanted, book: RuleBook) -> tuple[Answer, ...]:
    """Return the answer to each check, for each run of the database.

    Raises UsageError for a measure, cause or thing that does not exist, and where nothing is asked.
    """
    causes = {pattern: _causes(pattern, book) for pattern in wanted.forbidden}
    for name, _ in (*wanted.most, *wanted.exactly):
        if name not in MEASURES:
            raise UsageError(f"nothing is counted by the name {name}; there are {', '.join(MEASURES)}")
    if unknown := sorted(wanted.logged - WHATS):
        raise UsageError(f"{unknown[0]} is nothing that is logged{similar(unknown[0], WHATS)}")
    if not (wanted.most or wanted.exactly or causes):
        raise UsageError("nothing to check: say --max, --expect or --forbid")
    answers: list[Answer] = []
    for run_id, outcome in con.execute("SELECT run_id, outcome FROM runs ORDER BY run_id").fetchall():
        sight = _Sight(con, run_id, outcome, wanted)
        answers += [_counted(sight, name, number, exact=False) for name, number in wanted.most]
        answers += [_counted(sight, name, number, exact=True) for name, number in wanted.exactly]
        answers += [_forbidden(sight, pattern, found, book) for pattern, found in causes.items()]
    return tuple(answers)


def _causes(pattern: str, book: RuleBook) -> list[str]:
    found = [cause for cause in book.taxonomy if fnmatchcase(cause, pattern)]
    if not found:
        raise UsageError(f"no cause {pattern}{similar(pattern, book.taxonomy)}")
    return found


@dataclass(frozen=True, slots=True)
class _Missing:
    """Why the logs cannot tell, and what would make them tell."""

    why: str
    enable: tuple[str, ...]


class _Sight:
    """What could be seen of one run."""

    def __init__(self, con: DuckDBPyConnection, run_id: int, outcome: str, wanted: Wanted) -> None:
        self.con, self.run_id, self.wanted = con, run_id, wanted
        self.outcome = "completed" if wanted.ended and outcome in ("unknown", "running") else outcome

    def missing(self, what: str | None) -> "_Missing | None":
        """Return what keeps the logs from showing that something did not happen; None where nothing does."""
        reasons, enable = [], []
        if self.outcome in ("unknown", "running"):
            reasons.append("nothing tells how the run ended" if self.outcome == "unknown" else "the run has not ended")
            enable.append("--ended, if the run is known to have ended well")
        elif self.outcome != "completed":
            reasons.append(f"the run {self.outcome} before its end")
        if lost := self._unheard():
            reasons.append(lost)
        if what is not None and not self._is_told(what) and (blind := self._blind(what)) is not None:
            reasons.append(f"{what} not known to be logged{blind}")
            enable += [*enabling(what), f"--logged {what}, if it is known to have been switched on"]
        return _Missing(" and ".join(reasons), tuple(enable)) if reasons else None

    def _is_told(self, what: str) -> bool:
        return what in self.wanted.logged or (what in ENDINGS and self.outcome == "completed")

    def _unheard(self) -> str:
        row = self.con.execute(
            """SELECT coalesce(ranks_expected, ranks_seen) - ranks_seen, ranks_expected FROM runs WHERE run_id = ?""",
            [self.run_id],
        ).fetchone()
        short = int(row[0] or 0) if row else 0
        return f"{count(short, 'rank')} of {row[1]} cannot be heard" if row and short > 0 else ""

    def _blind(self, what: str) -> str | None:
        """The ranks of which the thing would not have been seen, as a part of a sentence; None for none."""
        heard = {rank for (rank,) in self.con.execute(
            "SELECT rank FROM ranks WHERE run_id = ? AND heard AND rank IS NOT NULL", [self.run_id]
        ).fetchall()}  # fmt: skip
        seen = WITNESSES.get(what, f"SELECT run_id, rank FROM observed WHERE what = '{what}' AND is_on")
        rows = self.con.execute(f"SELECT rank FROM ({seen}) WHERE run_id = ?", [self.run_id]).fetchall()
        if not rows:
            return ""
        # What one rank logs all do, for they share their settings; but not where only the other stream was handed over.
        half = {rank for (rank,) in self.con.execute(
            """SELECT w.rank FROM writers AS w JOIN files AS f USING (file_id)
            WHERE w.run_id = $run AND w.rank IS NOT NULL
                AND EXISTS (FROM files AS o JOIN writers AS v USING (file_id)
                    WHERE v.run_id = $run AND o.stream = 'stderr')
            GROUP BY w.rank HAVING bool_and(coalesce(f.stream, w.stream) = 'stdout')""", {"run": self.run_id}
        ).fetchall()}  # fmt: skip
        hidden = (half & heard) - {rank for (rank,) in rows}
        return f" on {ranks_phrase(hidden)}" if hidden else None


def _counted(sight: _Sight, name: str, number: int, *, exact: bool) -> Answer:
    measure = MEASURES[name]
    title = f"{name} {'exactly' if exact else 'at most'} {number}"
    rows = sight.con.execute(
        f"""SELECT m.rank, m.fn, m.file, m.line, m.what, f.path, m.line_no, m.key
        FROM ({measure.rows}) AS m LEFT JOIN files AS f USING (file_id) WHERE m.run_id = ?
        ORDER BY m.rank, m.file_id, m.line_no""",
        [sight.run_id],
    ).fetchall()
    kept = [row for row in rows if not any(_is_frame(pattern, *row[1:4]) for pattern in sight.wanted.allowed)]
    allowed = len(rows) - len(kept)
    ranks = [rank for (rank,) in sight.con.execute(
        "SELECT rank FROM ranks WHERE run_id = ? AND heard AND rank IS NOT NULL ORDER BY rank", [sight.run_id]
    ).fetchall()]  # fmt: skip
    keys: dict[int | None, set[object]] = {rank: set() for rank in ranks}
    places: dict[tuple[int | None, object], Place] = {}
    for nth, (rank, fn, file, line, what, path, line_no, key) in enumerate(kept):
        told = key if key is not None else nth
        keys.setdefault(rank, set()).add(told)
        where = f"{file}:{line}" + (f" in {fn}" if fn else "") if file else fn or ""
        places.setdefault((rank, told), Place(rank, what or "", where, path or "", line_no))
    numbers = {rank: len(found) for rank, found in keys.items()}
    most, least = max(numbers.values(), default=0), min(numbers.values(), default=0)
    tail = f", {allowed} in allowed frames" if allowed else ""
    said = f"{most} on {_of(r for r, n in numbers.items() if n == most)}" if numbers else "no rank was heard"
    shown = tuple(p for (rank, _), p in places.items() if numbers[rank] > number)[:_PLACES_KEPT]
    if most > number:
        return Answer(title, sight.run_id, "failed", said + tail, most, shown, ())
    if missing := sight.missing(measure.what):
        text = f"{said}{tail}, but {missing.why}"
        return Answer(title, sight.run_id, "cannot-tell", text, most, (), missing.enable)
    if not numbers:
        return Answer(title, sight.run_id, "cannot-tell", said, None, (), ())
    if exact and least < number:
        few = f"{least} on {_of(r for r, n in numbers.items() if n == least)}"
        return Answer(title, sight.run_id, "failed", few + tail, least, (), ())
    return Answer(title, sight.run_id, "passed", said + tail, most, (), ())


def _of(ranks: Iterable[int | None]) -> str:
    return ranks_phrase(rank for rank in ranks if rank is not None) or "an unnamed process"


def _forbidden(sight: _Sight, pattern: str, causes: Sequence[str], book: RuleBook) -> Answer:
    title = f"no {pattern}"
    rows = sight.con.execute(
        """SELECT f.summary, f.ranks, e.path, e.line_no, e.rank FROM findings AS f
        LEFT JOIN evidence AS e ON e.finding_id = f.finding_id AND e.nth = 0
        WHERE f.run_id = ? AND f.cause IN (SELECT unnest(?)) AND f.certainty >= ?
        ORDER BY len(f.finding_id), f.finding_id""",
        [sight.run_id, list(causes), _LIKELY],
    ).fetchall()
    if rows:
        places = tuple(
            Place(rank, summary, "", path or "", line) for summary, _, path, line, rank in rows[:_PLACES_KEPT]
        )
        return Answer(title, sight.run_id, "failed", count(len(rows), "finding"), len(rows), places, ())
    wanted = set(causes)
    able = [rule for rule in book if wanted & causes_of(rule, book)]
    if not able:
        return Answer(title, sight.run_id, "cannot-tell", "no rule looks for it", 0, (), ())
    for what in (None, *sorted(frozenset[str]().union(*(needs(rule) for rule in able)))):
        if missing := sight.missing(what):
            text = f"not found, but {missing.why}"
            return Answer(title, sight.run_id, "cannot-tell", text, 0, (), missing.enable)
    return Answer(title, sight.run_id, "passed", "not found", 0, (), ())


def _is_frame(pattern: str, fn: str | None, file: str | None, line: int | None) -> bool:
    """Whether a frame is meant: by its function, its file (or the end of its path), or file:line; * stands for any."""
    spelt = [fn or "", file or "", f"{file}:{line}"]
    return any(text and (fnmatchcase(text, pattern) or fnmatchcase(text, f"*/{pattern}")) for text in spelt)
