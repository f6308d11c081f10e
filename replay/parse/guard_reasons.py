"""Guard reasons: text to fields by `grammars/guard_reason.lark`, kind and cause by `guard_causes.csv`.

The boundary exists because reasons come from four places (recompile blocks, limit warnings, trace files, exceptions)
and must mean the same in all of them.
"""

import csv
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

from replay.grammar.executor import shared
from replay.grammar.model import Match

_FAMILY = "guard_reason"
_COMMENTS = {"commented", "commented_at"}
_SHAPES = {"shape-env", "zero-one", "duck"}
_SETS = {"dispatch-key", "global-state"}


@dataclass(frozen=True, slots=True)
class Reason:
    """What a reason says. `place` is whether the text names where the guard comes from; `code` is without comment."""

    kind: str = "other"
    cause: str = "recompile-other"
    source: str | None = None
    expected: str | None = None
    actual: str | None = None
    dim: int | None = None
    detail: str | None = None
    user_file: str | None = None
    user_line: int | None = None
    user_fn: str | None = None
    place: bool = False
    code: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Cause:
    field: str
    like: str
    kind: str
    cause: str


@cache
def _causes() -> dict[str, list[_Cause]]:
    """The rows of guard_causes.csv by record; the first row that fits counts."""
    found: dict[str, list[_Cause]] = {}
    with (Path(__file__).parent / "guard_causes.csv").open(encoding="utf8", newline="") as lines:
        for row in csv.DictReader(lines):
            cause = _Cause(row["field"], row["like"], row["kind"], row["cause"])
            found.setdefault(row["record"], []).append(cause)
    return found


@lru_cache(maxsize=4096)
def parse_reason(text: str) -> Reason:
    """Parse one reason, without the id before it. A text that no form takes gives kind "other"."""
    text = text.strip()  # torch 2.5 pads a guard that has no comment
    match = shared().one(_FAMILY, text)
    if match is not None and match.record in _COMMENTS:
        return _commented(match.fields, text)
    return replace(_bare(match, text), code=text)


def split_reasons(text: str) -> list[str]:
    """Split what `recompiles_verbose` joins by "; ". A source line in a comment may hold semicolons itself: a part
    whose comment does not end with a place goes on.
    """
    parts: list[str] = []
    for piece in text.split("; "):
        if parts and _is_open(parts[-1]):
            parts[-1] += "; " + piece
        else:
            parts.append(piece)
    return parts


def _is_open(text: str) -> bool:
    match = shared().one(_FAMILY, text)
    return match is not None and match.record == "commented"


def _commented(fields: dict[str, str], text: str) -> Reason:
    code, note = fields["code"], fields.get("note")
    reason = _bare(shared().one(_FAMILY, code), code)
    if reason.kind == "shape-env" and "0/1 specialization" in text:
        reason = replace(reason, kind="zero-one")
    line = fields.get("lineno")
    return replace(
        reason,
        detail=reason.detail or note,
        user_file=fields.get("file"),
        user_line=int(line) if line else None,
        user_fn=fields.get("fn"),
        place=line is not None,
        code=code,
    )


def _bare(match: Match | None, text: str) -> Reason:
    if match is None:
        return Reason()
    fields = match.fields
    changed = _changed(match)
    for cause in _causes().get(match.record, []):
        values = changed if cause.field == "changed" else [fields.get(cause.field, "")]
        if not cause.field or any(fnmatchcase(value, cause.like) for value in values):
            break
    else:
        return Reason()
    detail = " ".join(changed) if cause.kind in _SETS else fields.get("detail")
    return Reason(
        kind=cause.kind,
        cause=cause.cause,
        source=fields.get("source"),
        expected=text if cause.kind in _SHAPES else fields.get("expected"),
        actual=fields.get("actual"),
        dim=int(fields["dim"]) if "dim" in fields else None,
        detail=detail or None,
    )


def _changed(match: Match) -> list[str]:
    """Names that differ: of two dispatch key sets, or those that torch lists itself."""
    if match.record == "dispatch_key":
        before, after = (_keys(match.fields[name]) for name in ("expected", "actual"))
        return sorted(before ^ after)
    return match.fields.get("detail", "").split() if match.record == "global_state" else []


def _keys(text: str) -> set[str]:
    return set(text.partition("(")[2].rstrip(")").split(", "))
