"""One row to type into: a filter, a place to go to, a file to write."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class PromptScreen(ModalScreen[None]):
    """Asks for one line. `done` gets it; escape leaves everything as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]
    DEFAULT_CSS = """
    PromptScreen { align: left bottom; background: $background 0%; }
    PromptScreen > Vertical { height: auto; background: $panel; }
    PromptScreen Static { height: auto; padding: 0 1; color: $secondary; }
    PromptScreen Input, PromptScreen Input:focus { height: 1; border: none; padding: 0 1; background: $panel; }
    """

    def __init__(self, sign: str, hint: str, text: str, done: Callable[[str], None]) -> None:
        super().__init__()
        self._sign, self._hint, self._text, self._done = sign, hint, text, done

    def compose(self) -> ComposeResult:
        """A hint, and the row."""
        with Vertical():
            yield Static(f"{self._sign}  {self._hint}", markup=False)
            yield Input(self._text, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        self.dismiss()
        self._done(event.value)

    def action_leave(self) -> None:
        """Leave everything as it was."""
        self.dismiss()
