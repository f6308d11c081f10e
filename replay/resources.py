"""Where the package's data lie (grammars, rules, corpora), rules that other packages bring, and the cache's folder.

In a wheel they are folders of the package; in a checkout they stand at its top level, where people edit them.
"""

import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from replay.errors import InputError

RULES_GROUP = "replay.rules"
"""Entry points of this group name packages whose folder holds rules."""


def folder(name: str) -> Path:
    """Return the folder `name` ("grammars", "rules", "corpora") of the installed package or of the checkout.

    Raises FileNotFoundError if the installation lacks it.
    """
    packaged = Path(__file__).parent / name
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


def rule_folders(extra: Iterable[Path] = ()) -> list[Path]:
    """Return the folders of rules: the tool's own, those of installed packages by name, then `extra`.

    A package is found, not imported; one that cannot be found is given as a path that does not exist, under its name.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and only rules need it

    installed = sorted(entry_points(group=RULES_GROUP), key=lambda point: point.name)
    return [folder("rules"), *(_of_package(point.module) for point in installed), *extra]


def _of_package(module: str) -> Path:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else Path(f"{module} (entry point of {RULES_GROUP})")
