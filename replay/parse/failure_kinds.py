"""What kind of failure an exception is, and which error of the device a text names: from the knowledge tables.

The tables are data (rules/knowledge/exceptions.csv and cuda_errors.csv): which text stands for what changes with every
release, and rules look up the same rows.
"""

import csv
from functools import cache

from replay.resources import folder

Row = tuple[str, str, str]


@cache
def _table(name: str) -> tuple[Row, ...]:
    with (folder("rules") / "knowledge" / f"{name}.csv").open(newline="", encoding="utf8") as lines:
        rows = list(csv.reader(lines))[1:]
    return tuple((a, b, c) for a, b, c in rows)


def exception_category(kind: str, message: str, is_users: bool) -> str:
    """Return the category of an exception of type `kind` (without its module): the first row of the table that fits.

    A row fits where its type, if given, is equal and its text, if given, is in the message. Else the category is
    "user" for what the user's own code raised (`is_users`), or "other".
    """
    for of_type, text, category in _table("exceptions"):
        if (not of_type or of_type == kind) and (not text or text in message):
            return category
    return "user" if is_users else "other"


def cuda_error(text: str) -> tuple[int | None, str]:
    """Return the code of a CUDA error's text and its kind as in device_faults; (None, "cuda") where it is unknown."""
    for known, code, kind in _table("cuda_errors"):
        if known in text:
            return (int(code) if code else None), kind
    return None, "cuda"
