"""Which parts of a raw line are fields: found by the grammars that read it, and by the values that its row holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from replay.grammar.executor import shared
from replay.parse.families import families
from replay.report.wording import visible

_LONGEST = 8192
"""Characters of a line that are looked at: a screen shows fewer."""
_SHORTEST_VALUE = 2
"""A value of one character is found anywhere; only the grammars can tell where it stands."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, safe to show; `field` names what it is, None between fields."""

    text: str
    field: str | None = None


def pieces(raw: str, values: Iterable[tuple[str, str]] = ()) -> list[Piece]:
    """Return a raw line in pieces. `values` are columns of its row with their text: what no grammar marks is looked
    for.
    """
    text = raw[:_LONGEST]
    found = _fields(text)
    for name, value in values:
        at = _word(text, value) if len(value) >= _SHORTEST_VALUE else -1
        if at >= 0:
            span = (at, at + len(value), name)
            if not any(lo < span[1] and span[0] < hi for lo, hi, _ in found):
                found.append(span)
    made, done = [], 0
    for lo, hi, name in sorted(found):
        if lo > done:
            made.append(Piece(visible(text[done:lo])))
        made.append(Piece(visible(text[lo:hi]), name))
        done = hi
    if done < len(text):
        made.append(Piece(visible(text[done:])))
    if len(raw) > len(text):
        made.append(Piece(f" … {len(raw) - len(text):,} characters more"))
    return made


def _word(text: str, value: str) -> int:
    """Where a value stands in a text, not as a part of a longer word; -1 if nowhere."""
    at = text.find(value)
    while at >= 0:
        before, behind = text[at - 1 : at] if at else "", text[at + len(value) : at + len(value) + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (behind.isalnum() and value[-1].isalnum()):
            return at
        at = text.find(value, at + 1)
    return -1


def _fields(text: str) -> list[tuple[int, int, str]]:
    """Spans of the fields of header and message, without overlaps."""
    executor = shared()
    start, header, marker = 0, "", None
    match = executor.one("headers", text)
    if match is None and (later := executor.find("headers", text)) is not None:
        start, match = later
    if match is None:
        match = executor.one("app_headers", text)
        header = "app" if match else ""
    spans: list[tuple[int, int, str]] = []
    body_at, body = 0, text
    if match is not None:
        header = header or match.record
        marker = match.fields.get("artifact") or match.fields.get("nccl_level")
        body = match.fields.get("text", "")
        body_at = len(text) - len(body)
        spans += _located(text[:body_at], start, 0, match.fields)
    for family in families(header, marker):
        message = executor.one(family, body)
        if message is not None:
            spans += _located(body, 0, body_at, message.fields)
            break
    return spans


def _located(text: str, start: int, offset: int, fields: dict[str, str]) -> list[tuple[int, int, str]]:
    """Where fields stand in a text: each behind the one before, as the pattern took them."""
    spans, at = [], start
    for name, value in fields.items():
        if name == "text" or not value:
            continue
        found = text.find(value, at)
        if found < 0:
            continue
        spans.append((offset + found, offset + found + len(value), name))
        at = found + len(value)
    return spans
