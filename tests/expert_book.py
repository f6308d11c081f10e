"""Rule books made by hand, for tests of the engine."""

import shutil
from pathlib import Path
from textwrap import dedent

from replay import resources
from replay.expert.load import RuleBook, read_book


def make_book(folder: Path, *rules: str) -> RuleBook:
    """Return a book of the rules, written into the folder, with the taxonomy and knowledge of the package."""
    source = resources.folder("rules")
    shutil.copy(source / "taxonomy.yaml", folder / "taxonomy.yaml")
    shutil.copytree(source / "knowledge", folder / "knowledge", dirs_exist_ok=True)
    for number, text in enumerate(rules):
        (folder / f"rule{number}.yaml").write_text(dedent(text))
    return read_book([folder])


def rule(when: str, conclude: str = "{}", **fields: str) -> str:
    """Return the text of a rule about a recompile, with these steps and this conclusion; other fields replace ours."""
    given = {"id": "recompile-other", "title": "a rule", "layer": "compile", "say": "found", **fields}
    head = "".join(f"{name}: {value}\n" for name, value in given.items())
    return f"{head}when: {when}\nconclude: {conclude}\n"
