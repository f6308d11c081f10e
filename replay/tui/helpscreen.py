"""`?`: all keys, and what the pictures mean."""

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from replay.tui.core.spans import STATES
from replay.tui.keys import GROUPS, KEYS, SIDE_GROUPS, SIDE_KEYS
from replay.tui.palette import JOINT, ODD_JOINT, SEVERE, SHAPES
from replay.tui.panel import Panel, Row, padded, wrapped

if TYPE_CHECKING:
    from replay.tui.palette import Palette

_COLUMN = 58


def help_rows(palette: "Palette", width: int) -> list[Row]:
    """Return the help in rows of `width` cells: as many columns as there is room for."""
    blocks = [_keys(palette, group, title) for group, title in (GROUPS | SIDE_GROUPS).items()]
    blocks.insert(len(GROUPS), _pictures(palette))
    columns = max(width // _COLUMN, 1)
    if columns == 1:
        return [row for block in blocks for row in [*block, []]]
    heights = [0] * columns
    piles: list[list[Row]] = [[] for _ in range(columns)]
    for block in blocks:
        n = heights.index(min(heights))
        piles[n] += [*block, []]
        heights[n] += len(block) + 1
    rows: list[Row] = []
    for y in range(max(heights)):
        row: Row = []
        for pile in piles:
            cells = pile[y] if y < len(pile) else []
            row += [*cells, (" " * max(_COLUMN - sum(cell_len(t) for t, _ in cells), 0), palette.text)]
        rows.append(row)
    return rows


def _keys(p: "Palette", group: str, title: str) -> list[Row]:
    rows: list[Row] = [[(f" {title}", p.strong)]]
    for key in (*KEYS, *SIDE_KEYS):
        if key.group == group:
            texts = wrapped(key.help, _COLUMN - 13, 4)
            rows.append([(f"  {padded(key.shown, 9)} ", p.link), (texts[0], p.text)])
            rows += [[(" " * 12, p.text), (text, p.text)] for text in texts[1:]]
    return rows


def _pictures(p: "Palette") -> list[Row]:
    rows: list[Row] = [[(" what the lanes show", p.strong)]]
    for code, name in enumerate(STATES):
        told = {"unknown": "no sign of it", "gone": "not there any more (blank)"}.get(name, name)
        rows.append([("  ", p.text), (SHAPES[name] * 4, p.states[code]), (f"      {told}", p.text)])
    rows += [
        [(f"  {JOINT}         ", p.dim), ("a step ended, or all ranks met in a collective", p.text)],
        [(f"  {ODD_JOINT}         ", p.error), ("a collective that not all ranks issued alike", p.text)],
        [(f"  {SEVERE['warning']}         ", p.warning), ("a warning: a failed guard, a recompile", p.text)],
        [(f"  {SEVERE['error']}         ", p.error), ("an error", p.text)],
        [("  ▼ ▶       ", p.mark), ("the cursor: its moment, its rank, its line", p.text)],
        [("  ~         ", p.dim), ("before a time: known only to lie between its neighbours", p.text)],
    ]
    return rows


class HelpPanel(Panel):
    """The help, moved up and down."""

    NAME = "help"

    def __init__(self) -> None:
        super().__init__()
        self._top = 0

    def title(self) -> tuple[str, str]:
        """How to leave."""
        return "help", "↑↓ move  esc back"

    def rows(self, width: int, height: int) -> list[Row]:
        """As many rows as there is room for."""
        rows = help_rows(self.palette, width)
        self._top = min(max(self._top, 0), max(len(rows) - height, 0))
        return rows[self._top : self._top + height]

    def move(self, direction: int) -> None:
        """Up or down."""
        self._top += direction
        self.redraw()

    def scrolled(self, direction: int, cell: int) -> None:
        """The wheel moves three rows."""
        self.move(3 * direction)


class HelpScreen(ModalScreen[None]):
    """Any of the keys that opened it closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "leave", "leave", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown,space", "move(20)", "down", show=False),
        Binding("pageup", "move(-20)", "up", show=False),
    ]

    def compose(self) -> ComposeResult:
        """All rows."""
        yield HelpPanel()

    def on_mount(self) -> None:
        """The panel has the keys."""
        self.query_one(HelpPanel).focus()

    def action_move(self, direction: int) -> None:
        """Move the text."""
        self.query_one(HelpPanel).move(direction)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss()
