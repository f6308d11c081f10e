"""A folder of labelled runs, diagnosed and scored one after the other; scenarios in it are written first."""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from replay.corpus.labelled import Case, read_case, read_cases
from replay.corpus.score import Score, score
from replay.errors import InputError
from replay.run import open_run
from replay.synth import read_scenario, write

SCENARIOS = "scenarios"
"""Folder of scenarios beside labelled runs."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a labelled run comes from: its folder, or the scenario that it is written from."""

    name: str
    path: Path

    def case(self, scratch: Path) -> Case:
        """Return the labelled run; one of a scenario is written below `scratch`."""
        if self.path.is_dir():
            return read_case(self.path, self.name)
        write(read_scenario(self.path), scratch, 0)
        return read_case(scratch, self.name)


def sources(folder: Path) -> list[Source]:
    """Return the labelled runs and scenarios of a folder.

    Raises InputError where there are none, or a label is wrong.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    scenarios = sorted((folder / SCENARIOS).glob("*.yaml"))
    made = [Source(f"{SCENARIOS}/{path.stem}", path) for path in scenarios]
    try:
        return [Source(case.name, case.logs.parent) for case in read_cases(folder)] + made
    except InputError:
        if not made or any(folder.rglob("truth.json")):
            raise
        return made


def scored(found: Sequence[Source], rules: Sequence[Path] = (), jobs: int = 1) -> Iterator[Score]:
    """Diagnose and score labelled runs, `jobs` at a time; in the order given.

    Raises InputError where logs cannot be read.
    """
    one = partial(_scored, rules=tuple(rules))
    if jobs == 1:
        yield from map(one, found)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, found)


def _scored(source: Source, rules: Sequence[Path]) -> Score:
    with tempfile.TemporaryDirectory(prefix="replay-") as scratch:
        case = source.case(Path(scratch) / "run")
        with open_run([case.logs], db=Path(scratch) / "run.duckdb", rules=rules) as run:
            return score(case, run.report())
