"""The main screen: lanes, events, findings, state, details and source, all of one moment."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen

from replay.tui.bars import HeaderBar, MainKeysBar, MessageBar
from replay.tui.core import goal, wanted
from replay.tui.core.session import Session
from replay.tui.core.take import markdown
from replay.tui.eventspanel import EventsPanel
from replay.tui.findingspanel import FindingsPanel
from replay.tui.keys import KEYS, bindings
from replay.tui.lanespanel import LanesPanel
from replay.tui.layout import DECK, NARROW, Box, stand
from replay.tui.panel import Drawn, Panel
from replay.tui.prompt import PromptScreen
from replay.tui.reproscreen import ReproScreen
from replay.tui.smallpanels import DetailsPanel, SourcePanel, StatePanel
from replay.tui.sqlscreen import SqlScreen
from replay.tui.whatifscreen import WhatIfScreen

_TICK_S = 0.1


class MainScreen(Screen[None]):
    """Panels around one cursor. Actions hand on to the session; what is drawn comes from there."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)
    DEFAULT_CSS = """
    MainScreen { layout: vertical; overflow: hidden; }
    MainScreen Panel, MainScreen Bar { position: absolute; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._deck = "findings"
        self._full: str | None = None
        self._stood: tuple[int, int, str, str | None, int, int] | None = None
        self._boxes: dict[str, Box] = {}
        self._message_stood = (0, 0, 0)

    @property
    def _session(self) -> Session:
        from replay.tui.app import ReplayApp

        assert isinstance(self.app, ReplayApp), "the main screen is of this app"
        assert self.app.session is not None, "the main screen is shown when a run is open"
        return self.app.session

    def compose(self) -> ComposeResult:
        """All panels; how they stand is told by the size."""
        yield HeaderBar()
        for panel in (LanesPanel, EventsPanel, FindingsPanel, StatePanel, DetailsPanel, SourcePanel):
            yield panel()
        yield MessageBar()
        yield MainKeysBar()

    def on_mount(self) -> None:
        """Keys go to the findings first: that is what one came for."""
        self.stand_panels()
        self.query_one(FindingsPanel).focus()
        self.set_interval(_TICK_S, self._tick)

    def _tick(self) -> None:
        self._session.tick(_TICK_S)

    def on_resize(self, event: Resize) -> None:
        """Stand the panels anew."""
        self.stand_panels()

    def stand_panels(self) -> None:
        """Stand panels and bars as the size allows, if that is another way than they stand."""
        lanes = self.query(LanesPanel)
        if not lanes:  # an answer of a desk may come before the panels are there, and when they are gone
            return
        width, height = self.size
        findings = self.query_one(FindingsPanel).wanted_height(width, height) if width < NARROW else height
        rows = lanes.first().wanted_height()
        wanted = (width, height, self._deck, self._full, rows, findings)
        if width and height and wanted != self._stood:
            self._stood = wanted
            self._stand(stand(width, height, self._deck, self._full, lanes=rows, findings=findings))
        self._stand_message()

    def _stand(self, boxes: dict[str, Box]) -> None:
        width, height = self.size
        self._boxes = boxes
        for panel in self.query(Panel):
            box = boxes.get(panel.NAME)
            panel.display = box is not None
            if box is not None:
                panel.styles.offset = (box.x, box.y)
                panel.styles.width, panel.styles.height = box.width, box.height
            panel.beside = self._beside(panel.NAME) if width < NARROW else ""
            panel.redraw()
        for bar, y in ((HeaderBar, 0), (MainKeysBar, height - 1)):
            made = self.query_one(bar)
            made.styles.offset, made.styles.width = (0, y), width

    def _stand_message(self) -> None:
        """Give the message the rows that it needs; the panels above it do without them."""
        width, height = self.size
        bar = self.query_one(MessageBar)
        rows = bar.wanted_height(width, height)
        if (width, height, rows) != self._message_stood:
            self._message_stood = (width, height, rows)
            bar.styles.offset, bar.styles.width, bar.styles.height = (0, height - 1 - rows), width, rows
        for panel in self.query(Panel):
            box = self._boxes.get(panel.NAME)
            covered = rows - 1 if box is not None and box.y + box.height == height - 2 else 0
            if covered != panel.covered:
                panel.covered = covered
                panel.redraw()

    def _beside(self, name: str) -> str:
        """The panels that stand behind one on a narrow screen."""
        if name not in DECK or self._full is not None:
            return ""
        return "  ".join(f"{n} {other}" for n, other in enumerate(DECK, 2) if other != name)

    def redraw(self) -> None:
        """Draw everything anew."""
        self.stand_panels()
        for drawn in self.query(Drawn):
            drawn.redraw()

    def _panel(self) -> Panel:
        return self.focused if isinstance(self.focused, Panel) else self.query_one(FindingsPanel)

    # Stepping

    def action_event(self, direction: int) -> None:
        """Next or last event."""
        self._session.event(direction)

    def action_step(self, direction: int) -> None:
        """Next or last step."""
        self._session.step(direction)

    def action_recompile(self, direction: int) -> None:
        """Next or last recompile."""
        self._session.recompile(direction)

    def action_collective(self, direction: int) -> None:
        """Next or last collective."""
        self._session.collective(direction)

    def action_edge(self, direction: int) -> None:
        """First or last event."""
        self._session.edge(direction)

    # Why

    def action_finding(self, direction: int) -> None:
        """Next or last finding."""
        self._session.tour.next(direction)

    def action_follow(self) -> None:
        """One link of the causal chain."""
        self._session.tour.follow()

    def action_difference(self) -> None:
        """Where ranks part."""
        self._session.travel.first_difference()

    def action_back(self) -> None:
        """Back."""
        self._session.back()

    def action_forth(self) -> None:
        """Forth."""
        self._session.forth()

    # Look

    def action_toggle_rank(self) -> None:
        """One rank or any."""
        self._session.toggle_rank()

    def action_group(self) -> None:
        """How lanes are made."""
        self._session.group()

    def action_zoom(self, factor: float) -> None:
        """Closer or further."""
        self._session.zoom(factor)

    def action_pan(self, shares: float) -> None:
        """Before or behind."""
        self._session.pan(shares)

    def action_whole(self) -> None:
        """The whole run."""
        self._session.whole()

    def action_run(self, direction: int) -> None:
        """Another run."""
        self._session.travel.next_run(direction)

    # Play

    def action_play(self) -> None:
        """Play or pause."""
        self._session.play()

    def action_speed(self, direction: int) -> None:
        """Faster or slower."""
        speed = self._session.walk.faster(direction)
        what = "s of the run" if self._session.book.track.is_timed else "events"
        self._session.say(f"{abs(speed):g} {what} per second")

    def action_reverse(self) -> None:
        """The other way round."""
        self._session.walk.reverse()
        self._session.say("plays backwards" if self._session.walk.speed < 0 else "plays forwards")

    # Find

    def action_filter(self) -> None:
        """Search and filter."""
        self.app.push_screen(PromptScreen("/", wanted.HELP, self._session.filter, self._session.set_filter))

    def action_goto(self) -> None:
        """Go somewhere."""
        self.app.push_screen(PromptScreen("go to", goal.HELP, "", self._session.travel.go))

    def action_clear(self) -> None:
        """Give the screen back to all panels, or take the filter away."""
        if self._full is not None:
            self.action_maximise()
        elif self._session.filter:
            self._session.set_filter("")
        else:
            self._session.say("")

    def action_sql(self) -> None:
        """The SQL pad."""
        self.app.push_screen(SqlScreen())

    def action_what_if(self) -> None:
        """The run without something."""
        self.app.push_screen(WhatIfScreen(self._session.tour.finding))

    def action_repro(self) -> None:
        """The finding as a script."""
        session = self._session
        if session.story is not None and not session.story.order():
            session.say("there are no findings: there is nothing to make a script of")
        elif session.story is None or session.tour.finding is None:
            session.say("go to a finding first (n)")
        else:
            self.app.push_screen(ReproScreen(session.tour.finding))

    # Panels

    def action_up(self) -> None:
        """Up in the panel."""
        self._panel().move(-1)

    def action_down(self) -> None:
        """Down in the panel."""
        self._panel().move(1)

    def action_page(self, direction: int) -> None:
        """A page in the panel."""
        self._panel().page(direction)

    def action_enter(self) -> None:
        """Open in the panel."""
        self._panel().enter()

    def action_panel(self, name: str) -> None:
        """Give the keys to a panel, and show it if it is behind another."""
        if name in DECK:
            self._deck = name
        if self._full is not None:
            self._full = name
        self.stand_panels()
        self.query_one(f"#{name}", Panel).focus()

    def action_next_panel(self, direction: int) -> None:
        """Give the keys to the next panel."""
        names = [panel.NAME for panel in self.query(Panel)]
        here = names.index(self._panel().NAME)
        self.action_panel(names[(here + direction) % len(names)])

    def action_maximise(self) -> None:
        """Let the panel that has the keys fill the screen, or give it back."""
        self._full = None if self._full is not None else self._panel().NAME
        self.stand_panels()

    # Take

    def action_copy(self) -> None:
        """Copy as Markdown."""
        self.app.copy_to_clipboard(markdown(self._session))
        what = self._session.tour.finding or "this place"
        self._session.say(f"copied {what} as Markdown (if your terminal lets programs write to the clipboard)")

    def action_screenshot(self) -> None:
        """Save as SVG."""
        self.app.call_later(self.app.run_action, "picture")

    def action_theme(self) -> None:
        """Dark or light."""
        self.app.call_later(self.app.run_action, "other_theme")

    def action_help(self) -> None:
        """The keys."""
        self.app.call_later(self.app.run_action, "help_screen")

    async def action_quit(self) -> None:
        """Leave."""
        self.app.exit()
