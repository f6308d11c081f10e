"""Records of TORCH_TRACE files: JSON objects, of which a long one may be cut."""

import json
from typing import Any

_DECODER = json.JSONDecoder()
_DEPTH = 4
"""Levels of a damaged object that are looked into."""


def read_object(text: str) -> tuple[dict[str, Any], bool]:
    """Return the members of the JSON object that `text` begins with, and whether it is whole.

    Of an object that is cut or torn, the members before the damage are returned, inner objects included.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        members, _end = _members(text, 0, _DEPTH)
        return members, False
    return (whole, True) if isinstance(whole, dict) else ({}, False)


def _members(text: str, at: int, depth: int) -> tuple[dict[str, Any], int | None]:
    """Members from the brace at `at` on; the end, None where the object is damaged."""
    found: dict[str, Any] = {}
    at += 1
    while True:
        at = _skip(text, at, " ,")
        if text[at : at + 1] == "}":
            return found, at + 1
        try:
            key, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, None
        at = _skip(text, at, " :")
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            if depth and isinstance(key, str) and text[at : at + 1] == "{":
                found[key], _end = _members(text, at, depth - 1)
            return found, None
        if isinstance(key, str):
            found[key] = value


def _skip(text: str, at: int, blanks: str) -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at
