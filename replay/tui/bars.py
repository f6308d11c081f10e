"""The rows at the rim: where one is, what was just said, and which keys there are."""

from collections.abc import Sequence

from rich.cells import cell_len

from replay.report.wording import count
from replay.tui.core.session import Session
from replay.tui.core.window import clock, since
from replay.tui.keys import KEYS
from replay.tui.panel import Drawn, Row, wrapped

_ENDS = {"unknown": "end unknown"}
"""How a run ended, where its own word says too little beside others."""
_GAP = "  "
"""Between what the header says and its right end."""
_MESSAGE_MOST = 2
"""Rows of a message: all of it stands in a panel too."""
_LOW = 18
"""On a screen of fewer rows a message has one."""


class Bar(Drawn):
    """One row."""

    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; }
    """

    def row(self, width: int) -> Row:
        """Return what the bar says."""
        return []

    def all_rows(self, width: int, height: int) -> list[Row]:
        """Return the row."""
        return [self.row(width)]


class HeaderBar(Bar):
    """Run, step, time, play, finding."""

    def row(self, width: int) -> Row:
        """What fits, the most needed first."""
        p, session = self.palette, self.session
        head = [(" replay ", p.head_focus)]
        if session is None:
            return [*head, (f" {self._app.logs}", p.dim)]
        parts = [(text, p.strong if n == 0 else p.text) for n, text in enumerate(_where(session))]
        optional = [(text, p.dim) for text in _more(session, self._app.logs)]
        play = _play(session)
        room = width - cell_len(head[0][0]) - cell_len(play) - len(_GAP)
        row: Row = []
        for text, style in [*parts, *optional]:
            if cell_len(text) + 2 <= room:
                row += [(f"  {text}", style)]
                room -= cell_len(text) + 2
        return [*head, *row, (" " * max(room, 0) + _GAP, p.text), (play, p.mark if session.is_playing else p.dim)]


def _where(session: Session) -> list[str]:
    place, book = session.walk.place, session.book
    parts = [clock(place.t) if book.track.is_timed else f"event {int(place.t) + 1:,}"]
    parts += [since(place.t - book.first)] if book.track.is_timed else []
    step = book.step_at(place.t)
    if step is not None:
        parts.append(f"step {step}/{book.last_step}")
    if place.rank is not None:
        parts.append(f"rank {place.rank}" + (" only" if session.walk.only_rank else ""))
    return parts


def _more(session: Session, logs: str) -> list[str]:
    head = next((h for h in session.heads if h.run_id == session.book.run_id), None)
    parts = [f"/{session.filter}"] if session.filter else []
    parts += [f"run {head.run_id} of {len(session.heads)}"] if head and len(session.heads) > 1 else []
    parts += [f"{count(len(session.book.ranks), 'rank')}, {_ENDS.get(head.outcome, head.outcome)}"] if head else []
    return [*parts, logs]


def _play(session: Session) -> str:
    speed = session.walk.speed
    way = "◀" if speed < 0 else "▶"
    return f"{way if session.is_playing else '‖'} ×{abs(speed):g}{' back' if speed < 0 else ''} "


class KeysBar(Bar):
    """The keys of a screen of its own, in the order of their use."""

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = keys

    def row(self, width: int) -> Row:
        """Keys with their names, as many as fit."""
        p = self.palette
        row: Row = [(" ", p.head)]
        for key, name in self._keys:
            row += [(key, p.head_focus), (f" {name}  ", p.head)]
        return [*row, (" " * width, p.head)]


class MessageBar(Bar):
    """What was just said: the link of the chain that was followed, what a command could not do."""

    def wanted_height(self, width: int, height: int) -> int:
        """Return the rows that the last message takes on a screen: a second one lies over the panel above."""
        return len(self._texts(width, _MESSAGE_MOST if height >= _LOW else 1))

    def _texts(self, width: int, most: int) -> list[str]:
        return wrapped(self.session.message if self.session is not None else "", width - 4, most)

    def all_rows(self, width: int, height: int) -> list[Row]:
        """The last message."""
        p, session = self.palette, self.session
        if session is None or not session.message:
            return []
        mark, style = ("!", p.error) if session.is_error else ("›", p.strong)
        return [[(f" {' ' if n else mark} {text}", style)] for n, text in enumerate(self._texts(width, height))]


class MainKeysBar(Bar):
    """The keys, as many as there is room for; `?` always."""

    def row(self, width: int) -> Row:
        """Keys with their short names."""
        p = self.palette
        shown = sorted((k for k in KEYS if k.footer), key=lambda k: k.footer)
        must = [k for k in shown if k.action in {"help", "quit"}]
        room = width - sum(cell_len(_short(k.shown)) + cell_len(k.short) + 3 for k in must)
        row: Row = [(" ", p.head)]
        for key in shown:
            size = cell_len(_short(key.shown)) + cell_len(key.short) + 3
            if key not in must:
                if size > room - 1:
                    continue
                room -= size
            row += [(_short(key.shown), p.head_focus), (f" {key.short}  ", p.head)]
        return [*row, (" " * width, p.head)]


def _short(shown: str) -> str:
    """Two ways are shown as the arrows where both ways have a key."""
    return {"→ l": "←→", "⇧→ L": "⇧←→", "]": "[ ]", "}": "{ }", "+": "+-"}.get(shown, shown)
