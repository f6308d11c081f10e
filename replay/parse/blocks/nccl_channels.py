"""Connections, rings, trees and topology."""

from replay.parse.model import Segment, Sink
from replay.parse.numbers import integer, real

_TRANSPORT = {"channel_p2p": "P2P", "channel_shm": "SHM", "channel_net": "NET", "channel_collnet": "COLLNET"}


def channel_rows(sink: Sink, segment: Segment) -> None:
    """Take a line of the family nccl_channel."""
    fields = segment.fields
    transport = _TRANSPORT.get(segment.record)
    if transport:
        sink.row(
            "channels",
            segment,
            channel=integer(fields["channel"]),
            conn=integer(fields.get("conn")),
            comm_rank=integer(fields["comm_rank"]),
            peer=integer(fields.get("peer")),
            dev=fields.get("dev"),
            peer_dev=fields.get("peer_dev"),
            direction=fields.get("direction"),
            transport=transport,
            method=fields.get("method"),
            net_dev=integer(fields.get("net_dev")),
            gdr="gdr" in fields if "net_dev" in fields else None,
        )
    elif segment.record == "ring":
        sink.row(
            "rings",
            segment,
            channel=integer(fields["channel"]),
            prev=integer(fields["prev"]),
            me=integer(fields["me"]),
            next=integer(fields["next"]),
        )
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
