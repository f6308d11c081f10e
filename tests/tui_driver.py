"""Drives the app without a terminal: keys in, the text of the screen out."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from replay.run import open_run
from replay.tui.app import ReplayApp

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"
SIZES = [(80, 24), (120, 40), (240, 70)]
NAMES = {" ": "space", "/": "slash", ":": "colon", ".": "full_stop", ",": "comma", "*": "asterisk", "=": "equals_sign"}


def typed(text: str) -> list[str]:
    """The keys that type a text."""
    return [NAMES.get(character, character) for character in text]


def screen(app: ReplayApp) -> list[str]:
    """The rows of the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


async def settle(app: ReplayApp, pilot: Any) -> None:
    """Wait until every question is answered and everything is drawn."""
    await pilot.pause()
    while app.session is not None and app.session.is_busy:
        await asyncio.get_running_loop().run_in_executor(None, app.session.wait)
        await pilot.pause()
    await pilot.pause()


def drive(
    app: ReplayApp, keys: Sequence[str], size: tuple[int, int], then: Callable[[ReplayApp, Any], Awaitable[Any]]
) -> Any:
    """Open, press keys, waiting for what each of them asks, and return what `then` makes of it."""

    async def run() -> Any:
        async with app.run_test(size=size) as pilot:
            while app.session is None and app.failed is None:
                await pilot.pause(0.01)
            await settle(app, pilot)
            for key in keys:
                await pilot.press(key)
                await settle(app, pilot)
            return await then(app, pilot)

    return asyncio.run(run())


def app_of(logs: Path, db: Path, called: str | None = None) -> ReplayApp:
    """An app that reads logs, or a database that was made before."""
    return ReplayApp(lambda progress: open_run([logs], db=db, progress=progress), [called or str(logs)])
