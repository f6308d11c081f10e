"""Texts that mean harm, in every column that reaches the screen: each cell shown is a plain printable character."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.cells import cell_len
from tui_driver import ROOT, drive, settle, typed

from replay.run import open_run
from replay.tui.app import ReplayApp
from replay.tui.core.take import markdown

TEXTS = {
    "escape": "\x1b[31mred\x1b]0;title\x07\x1b[2J",
    "control": "a\x00b\x08\x7f\x9b31mc\r\nd\te",
    "markup": "[bold red]not markup[/bold red] [@click=app.quit]no[/] [/]",
    "long": "x" * 100_000,
    "wide": "日本語の長い行🏳️‍🌈" * 50,
    "turned": "\u202eturned\u2066\u200b\u0301",
}
COLUMNS = {
    "events": ["summary", "host"],
    "lines": ["text"],
    "files": ["path", "abspath"],
    "findings": ["summary", "advice"],
    "evidence": ["label", "text"],
    "ranks": ["host"],
    "states": ["op", "summary"],
    "guard_failures": ["reason", "expected", "actual", "fn", "user_file"],
    "compiles": ["fn", "fn_file"],
    "stalls": ["op", "late_doing"],
    "runs": ["name"],
}
WALKS = (
    ["c", "c", "c"],
    ["n", "p", "3", "down", "enter", "down", "enter", "down"],
    ["2", "down"],
    ["4", "down"],
    ["5", "down"],
    ["6", "z"],
    ["z", "w"],
    ["escape", "x", "down"],
    ["escape", "s", "ctrl+u", *typed("FROM lines LIMIT 20"), "enter", "ctrl+o", "down", "right"],
)
"""Keys to each screen, one after the other."""


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clean") / "run.duckdb"
    open_run([ROOT / "corpora" / "recompile-one-rank" / "logs"], db=place).close()
    return place


@pytest.fixture(scope="module", params=TEXTS)
def poisoned(request: pytest.FixtureRequest, clean: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    place = tmp_path_factory.mktemp(request.param) / "run.duckdb"
    place.write_bytes(clean.read_bytes())
    with duckdb.connect(place) as con:
        for table, columns in COLUMNS.items():
            for column in columns:
                con.execute(f"UPDATE {table} SET {column} = $1 || coalesce({column}, '')", [TEXTS[request.param]])
    return request.param, place


def test_no_text_of_a_log_reaches_the_terminal_but_as_itself(
    poisoned: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path))
    kind, place = poisoned
    app = ReplayApp(lambda progress: open_run([place], progress=progress), [str(place)])
    shown: list[str] = []

    async def look(app: ReplayApp, pilot: Any) -> None:
        for keys in WALKS:
            for key in keys:
                await pilot.press(key)
                await settle(app, pilot)
            for size in [(200, 50), (80, 24)]:
                await pilot.resize_terminal(*size)
                await settle(app, pilot)
                for strip in app.screen._compositor.render_strips():
                    assert cell_len(strip.text) == size[0]
                    assert all(segment.control is None for segment in strip)
                    shown.append(strip.text)
        assert app.session is not None
        assert all(line.isprintable() for line in markdown(app.session).splitlines())

    drive(app, [], (80, 24), look)
    assert app.failed is None
    assert app.return_code in {None, 0}
    assert not [row for row in shown if not row.isprintable()]
    if kind == "markup":
        assert any("[bold red]" in row for row in shown)
