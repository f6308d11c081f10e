"""Connections, rings, trees and topology."""

from replay.parse.model import Segment, Sink
from replay.parse.numbers import integer, real
from replay.parse.rows import Column, Rows, constant, number, text


def _has_gdr(net_dev: str | None, gdr: str | None) -> bool | None:
    return None if net_dev is None else gdr is not None


def _connection(transport: str) -> Rows:
    return Rows(
        "channels",
        {
            "channel": number("channel"),
            "conn": number("conn"),
            "comm_rank": number("comm_rank"),
            "peer": number("peer"),
            "dev": text("dev"),
            "peer_dev": text("peer_dev"),
            "direction": text("direction"),
            "transport": constant(transport),
            "method": text("method"),
            "net_dev": number("net_dev"),
            "gdr": Column(_has_gdr, ("net_dev", "gdr")),
        },
    )


ROWS = {
    "channel_p2p": _connection("P2P"),
    "channel_shm": _connection("SHM"),
    "channel_net": _connection("NET"),
    "channel_collnet": _connection("COLLNET"),
    "ring": Rows("rings", {name: number(name) for name in ("channel", "prev", "me", "next")}),
}
"""Records that make one row each."""


def channel_rows(sink: Sink, segment: Segment) -> None:
    """Take a line of the family nccl_channel."""
    fields = segment.fields
    if segment.record in ROWS:
        ROWS[segment.record].row(sink, segment)
    elif segment.record == "tree":
        _tree(sink, segment, fields["channel"], [fields["up"], fields["me"], fields["down"]])
    elif segment.record == "trees":
        for item in fields["tree_list"].split(" [")[1:]:
            channel, _, chain = item.partition("] ")
            _tree(sink, segment, channel, chain.split("->"))


def _tree(sink: Sink, segment: Segment, channel: str, chain: list[str]) -> None:
    """A tree is told upwards or downwards; the children are those with strokes between them."""
    up, down = (chain[0], chain[2]) if "/" in chain[2] else (chain[2], chain[0])
    sink.row("trees", segment, channel=integer(channel), up=integer(up), me=integer(chain[1]), down=down)


class Topology:
    """The tree of one writer's topology; a child stands further right than its parent, by the length of their link."""

    def __init__(self) -> None:
        self._columns: list[int] = []

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_topo."""
        fields = segment.fields
        if segment.record == "topology_root":
            self._columns.clear()
            sink.row("topology", segment, depth=0, node=fields["node"])
        elif segment.record == "topology_edge":
            column = len(segment.text) - len(segment.text.lstrip(" "))
            self._columns = [*(above for above in self._columns if above < column), column]
            depth, bw = len(self._columns), real(fields["bw"])
            sink.row("topology", segment, depth=depth, node=fields["node"], link=fields["link"], bw=bw)
