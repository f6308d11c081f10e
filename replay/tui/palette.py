"""Colours and shapes. Every state has a shape of its own: colour only helps. The colours are Okabe and Ito's, which
people
with any kind of colour vision can tell apart.
"""

from dataclasses import dataclass

from rich.style import Style
from textual.theme import Theme

from replay.tui.core.spans import STATES

SHAPES = {
    "unknown": "┄",
    "starting": "·",
    "tracing": "▓",
    "compiling": "█",
    "running": "▂",
    "waiting": "░",
    "saving": "s",
    "loading": "l",
    "evaluating": "e",
    "failed": "x",
    "gone": " ",
}
SEVERE = {"error": "!", "warning": "◆"}
JOINT, ODD_JOINT = "│", "╳"

DARK = Theme(
    name="replay-dark", primary="#56b4e9", secondary="#8a8f98", accent="#f0e442", foreground="#d8dbe0",
    background="#14161a",
    surface="#14161a", panel="#22262d", warning="#e69f00", error="#ff6e40", success="#2fb893", dark=True,
)  # fmt: skip
LIGHT = Theme(
    name="replay-light", primary="#005a94", secondary="#5b616b", accent="#7a5c00", foreground="#1d2126",
    background="#fbfbf8",
    surface="#fbfbf8", panel="#e6e7e2", warning="#9a5b00", error="#b83a00", success="#00694d", dark=False,
)  # fmt: skip

_DARK_STATES = {
    "unknown": "#8a8f98", "starting": "#8a8f98", "tracing": "#c98b00", "compiling": "#e69f00", "running": "#3f9f7f",
    "waiting": "#56b4e9", "saving": "#cc79a7", "loading": "#cc79a7", "evaluating": "#f0e442", "failed": "#ff6e40",
    "gone": "#8a8f98",
}  # fmt: skip
_LIGHT_STATES = {
    "unknown": "#6b7079", "starting": "#6b7079", "tracing": "#8a5200", "compiling": "#9a5b00", "running": "#3c8f70",
    "waiting": "#0072b2", "saving": "#9a3f71", "loading": "#9a3f71", "evaluating": "#7a6a00", "failed": "#b83a00",
    "gone": "#6b7079",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Palette:
    """Styles by role."""

    text: Style
    """What is below all others: the only one with the background."""
    dim: Style
    strong: Style
    head: Style
    head_focus: Style
    cursor: Style
    mark: Style
    warning: Style
    error: Style
    good: Style
    field: Style
    link: Style
    states: tuple[Style, ...]
    """By the code of the state."""


def palette(theme: Theme) -> Palette:
    """Return the styles that fit a theme."""
    colours = _DARK_STATES if theme.dark else _LIGHT_STATES
    fore = theme.foreground or ("#d8dbe0" if theme.dark else "#1d2126")
    panel = theme.panel or ("#22262d" if theme.dark else "#e6e7e2")
    back = theme.background or ("#14161a" if theme.dark else "#fbfbf8")
    dim = "#8a8f98" if theme.dark else "#5b616b"
    warning, error = theme.warning or "#e69f00", theme.error or "#ff6e40"
    return Palette(
        text=Style(color=fore, bgcolor=back),
        dim=Style(color=dim),
        strong=Style(color=fore, bold=True),
        head=Style(color=dim, bgcolor=panel),
        head_focus=Style(color=fore, bgcolor=panel, bold=True),
        cursor=Style(bgcolor="#3a404a" if theme.dark else "#d5d9df", bold=True),
        mark=Style(color=theme.accent or "#f0e442", bold=True),
        warning=Style(color=warning),
        error=Style(color=error, bold=True),
        good=Style(color=theme.success or "#2fb893"),
        field=Style(color=theme.primary, underline=True),
        link=Style(color=theme.primary),
        states=tuple(Style(color=colours[name]) for name in STATES),
    )
