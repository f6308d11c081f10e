"""Ranks × time: what each rank was doing, where they met, and the wait as a shape."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from rich.cells import cell_len
from rich.style import Style

from replay.report.wording import duration
from replay.tui.core import lanes
from replay.tui.core.lanes import Lane
from replay.tui.core.pictures import Picture
from replay.tui.core.session import Session
from replay.tui.core.spans import NOTHING, STATES
from replay.tui.core.track import SEVERITIES
from replay.tui.core.window import Mark, laid, numbers, ruler
from replay.tui.layout import NARROW
from replay.tui.palette import JOINT, ODD_JOINT, SEVERE, SHAPES
from replay.tui.panel import Panel, Row, cut, padded

_LABEL_MOST = 18
_NOTE_MOST, _NOTE_NARROW = 18, 6
_PLAIN = ("unknown", "gone")
"""States whose shapes are guessed most easily."""


class LanesPanel(Panel):
    """The lanes, with the ruler above and the legend below where there is room."""

    NAME = "lanes"
    NUMBER = 1

    def __init__(self) -> None:
        super().__init__()
        self._top = 0
        self._label = 0
        self._cells = 1

    def wanted_height(self) -> int:
        """Return the rows that all lanes take, with title, ruler and legend."""
        return (len(self.session.view.lanes) if self.session else 1) + 3

    def title(self) -> tuple[str, str]:
        """What lanes there are, and how much time is shown."""
        session = self.session
        assert session is not None, "titles are asked for when there is something to look at"
        told = lanes.summary(session.view.grouping, session.view.lanes)
        window = session.walk.window
        if not session.book.track.is_timed:
            return "ranks × order", "these logs have no stamps"
        shown = "whole run" if window.is_whole else f"{duration(window.span)} of {duration(window.last - window.first)}"
        return "ranks × time" + (f"  {told}" if told else ""), shown

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """Ruler, lanes around the one looked at, legend."""
        session = self.session
        assert session is not None, "rows are asked for when there is something to look at"
        made = session.view.lanes
        notes = max((len(_named(lane)) for lane in made), default=1)
        self._label = min(notes, _LABEL_MOST + (_NOTE_NARROW if width < NARROW else _NOTE_MOST)) + 3
        self._cells = max(width - self._label, 1)
        legend = height >= min(len(made) + 2, 6)
        room = max(height - 1 - legend, 1)
        here = session.view.at(session.walk.place.rank)
        self._top = min(max(self._top, here - room + 1, 0), here, max(len(made) - room, 0))
        window, book = session.walk.window, session.book
        if book.track.is_timed:
            marks = ruler(window, self._cells, book.first, book.steps, book.step_ends)
        else:
            marks = numbers(window, self._cells)
        cursor = window.cell(session.walk.place.t, self._cells)
        rows = [self._ruler(marks, cursor)]
        joints = self._joints(session, marks)
        states: set[int] = set()
        severities: set[int] = set()
        for n, lane in enumerate(made[self._top : self._top + room], self._top):
            picture = session.pictures.of(lane, window, self._cells)
            states |= picture.states
            severities |= picture.severities
            rows.append(self._lane(lane, picture, joints, cursor, is_here=n == here))
        if legend:
            rows += [[]] * (room - len(rows) + 1)
            which = f"{self._top + 1}-{min(self._top + room, len(made))} of {len(made)}" if len(made) > room else ""
            rows.append(self._legend(which, states, severities, width))
        return rows

    def _ruler(self, marks: list[Mark], cursor: int | None) -> Row:
        text = laid(marks, self._cells, cursor)
        row: Row = [(" " * self._label, self.palette.dim)]
        if cursor is None:
            return [*row, (text, self.palette.dim)]
        return [
            *row,
            (text[:cursor], self.palette.dim),
            (text[cursor], self.palette.mark),
            (text[cursor + 1 :], self.palette.dim),
        ]

    def _joints(self, session: Session, marks: list[Mark]) -> dict[int, str]:
        """Cells in which a line goes through all lanes: ends of steps, else collectives if they have room."""
        found = {mark.cell: JOINT for mark in marks if mark.is_joint}
        joints, window = session.book.joints, session.walk.window
        first, last = np.searchsorted(joints.t, [window.t_lo, window.t_hi])
        if last - first <= self._cells // 6:
            for t, odd in zip(joints.t[first:last], joints.is_odd[first:last], strict=True):
                cell = window.cell(float(t), self._cells)
                if cell is not None:
                    found[cell] = ODD_JOINT if odd or found.get(cell) == ODD_JOINT else JOINT
        return found

    def _lane(self, lane: Lane, picture: Picture, joints: dict[int, str], cursor: int | None, *, is_here: bool) -> Row:
        p = self.palette
        fold = ("▾" if lane.is_open else "▸") if lane.key else " "
        name = padded(("  " if lane.depth else "") + _named(lane), self._label - 3)
        row: Row = [
            ("▶" if is_here else " ", p.mark),
            (fold, p.dim),
            (name, p.strong if is_here else p.dim),
            (" ", p.text),
        ]
        looks: list[tuple[str, Style]] = [
            (" ", p.dim) if code == NOTHING else (SHAPES[STATES[code]], p.states[code])
            for code in picture.codes.tolist()
        ]
        for cell, shape in joints.items():
            if looks[cell][0] not in {"█", "▓"}:
                looks[cell] = (shape, p.error if shape == ODD_JOINT else p.dim)
        for cell in np.flatnonzero(picture.severe).tolist():
            severity = SEVERITIES[picture.severe[cell]]
            looks[cell] = (SEVERE[severity], p.error if severity == "error" else p.warning + Style(bold=True))
        if cursor is not None:
            shape, style = looks[cursor]
            looks[cursor] = (shape, style + p.cursor)
        row += [("".join(s for s, _ in run), style) for style, run in groupby(looks, key=lambda look: look[1])]
        return row

    def _legend(self, shown: str, states: set[int], severities: set[int], width: int) -> Row:
        """Which lanes are shown, and what their shapes mean; where not all have room, the plain ones are left out."""
        p = self.palette
        told = [(SHAPES[STATES[code]].strip() or "blank", p.states[code], STATES[code]) for code in states]
        told.sort(key=lambda part: (part[2] in _PLAIN, STATES.index(part[2])))
        for code in sorted(severities, reverse=True):
            name = SEVERITIES[code]
            told.insert(0, (SEVERE[name], p.error if name == "error" else p.warning, name))
        row: Row = [(f" {shown}  " if shown else " ", p.dim)]
        if not states:
            told.append(("", p.dim, "what these ranks did is not told"))
        room = width - cell_len(row[0][0])
        for shape, style, name in told:
            cells = cell_len(shape) + cell_len(name) + 3
            if cells - 2 <= room:
                row += [(shape, style), (f" {name}  ", p.dim)]
                room -= cells
        return row

    def move(self, direction: int) -> None:
        """Look at another rank."""
        if self.session:
            self.session.move_lane(direction)

    def enter(self) -> None:
        """Unfold the group, or fold it."""
        if self.session:
            n = self.session.view.at(self.session.walk.place.rank)
            lane = self.session.view.lanes[n]
            head = next((m for m in reversed(self.session.view.lanes[: n + 1]) if m.key), None) if lane.depth else lane
            if head is not None:
                self.session.unfold(head)

    def click(self, row: int, cell: int) -> None:
        """Put the cursor there; a click on a name unfolds."""
        session = self.session
        n = self._top + row - 1
        if session is None:
            return
        lane = session.view.lanes[n] if row > 0 and n < len(session.view.lanes) else None
        if cell < self._label:
            if lane is not None and lane.key:
                session.unfold(lane)
            elif lane is not None:
                session.to_rank(lane.ranks[0])
            return
        rank = None if lane is None else lane.ranks[0]
        if lane is not None and session.walk.place.rank in lane.ranks:
            rank = session.walk.place.rank
        session.to_time(session.walk.window.time(min(cell - self._label, self._cells - 1), self._cells), rank)

    def scrolled(self, direction: int, cell: int) -> None:
        """The wheel zooms around the pointer."""
        if self.session:
            walk = self.session.walk
            around = walk.window.time(min(max(cell - self._label, 0), self._cells - 1), self._cells)
            walk.window = walk.window.zoomed(0.8 if direction < 0 else 1.25, around)
            self.session.say("")


def _named(lane: Lane) -> str:
    count = f" ×{len(lane.ranks):,}" if len(lane.ranks) > 1 else ""
    label = cut(lane.label, _LABEL_MOST - len(count)) if count else lane.label
    return f"{label}{count} {lane.note}".rstrip()
