"""What NCCL prints, from matches to rows: each family of lines has a module of its own, here they are called."""

from collections.abc import Callable

from replay.parse.blocks.nccl_channels import Topology, channel_rows
from replay.parse.blocks.nccl_collectives import Collectives
from replay.parse.blocks.nccl_comms import Communicators, version_row
from replay.parse.blocks.nccl_network import network_rows, variable_row
from replay.parse.blocks.nccl_warnings import Warnings
from replay.parse.model import Segment, Sink


class NcclLines:
    """The NCCL lines of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        comms = Communicators()
        collectives = Collectives(comms)
        self._warnings = Warnings()
        self._by_family: dict[str, Callable[[Sink, Segment], None]] = {
            "nccl_channel": channel_rows,
            "nccl_comm": comms.rows,
            "nccl_coll": collectives.rows,
            "nccl_net": network_rows,
            "nccl_env": variable_row,
            "nccl_topo": Topology().rows,
            "nccl_info": self._warnings.remark,
            "nccl_warn": self._warnings.rows,
            "nccl_other": self._warnings.rows,
        }

    def feed(self, segment: Segment) -> str | None:
        """See Assembler.feed."""
        match = segment.match
        if match is None:
            return None
        if segment.header == "nccl":
            take = self._by_family.get(match.family)
            if take:
                take(self._sink, segment)
            if match.family not in {"nccl_warn", "nccl_other"} and segment.head.get("nccl_level") in {"WARN", "ATTN"}:
                self._warnings.other(self._sink, segment)
        elif match.family == "nccl_bare":
            if match.record == "nccl_goes_on":
                return "continuation"
            if match.record == "nccl_version":
                version_row(self._sink, segment)
        return None

    def close(self) -> None:
        """See Assembler.close: every NCCL message is one line."""
