"""The panels that tell about the place: what ranks are doing, details of the event, and the raw lines."""

from collections.abc import Sequence

from rich.cells import cell_len

from replay.report.wording import duration, ranks_phrase, ranks_text, visible
from replay.tui.core.lanes import difference
from replay.tui.core.source import SourceLine
from replay.tui.core.spans import STATES
from replay.tui.palette import SHAPES
from replay.tui.panel import Panel, Row, cut, padded, wrapped


class StatePanel(Panel):
    """What each rank does at this moment, those that do the same in one row; and the rank looked at."""

    NAME = "state"
    NUMBER = 4

    def __init__(self) -> None:
        super().__init__()
        self._groups: list[tuple[int, ...]] = []

    def title(self) -> tuple[str, str]:
        """At which step."""
        session = self.session
        step = session.book.step_at(session.walk.place.t) if session else None
        return "state at the cursor", f"step {step}" if step is not None else ""

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """One row a state, the fewest ranks first."""
        session = self.session
        assert session is not None, "rows are asked for when there is something to look at"
        p, t, here = self.palette, session.walk.place.t, session.walk.place.rank
        rows: list[Row] = []
        self._groups = []
        for group in session.book.spans.groups_at(t):
            style = p.states[STATES.index(group.state)]
            for_whom = f" for {ranks_phrase(group.late)}" if group.late else ""
            text = f"{group.state}{for_whom}{f' in {visible(group.op)}' if group.op else ''}"
            who = cut(ranks_text(group.ranks), max(width // 3, 8))
            since = f"  {duration(max(t - group.since, 0))}"
            rows.append(
                [
                    ("▶" if here in group.ranks else " ", p.mark),
                    (f"{SHAPES[group.state]} ", style),
                    (f"{who}  ", p.strong),
                    (padded(text, width - cell_len(who) - cell_len(since) - 5), style),
                    (since, p.dim),
                ]
            )
            self._groups.append(group.ranks)
        if not rows:
            rows.append([("  what ranks did is not known at this moment", p.dim)])
        if here is not None:
            rows += self._rank(here, t, width)
        return rows

    def _rank(self, rank: int, t: float, width: int) -> list[Row]:
        session, p = self.session, self.palette
        assert session is not None, "asked for by rows only"
        doing = session.book.spans.at(t, rank)
        host = session.book.hosts.get(rank, "")
        texts = [f"rank {rank}" + (f" on {visible(host)}" if host else "")]
        if doing is not None:
            texts.append(
                f"{doing.state} for {duration(max(t - doing.t_lo, 0))}, of {duration(doing.t_hi - doing.t_lo)} in all"
            )
        apart = difference(rank, session.book.spans)
        texts += [f"in the whole run {apart}"] if apart else []
        return [[]] + [
            [(f"  {row}", p.strong if n == 0 else p.dim)]
            for n, text in enumerate(texts)
            for row in wrapped(text, width - 2, 2)
        ]

    def move(self, direction: int) -> None:
        """Look at the first rank of the next group."""
        session = self.session
        if session is None or not self._groups:
            return
        here = next((n for n, ranks in enumerate(self._groups) if session.walk.place.rank in ranks), 0)
        session.to_rank(self._groups[(here + direction) % len(self._groups)][0])

    def enter(self) -> None:
        """Follow the chain from here."""
        if self.session:
            self.session.tour.follow()

    def click(self, row: int, cell: int) -> None:
        """Look at a rank of a group."""
        if self.session and row < len(self._groups):
            self.session.to_rank(self._groups[row][0])


class _Scrolled(Panel):
    """A panel of text that is moved up and down."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = 0

    def move(self, direction: int) -> None:
        """Move the text."""
        self._offset += direction
        self.redraw()


class DetailsPanel(_Scrolled):
    """What is known of the event: what matters first and strong."""

    NAME = "details"
    NUMBER = 5

    def title(self) -> tuple[str, str]:
        """Of what."""
        found = self.session.focus.detail if self.session else None
        return ("details", found.title) if found else ("details", "")

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """Name and value of each fact."""
        session, p = self.session, self.palette
        found = session.focus.detail if session else None
        if found is None or not found.facts:
            return [[("  nothing more is known of this line", p.dim)]]
        column = min(max(len(f.name) for f in found.facts) + 2, 16)
        rows: list[Row] = []
        for fact in found.facts:
            texts = wrapped(fact.value, max(width - column - 3, 8), 4)
            for n, text in enumerate(texts):
                name = fact.name if n == 0 else ""
                rows.append([("• " if fact.is_key and n == 0 else "  ", p.mark), (padded(name, column), p.dim),
                             (text, p.strong if fact.is_key else p.text)])  # fmt: skip
        self._offset = min(max(self._offset, 0), max(len(rows) - height, 0))
        return rows[self._offset :]


class SourcePanel(_Scrolled):
    """The raw lines around the one looked at, as they stand in the file; its fields are underlined."""

    NAME = "source"
    NUMBER = 6

    def __init__(self) -> None:
        super().__init__()
        self._place: tuple[str, int | None] = ("", None)

    def title(self) -> tuple[str, str]:
        """File and line."""
        view = self.session.focus.source if self.session else None
        if view is None:
            return "source", ""
        place = f"{view.path}:{view.focus}" if view.focus is not None else view.path
        whose = f"rank {view.rank}, " if view.rank is not None else ""
        return place, f"{whose}{view.count:,} lines"

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """The line looked at in the upper half, wrapped; the others cut."""
        session, p = self.session, self.palette
        view = session.focus.source if session else None
        if view is None:
            return [[("  no line", p.dim)]]
        if not view.lines:
            return [[(f"  {view.note or 'nothing to show'}", p.dim)]]
        if self._place != (view.path, view.focus):
            self._place, self._offset = (view.path, view.focus), 0
        gutter = len(str(view.lines[-1].number)) + 1
        rows: list[Row] = []
        at = 0
        for line in view.lines:
            is_focus = line.number == view.focus
            if is_focus:
                at = len(rows)
            rows += self._line(line, is_focus, gutter, width, max(height - 1, 1))
        top = at - (height // 3 if height > 3 else 0) + self._offset
        last = max(len(rows) - height, 0)
        self._offset += min(max(top, 0), last) - top
        return rows[min(max(top, 0), last) :]

    def _line(self, line: SourceLine, is_focus: bool, gutter: int, width: int, most: int) -> list[Row]:
        p = self.palette
        style = {"malformed": p.error, "plain": p.text}.get(line.line_class, p.text if is_focus else p.dim)
        number = f"{'▶' if is_focus else ' '}{line.number:>{gutter}} "
        room = max(width - len(number), 4)
        if not is_focus:
            text = "".join(piece.text for piece in line.pieces)
            shown = cut(text, room)
            return [[(number, p.dim), (shown, style)]]
        rows: list[Row] = []
        row: Row = [(number, p.mark)]
        left = room
        for piece in line.pieces:
            text = piece.text
            while text:
                part = wrapped(text, left, 1)[0] if cell_len(text) <= left else _begin(text, left)
                row.append((part, p.field if piece.field else p.strong))
                left -= cell_len(part)
                text = text[len(part) :]
                if text or left <= 0:
                    rows.append(row)
                    row, left = [(" " * len(number), p.dim)], room
        rows += [row] if len(row) > 1 or not rows else []
        if len(rows) > most:
            rows = [*rows[: most - 1], [*rows[most - 1][:-1], ("… (z fills the screen)", p.dim)]]
        return rows


def _begin(text: str, width: int) -> str:
    """The longest beginning that fits; at least one character, so that every line comes to its end."""
    end, cells = 0, 0
    for character in text:
        cells += cell_len(character)
        if cells > width and end:
            break
        end += 1
        if cells >= width:
            break
    return text[:end]
