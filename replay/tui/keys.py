"""The keys, written once: bindings, footer, help, command palette and the handbook are made of this list."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Key:
    """`keys` as Textual names them, the action of the main screen, how the key is shown, a short name, and what it
    does.

    `footer` is its place in the footer, 0 for none: a narrow footer shows the first ones.
    """

    keys: str
    action: str
    shown: str
    short: str
    help: str
    group: str
    footer: int = 0


KEYS = (
    Key("right,l", "event(1)", "→ l", "event", "next event", "step", 1),
    Key("left,h", "event(-1)", "← h", "event", "event before", "step"),
    Key("shift+right,L", "step(1)", "⇧→ L", "step", "next step", "step", 2),
    Key("shift+left,H", "step(-1)", "⇧← H", "step", "step before", "step"),
    Key("right_square_bracket", "recompile(1)", "]", "recompile", "next recompile", "step", 5),
    Key("left_square_bracket", "recompile(-1)", "[", "recompile", "recompile before", "step"),
    Key("right_curly_bracket", "collective(1)", "}", "collective", "next collective", "step", 12),
    Key("left_curly_bracket", "collective(-1)", "{", "collective", "collective before", "step"),
    Key("g,home", "edge(-1)", "g", "first", "first event", "step"),
    Key("G,end", "edge(1)", "G", "last", "last event", "step"),
    Key("n", "finding(1)", "n", "finding", "next finding, roots first", "why", 3),
    Key("p,N", "finding(-1)", "p", "finding", "finding before", "why"),
    Key("c", "follow", "c", "cause",
        "follow the chain one link: from the wait to the late rank, to what it did, to why", "why", 4),
    Key("d", "difference", "d", "difference", "first place where ranks (or runs) part", "why", 13),
    Key("o,backspace", "back", "o", "back", "back to where you were", "why", 9),
    Key("i", "forth", "i", "forth", "forth again", "why"),
    Key("r", "toggle_rank", "r", "rank", "step over events of this rank only, or of any", "view", 6),
    Key("a", "group", "a", "alike", "lanes: each rank, ranks that did alike, nodes", "view", 11),
    Key("plus,equals_sign", "zoom(0.5)", "+", "zoom", "look closer, down to milliseconds", "view", 10),
    Key("minus", "zoom(2)", "-", "zoom", "see more of the run", "view"),
    Key("0", "whole", "0", "whole", "the whole run", "view"),
    Key("comma", "pan(-0.5)", ",", "pan", "look at what is before, the cursor stays", "view"),
    Key("full_stop", "pan(0.5)", ".", "pan", "look at what comes, the cursor stays", "view"),
    Key("right_parenthesis", "run(1)", ")", "run", "next run of these logs", "view"),
    Key("left_parenthesis", "run(-1)", "(", "run", "run before", "view"),
    Key("space", "play", "space", "play", "play or pause", "time", 14),
    Key("greater_than_sign", "speed(1)", ">", "faster", "play faster", "time"),
    Key("less_than_sign", "speed(-1)", "<", "slower", "play slower", "time"),
    Key("R", "reverse", "R", "reverse", "play the other way round", "time"),
    Key("slash", "filter", "/", "search",
        "search and filter: words rank:0-3 kind:recompile level:warning where:SQL", "find", 7),
    Key("colon", "goto", ":", "go to", "+12.3 · 23:51:45 · 50% · rank 3 · step 4 · F2 · file:line · diff", "find", 8),
    Key("escape", "clear", "esc", "clear", "give the screen back to all panels, else take the filter away", "find"),
    Key("s", "sql", "s", "SQL", "ask the run database in SQL", "find", 8),
    Key("w", "what_if", "w", "what-if", "the run without a cause, beside the run as it was", "why", 8),
    Key("x", "repro", "x", "repro", "the finding as a script: look at it, write it, run it", "why", 12),
    Key("up,k", "up", "↑ k", "up", "in the panel: rank, event, finding, line above", "panel"),
    Key("down,j", "down", "↓ j", "down", "in the panel: rank, event, finding, line below", "panel"),
    Key("pageup", "page(-1)", "PgUp", "page", "a page up", "panel"),
    Key("pagedown", "page(1)", "PgDn", "page", "a page down", "panel"),
    Key("enter", "enter", "⏎", "open",
        "unfold a finding or a group of ranks, go to a line; of an event or a state: why, as c does", "panel"),
    Key("tab", "next_panel(1)", "tab", "panel", "next panel", "panel"),
    Key("shift+tab", "next_panel(-1)", "⇧tab", "panel", "panel before", "panel"),
    *(
        Key(str(n), f"panel('{name}')", str(n), name, f"panel {name}", "panel")
        for n, name in enumerate(("lanes", "events", "findings", "state", "details", "source"), 1)
    ),
    Key("z", "maximise", "z", "zoom panel", "let one panel fill the screen, and back", "panel"),
    Key("y", "copy", "y", "copy", "copy the finding, or where you stand, as Markdown", "take"),
    Key("P", "screenshot", "P", "picture", "save the screen as SVG", "take"),
    Key("t", "theme", "t", "theme", "dark or light", "take"),
    Key("question_mark,f1", "help", "?", "help", "these keys, and what the pictures mean", "take", 15),
    Key("q,ctrl+q", "quit", "q", "quit", "leave", "take", 16),
)  # fmt: skip

MOVES = (
    Key("up,k", "move(-1)", "↑ k", "up", "up", "side"),
    Key("down,j", "move(1)", "↓ j", "down", "down", "side"),
    Key("pageup", "move(-20)", "PgUp", "page", "a page up", "side"),
    Key("pagedown", "move(20)", "PgDn", "page", "a page down", "side"),
)
"""What moves in each screen beside the main one."""
WHAT_IF = (
    Key("space,x", "take_out", "space", "take out, put back", "take a cause out, or put it back", "what-if", 1),
    Key("0", "nothing", "0", "as it was", "put everything back", "what-if", 2),
    Key("enter", "line", "⏎", "go to its line", "go to the line that first tells of the cause", "what-if", 3),
    Key("escape,q,w", "leave", "esc", "back", "back to the run", "what-if", 4),
)
REPRO = (
    Key("w", "write", "w", "write it", "write the script and a report", "repro", 1),
    Key("r", "run", "r", "run it", "write it, ask, and run it", "repro", 2),
    Key("escape,q,x", "leave", "esc", "stop, back", "stop what runs; back to the run", "repro", 3),
)
SQL = (
    Key("enter", "enter", "⏎", "ask", "ask the query; of an answer: go to the place that the row names", "SQL", 1),
    Key("tab", "other", "tab", "complete", "complete a name; of an answer: back to the query", "SQL", 2),
    Key("left,h", "sideways(-1)", "← h", "left", "columns of the answer further left", "SQL"),
    Key("right,l", "sideways(1)", "→ l", "right", "columns of the answer further right", "SQL"),
)
SQL_ALWAYS = (
    Key("ctrl+o", "other", "^o", "answer", "between query and answer", "SQL", 3),
    Key("ctrl+e", "export", "^e", "export", "write the whole answer to a file", "SQL", 4),
    Key("escape", "leave", "esc", "back", "stop what is asked; back to the run", "SQL", 6),
)
"""Keys of the SQL pad that its query does not take for text."""
SQL_TEXT = (Key("ctrl+j", "newline", "^j", "line", "break the line of the query", "SQL", 5),)


def bindings(keys: Sequence[Key], *, always: bool = False) -> list[BindingType]:
    """Return keys as Textual binds them; `always`: before what has the focus takes them."""
    return [Binding(key.keys, key.action, key.short, show=False, priority=always) for key in keys]


def footer(keys: Sequence[Key]) -> list[tuple[str, str]]:
    """Return how the keys of a footer are shown and called, in its order."""
    return [(key.shown, key.short) for key in sorted(keys, key=lambda key: key.footer) if key.footer]


GROUPS = {
    "step": "step through the run",
    "why": "find out why",
    "view": "look",
    "time": "play",
    "find": "find",
    "panel": "panels",
    "take": "the rest",
}
SIDE_GROUPS = {"what-if": "what-if (w)", "SQL": "SQL (s)", "repro": "repro (x)"}
"""Groups of the screens beside the main one."""
SIDE_KEYS = (*WHAT_IF, *SQL, *SQL_ALWAYS, *SQL_TEXT, *REPRO)
