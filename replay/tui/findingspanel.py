"""The findings as a tree: root, chain, evidence. Where the cursor of the tree stands, the cursor of the run goes."""

from collections.abc import Sequence

from rich.cells import cell_len

from replay.tui.core.story import Node
from replay.tui.panel import Panel, Row, cut, wrapped


class FindingsPanel(Panel):
    """The tree; the row looked at is told in full, the others in one row."""

    NAME = "findings"
    NUMBER = 3

    def __init__(self) -> None:
        super().__init__()
        self._at = 0
        self._top = 0
        self._unfolded: frozenset[str] = frozenset()
        self._rows_of: list[int] = []
        self._followed: str | None = None

    def wanted_height(self, width: int, most: int) -> int:
        """Return the rows, up to `most`, that the tree takes with its title, wherever in it one stands."""
        if self.session is None or self.session.story is None:
            return most
        rows = 1
        for node in self._tree():
            rows += len(self._node(node, True, width))
            if rows >= most:
                return most
        return rows

    def title(self) -> tuple[str, str]:
        """How many, and which one was gone to."""
        session = self.session
        if session is None or session.story is None:
            return "findings", "reading …"
        order = session.story.order()
        if not order:
            return "findings", "none"
        at = (
            f"{order.index(session.tour.finding) + 1}/{len(order)}"
            if session.tour.finding in order
            else f"{len(order)}"
        )
        return "findings", f"{session.tour.finding} ▸ {at}" if session.tour.finding in order else at

    def _tree(self) -> list[Node]:
        session = self.session
        if session is None or session.story is None:
            return []
        if session.tour.finding != self._followed:  # gone to with a key: unfold it, and stand on it
            self._followed = session.tour.finding
            if session.tour.finding is not None:
                self._unfolded |= {session.tour.finding}
                keys = [n.key for n in session.story.visible(self._unfolded)]
                self._at = keys.index(session.tour.finding) if session.tour.finding in keys else 0
        return session.story.visible(self._unfolded)

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """The rows around the one looked at."""
        nodes = self._tree()
        if not nodes:
            told = self.session is not None and self.session.story is not None
            return [[("  no findings" if told else "  reading the findings …", self.palette.dim)]]
        self._at = min(max(self._at, 0), len(nodes) - 1)
        made: list[tuple[int, Row]] = []
        begins: list[int] = []
        for n, node in enumerate(nodes):
            begins.append(len(made))
            made += [(n, row) for row in self._node(node, n == self._at, width)]
        begins.append(len(made))
        begin, end = begins[self._at], begins[self._at + 1]
        self._top = min(max(self._top, end - height, 0), begin)
        self._top = max(min(self._top, len(made) - height), 0)
        shown = made[self._top : self._top + height]
        self._rows_of = [n for n, _ in shown]
        return [row for _, row in shown]

    def _node(self, node: Node, is_here: bool, width: int) -> list[Row]:
        p = self.palette
        if node.role == "heading":
            return [[(cut(f" {node.text}", width), p.strong + p.cursor if is_here else p.strong)]]
        fold = ("▾" if node.key in self._unfolded else "▸") if node.has_children else " "
        bullet = {"root": "●", "finding": "○", "link": "·", "line": "", "fact": ""}[node.role]
        name = f"{node.finding}  " if node.role in {"root", "finding"} and node.finding else ""
        indent = " " * (2 * node.depth)
        head = f"{'▶' if is_here else ' '}{indent}{fold}{bullet} {name}"
        style = {"root": p.strong, "line": p.link, "fact": p.dim}.get(node.role, p.text)
        tail = f"  {node.who}" if node.who else ""
        room = max(width - cell_len(head) - 1, 8)
        most = 6 if is_here else 2 if node.role == "root" else 1
        texts = wrapped(node.text, room, most)
        if node.role == "link" and cell_len(texts[-1]) + cell_len(tail) <= room and len(texts) == 1:
            texts = [texts[0] + " " * (room - cell_len(texts[0]) - cell_len(tail)) + tail]
        rows: list[Row] = [[(head, p.mark if is_here else style), (texts[0], style)]]
        rest = " " * cell_len(head)
        rows += [[(rest, style), (text, style)] for text in texts[1:]]
        if node.note and (is_here or node.role == "root"):
            notes = wrapped(node.note, room, 4 if is_here and node.role != "root" else 1)
            rows += [[(rest, p.dim), (text, p.warning if node.role == "root" else p.dim)] for text in notes]
        if not is_here:
            return rows
        return [[*((t, s + p.cursor) for t, s in row), (" " * width, p.cursor)] for row in rows]

    def move(self, direction: int) -> None:
        """Stand on another row, and go where it leads."""
        nodes = self._tree()
        at = self._at + direction
        while 0 <= at < len(nodes) and nodes[at].role == "heading" and 0 <= at + direction < len(nodes):
            at += direction
        if 0 <= at < len(nodes):
            self._at = at
            self._go(nodes[at])
        self.redraw()

    def _go(self, node: Node) -> None:
        session = self.session
        if session is None:
            return
        if node.role in {"root", "finding"} and node.finding is not None:
            self._followed = node.finding
            session.tour.to(node.finding)
        elif node.ref is not None:
            session.travel.to_ref(node.ref)
            session.say(f"{node.text}  {node.note}" if node.role == "link" else "")

    def enter(self) -> None:
        """Unfold, fold, or go there."""
        nodes = self._tree()
        if not nodes:
            return
        node = nodes[min(self._at, len(nodes) - 1)]
        if node.has_children:
            self._unfolded ^= {node.key}
            self._app.changed()  # other panels get the room that it takes or gives
        else:
            self._go(node)
        self.redraw()

    def click(self, row: int, cell: int) -> None:
        """Stand on a row; a second click unfolds it."""
        if row >= len(self._rows_of):
            return
        if self._rows_of[row] == self._at:
            self.enter()
            return
        self._at = self._rows_of[row]
        nodes = self._tree()
        self._go(nodes[self._at])
        self.redraw()
