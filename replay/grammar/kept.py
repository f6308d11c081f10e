"""What was compiled from the grammars, kept between runs: compiling them takes longer than reading a small log.

It lies in the user's cache as JSON, in a folder named after all that it was made from. Where the cache cannot be
written, everything is compiled each time.
"""

import hashlib
import json
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from replay.errors import InputError
from replay.resources import cache_dir, folder

FOLDER = "grammars-"
"""How the folders begin, one for each version of the grammars."""


def recall(name: str) -> Any:
    """Return what was kept under a name, None where there is nothing."""
    with suppress(OSError, ValueError, InputError):
        return json.loads(_place(name).read_text(encoding="utf8"))
    return None


def keep(name: str, value: Any) -> None:
    """Keep a value under a name, if that is possible."""
    with suppress(OSError, InputError):
        place = _place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf8") as out:
            json.dump(value, out)
        Path(made).replace(place)


def _place(name: str) -> Path:
    return cache_dir() / f"{FOLDER}{_digest()}" / f"{name}.json"


@cache
def _digest() -> str:
    """Of the grammars, of what compiles them, and of the Python that parses their patterns."""
    made = hashlib.sha256(sys.version.encode())
    for path in sorted([*folder("grammars").rglob("*.lark"), *Path(__file__).parent.glob("*.py")]):
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]
