"""Where the package's data lie: grammars, rules and the demo corpus.

In a wheel they are folders of the package; in a checkout they stand at its top level, where people edit them.
"""

from importlib.resources import files
from pathlib import Path


def folder(name: str) -> Path:
    """Return the folder `name` ("grammars", "rules", "corpora") of the installed package or of the checkout.

    Raises FileNotFoundError if the installation lacks it.
    """
    packaged = Path(str(files("replay"))) / name
    for candidate in (packaged, packaged.parent.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the installation of replay lacks its folder {name}/")
