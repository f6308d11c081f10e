"""Words that are no secret: those of the grammars and the rules, of Python, and the public names of torch.

A private name is replaced wherever it stands, so a word that a parser or a rule looks for must never be taken for one.
"""

import builtins
import keyword
import re
import sys
import types
from functools import cache
from importlib.resources import files

from replay.resources import folder

_WORD = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NUMBERED = re.compile("[0-9]+")
_DATA = {"grammars": ("*.lark",), "rules": ("**/*.yaml", "**/*.csv")}


@cache
def words() -> frozenset[str]:
    """Return the words, as they are written."""
    found = set(keyword.kwlist) | set(keyword.softkwlist) | set(dir(builtins)) | set(sys.stdlib_module_names)
    found |= {kind.__name__ for kind in vars(types).values() if isinstance(kind, type)}
    found |= set((files("replay.repro.redact") / "public_words.txt").read_text("utf-8").split())
    for name, patterns in _DATA.items():
        for pattern in patterns:
            for path in folder(name).glob(pattern):
                found |= set(_WORD.findall(path.read_text("utf-8")))
    return frozenset(found)


@cache
def _lower() -> frozenset[str]:
    return frozenset(w.lower() for w in words())


def is_public(word: str) -> bool:
    """Tell whether a word is one of ours, of Python's or of torch's; one or two characters name nobody."""
    return len(word) < 3 or word in words() or word.lower() in _lower() or _WORD.fullmatch(word) is None


def is_public_part(word: str) -> bool:
    """Tell the same of a part of a name, whose number at its end says nothing."""
    return is_public(_NUMBERED.sub("", word)) if word else True
