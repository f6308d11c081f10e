"""Stamps of collectors to seconds since 1970, in the local time of the log."""

import calendar
import time
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from replay.errors import UsageError

_MONTHS = {
    name: n
    for n, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1
    )
}  # syslog's, always English


class Stamps:
    """Reads stamps of one file. `tz` is the zone that the log's own stamps are in (None: UTC); stamps that carry a zone
    are brought to it. `year` is for syslog, which has none; else the year of `mtime`.

    Raises UsageError if `tz` is no IANA zone.
    """

    def __init__(self, tz: str | None, year: int | None, mtime: float | None) -> None:
        try:
            self._zone = ZoneInfo(tz) if tz else None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UsageError(f"--tz {tz}: no such time zone; use an IANA name such as Europe/Berlin") from None
        written = time.gmtime(mtime) if mtime is not None else time.gmtime()
        self._year, self._month = (year, 13) if year is not None else (written.tm_year, written.tm_mon)

    def zoned(self, date: str, clock: str, zone: str) -> float | None:
        """Seconds of "2026-11-29", "22:51:25.464000100" and "Z" or "+01:00"; None if it is no date."""
        start = _day(date)
        if start is None:
            return None
        seconds = start + _of_day(clock)
        if zone != "Z":
            digits = zone[1:].replace(":", "")
            offset = int(digits[:2]) * 3600 + int(digits[2:]) * 60
            seconds -= offset if zone[0] == "+" else -offset
        return self.local(seconds)

    def local(self, seconds: float) -> float:
        """Seconds since 1970 (UTC) as the log's own clock shows them."""
        return seconds + self._offset(int(seconds // 900)) if self._zone else seconds

    def plain(self, date: str, clock: str) -> float | None:
        """Seconds of "2026-11-29" and "22:51:25.464" or "22:51"; no zone is told, so it is the log's own."""
        start = _day(date)
        return None if start is None else start + _of_day(clock)

    def monthly(self, year: str | None, month: str, day: str, clock: str) -> float | None:
        """Seconds of "Nov", "29" and "22:51:25"; no zone is told, so it is the log's own."""
        number = _MONTHS[month]
        own = int(year) if year else self._year - (1 if number > self._month else 0)
        start = _day(f"{own:04}-{number:02}-{int(day):02}")
        return None if start is None else start + _of_day(clock)

    def any(self, value: object) -> float | None:
        """Seconds of what a JSON record has as its time: RFC 3339 text, or a number since 1970 in s, ms, us or ns."""
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return self._number(value)
            if moment.tzinfo is None:
                return moment.replace(tzinfo=UTC).timestamp()
            return self.local(moment.timestamp())
        return self._number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def _number(self, value: str | float) -> float | None:
        try:
            seconds = float(value)
        except ValueError:
            return None
        while seconds > 1e11:
            seconds /= 1000
        return self.local(seconds) if seconds > 1e8 else None

    def _offset(self, quarter: int) -> float:
        return _offset(self._zone, quarter) if self._zone else 0.0


@lru_cache(maxsize=256)
def _offset(zone: ZoneInfo, quarter: int) -> float:
    offset = datetime.fromtimestamp(quarter * 900, zone).utcoffset()
    return offset.total_seconds() if offset else 0.0


@lru_cache(maxsize=256)
def _day(date: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(date, "%Y-%m-%d")))
    except ValueError:
        return None


def _of_day(clock: str) -> float:
    return int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + float(clock[6:].replace(",", ".") or 0)
