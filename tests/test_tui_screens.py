"""Every screen and state at three sizes, as text: tests/snapshots/NAME-WIDTHxHEIGHT.txt.

    python tests/test_tui_screens.py

writes them anew after a change that is meant; look at the difference before it is committed.
"""

import asyncio
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_tables import Delay, Made
from tui_driver import ROOT, SIZES, drive, screen, settle, typed

from replay.expert.engine import diagnose
from replay.expert.load import load_rules
from replay.run import Progress, Run, open_run
from replay.store import database, schema
from replay.timeline.derive import derive
from replay.tui.app import ReplayApp

SNAPSHOTS = Path(__file__).parent / "snapshots"
RECOMPILE, HANG, HEALTHY, MANY = "recompile-one-rank", "skipped-collective", "healthy", "many"
STATES: dict[str, tuple[str, list[str]]] = {
    "first": (RECOMPILE, []),
    "chain": (RECOMPILE, ["c", "c", "c"]),
    "finding-unfolded": (RECOMPILE, ["down", "enter", "down"]),
    "events": (RECOMPILE, ["2", "down"]),
    "state": (RECOMPILE, ["4"]),
    "details": (RECOMPILE, ["c", "c", "c", "5"]),
    "source-full": (RECOMPILE, ["c", "c", "c", "6", "z"]),
    "lanes-full": (RECOMPILE, ["1", "z"]),
    "one-rank": (RECOMPILE, ["r", "2"]),
    "closer": (RECOMPILE, ["plus", "plus", "plus", "plus"]),
    "whole": (RECOMPILE, ["0"]),
    "filter-asked": (RECOMPILE, ["slash", *typed("kind:recompile")]),
    "filter-set": (RECOMPILE, ["slash", *typed("kind:recompile"), "enter", "2"]),
    "filter-wrong": (RECOMPILE, ["slash", *typed("level:loud"), "enter"]),
    "goto-asked": (RECOMPILE, ["colon", *typed("step 4")]),
    "no-difference": (RECOMPILE, ["d"]),
    "backwards": (RECOMPILE, ["R", "greater_than_sign"]),
    "sql": (RECOMPILE, ["s"]),
    "sql-answer": (RECOMPILE, ["s", "enter", "ctrl+o", "down"]),
    "sql-wrong": (RECOMPILE, ["s", *typed(" x"), "enter"]),
    "what-if": (RECOMPILE, ["w"]),
    "repro": (RECOMPILE, ["x"]),
    "help": (RECOMPILE, ["question_mark"]),
    "hang": (HANG, []),
    "hang-chain": (HANG, ["c", "c"]),
    "healthy": (HEALTHY, []),
    "many-alike": (MANY, []),
    "many-unfolded": (MANY, ["1", "enter", "down", "down"]),
    "many-nodes": (MANY, ["a", "1"]),
}


def many_ranks(place: Path) -> None:
    """A database of 64 ranks on 8 hosts, one of which comes late to an operation."""
    with duckdb.connect(place) as con:
        schema.create(con)
        Made(ranks=64, ops=12, hosts=8, delays=(Delay(5, 6, 2.0),)).write(con)
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION)})
        derive(con)
        diagnose(con, load_rules(()))


def database_of(corpus: str, folder: Path) -> Path:
    """The database of a corpus, made once for all its states."""
    place = folder / f"{corpus}.duckdb"
    if not place.exists():
        if corpus == MANY:
            many_ranks(place)
        else:
            open_run([ROOT / "corpora" / corpus / "logs"], db=place).close()
    return place


def app_on(place: Path) -> ReplayApp:
    return ReplayApp(lambda progress: open_run([place], progress=progress), ["logs"])


async def at_all_sizes(app: ReplayApp, pilot: Any) -> dict[tuple[int, int], str]:
    """What the screen shows when the terminal is made as large as each of the sizes."""
    shown = {}
    for size in SIZES:
        await pilot.resize_terminal(*size)
        await settle(app, pilot)
        shown[size] = "\n".join(row.rstrip() for row in screen(app)) + "\n"
    return shown


def pictures(name: str, folder: Path) -> dict[tuple[int, int], str]:
    """A state at all sizes."""
    corpus, keys = STATES[name]
    home = folder / "home"  # what the header calls "logs" must be there
    (home / "logs").mkdir(parents=True, exist_ok=True)
    (home / "logs" / "rank0.log").touch()
    os.chdir(home)
    app = app_on(database_of(corpus, folder))
    shown: dict[tuple[int, int], str] = drive(app, keys, SIZES[1], at_all_sizes)
    assert app.failed is None
    return shown


def reading(folder: Path) -> dict[tuple[int, int], str]:
    """The screen while logs are read for the first time."""
    begun, go_on = threading.Event(), threading.Event()
    os.chdir(ROOT / "corpora" / RECOMPILE)

    def opener(progress: Any) -> Run:
        progress(Progress("reading", 0, 100))
        begun.set()
        go_on.wait(60)
        return open_run([database_of(RECOMPILE, folder)])

    async def run() -> dict[tuple[int, int], str]:
        app = ReplayApp(opener, ["logs"])
        async with app.run_test(size=SIZES[1]) as pilot:
            await asyncio.get_running_loop().run_in_executor(None, begun.wait)
            shown = await at_all_sizes(app, pilot)
            go_on.set()
            return shown

    return asyncio.run(run())


def failing(folder: Path) -> dict[tuple[int, int], str]:
    """The screen where there is nothing to read."""
    (folder / "logs").mkdir(exist_ok=True)
    os.chdir(folder)
    shown: dict[tuple[int, int], str] = drive(
        ReplayApp(lambda progress: open_run(["logs"], progress=progress), ["logs"]), [], SIZES[1], at_all_sizes
    )
    return shown


SPECIAL = {"reading": reading, "nothing-there": failing}


def made(name: str, folder: Path) -> dict[tuple[int, int], str]:
    return SPECIAL[name](folder) if name in SPECIAL else pictures(name, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screens")


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [*STATES, *SPECIAL])
def test_screen_is_as_stored(name: str, folder: Path) -> None:
    for (width, height), text in made(name, folder).items():
        stored = (SNAPSHOTS / f"{name}-{width}x{height}.txt").read_text(encoding="utf-8")
        assert text == stored, f"{name} at {width}x{height}; if it is meant: python tests/test_tui_screens.py"


@pytest.mark.parametrize("name", [*STATES, *SPECIAL])
def test_stored_screens_fill_their_size(name: str) -> None:
    for width, height in SIZES:
        rows = (SNAPSHOTS / f"{name}-{width}x{height}.txt").read_text(encoding="utf-8").splitlines()
        assert len(rows) == height
        assert all(row.isprintable() for row in rows)


def replace(folder: Path, texts: dict[str, str]) -> None:
    """Let a folder hold these files and no others; a failure leaves it as it was."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
        new, old = Path(name) / "new", Path(name) / "old"
        new.mkdir()
        for file, text in texts.items():
            (new / file).write_text(text, encoding="utf-8")
        if folder.exists():
            folder.rename(old)
        new.rename(folder)


def test_snapshots_are_replaced_all_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    replace(folder, {"a.txt": "a", "b.txt": "b"})
    with pytest.raises(UnicodeEncodeError):
        replace(folder, {"a.txt": "other", "c.txt": "\udcff"})
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"a.txt": "a", "b.txt": "b"}
    replace(folder, {"c.txt": "c"})
    assert [file.name for file in folder.iterdir()] == ["c.txt"]
    assert list(tmp_path.iterdir()) == [folder]


def main() -> int:
    """Write all snapshots anew: the stored ones are replaced once all of them are made."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["REPLAY_CACHE_DIR"] = f"{name}/cache"
        texts = {}
        for state in [*STATES, *SPECIAL]:
            for (width, height), text in made(state, Path(name)).items():
                texts[f"{state}-{width}x{height}.txt"] = text
            print(state)
        os.chdir(ROOT)
    replace(SNAPSHOTS, texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
