"""What kind of graph break a message stands for, by `rules/knowledge/graph_breaks.csv`.

Rows of the table: an id with a text that it must hold, an id (or the first sentence, where the id is not told), or a
text alone (torch up to 2.6 has neither ids nor fixed sentences). The first row that fits counts.
"""

import csv
from dataclasses import dataclass
from functools import cache

from replay.resources import folder

OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The table by what a message tells."""

    refined: dict[str, list[tuple[str, str]]]
    by_id: dict[str, str]
    by_type: dict[str, tuple[str, str]]
    by_text: list[tuple[str, str]]


@cache
def _kinds() -> _Kinds:
    found = _Kinds({}, {}, {}, [])
    place = folder("rules") / "knowledge" / "graph_breaks.csv"
    with place.open(encoding="utf8", newline="") as lines:
        for row in csv.DictReader(lines):
            gb_id, gb_type, contains, kind = row["gb_id"], row["gb_type"], row["contains"], row["kind"]
            if gb_id and contains:
                found.refined.setdefault(gb_id, []).append((contains, kind))
            elif gb_id:
                found.by_id.setdefault(gb_id, kind)
                found.by_type.setdefault(gb_type, (gb_id, kind))
            else:
                found.by_text.append((contains, kind))
    return found


def kind_of(gb_id: str | None, gb_type: str | None, text: str) -> str:
    """Return the kind of a break: data-dependent, unsupported-op, side-effect, wrapper, disabled or other.

    `text` is the whole message on one line; `gb_type` its first sentence.
    """
    table = _kinds()
    known = gb_id
    if known not in table.by_id and gb_type in table.by_type:
        known = table.by_type[gb_type][0]
    if known in table.by_id:
        for contains, kind in table.refined.get(known, []):
            if contains in text:
                return kind
        return table.by_id[known]
    sentence = gb_type or text
    return next((kind for contains, kind in table.by_text if contains in sentence), OTHER)
