"""What is asked of the simulator and what it answers: plain values, for the command, the screens and a notebook."""

import re
from dataclasses import dataclass

from replay.errors import UsageError

KINDS = {
    "recompiles": "recompiles",
    "compiles": "compiles, recompiles included",
    "saves": "saving of checkpoints",
    "loads": "loading of data and files, preprocessing",
    "evals": "evaluation",
}
"""What can be taken out of a run, and how a sentence calls it."""

_WITHOUT = re.compile(r"(?P<what>[a-z]+)(?:@(?P<ranks>[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*))?")
_MOST_RANKS = 1_000_000


@dataclass(frozen=True, slots=True)
class Without:
    """Something taken out of a run: `what` is a key of KINDS; no ranks means all of them."""

    what: str
    ranks: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Without":
        """Read `recompiles`, `recompiles@3` or `saves@0,4-7`. Raises UsageError for anything else."""
        found = _WITHOUT.fullmatch(text)
        if found is None or found["what"] not in KINDS:
            raise UsageError(f"{text}: what can be taken out is {', '.join(KINDS)}, each with @RANKS if not on all")
        return cls(found["what"], parse_ranks(found["ranks"]) if found["ranks"] else ())


def parse_ranks(text: str) -> tuple[int, ...]:
    """Read `3` or `0-6,8`. Raises UsageError for anything else."""
    ranks: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit() or int(last or first) >= _MOST_RANKS:
            raise UsageError(f"{text}: ranks are written as 3 or 0-6,8")
        ranks |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(ranks))


@dataclass(frozen=True, slots=True)
class Change:
    """What would be different; nothing is as it was if no field is given."""

    without: tuple[Without, ...] = ()
    as_median: tuple[int, ...] = ()
    """Ranks whose own time before each operation becomes the median of the others'."""
    warm_cache: bool = False
    """What was compiled would have been found in the compile cache."""
    guard_collectives: bool = False
    """Ranks agree on guards, so that all recompile when one does (torch.compiler.set_enable_guard_collectives)."""
    timeout_s: float | None = None
    """A rank that waits so long in an operation ends the run."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be different."""
        return self == Change()


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """One rank: seconds from its first to its last stamp as logged, replayed and changed, and its waiting."""

    rank: int
    logged_s: float
    replayed_s: float
    changed_s: float
    own_s: float
    """Seconds that the change takes from its own time (negative: adds)."""
    waited_s: float
    """Seconds that it waited for others, as replayed."""
    waits_s: float
    """Seconds that it would wait."""

    @property
    def saved_s(self) -> float:
        """Seconds by which it would end earlier."""
        return self.replayed_s - self.changed_s


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that cost time, and what the run would save if it alone were not there."""

    what: str
    """A key of KINDS, or `slow`: own time beyond the median of the other ranks."""
    ranks: tuple[int, ...]
    times: int
    """How often."""
    own_s: float
    """Seconds that it took on those ranks themselves."""
    saved_s: float
    """Seconds by which the run would be shorter."""
    lost_s: float
    """Rank-seconds by which all ranks together would end earlier."""
    path: str | None
    """File and line where it is first told."""
    line: int | None

    @property
    def amplification(self) -> float | None:
        """Rank-seconds lost by all per second that it took itself; None where it took none."""
        return self.lost_s / self.own_s if self.own_s > 0 else None


@dataclass(frozen=True, slots=True)
class Limit:
    """Where the model does not hold: how much of the run it touches, and what would tell more."""

    text: str
    share: float | None = None
    enable: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run would have been. Spans are in seconds over all ranks; None where it cannot be told."""

    run_id: int
    change: Change
    basis: str | None
    """What the model stands on: operations (stamps of arrivals), steps (their own times and waiting), step-times."""
    operations: int
    logged_s: float | None = None
    replayed_s: float | None = None
    changed_s: float | None = None
    rank_error: float | None = None
    """Largest error of a rank's span in the replay of the unchanged run, as a share of its logged span."""
    operation_error_s: float | None = None
    """Median error of the moments at which ranks came to operations in that replay [s]."""
    ranks: tuple[RankOutcome, ...] = ()
    causes: tuple[Cause, ...] = ()
    ends: str | None = None
    """How the changed run would end early, where it would."""
    limits: tuple[Limit, ...] = ()
    cannot: str | None = None
    """Why nothing can be said, and what to switch on; then all else is empty."""

    @property
    def saved_s(self) -> float | None:
        """Seconds by which the run would be shorter."""
        return None if self.replayed_s is None or self.changed_s is None else self.replayed_s - self.changed_s

    @property
    def replay_error(self) -> float | None:
        """Error of the run's span in the replay of the unchanged run, as a share of the logged span."""
        if self.logged_s is None or self.replayed_s is None:
            return None
        return abs(self.replayed_s - self.logged_s) / self.logged_s if self.logged_s else 0.0
