"""The lanes of a run: one a rank, or ranks in groups that unfold."""

from replay.tui.core import lanes
from replay.tui.core.book import Book
from replay.tui.core.lanes import Grouping, Lane

MOST_LANES = 24
"""From more ranks than this on they are shown in groups, until somebody wants otherwise."""
_SAID = {Grouping.RANKS: "a lane for each rank", Grouping.ALIKE: "ranks that did alike", Grouping.NODES: "nodes"}


class View:
    """How lanes are made, which groups are unfolded, and the lanes that come of it."""

    def __init__(self, ranks: int) -> None:
        self.grouping = Grouping.ALIKE if ranks > MOST_LANES else Grouping.RANKS
        self.lanes: list[Lane] = []
        self._unfolded: frozenset[str] = frozenset()
        self._book: Book | None = None

    def take(self, book: Book) -> None:
        """Make the lanes of a run."""
        self._book = book
        self.lanes = lanes.lanes(
            self.grouping, book.ranks, book.spans, book.hosts, at_fault=book.at_fault, unfolded=self._unfolded
        )

    def group(self) -> str:
        """Take the next way of making lanes; return it in words."""
        ways = list(Grouping)
        self.grouping = ways[(ways.index(self.grouping) + 1) % len(ways)]
        self._again()
        return f"lanes: {_SAID[self.grouping]}"

    def unfold(self, lane: Lane) -> None:
        """Unfold a group of lanes, or fold it."""
        if lane.key is not None:
            self._unfolded ^= {lane.key}
            self._again()

    def _again(self) -> None:
        if self._book is not None:
            self.take(self._book)

    def at(self, rank: int | None) -> int:
        """Return the lane of a rank: its own, else the group that holds it."""
        found = 0
        for n, lane in enumerate(self.lanes):
            if rank in lane.ranks:
                found = n
                if len(lane.ranks) == 1:
                    break
        return found

    def beside(self, rank: int | None, direction: int) -> int | None:
        """Return the rank of the lane above or below that of a rank; None at the rim."""
        n = self.at(rank) + direction
        if not 0 <= n < len(self.lanes):
            return None
        lane = self.lanes[n]
        # The first member stands for a folded group; of an unfolded one the row above its members is passed over.
        if lane.is_open and direction < 0 and n > 0:
            lane = self.lanes[n - 1]
        return lane.ranks[0]
