"""What-if: a list of causes, each taken out with a key, and the run without them beside the run as it was."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType

from replay.report.whatif import headline, replayed
from replay.report.wording import duration
from replay.simulate import Change
from replay.tui.bars import KeysBar
from replay.tui.core import pictures, whatif
from replay.tui.core.session import Session
from replay.tui.core.spans import NOTHING, STATES, Cells
from replay.tui.core.whatif import Item, Trials, Tried
from replay.tui.keys import WHAT_IF, bindings, footer
from replay.tui.palette import SHAPES
from replay.tui.panel import Panel, Row, cut, padded, wrapped
from replay.tui.sidescreen import SideScreen

_LABEL = 14


class WhatIfPanel(Panel):
    """Causes, the answer, and lanes in pairs."""

    NAME = "what-if"

    def __init__(self) -> None:
        super().__init__()
        self.at = 0
        self.items: tuple[Item, ...] = ()
        self.out: frozenset[str] = frozenset()
        self.tried: Tried | None = None
        self.note = "simulating the run as it was …"
        self.said = ""
        """What a key could not do."""

    def title(self) -> tuple[str, str]:
        """Which run."""
        session = self.session
        several = session is not None and len(session.heads) > 1
        return self.NAME, f"run {session.book.run_id}" if session is not None and several else ""

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """The list, the answer below it, then what ranks did and would do."""
        session, p = self.session, self.palette
        if session is None or self.tried is None:
            return [[(f"  {text}", p.dim)] for text in wrapped(self.note, width - 4, 8)]
        outcome = self.tried.outcome
        if outcome.cannot is not None:
            return [[(f"  {text}", p.text)] for text in wrapped(f"Cannot say, because {outcome.cannot}.", width - 4, 8)]
        rows: list[Row] = [self._item(n, item, width) for n, item in enumerate(self.items)]
        if not rows:
            rows = [[("  nothing is known that took time and could be taken out", p.dim)]]
        rows.append([])
        if self.said:
            rows.append([(f"  › {cut(self.said, width - 4)}", p.strong)])
        answer = self.note or (headline(outcome) if self.items else "")
        rows += [[(f"  {text}", p.dim if self.note else p.strong)] for text in wrapped(answer, width - 4, 4)]
        rows += [[(f"  {text}", p.dim)] for text in wrapped(replayed(outcome), width - 4, 4)]
        rows += [
            [(f"  {'! ' if n == 0 else '  '}{text}", p.warning)]
            for limit in whatif.limits(outcome)
            for n, text in enumerate(wrapped(limit, width - 6, 3))
        ]
        rows.append([])
        return rows + self._lanes(session, self.tried, width, height - len(rows))

    def _item(self, n: int, item: Item, width: int) -> Row:
        p, is_here = self.palette, n == self.at
        box = "[ ]" if item.key in self.out else "[x]"
        saves = f"{duration(item.cause.saved_s)} saved without" if item.cause is not None else ""
        row: Row = [("▶" if is_here else " ", p.mark), (f" {box} ", p.mark if item.key in self.out else p.text)]
        room = width - 6 - cell_len(saves) - 1
        name = max(min(room // 2, 40), 12)
        row += [(padded(item.name, name), p.strong), (padded(f" {item.told}", room - name), p.dim), (saves, p.text)]
        return [(t, s + p.cursor) for t, s in row] + [(" " * width, p.cursor)] if is_here else row

    def _lanes(self, session: Session, tried: Tried, width: int, height: int) -> list[Row]:
        book = session.book
        if tried.was is None or tried.would_be is None or height < 3:
            return []
        cells = max(width - _LABEL - 11, 10)
        window = book.window()
        edges = window.edges(cells)
        rows: list[Row] = []
        ends = {r.rank: r for r in tried.outcome.ranks}
        each = 2 if self.out else 1  # with nothing taken out a rank would do what it did
        for rank in whatif.most_changed(tried.outcome, min((height - 1) // each, whatif.SHOWN)):
            told = ends[rank]
            rows.append(self._lane(f"rank {rank} was", pictures.codes((rank,), tried.was, edges), told.replayed_s))
            if self.out:
                rows.append(self._lane("would be", pictures.codes((rank,), tried.would_be, edges), told.changed_s))
        told_by = f"{SHAPES['running']} its own work, compiling too  {SHAPES['waiting']} waiting for others"
        return [*rows, [(f"{'':>{_LABEL - 1}} {told_by}", self.palette.dim)]]

    def _lane(self, label: str, codes: Cells, seconds: float) -> Row:
        p = self.palette
        looks = [(" ", p.dim) if c == NOTHING else (SHAPES[STATES[c]], p.states[c]) for c in codes.tolist()]
        row: Row = [(f"{label:>{_LABEL - 1}} ", p.dim)]
        row += [("".join(s for s, _ in run), style) for style, run in groupby(looks, key=lambda look: look[1])]
        return [*row, (f" {duration(seconds):>9}", p.text)]

    def move(self, direction: int) -> None:
        """Another cause."""
        self.said = ""
        self.at = min(max(self.at + direction, 0), max(len(self.items) - 1, 0))
        self.redraw()

    def click(self, row: int, cell: int) -> None:
        """Choose a cause; a second click takes it out."""
        screen = self.screen
        if row < len(self.items) and isinstance(screen, WhatIfScreen):
            if row == self.at:
                screen.action_take_out()
            self.at = row
            self.redraw()


class WhatIfScreen(SideScreen):
    """Opened at a finding, the run is shown without its cause at once."""

    MOVED = WhatIfPanel.NAME
    BINDINGS: ClassVar[list[BindingType]] = bindings(WHAT_IF)

    def __init__(self, finding: str | None) -> None:
        super().__init__()
        self._finding = finding

    def compose(self) -> ComposeResult:
        """The panel and its keys."""
        yield WhatIfPanel()
        yield KeysBar(footer(WHAT_IF))

    def on_mount(self) -> None:
        """Ask what can be taken out."""
        self._trials = Trials(self.session.book.run_id)
        self._ask(Change(), self._list)

    def _list(self, found: Tried) -> None:
        if not self.is_attached:
            return
        panel, story = self.query_one(WhatIfPanel), self.session.story
        panel.items, panel.tried, panel.note = whatif.items(found.outcome), found, ""
        key = whatif.of_finding(panel.items, story.finding(self._finding) if story and self._finding else None)
        if key is not None:
            panel.at = [item.key for item in panel.items].index(key)
            self.action_take_out()
        panel.redraw()

    def action_take_out(self) -> None:
        """Take the cause out, or put it back."""
        panel = self.query_one(WhatIfPanel)
        if panel.items:
            self._try(panel.out ^ {panel.items[panel.at].key})

    def action_nothing(self) -> None:
        """Put everything back."""
        self._try(frozenset())

    def _try(self, out: frozenset[str]) -> None:
        panel = self.query_one(WhatIfPanel)
        panel.out, panel.note, panel.said = out, "simulating …", ""
        self._ask(whatif.change(panel.items, out, self.session.book.ranks), self._show)
        panel.redraw()

    def _ask(self, change: Change, answer: Callable[[Tried], None]) -> None:
        trials = self._trials
        self.session.slow.ask("what-if", lambda con: trials.tried(con, change), answer, self._fail)

    def _show(self, found: Tried) -> None:
        if self.is_attached:
            panel = self.query_one(WhatIfPanel)
            panel.tried, panel.note = found, ""
            panel.redraw()

    def _fail(self, error: Exception) -> None:
        if self.is_attached:
            panel = self.query_one(WhatIfPanel)
            panel.note = " ".join(str(error).split())
            panel.redraw()

    def action_line(self) -> None:
        """Go to the line where the cause is first told."""
        panel = self.query_one(WhatIfPanel)
        cause = panel.items[panel.at].cause if panel.items else None
        if cause is not None and cause.path is not None:
            self.app.pop_screen()
            self.session.travel.go(f"{cause.path}:{cause.line}")
        elif panel.items:
            panel.said = "no line tells of this one"
            panel.redraw()

    def action_leave(self) -> None:
        """Back to the run."""
        self.session.slow.interrupt()
        super().action_leave()
