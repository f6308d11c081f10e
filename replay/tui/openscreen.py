"""While logs are read for the first time: how far it is, and what is there to look at already; or what went wrong."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from replay.errors import ReplayError
from replay.report.wording import visible
from replay.run import Progress, Run
from replay.tui.core import book, opening
from replay.tui.core.book import Opened
from replay.tui.core.opening import Listed
from replay.tui.panel import Drawn, Row, cut, padded, wrapped

if TYPE_CHECKING:
    from replay.tui.app import ReplayApp

_TICK_S = 0.1


class _Stopped(Exception):
    """The reading was given up by the user."""


class OpenScreen(Screen[None]):
    """Reads in a thread of its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+q", "leave", "leave", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    def __init__(self, logs: list[str], opened: Callable[[Run, Opened], None]) -> None:
        super().__init__()
        self.logs, self._opened = logs, opened
        self.progress = Progress("looking")
        self.files: list[Listed] = []
        self.error: str | None = None
        self.chosen: int | None = None
        self.top = 0
        """First line shown of the file looked at."""
        self.began = time.monotonic()
        self._stopped = threading.Event()

    def compose(self) -> ComposeResult:
        """One picture."""
        yield _Picture()

    def on_mount(self) -> None:
        """Begin."""
        self.set_interval(_TICK_S, self.query_one(_Picture).redraw)
        threading.Thread(target=self._read, name="replay-reading", daemon=True).start()

    def _read(self) -> None:
        from replay.tui.app import ReplayApp

        app = self.app
        assert isinstance(app, ReplayApp), "logs are opened by this app"
        try:
            if self.logs != ["@"] and "-" not in self.logs:
                self.files = opening.listed(self.logs)
            run = app.opener(self._note)
            self._note(Progress("loading"))
            opened = book.open_first(run.cursor())
        except _Stopped:
            return
        except ReplayError as error:
            self._fail(app, str(error))
        except Exception as error:  # shown on the screen, which a traceback would destroy
            self._fail(app, f"unexpected: {type(error).__name__}: {error}")
        else:
            if self._stopped.is_set() or not app.is_running:
                run.close()
            else:
                app.call_later(self._opened, run, opened)

    def _note(self, progress: Progress) -> None:
        if self._stopped.is_set():
            raise _Stopped
        self.progress = progress

    def _fail(self, app: "ReplayApp", text: str) -> None:
        self.error = text
        app.call_later(self._show_failure, app)

    def _show_failure(self, app: "ReplayApp") -> None:
        self.query_one(_Picture).redraw()
        app.failed = self.error

    def action_move(self, direction: int) -> None:
        """Look at another file that was read."""
        last = min(opening.at(self.files, self.progress), len(self.files) - 1)
        here = last if self.chosen is None else self.chosen
        self.chosen, self.top = min(max(here + direction, 0), max(last, 0)), 0
        self.query_one(_Picture).redraw()

    def action_page(self, direction: int) -> None:
        """Look further down or up in the file."""
        self.top += direction * max(self.size.height // 2, 1)
        self.query_one(_Picture).redraw()

    def action_leave(self) -> None:
        """Give up; what was there before stays."""
        self._stopped.set()
        self.app.exit()


class _Picture(Drawn):
    """The whole screen, drawn from what its screen knows."""

    DEFAULT_CSS = """
    _Picture { width: 100%; height: 100%; }
    """

    def all_rows(self, width: int, height: int) -> list[Row]:
        """What went wrong, or how far it is."""
        screen = self.screen
        assert isinstance(screen, OpenScreen), "this picture is of that screen"
        return self._failed(screen, width) if screen.error else self._reading(screen, width, height)

    def _failed(self, screen: OpenScreen, width: int) -> list[Row]:
        p = self.palette
        rows: list[Row] = [[(" replay ", p.head_focus)], [], [("  nothing to show", p.strong)], []]
        rows += [[(f"  {text}", p.error)] for text in wrapped(visible(screen.error or ""), width - 4, 6)]
        ways = (
            "LOGS is a folder, files, a quoted glob, a .duckdb made before, or @ for what you read last.",
            "Hand over everything there is: the launcher's output, every rank's, "
            "and what torch and NCCL wrote to files.",
            "replay ls LOGS        says what was found in there, and what was not logged",
            "replay demo           shows what to expect, on logs that come with the tool",
        )
        rows += [[], *([(f"  {text}", p.text)] for way in ways for text in wrapped(way, width - 4, 3))]
        return [*rows, [], [("  q leaves", p.dim)]]

    def _reading(self, screen: OpenScreen, width: int, height: int) -> list[Row]:
        p, progress = self.palette, screen.progress
        rows: list[Row] = [[(" replay ", p.head_focus), (f"  {self._app.logs}", p.dim)], []]
        share = opening.share(progress)
        bar = max(width - 12, 10)
        full = int(bar * share)
        rows.append([("  ", p.text), ("█" * full, p.link), ("░" * (bar - full), p.dim), (f" {share:>4.0%}", p.strong)])
        rows.append([(f"  {cut(opening.told(progress, time.monotonic() - screen.began), width - 4)}", p.text)])
        rows.append(
            [
                (
                    cut(
                        "  ↑↓ look at the files that were read, PgUp PgDn into them; q stops, the old stays",
                        width,
                    ),
                    p.dim,
                )
            ]
        )
        rows.append([])
        here = opening.at(screen.files, progress)
        shown = max(min(len(screen.files), (height - 8) // 3), 0)
        chosen = min(here, len(screen.files) - 1) if screen.chosen is None else screen.chosen
        top = min(max(chosen - shown // 2, 0), max(len(screen.files) - shown, 0))
        for n in range(top, top + shown):
            state = "✓ read" if n < here else "▸ reading" if n == here else "  waits"
            name = padded(screen.files[n].name, max(width - 16, 8))
            style = p.strong if n == chosen else p.text if n <= here else p.dim
            rows.append(
                [
                    ("▶ " if n == chosen else "  ", p.mark),
                    (padded(state, 10), p.good if n < here else p.dim),
                    (name, style),
                ]
            )
        if screen.files and 0 <= chosen <= here:
            rows.append([(padded(f" {screen.files[chosen].name} ", width), p.head)])
            lines = opening.peek(screen.files[chosen])
            room = max(height - len(rows), 1)
            screen.top = min(max(screen.top, 0), max(len(lines) - room, 0))
            rows += [[(f" {cut(line, width - 2)}", p.text)] for line in lines[screen.top : screen.top + room]]
        return rows
