"""What NCCL prints, from matches to rows: each family of lines has a module of its own, here they are called."""

from collections.abc import Callable

from replay.grammar.compile import load
from replay.grammar.model import Match
from replay.parse.blocks.nccl_channels import ROWS as CONNECTIONS
from replay.parse.blocks.nccl_channels import Topology, channel_rows
from replay.parse.blocks.nccl_collectives import CHOICES, OPERATIONS, Collectives
from replay.parse.blocks.nccl_comms import Communicators, version_row
from replay.parse.blocks.nccl_network import NETWORK, VARIABLE, network_rows, variable_row
from replay.parse.blocks.nccl_ras import RasReport
from replay.parse.blocks.nccl_warnings import Warnings
from replay.parse.known_text import known_text
from replay.parse.model import Passing, Segment, Sink
from replay.parse.rows import Rows

_KNOWN = "nccl_known"
"""Shapes of the messages that are known and carry nothing to keep."""
_WARNINGS = ("nccl_warn", "nccl_warn_only", "nccl_other")


ALONE: dict[tuple[str, str], Rows | None] = {
    **{("nccl_channel", record): rows for record, rows in CONNECTIONS.items()},
    ("nccl_channel", "ring_order"): None,
    ("nccl_coll", "call_other"): None,
    ("nccl_net", "network"): NETWORK,
    **{("nccl_coll", record): rows for record, rows in (OPERATIONS | CHOICES).items()},
    **{("nccl_env", production.record): VARIABLE for production in load("nccl_env").productions},
    **{("nccl_info", production.record): None for production in load("nccl_info").productions},
}
"""Records that tell all they have to tell by themselves, and the rows they make; None: none. They hold no block open
and are of no interest to others, so that many can be read at once.
"""
del ALONE["nccl_info", "nvls"]


class NcclLines:
    """The NCCL lines of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.comms = comms = Communicators()
        collectives = Collectives(comms)
        self._warnings = Warnings()
        self._ras = RasReport()
        self._by_family: dict[str, Callable[[Sink, Segment], None]] = {
            "nccl_channel": channel_rows,
            "nccl_comm": comms.rows,
            "nccl_coll": collectives.rows,
            "nccl_net": network_rows,
            "nccl_env": variable_row,
            "nccl_topo": Topology().rows,
            "nccl_info": self._warnings.remark,
            **dict.fromkeys(_WARNINGS, self._warnings.rows),
        }

    def feed(self, segment: Segment) -> str | None:
        """See Assembler.feed."""
        match = segment.match
        if match is None:
            return None
        if segment.header == "nccl":
            if match.family == "nccl_text" and known_text(_KNOWN).takes(segment.text):
                segment.match = match = Match(_KNOWN, _KNOWN, _KNOWN, match.fields)
            take = self._by_family.get(match.family)
            if take:
                take(self._sink, segment)
            if match.family not in _WARNINGS and segment.head.get("nccl_level") in {"WARN", "ATTN"}:
                self._warnings.other(self._sink, segment)
        elif match.family == "nccl_ras":
            self._ras.rows(self._sink, segment)
        elif match.family == "nccl_bare":
            if match.record == "nccl_goes_on":
                return "continuation"
            if match.record == "nccl_version":
                version_row(self._sink, segment)
        return None

    def minds(self, passing: Passing) -> bool:
        """See Assembler."""
        return False

    def close(self) -> None:
        """See Assembler.close: every NCCL message is one line."""
