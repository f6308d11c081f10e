"""Takes terminal sequences out of lines; their forms are in grammars/escapes.lark."""

import re
from collections.abc import Iterable
from functools import cache

from replay.grammar.compile import load


@cache
def _pattern(record: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p.pattern})" for p in load("escapes").productions if p.record == record))


def strip_escapes(text: str) -> str:
    """The text without terminal sequences; a lone ESC stays (torch logs bytes of cache keys as text)."""
    return _pattern("certain").sub("", text)


def strip_colours(text: str) -> str:
    """The text without colour codes that lost their ESC. For files where `has_lost_colours` holds."""
    return _pattern("voted").sub("", text)


def has_lost_colours(lines: Iterable[str]) -> bool:
    """True if some line both begins and ends a colour without ESC: "[36mtext[0m"."""
    for line in lines:
        if ("0m" in line or "39m" in line) and "[" in line:
            codes = [found.group().rsplit("[", 1)[1] for found in _pattern("voted").finditer(line)]
            if any(c in {"0m", "00m", "39m"} for c in codes[1:]) and codes[0] not in {"0m", "00m"}:
                return True
    return False
