"""A finding as a script: shown first, written with one key, run with another that asks."""

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from replay.report.wording import visible
from replay.tui.bars import KeysBar
from replay.tui.core import repro
from replay.tui.core.repro import Script
from replay.tui.keys import REPRO, bindings, footer
from replay.tui.panel import Panel, Row, cut, wrapped
from replay.tui.prompt import PromptScreen
from replay.tui.sidescreen import SideScreen


class ScriptPanel(Panel):
    """What is known of the script, and its text."""

    NAME = "repro"

    def __init__(self, finding: str) -> None:
        super().__init__()
        self.script: Script | None = None
        self.said: list[str] = []
        self.is_bad = False
        self._finding = finding
        self._top = 0

    def title(self) -> tuple[str, str]:
        """Of which finding."""
        return f"repro of {self._finding}", self.script.told if self.script is not None else ""

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """What came of it, then the script."""
        p, found = self.palette, self.script
        if found is None:
            return [[("  making the script …", p.dim)]]
        rows: list[Row] = [
            [(f" {'›' if n == 0 else ' '} {text}", p.error if self.is_bad else p.strong)]
            for line in self.said
            for n, text in enumerate(wrapped(line, width - 4, 3))
        ]
        if found.why_not:
            return [*rows, *([(f"  {text}", p.text)] for text in wrapped(found.why_not, width - 4, 4))]
        rows += [[]] if rows else []
        lines = found.text.splitlines()
        self._top = min(max(self._top, 0), max(len(lines) - (height - len(rows)), 0))
        for n, line in enumerate(lines[self._top :], self._top + 1):
            rows.append(
                [(f"{n:>4} ", p.dim), (cut(visible(line), width - 5), p.dim if line.startswith("#") else p.text)]
            )
        return rows

    def move(self, direction: int) -> None:
        """Up and down in the script."""
        self._top += direction
        self.redraw()


class ReproScreen(SideScreen):
    """Nothing is written and nothing is run before a key says so."""

    MOVED = ScriptPanel.NAME
    BINDINGS: ClassVar[list[BindingType]] = bindings(REPRO)

    def __init__(self, finding: str) -> None:
        super().__init__()
        self._finding = finding
        self._process: Process | None = None

    def compose(self) -> ComposeResult:
        """The script and the keys."""
        yield ScriptPanel(self._finding)
        yield KeysBar(footer(REPRO))

    def on_mount(self) -> None:
        """Ask for the script."""
        session = self.session
        finding = session.story.finding(self._finding) if session.story is not None else None
        assert finding is not None, "the main screen asks for findings that there are"
        place = session.run.path
        session.slow.ask("repro", lambda con: repro.script(con, place, finding), self._show, self._fail)

    def _show(self, found: Script) -> None:
        if self.is_attached:
            panel = self.query_one(ScriptPanel)
            panel.script = found
            panel.redraw()

    def _fail(self, error: Exception) -> None:
        self._show(Script(why_not=visible(" ".join(str(error).split()))))

    def say(self, lines: Sequence[str], *, is_bad: bool = False) -> None:
        """Show what came of it."""
        if self.is_attached:
            panel = self.query_one(ScriptPanel)
            panel.said, panel.is_bad = list(lines), is_bad
            panel.redraw()

    @property
    def _is_ready(self) -> bool:
        found = self.query_one(ScriptPanel).script
        return found is not None and self._process is None

    def action_write(self) -> None:
        """Write script and report."""
        if self._is_ready:
            self._make(run=False)

    def action_run(self) -> None:
        """Ask, then write and run it."""
        found = self.query_one(ScriptPanel).script
        if self._is_ready and found is not None and found.text:
            place = f"{repro.folder(self._finding)}/"
            hint = f"run this script on this machine, its ranks kept to loopback? It goes to {place}"
            self.app.push_screen(PromptScreen("yes or no", hint, "", self._confirmed))

    def _confirmed(self, answer: str) -> None:
        if answer.strip().lower() in {"y", "yes"}:
            self._make(run=True)
        else:
            self.say(["not run"])

    @work(exclusive=True)
    async def _make(self, *, run: bool) -> None:
        self.say(["running it, and it once more with the advised change … (esc stops it)" if run else "writing …"])
        command = repro.command(self.session.run.path, self._finding, run=run)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        self._process = process
        try:
            output, errors = await process.communicate()
        finally:
            self._process = None
            if process.returncode is None:
                stop(process)
        lines, is_bad = repro.result(
            self._finding, process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace")
        )
        self.say(lines, is_bad=is_bad)

    def on_unmount(self) -> None:
        """Nothing is left running."""
        if self._process is not None:
            stop(self._process)

    def action_leave(self) -> None:
        """Stop what runs, else go back."""
        if self._process is not None:
            stop(self._process)
        else:
            super().action_leave()


def stop(process: Process) -> None:
    """Interrupt a command as ctrl+c would: it ends what it started."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
