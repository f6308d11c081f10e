"""The SQL pad: a query with completion and history, its answer as a table, and the way from a row to the place it
names.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.widgets import TextArea

from replay.report.wording import count, visible
from replay.tui.bars import Bar, KeysBar
from replay.tui.core import pad
from replay.tui.core.pad import Answer, History, Names
from replay.tui.keys import SQL, SQL_ALWAYS, SQL_TEXT, bindings, footer
from replay.tui.panel import Panel, Row, cut, padded, wrapped
from replay.tui.prompt import PromptScreen
from replay.tui.sidescreen import SideScreen

_CELL_MOST = 60
_FIRST = "SELECT kind, severity, count(*) AS n FROM events GROUP BY ALL ORDER BY n DESC"


class QueryArea(TextArea):
    """The query. Enter asks it; ctrl+j breaks the line; tab completes; up and down at its rim go through the
    history.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(SQL_TEXT, always=True)

    def action_newline(self) -> None:
        """Break the line."""
        self.insert("\n")

    async def _on_key(self, event: Key) -> None:
        screen = self.screen
        assert isinstance(screen, SqlScreen), "this text area lives in the SQL pad"
        taken = {
            "enter": screen.action_run,
            "tab": screen.complete,
            "up": screen.older if self.cursor_at_first_line else None,
            "down": screen.newer if self.cursor_at_last_line else None,
        }.get(event.key)
        if taken is None:
            await super()._on_key(event)
            screen.hint()
            return
        event.stop()
        event.prevent_default()
        taken()


class HintBar(Bar):
    """What tab would write, or what went wrong."""

    text = ""
    is_error = False

    def row(self, width: int) -> Row:
        """The hint."""
        p = self.palette
        return [(" ", p.dim), (cut(self.text, width - 2), p.error if self.is_error else p.dim)]


class AnswerPanel(Panel):
    """The rows of the answer; enter goes to the place that a row names."""

    NAME = "answer"

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer | None = None
        self.fault = ""
        """Why there is no answer, in full: the row above has no room for it."""
        self._at = 0
        self._left = 0
        self._top = 0

    def take(self, answer: Answer) -> None:
        """Show another answer."""
        self.answer, self.fault, self._at, self._left, self._top = answer, "", 0, 0, 0
        self.redraw()

    def title(self) -> tuple[str, str]:
        """How many rows."""
        if self.answer is None:
            return "answer", ""
        rows = count(len(self.answer.rows), "row")
        return "answer", f"the first {rows} (export has all)" if self.answer.more else rows

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """Head and the rows around the one looked at."""
        p, found = self.palette, self.answer
        if self.fault:
            return [[(f"  {text}", p.error)] for text in wrapped(self.fault, width - 4, height)]
        if found is None:
            hint = "every record of the logs is a row; tab completes names, @ has queries that come with the tool"
            return [[(f"  {text}", p.dim)] for text in wrapped(hint, width - 4, height)]
        shown = max(height - 1, 1)
        self._top = min(max(self._top, self._at - shown + 1), self._at)
        part = found.rows[self._top : self._top + shown]
        widths = [
            min(max([cell_len(name), *(cell_len(row[n]) for row in part)]), _CELL_MOST)
            for n, name in enumerate(found.columns)
        ]
        self._left = min(self._left, max(len(widths) - 1, 0))
        rows: list[Row] = [
            [(" ", p.dim), *((_cell(c, widths[n], False) + "  ", p.strong) for n, c in self._from(found.columns))]
        ]
        for y, cells in enumerate(part, self._top):
            is_here = y == self._at
            row: Row = [("▶" if is_here else " ", p.mark)]
            row += [(_cell(c, widths[n], n in found.numbers) + "  ", p.text) for n, c in self._from(cells)]
            rows.append([(t, s + p.cursor) for t, s in row] + [(" " * width, p.cursor)] if is_here else row)
        return rows

    def _from(self, cells: Sequence[str]) -> list[tuple[int, str]]:
        return list(enumerate(cells))[self._left :]

    def move(self, direction: int) -> None:
        """Another row."""
        last = len(self.answer.rows) - 1 if self.answer else 0
        self._at = min(max(self._at + direction, 0), max(last, 0))
        self.redraw()

    def sideways(self, direction: int) -> None:
        """Columns further right or left."""
        self._left = max(self._left + direction, 0)
        self.redraw()

    def click(self, row: int, cell: int) -> None:
        """Another row; a second click goes where it leads."""
        if self.answer is None or row == 0:
            return
        at = min(self._top + row - 1, max(len(self.answer.rows) - 1, 0))
        if at == self._at:
            self.enter()
        self._at = at
        self.redraw()

    def enter(self) -> None:
        """Go to the line, the event, the finding or the moment that the row names."""
        session = self.session
        if session is None or self.answer is None or not self.answer.rows:
            return
        row = dict(zip(self.answer.columns, self.answer.rows[self._at], strict=False))
        leave = self._app.pop_screen
        if row.get("file_id", "").isdecimal() and row.get("line_no", "").isdecimal():
            leave()
            session.travel.to_line(int(row["file_id"]), int(row["line_no"]))
        elif row.get("finding_id"):
            leave()
            session.tour.to(row["finding_id"])
        elif row.get("path") and row.get("line_no", "").isdecimal():
            leave()
            session.travel.go(f"{row['path']}:{row['line_no']}")
        elif (t := row.get("t_lo") or row.get("t")) and t.replace(".", "", 1).isdecimal():
            leave()
            session.to_time(float(t), int(row["rank"]) if row.get("rank", "").isdecimal() else None)
        else:
            self._hint("a row with line_no and file_id or path, with finding_id or t_lo leads somewhere")

    def _hint(self, text: str) -> None:
        screen = self.screen
        if isinstance(screen, SqlScreen):
            screen.say(text)


def _cell(text: str, width: int, is_right: bool) -> str:
    shown = cut(text, width)
    return " " * (width - cell_len(shown)) + shown if is_right else padded(shown, width)


class SqlScreen(SideScreen):
    """Query above, answer below."""

    MOVED = AnswerPanel.NAME
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SQL), *bindings(SQL_ALWAYS, always=True)]
    DEFAULT_CSS = """
    SqlScreen QueryArea { height: 6; border: none; padding: 0 1; background: $panel; color: $foreground; }
    SqlScreen QueryArea:focus { border: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._history = History()
        self._nth = len(self._history.queries)
        self._names: Names | None = None
        self._is_asking = False

    def compose(self) -> ComposeResult:
        """Query, hint, answer, keys."""
        area = QueryArea(
            _FIRST, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False, tab_behavior="indent"
        )
        area.cursor_location = area.document.end
        yield area
        yield HintBar()
        yield AnswerPanel()
        yield KeysBar(footer([*SQL, *SQL_ALWAYS, *SQL_TEXT]))

    def on_mount(self) -> None:
        """Names for completion are read meanwhile."""
        self.query_one(QueryArea).focus()
        self.session.slow.ask("names", Names, self._know)

    def _know(self, names: Names) -> None:
        self._names = names
        self.hint()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Show a hint."""
        bar = self.query_one(HintBar)
        bar.text, bar.is_error = text, is_error
        bar.redraw()

    def _candidates(self) -> tuple[int, list[str], str, int]:
        area = self.query_one(QueryArea)
        row, column = area.cursor_location
        cursor = sum(len(line) + 1 for line in area.text.split("\n")[:row]) + column
        begin, found = self._names.complete(area.text, cursor) if self._names else (cursor, [])
        return begin, found, area.text, cursor

    def hint(self) -> None:
        """Show what tab would write."""
        if not self._is_asking:
            _, found, _, _ = self._candidates()
            self.say(f"tab: {'  '.join(found[:40])}" if found else "")

    def complete(self) -> None:
        """Write the likeliest name, or what all candidates have in common."""
        begin, found, text, cursor = self._candidates()
        if not found:
            return
        common = found[0]
        for name in found[1:]:
            while not name.lower().startswith(common.lower()):
                common = common[:-1]
        word = text[begin:cursor]
        written = common if len(common) > len(word) else found[0]
        area = self.query_one(QueryArea)

        def place(index: int) -> tuple[int, int]:
            before = text[:index].split("\n")
            return len(before) - 1, len(before[-1])

        area.replace(written, place(begin), place(cursor))
        row, column = place(begin)
        area.move_cursor((row, column + len(written)))
        self.hint()

    def older(self) -> None:
        """An earlier query."""
        self._take(-1)

    def newer(self) -> None:
        """A later query."""
        self._take(1)

    def _take(self, direction: int) -> None:
        queries = self._history.queries
        self._nth = min(max(self._nth + direction, 0), len(queries))
        area = self.query_one(QueryArea)
        area.text = queries[self._nth] if self._nth < len(queries) else ""
        area.move_cursor(area.document.end)

    def action_run(self) -> None:
        """Ask the query."""
        text = self.query_one(QueryArea).text.strip()
        if not text:
            return
        self._history.add(text)
        self._nth = len(self._history.queries)
        self._is_asking = True
        self.say("asking … (esc stops it)")
        self.session.slow.ask("sql", lambda con: pad.ask(con, text), self._answered, self._failed)

    def _answered(self, answer: Answer) -> None:
        self._is_asking = False
        if self.is_attached:
            self.query_one(AnswerPanel).take(answer)
            leads = ", enter on one to the place that it names" if answer.leads else ""
            self.say(f"{count(len(answer.rows), 'row')}; ^o goes to {'them' if len(answer.rows) != 1 else 'it'}{leads}")

    def _failed(self, error: Exception) -> None:
        self._is_asking = False
        if self.is_attached:
            panel = self.query_one(AnswerPanel)
            panel.fault = visible(" ".join(str(error).split()))
            panel.redraw()
            self.say(panel.fault, is_error=True)

    def action_export(self) -> None:
        """Write the whole answer to a file."""
        answer = self.query_one(AnswerPanel).answer
        if answer is None:
            self.say("nothing was asked yet", is_error=True)
            return
        self.app.push_screen(PromptScreen("export to", ".csv, .jsonl or .parquet", "answer.csv", self._export))

    def _export(self, name: str) -> None:
        answer = self.query_one(AnswerPanel).answer
        if answer is None or not name.strip():
            return
        place, query, target = self.session.run.path, answer.query, Path(name.strip())
        self.session.slow.ask("sql", lambda con: pad.export(con, place, query, target), self.say, self._failed)

    def action_other(self) -> None:
        """Between query and answer."""
        here = self.query_one(QueryArea).has_focus
        (self.query_one(AnswerPanel) if here else self.query_one(QueryArea)).focus()

    def action_sideways(self, direction: int) -> None:
        """Other columns of the answer."""
        self.query_one(AnswerPanel).sideways(direction)

    def action_enter(self) -> None:
        """Where the row leads."""
        self.query_one(AnswerPanel).enter()

    def action_leave(self) -> None:
        """Stop what is being asked, else go back."""
        if self._is_asking:
            self.session.slow.interrupt()
        else:
            super().action_leave()
