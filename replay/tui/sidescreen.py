"""What the screens beside the main one have in common: they are of an open run, one panel moves, escape goes back."""

from typing import ClassVar

from textual.binding import BindingType
from textual.screen import Screen

from replay.tui.core.session import Session
from replay.tui.keys import MOVES, bindings
from replay.tui.panel import Panel


class SideScreen(Screen[None]):
    """A screen that covers the main one. `MOVED` is the name of the panel that the arrow keys move."""

    MOVED: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = bindings(MOVES)
    DEFAULT_CSS = """
    SideScreen { layout: vertical; background: $background; }
    """

    @property
    def session(self) -> Session:
        """The run that is looked at."""
        from replay.tui.app import ReplayApp

        assert isinstance(self.app, ReplayApp), "this screen is of this app"
        assert self.app.session is not None, "this screen is shown when a run is open"
        return self.app.session

    def action_move(self, direction: int) -> None:
        """Move what the panel shows."""
        self.query_one(f"#{self.MOVED}", Panel).move(direction)

    def action_leave(self) -> None:
        """Back to the run."""
        self.app.pop_screen()
