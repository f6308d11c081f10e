"""Connections, rings, trees and topology."""

from replay.grammar.numbers import integer, real
from replay.parse.model import Segment, Sink
from replay.parse.nested import parse_nested
from replay.parse.rows import Column, Rows, constant, number, text

_PATTERNS = {"1": "balanced-tree", "2": "split-tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet-direct"}


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
    """What one writer told of its topology: the tree, in which a child stands further right than its parent, by the
    length of their link; the paths, the search over them, and the costs of algorithms.
    """

    def __init__(self) -> None:
        self._columns: list[int] = []
        self._algos: list[str] = []
        self._protos: list[str] = []

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_topo."""
        fields = segment.fields
        match segment.record:
            case "topology_root":
                self._columns.clear()
                sink.row("topology", segment, depth=0, node=fields["node"])
            case "topology_edge":
                column = len(segment.text) - len(segment.text.lstrip(" "))
                self._columns = [*(above for above in self._columns if above < column), column]
                depth, bw = len(self._columns), real(fields["bw"])
                sink.row("topology", segment, depth=depth, node=fields["node"], link=fields["link"], bw=bw)
            case "topology_paths":
                _paths(sink, segment)
            case "channel_graph":
                _graph(sink, segment)
            case "cost_algorithms":
                self._algos, self._protos = _cells(fields), []
            case "cost_protocols":
                self._protos = _cells(fields)
            case "cost_both":
                pairs = [cell.partition("/") for cell in _cells(fields)]
                self._algos, self._protos = [a.strip() for a, _, _ in pairs], [p.strip() for _, _, p in pairs]
            case "cost_row":
                self._costs(sink, segment)

    def _costs(self, sink: Sink, segment: Segment) -> None:
        """A row an algorithm and protocol: the heads of algorithms are as wide as their protocols together."""
        costs = _cells(segment.fields)
        if not self._algos or len(costs) != len(self._protos):
            return
        each = len(costs) // len(self._algos)
        for nth, (proto, cost) in enumerate(zip(self._protos, costs, strict=True)):
            latency, _, bw = cost.partition("/")
            sink.row(
                "tuning_costs",
                segment,
                op=segment.fields["op"],
                algo=self._algos[min(nth // max(each, 1), len(self._algos) - 1)],
                proto=proto,
                latency_us=real(latency.strip()),
                bw=real(bw.strip()),
            )


def _cells(fields: dict[str, str]) -> list[str]:
    return [cell.strip() for cell in fields["cells"].split("|")[:-1]]


def _paths(sink: Sink, segment: Segment) -> None:
    tree = parse_nested("topology", segment.text, "paths")
    for path in tree.children[1:] if tree is not None else []:
        peer, hops, bw, kind = path.children
        sink.row(
            "topology_paths",
            segment,
            node=segment.fields["node"],
            peer=str(peer),
            hops=int(str(hops)),
            bw=real(str(bw)),
            type=str(kind),
        )


def _graph(sink: Sink, segment: Segment) -> None:
    fields = segment.fields
    sink.row(
        "channel_graphs",
        segment,
        pattern=_PATTERNS.get(fields["pattern"], fields["pattern"]),
        cross_nic=integer(fields["cross_nic"]),
        channels=integer(fields["channels"]),
        bw_intra=real(fields["bw_intra"]),
        bw_inter=real(fields["bw_inter"]),
        type_intra=fields["type_intra"],
        type_inter=fields["type_inter"],
        same_channels=fields["same_channels"] != "0",
    )
