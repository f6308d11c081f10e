"""Going through the findings, and along the causal chain from an effect to its cause."""

from dataclasses import replace
from typing import TYPE_CHECKING

from replay.tui.core import chain
from replay.tui.core.chain import Hop, Spot
from replay.tui.core.story import Ref

if TYPE_CHECKING:
    from replay.tui.core.session import Session

_USUAL = frozenset({"running", "gone", "unknown"})
"""States that say nothing of how long something took that a finding is about."""


class Tour:
    """Where one is among the findings, and which links of the chain were followed."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.finding: str | None = None
        """Finding that was gone to last."""
        self._been: list[tuple[int | None, int | None]] = []

    def forget(self) -> None:
        """Begin a chain anew: the cursor went elsewhere."""
        self._been.clear()

    def next(self, direction: int) -> None:
        """Next or last finding: roots first."""
        if self._session.story is None:
            self._session.say("the findings are being read")
            return
        order = self._session.story.order()
        if not order:
            self._session.say("there are no findings")
            return
        if self.finding in order:
            n = order.index(self.finding) + direction
            if not 0 <= n < len(order):
                self._session.say(
                    f"{self.finding} is the {'last' if direction > 0 else 'first'} of {len(order)} findings"
                )
                return
        else:
            n = 0 if direction > 0 else len(order) - 1
        self.to(order[n])

    def to(self, finding_id: str) -> None:
        """Go to a finding: to who waited because of it, where somebody did; else to its first line."""
        told = self._session.story.finding(finding_id) if self._session.story else None
        if told is None or self._session.story is None:
            known = ", ".join(f.id for f in self._session.story.report.findings) if self._session.story else ""
            self._session.say(f"no finding {finding_id}" + (f"; there are {known}" if known else ""), is_error=True)
            return
        self.finding = finding_id
        refs = [r for r in self._session.story.refs.get(finding_id, ()) if r.file_id is not None]
        if not refs:
            self._session.say(told.summary)
            return
        waits = [r for r in refs if r.rank in told.waiting and r.rank not in told.ranks]
        first = waits[0] if waits else refs[0]
        self._session.travel.to_ref(first)
        self._zoom_to(first, told.ranks, is_wait=bool(waits))
        self._session.say(f"{finding_id}  {told.summary}")

    def _zoom_to(self, ref: Ref, at_fault: tuple[int, ...], *, is_wait: bool) -> None:
        """Show what went on at a finding: the cursor in the middle of the wait, the wait in the middle of the
        picture. What took no time is shown in the span of time that is looked at.
        """
        if ref.t is None or ref.run_id != self._session.book.run_id:
            return
        spans = self._session.book.spans
        lo = hi = ref.t
        if ref.rank is not None:
            wait = spans.wait_for(ref.rank, at_fault, ref.t) if is_wait else None
            doing = wait or spans.at(ref.t, ref.rank)
            if doing is not None and doing.state not in _USUAL:
                lo, hi = doing.t_lo, doing.t_hi
            if wait is not None:
                self._session.walk.place = replace(self._session.walk.place, t=(lo + hi) / 2)
        for rank in at_fault[:8]:
            doing = spans.at(self._session.walk.place.t, rank)
            if doing is not None and doing.state not in _USUAL:
                lo, hi = min(lo, doing.t_lo), max(hi, doing.t_hi)
        if lo < hi:
            self._session.walk.show(lo, hi)
        self._session.walk.window = self._session.walk.window.holding(self._session.walk.place.t)

    def follow(self) -> None:
        """Follow the chain by one link, from effect to cause."""
        place, words = self._session.walk.place, self._session.words()
        file_id, line_no = place.file_id, place.line_no
        if file_id is None and words is not None:
            file_id, line_no = words.file_id, words.line_no
        doing = self._session.book.spans.at(place.t, place.rank) if place.rank is not None else None
        late = doing.late if doing is not None and doing.state == "waiting" else ()
        spot = Spot(self._session.book.run_id, place.t, place.rank, file_id, line_no, late)
        if not self._been:
            self._been.append((file_id, line_no))
        been = frozenset(self._been)
        self._session.desk.ask("chain", lambda con: chain.follow(con, spot, been), self._followed, self._session.fail)

    def _followed(self, hop: Hop) -> None:
        if not hop.is_end:
            been = [*self._been, (hop.file_id, hop.line_no)]
            self._session.travel.go_to(self._session.book.run_id, hop.file_id, hop.line_no, hop.rank, hop.t)
            self._been = been
        self._session.say(hop.said)
