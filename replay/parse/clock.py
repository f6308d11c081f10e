"""Stamps to seconds.

Many stamps have no year. It is the hint's; else the one that brings the stamp nearest to a stamp with a year that these
logs hold; else the file's modification year (a month later than the file's own is of the year before). Some have no day
either: it is the one that brings the stamp nearest to the file's stamp before it, else to the run's (parse/anchor.py).
"""

import calendar
import math
import time
from functools import lru_cache

_DAY = 86400.0
_NEAR = 6 * 3600.0
"""Seconds from the stamp before within which a stamp without a day is believed: further off it may be of another day
or a duration. Then its line lies between its neighbours, as lines without a stamp do."""


class Clock:
    """Turns the stamps of one file into seconds since 1970, in the log's own local time."""

    def __init__(self, year: int | None, mtime: float | None, near: float | None = None) -> None:
        self._near = near if year is None else None
        self._last, self._is_first = near, True
        written = time.gmtime(mtime) if mtime is not None else time.gmtime()
        self._month = written.tm_mon if year is None else 13
        self._year = year if year is not None else written.tm_year

    def month_day(self, digits: str, clock: str) -> float | None:
        """Seconds of "1129" (also "321", unpadded) and "22:51:29.204000"; None if it is no date."""
        month, day = int(digits[:-2]), int(digits[-2:])
        if self._near is not None:
            near, own = self._near, time.gmtime(self._near).tm_year
            found = (_seconds(year, month, day, clock) for year in (own - 1, own, own + 1))
            return min((t for t in found if t is not None), key=lambda t: abs(t - near), default=None)
        year = self._year - (1 if month > self._month else 0)
        return _seconds(year, month, day, clock)

    def bare(self, clock: str) -> float | None:
        """Seconds of "22:51:29,204" of which no day is told; None where it is not known."""
        last = self._last
        if last is None:
            return None
        day = math.floor(last / _DAY) * _DAY
        found = min((_of_day(day + n * _DAY, clock) for n in (-1, 0, 1)), key=lambda t: abs(t - last))
        return found if self._is_first or abs(found - last) <= _NEAR else None

    def passed(self, t: float | None) -> None:
        """Note a stamp of the application; the next one without a day is near it."""
        if t is not None:
            self._last = t if self._last is None or self._is_first else max(self._last, t)
            self._is_first = False

    def dated(self, date: str, clock: str) -> float | None:
        """Seconds of "2026-11-29" and "22:51:29,204"; None if it is no date."""
        year, month, day = (int(x) for x in date.replace("/", "-").replace(".", "-").split("-"))
        return _seconds(year, month, day, clock)


@lru_cache(maxsize=64)
def _midnight(year: int, month: int, day: int) -> float | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return float(calendar.timegm((year, month, day, 0, 0, 0)))


def _seconds(year: int, month: int, day: int, clock: str) -> float | None:
    start = _midnight(year, month, day)
    if start is None:
        return None
    return _of_day(start, clock)


def _of_day(start: float, clock: str) -> float:
    hours, minutes, rest = clock.replace(",", ".").split(":")
    return start + int(hours) * 3600 + int(minutes) * 60 + float(rest)
