"""The known forms of lines that come nearest to a text that is not known."""

import math
import re
from collections import Counter

from replay.explain.model import Near
from replay.grammar.source import forms
from replay.parse.families import BY_ARTIFACT, BY_HEADER, NCCL_WARNING
from replay.resources import folder

_WORD = re.compile(r"[A-Za-z_]{3,}")
_FIELD = re.compile(r"<[a-z_0-9]+>")
_LIKE = 0.5
"""Share of the words of a form, or of the text, that both must have in common; rare words weigh more."""
_SHOWN = 3
_LONGEST = 160


def nearest_forms(text: str) -> tuple[Near, ...]:
    """Return the known forms of lines that share the most telling words with the text."""
    words = set(_WORD.findall(text.lower()))
    if not words:
        return ()
    known = [(near, set(_WORD.findall(_FIELD.sub(" ", near.looks).lower()))) for near in _known()]
    often = Counter(word for _, own in known for word in own)
    weight = {word: 1 / (1 + math.log(count)) for word, count in often.items()}
    asked = sum(weight.get(word, 1.0) for word in words)
    rated = []
    for near, own in known:
        whole = sum(weight[word] for word in own)
        common = sum(weight[word] for word in own & words)
        if (common >= _LIKE * whole and len(own & words) > 1) or (common >= _LIKE * asked and len(own & words) > 2):
            rated.append((-common, -common / whole, near))
    rated.sort(key=lambda item: item[:2])
    shown: dict[str, Near] = {}
    for _, _, near in rated:
        shown.setdefault(near.looks, Near(near.looks[:_LONGEST], near.place))
    return tuple(list(shown.values())[:_SHOWN])


def _known() -> list[Near]:
    names = dict.fromkeys(
        [f for group in (*BY_HEADER.values(), *BY_ARTIFACT.values(), NCCL_WARNING, ("guard_reason",)) for f in group]
    )
    found = [Near(form.looks, form.place) for name in names for form in forms(name)]
    place = folder("grammars") / "nccl_known.shapes"
    for number, line in enumerate(place.read_text(encoding="utf8").splitlines(), 1):
        if line and not line.startswith("//"):
            found.append(Near(line, f"grammars/{place.name}:{number}"))
    return found
