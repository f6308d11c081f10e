"""The app: opens the logs, holds the session, and lays the screens over each other."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import strftime
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from replay.report.wording import visible
from replay.run import ProgressCallback, Run
from replay.tui.core.book import Opened
from replay.tui.core.session import Session
from replay.tui.helpscreen import HelpScreen
from replay.tui.keys import KEYS
from replay.tui.mainscreen import MainScreen
from replay.tui.openscreen import OpenScreen
from replay.tui.palette import DARK, LIGHT, Palette, palette

Opener = Callable[[ProgressCallback], Run]
"""Reads the logs, or opens what was read before; tells how far it is."""
_SWITCH_S = 0.0005
"""How long a desk's thread may hold the interpreter when the screen wants it: a tenth of Python's usual."""


class ReplayApp(App[None]):
    """`logs` is what the user called them, `at` where to begin."""

    ENABLE_COMMAND_PALETTE = True
    TITLE = "replay"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", "quit", show=False, priority=True)]
    DEFAULT_CSS = """
    Screen { background: $background; color: $foreground; }
    """

    def __init__(self, opener: Opener, logs: list[str], at: str | None = None, theme: str | None = None) -> None:
        super().__init__()
        self.opener, self._named, self._at = opener, logs, at
        self.logs = visible(shlex.join(logs))
        self.failed: str | None = None
        """Why the logs could not be opened."""
        self.session: Session | None = None
        self.palette: Palette = palette(DARK)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme or ("replay-light" if _is_light() else "replay-dark")
        self._draw_again = False

    def on_mount(self) -> None:
        """Open the logs."""
        sys.setswitchinterval(_SWITCH_S)
        self.theme_changed_signal.subscribe(self, self._recolour)
        self._recolour(self.current_theme)
        self.push_screen(OpenScreen(self._named, self._opened))

    def _recolour(self, theme: Theme) -> None:
        self.palette = palette(theme)
        self.changed()

    def _opened(self, run: Run, opened: Opened) -> None:
        """The logs are read: show them."""
        self.session = Session(run, opened, self._deliver, self.changed)
        self.session.open(self._at)
        self.switch_screen(MainScreen())

    def _deliver(self, hand_over: Callable[[], None]) -> None:
        """Take an answer of the desk's thread to this one."""
        if self.is_running:
            self.call_later(hand_over)

    def changed(self) -> None:
        """Something is new: draw once, however much it is."""
        if not self._draw_again:
            self._draw_again = True
            self.call_later(self._redraw)

    def _redraw(self) -> None:
        self._draw_again = False
        for screen in self.screen_stack:
            if isinstance(screen, MainScreen):
                screen.redraw()

    def on_unmount(self) -> None:
        """End the desk's thread and close the database."""
        if self.session is not None:
            self.session.close()
            self.session.run.close()

    # Commands that are the app's

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key is a command of the palette too."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, MainScreen):
            for key in KEYS:
                yield SystemCommand(f"{key.help} ({key.shown})", key.group, self._runner(screen, key.action))

    def _runner(self, screen: MainScreen, action: str) -> Callable[[], None]:
        def run() -> None:
            self.call_later(screen.run_action, action)

        return run

    def action_other_theme(self) -> None:
        """Dark or light."""
        self.theme = "replay-light" if self.current_theme.dark else "replay-dark"

    def action_picture(self) -> None:
        """Save the screen as SVG, beside where the command was called."""
        name = f"replay-{strftime('%Y%m%d-%H%M%S')}.svg"
        try:
            saved = self.save_screenshot(name, path=str(Path.cwd()))
            text, bad = f"saved {saved}", False
        except OSError as error:
            text, bad = f"{name}: cannot be written ({error.strerror})", True
        if self.session is not None:
            self.session.say(text, is_error=bad)

    def action_help_screen(self) -> None:
        """The keys, and what the pictures mean."""
        self.push_screen(HelpScreen())


def _is_light() -> bool:
    """What the terminal says of its background, if it says anything: COLORFGBG=0;15."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return background in {"7", "15"}
