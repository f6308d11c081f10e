"""Where the package's data lie: grammars, rules and the demo corpus; and where it may keep what it made.

In a wheel they are folders of the package; in a checkout they stand at its top level, where people edit them.
"""

import os
from importlib.resources import files
from pathlib import Path

from replay.errors import InputError


def folder(name: str) -> Path:
    """Return the folder `name` ("grammars", "rules", "corpora") of the installed package or of the checkout.

    Raises FileNotFoundError if the installation lacks it.
    """
    packaged = Path(str(files("replay"))) / name
    for candidate in (packaged, packaged.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the installation of replay lacks its folder {name}/")


def cache_dir() -> Path:
    """Return the folder of the databases and of what else can be made again; it may not exist yet.

    Raises InputError for a user without a home folder who names none.
    """
    try:
        if named := os.environ.get("REPLAY_CACHE_DIR"):
            return Path(named).expanduser().absolute()
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base).absolute() if base else Path.home() / ".cache") / "replay"
    except RuntimeError as error:
        why = str(error).rstrip(".")
        raise InputError(f"no folder for the databases: {why}; name one in REPLAY_CACHE_DIR") from None
