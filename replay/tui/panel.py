"""What all panels share: rows of which only those that changed are painted, a title, and what a click means."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from replay.report.wording import visible
from replay.tui.core.session import Session
from replay.tui.palette import Palette

if TYPE_CHECKING:
    from replay.tui.app import ReplayApp

Row = list[tuple[str, Style]]
"""A row of text in pieces. Nothing in it is markup, and all of it was made safe to show by the core."""


def cut(text: str, width: int) -> str:
    """Return a text in at most `width` cells; what is left out is told by an ellipsis."""
    if width <= 0:
        return ""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def padded(text: str, width: int) -> str:
    """Return a text in exactly `width` cells."""
    return set_cell_size(cut(text, width), max(width, 0))


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Return a text in rows of `width` cells, broken at blanks where there are any; `most` rows, the last with an
    ellipsis.
    """
    rows: list[str] = []
    rest = text
    while rest and len(rows) < most:
        if cell_len(rest) <= width:
            rows.append(rest)
            return rows
        if len(rows) == most - 1:
            rows.append(cut(rest, width))
            return rows
        piece = _fitting(rest, width)
        at = piece.rfind(" ")
        if at > width // 3:
            piece = piece[:at]
        rows.append(piece)
        rest = rest[len(piece) :].lstrip(" ")
    return rows or [""]


def _fitting(text: str, width: int) -> str:
    """The longest beginning of a text that fits into `width` cells; at least one character."""
    end, cells = 0, 0
    for character in text:
        cells += cell_len(character)
        if cells > width and end:
            break
        end += 1
    return text[:end]


class Drawn(Widget):
    """Rows of text. Subclasses say which; a row that is as it was is neither made into a strip again nor painted again.

    That is what keeps a key cheap, and little on its way over ssh: of 70 rows few change when the cursor moves.
    """

    ALLOW_SELECT = False

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self._drawn: list[Row] = []
        self._strips: list[Strip] = []
        self._drawn_for: tuple[int, int, Style | None] = (0, 0, None)

    @property
    def _app(self) -> "ReplayApp":
        from replay.tui.app import ReplayApp

        assert isinstance(self.app, ReplayApp), "these widgets live in this app only"
        return self.app

    @property
    def session(self) -> Session | None:
        """What is looked at; None while it is being opened."""
        return self._app.session

    @property
    def palette(self) -> Palette:
        """The styles of the current theme."""
        return self._app.palette

    def all_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return all rows in so many cells."""
        return []

    def redraw(self) -> None:
        """Make the rows anew, and have those painted that changed."""
        width, height = self.size
        if self.display and width and height:
            changed = self._draw(width, height)
            if changed:
                self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _draw(self, width: int, height: int) -> list[int]:
        """Make the rows anew; return which of them changed."""
        base = self.palette.text
        rows = [list(row) for row in self.all_rows(width, height)][:height]
        rows += [[] for _ in range(height - len(rows))]
        old = self._drawn if self._drawn_for == (width, height, base) else [None] * height
        changed = [y for y, (row, before) in enumerate(zip(rows, old, strict=True)) if row != before]
        strips = self._strips if len(self._strips) == height else [Strip.blank(width, base)] * height
        for y in changed:
            strips[y] = strip_of(rows[y], width, base)
        self._drawn, self._strips, self._drawn_for = rows, strips, (width, height, base)
        return changed

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a region; Textual asks. Nothing here has a border or a style sheet's effects."""
        width, height = self.size
        if self._drawn_for != (width, height, self.palette.text):
            self._draw(width, height)
        lo, hi = crop.column_span
        strips = [self._strips[y] if y < height else Strip.blank(width) for y in crop.line_range]
        background = self.background_colors[1]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips if (lo, hi) == (0, width) else [strip.crop(lo, hi) for strip in strips]


class Panel(Drawn, can_focus=True):
    """One panel. Subclasses give their title and rows; drawing and keeping them is done here."""

    NAME: ClassVar[str] = ""
    NUMBER: ClassVar[int] = 0

    DEFAULT_CSS = """
    Panel { height: 1fr; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__(self.NAME)
        self.beside = ""
        """Panels that stand behind this one, for its title."""
        self.covered = 0
        """Rows at the foot that a long message lies over."""

    # For subclasses

    def title(self) -> tuple[str, str]:
        """Return what the title row says left and right."""
        return self.NAME, ""

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """Return the rows to show in so many cells."""
        return []

    def move(self, direction: int) -> None:
        """The key up or down."""

    def page(self, direction: int) -> None:
        """The key page up or down."""
        for _ in range(max(self.size.height - 2, 1)):
            self.move(direction)

    def enter(self) -> None:
        """The key enter."""

    def click(self, row: int, cell: int) -> None:
        """A click on a row of the body."""

    # Drawing

    def on_focus(self) -> None:
        """The title tells which panel has the keys; that it has them is noted after this."""
        self.call_later(self.redraw)

    def on_blur(self) -> None:
        """The title tells which panel has the keys; that it has not is noted after this."""
        self.call_later(self.redraw)

    def all_rows(self, width: int, height: int) -> Sequence[Row]:
        """Return title and rows."""
        rows = [self._title(width)]
        if self.session is not None and height > 1:
            rows += self.rows(width, max(height - 1 - self.covered, 1))
        return rows

    def _title(self, width: int) -> Row:
        left, right = self.title() if self.session is not None else (self.NAME, "")
        style = self.palette.head_focus if self.has_focus else self.palette.head
        mark = "▶" if self.has_focus else " "
        head = f"{mark}{self.NUMBER or ''} {left} "
        room = width - cell_len(head)
        if self.beside and cell_len(right) + cell_len(self.beside) + 4 <= room:
            right = f"{right}   {self.beside}" if right else self.beside
        right = cut(right, max(room - 1, 0))
        gap = room - cell_len(right) - (1 if right else 0)
        return [(head, style), (" " * max(gap, 0), style), (right + " " if right else "", style)]

    # Mouse

    def on_click(self, event: Click) -> None:
        """Take a click on the body; one on the title only takes the keys."""
        if event.y > 0 and self.session is not None:
            self.click(event.y - 1, event.x)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Wheel."""
        self.scrolled(-1, event.x)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Wheel."""
        self.scrolled(1, event.x)

    def scrolled(self, direction: int, cell: int) -> None:
        """The wheel does what the keys do."""
        if self.session is not None:
            self.move(direction)


def strip_of(row: Row, width: int, base: Style) -> Strip:
    """Return a row as Textual draws it, in exactly `width` cells. What is not printable is made visible, whoever
    forgot to.
    """
    segments = [Segment(text if text.isprintable() else visible(text), base + style) for text, style in row if text]
    return Strip(segments).adjust_cell_length(width, base)
