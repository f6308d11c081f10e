"""Words for numbers, ranks and certainties, and log text made safe to show."""

import math
import unicodedata
from collections.abc import Iterable

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
PROVEN, LIKELY = 0.9, 0.6


def duration(seconds: float) -> str:
    """Return a time span for people: 850 ms, 5.3 s, 12 min, 3.5 h, 2.0 d."""
    size = abs(seconds)
    if not math.isfinite(seconds):
        return "unknown"
    if size < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if size < 99.95:
        return f"{seconds:.1f} s"
    if size < 600:
        return f"{seconds:.0f} s"
    if size < 5400:
        return f"{seconds / 60:.0f} min"
    if size < 172800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} d"


def ranks_text(ranks: Iterable[int]) -> str:
    """Return ranks in short form: 0-6,8."""
    parts: list[str] = []
    island: list[int] = []
    for rank in [*sorted(set(ranks)), None]:
        if island and rank != island[-1] + 1:
            parts.append(str(island[0]) if len(island) == 1 else f"{island[0]}-{island[-1]}")
            island = []
        if rank is not None:
            island.append(rank)
    return ",".join(parts)


def ranks_phrase(ranks: Iterable[int]) -> str:
    """Return `rank 3` or `ranks 0-6,8`; nothing where there is none."""
    named = sorted(set(ranks))
    return f"rank{'s' if len(named) > 1 else ''} {ranks_text(named)}" if named else ""


def certainty(value: float) -> str:
    """Return the word for a certainty of 0 to 1."""
    return "proven" if value >= PROVEN else "likely" if value >= LIKELY else "possible"


def lost(cost_s: float | None, lost_s: float | None) -> str:
    """Return what a finding cost: `14.8 s lost` of the run, or where that is not known `44.4 rank-seconds lost`."""
    if cost_s is not None:
        return f"{duration(cost_s)} lost" if cost_s > 0 else ""
    return f"{lost_s:,.3g} rank-seconds lost" if lost_s else ""


def what_if(without: str | None, ranks: Iterable[int]) -> str:
    """Return the options of `replay what-if` that take a cause out; nothing where no option does."""
    named = ranks_text(ranks)
    if without == "slow":
        return f"--rank-as-median {named}" if named else ""
    return f"--without {without}" + (f"@{named}" if named else "") if without else ""


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 rank` or `1,024 ranks`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """Return bytes for people: 512 B, 1.5 MiB."""
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def visible(text: str) -> str:
    r"""Return log text that cannot act on a terminal or a page: control characters become \x1b, tabs blanks.

    Format characters that turn the direction of writing or hide (Unicode Cf) and lone surrogates are shown too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else _shown(c) for c in text.replace("\t", "    "))


def _shown(c: str) -> str:
    if unicodedata.category(c) == "Zs":
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
