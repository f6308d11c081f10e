"""Where to: `+12.3`, `23:51:45.2`, `50%`, `rank 3`, `step 4`, `F2`, `worker-1.out:10`, `diff`."""

from dataclasses import dataclass
from enum import StrEnum

from replay.errors import UsageError

HELP = "+12.3 (s) · 23:51:45.2 · 50% · rank 3 · step 4 · F2 · file:line · diff"
_DAY_S = 86400.0


class What(StrEnum):
    """What kind of place is meant."""

    TIME = "time"
    RANK = "rank"
    STEP = "step"
    FINDING = "finding"
    LINE = "line"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Goal:
    """A place in a user's words: `number` is a time [s since 1970], a rank, a step or a line."""

    what: What
    number: float = 0.0
    name: str = ""


def parse(text: str, first: float, last: float) -> Goal:
    """Return the place that a text names in a run from `first` to `last` [s since 1970].

    Raises UsageError, naming the forms, for another text.
    """
    word = text.strip()
    low = word.lower()
    kind, _, rest = low.partition(" ")
    if low in {"diff", "difference", "first difference"}:
        return Goal(What.DIFFERENCE)
    if low[:1] == "f" and low[1:].isdecimal():
        return Goal(What.FINDING, name=word.upper())
    for names, what in ((("rank", "r"), What.RANK), (("step", "s"), What.STEP)):
        number = rest if kind in names else low[1:] if low[:1] == names[1] and low[1:].isdecimal() else ""
        if number.strip().isdecimal():
            return Goal(what, float(number))
    if low.endswith("%") and (share := _number(low[:-1])) is not None:
        return Goal(What.TIME, first + share / 100 * (last - first))
    if low[:1] in "+-" and (seconds := _number(low.removesuffix("s"))) is not None:
        return Goal(What.TIME, first + seconds if low[0] == "+" else last + seconds)
    if (clock := _clock(low)) is not None:
        return Goal(What.TIME, _nearest(clock, first, last))
    if low.isdecimal():
        return Goal(What.STEP, float(low))
    path, colon, line = word.rpartition(":")
    if colon and path and line.isdecimal():
        return Goal(What.LINE, float(line), path)
    raise UsageError(f"not a place: {word!r}; there are {HELP}")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e12 else None  # neither nan nor inf


def _clock(text: str) -> float | None:
    """Seconds since midnight of `23:51` or `23:51:45.2`."""
    parts = text.split(":")
    if len(parts) not in {2, 3} or not all(p[:1].isdecimal() for p in parts):
        return None
    numbers = [_number(p) for p in parts]
    if any(n is None for n in numbers):
        return None
    hours, minutes, seconds = [*(n for n in numbers if n is not None), 0.0][:3]
    return hours * 3600 + minutes * 60 + seconds if hours < 24 and minutes < 60 and seconds < 61 else None


def _nearest(clock: float, first: float, last: float) -> float:
    """The moment of the run that has this time of day; of several days the first that is inside the run."""
    moment = first - first % _DAY_S + clock
    if moment < first and moment + _DAY_S <= last + 60:
        moment += _DAY_S
    return moment
