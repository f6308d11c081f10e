"""Sentences of rules: text with expressions in braces, and how their values read to a person.

`{expression}` is SQL; `{expression:format}` says how its value is written; `{{` and `}}` are braces. A value that is
not known reads `unknown`. Values come out of somebody's log, so control characters do not pass.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property

from replay.expert.expression import Expression, ExpressionError

MAX_VALUE = 200
"""Characters of one value that a sentence shows."""

FORMATS = ("s", "mib", "clock", "repr")
_SPEC = re.compile(r":(?P<spec>[a-z]+|[,]?\.[0-9]+[fge%]|,)\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Slot:
    """One `{...}` of a template; `at` is the offset of its expression in the template's text."""

    expression: Expression
    spec: str
    at: int


@dataclass(frozen=True)
class Template:
    """A sentence with slots."""

    text: str

    @cached_property
    def parts(self) -> tuple[str | Slot, ...]:
        """The literal texts and the slots, in order.

        Raises ExpressionError where a brace has no partner or a slot is no expression.
        """
        parts: list[str | Slot] = []
        text = self.text
        plain: list[str] = []
        index = 0
        while index < len(text):
            char = text[index]
            if char in "{}" and text[index : index + 2] == char * 2:
                plain.append(char)
                index += 2
            elif char == "{":
                end = _slot_end(text, index)
                if plain:
                    parts.append("".join(plain))
                    plain = []
                parts.append(_slot(text[index + 1 : end], index + 1))
                index = end + 1
            elif char == "}":
                raise ExpressionError("} without {; a brace of the text is written twice", index)
            else:
                plain.append(char)
                index += 1
        if plain:
            parts.append("".join(plain))
        return tuple(parts)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots in order."""
        return tuple(part for part in self.parts if isinstance(part, Slot))

    def fill(self, values: Sequence[object]) -> str:
        """Return the sentence; `values` are those of the slots, in their order."""
        given = iter(values)
        text = "".join(part if isinstance(part, str) else value_text(next(given), part.spec) for part in self.parts)
        return " ".join(text.split()) if "\n" not in self.text.strip() else text.strip()


def _slot_end(text: str, begin: int) -> int:
    in_string = False
    for index in range(begin + 1, len(text)):
        if text[index] == "'":
            in_string = not in_string
        elif text[index] == "}" and not in_string:
            return index
    raise ExpressionError("{ is never closed; a brace of the text is written twice", begin)


def _slot(inner: str, at: int) -> Slot:
    spec = ""
    found = _SPEC.search(inner)
    if found and not inner[: found.start()].endswith(":"):
        spec = found["spec"]
        inner = inner[: found.start()]
        if spec.isalpha() and spec not in FORMATS:
            raise ExpressionError(f"unknown format {spec}; known are {', '.join(FORMATS)} and .1f", at + found.start())
    expression = Expression(inner)
    try:
        expression.tokens  # noqa: B018  (read now, so that a fault shows where the template stands)
    except ExpressionError as error:
        raise ExpressionError(str(error), at + error.at) from None
    return Slot(expression, spec, at)


def value_text(value: object, spec: str = "") -> str:
    """Return the value as a sentence shows it: ranks in short form, numbers by `spec`, no control characters."""
    if value is None:
        return "unknown"
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_text(value, spec)
    if isinstance(value, list | tuple):
        known = [item for item in value if item is not None]
        if known and all(isinstance(item, int) and not isinstance(item, bool) for item in known):
            return ranks_text(known)
        return ", ".join(value_text(item, spec) for item in known) or "none"
    text = _CONTROL.sub(" ", str(value))
    text = text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
    return repr(text) if spec == "repr" else text


def ranks_text(ranks: Iterable[int]) -> str:
    """Return ranks in short form: 0, 1, 2 and 5 give '0-2,5', no rank gives 'none'."""
    pieces: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if pieces and rank == pieces[-1][-1] + 1:
            pieces[-1].append(rank)
        else:
            pieces.append([rank])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in pieces) or "none"


def seconds_text(seconds: float) -> str:
    """Return a duration as people say it: 0.31 s, 5.3 s, 47 s, 12 min, 3.5 h."""
    size = abs(seconds)
    if size < 0.0995:
        return f"{seconds * 1000:.3g} ms"
    if size < 9.95:
        return f"{seconds:.2g} s"
    if size < 120:
        return f"{seconds:.0f} s"
    if size < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"


def _number_text(value: float, spec: str) -> str:
    if not math.isfinite(value):
        return str(value)
    if spec == "s":
        return seconds_text(value)
    if spec == "mib":
        return f"{value / 1024:.3g} GiB" if abs(value) >= 1024 else f"{value:.3g} MiB"
    if spec == "clock":
        return datetime.fromtimestamp(value, UTC).strftime("%H:%M:%S")
    if spec and not spec.isalpha():
        return format(value, spec)
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
