"""Lines of NCCL in the form of one version.

As in `torch_lines`, the grammars spell the formats; here stands which of them a version writes, and when.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from replay.synth.engine import Call
from replay.synth.inverse import line
from replay.synth.torch_lines import numbers

_OPS = {
    "ALLREDUCE": "AllReduce",
    "BARRIER": "AllReduce",
    "ALLGATHER": "AllGather",
    "_ALLGATHER_BASE": "AllGather",
    "BROADCAST": "Broadcast",
    "REDUCE_SCATTER": "ReduceScatter",
    "_REDUCE_SCATTER_BASE": "ReduceScatter",
}
_DTYPES = {"Float": (7, 4), "BFloat16": (9, 2), "Half": (6, 2), "Long": (4, 8), "Int": (2, 4)}
_CUDA = {
    (2, 18): "12.1",
    (2, 19): "12.3",
    (2, 20): "12.4",
    (2, 21): "12.4",
    (2, 22): "12.5",
    (2, 25): "12.8",
    (2, 27): "12.9",
}
_BUSES = ("1a000", "3d000", "4e000", "5f000", "9d000", "bd000", "cd000", "dd000")


@dataclass(frozen=True, slots=True)
class Device:
    """A rank as NCCL sees it: where it runs, and the network there."""

    host: str
    pid: int
    device: int
    address: str

    @property
    def bus(self) -> str:
        """The bus id of its GPU, packed."""
        return _BUSES[self.device % 8] if self.device < 8 else f"{self.device + 0xE0:x}000"


@dataclass(frozen=True, slots=True)
class Member:
    """A rank in a communicator."""

    rank: int
    size: int
    pointer: int
    comm_id: int
    nodes: int
    local_rank: int
    local_ranks: int
    parent: int | None = None
    color: int = 0


@dataclass(frozen=True, slots=True)
class Hop:
    """A connection of a channel: from a rank to the next one, over which transport; `side` for the network."""

    channel: int
    source: int
    target: int
    source_device: Device
    target_device: Device
    transport: str
    side: str | None


class Nccl:
    """Writes NCCL's lines."""

    def __init__(self, version: str, start: datetime, network: str) -> None:
        self.text_version = version
        self.version = numbers(version)
        self.start = start
        self.network = network

    @property
    def banner(self) -> str:
        """What names library and CUDA."""
        cuda = _CUDA[max((v for v in _CUDA if v <= self.version[:2]), default=(2, 18))]
        return line("nccl_bare", "nccl_version", library="NCCL", version=self.text_version, built_for=f"cuda{cuda}")

    def info(self, who: Device, text: str, thread: int = 0) -> str:
        """A line of level INFO."""
        return line(
            "headers",
            "nccl_line",
            nccl_host=who.host,
            pid=who.pid,
            tid=who.pid + thread,
            dev=who.device,
            nccl_level="INFO",
            text=text,
        )

    def warn(self, at: float, who: Device, *, place: str, func: str, text: str, thread: int = 0) -> str:
        """A line of level WARN; with a stamp from 2.26 on."""
        fields: dict[str, object] = {
            "nccl_host": who.host,
            "pid": who.pid,
            "tid": who.pid + thread,
            "dev": who.device,
            "nccl_place": place,
            "nccl_level": "WARN",
            "text": text,
        }
        if self.version >= (2, 30, 7):
            fields["nccl_func"] = func
        if self.version < (2, 26):
            return line("headers", "nccl_line", fields)
        moment = self.start + timedelta(seconds=at)
        return line(
            "headers",
            "nccl_stamped",
            fields,
            date=f"{moment:%Y-%m-%d}",
            _date_end=" ",
            clock=f"{moment:%H:%M:%S}",
            keep=frozenset("[] "),
        )

    def opening(self, who: Device, is_first: bool) -> Iterator[str]:
        """What a process says before its first communicator."""
        named = "Bootstrap : Using" if self.version < (2, 24) else "Bootstrap: Using"
        yield self.info(
            who, line("nccl_env", "env_text", name="NCCL_SOCKET_IFNAME", value="eth0", saying="set by environment")
        )
        yield self.info(who, f"{named} eth0:{who.address}<0>")
        yield self.info(who, line("nccl_comm", "cuda_driver", driver=12040))
        if self.version >= (2, 22):
            yield self.info(who, self.banner)
        elif is_first:
            yield self.banner
        if self.network == "ib":
            hcas = f"[0]mlx5_{who.device}:1/IB [RO]"
            yield self.info(who, line("nccl_net", "ib_using", hcas=hcas, devices=f"eth0:{who.address}<0>"))
            yield self.info(who, line("nccl_net", "network", network="IB"))
        else:
            yield self.info(who, line("nccl_net", "ib_none"))
            yield self.info(who, line("nccl_net", "socket_using", devices=f"[0]eth0:{who.address}<0>"))
            yield self.info(who, line("nccl_net", "network", network="Socket"))

    def _comm(self, who: Device, member: Member) -> dict[str, object]:
        return {
            "comm": hex(member.pointer),
            "comm_rank": member.rank,
            "nranks": member.size,
            "device": who.device,
            "bus_id": who.bus,
        }

    def init(self, who: Device, member: Member, stage: str) -> str | None:
        """Start or end of a communicator's initialisation; no start is printed before 2.18.3."""
        if stage == "START" and self.version < (2, 18, 3):
            return None
        fields = self._comm(who, member)
        inline: tuple[str, ...] = ("r",)
        keep = {" "}
        split = member.parent is not None
        if self.version >= (2, 21):
            fields["fn"] = (
                "ncclCommSplit" if split else "ncclCommInitRank" if self.version < (2, 23) else "ncclCommInitRankConfig"
            )
        if self.version >= (2, 18, 3):
            fields["nvml_dev"] = who.device
        if self.version >= (2, 29) and stage == "START":
            keep.add("[Rank ")
            fields["_uint"] = member.rank
        has_id = self.version >= (2, 16)
        if split and self.version >= (2, 21) and member.parent is not None:
            fields |= {"parent": hex(member.parent), "color": member.color, "key": member.rank}
            if self.version >= (2, 24):
                fields["child"] = 1
                inline = ("r", "childCount" if self.version >= (2, 29) else "splitCount")
            if stage == "START" and (2, 23) <= self.version < (2, 31):
                has_id, keep = False, keep - {" "}
        if has_id:
            fields["comm_id"] = f"{member.comm_id:x}"
        return self.info(who, line("nccl_comm", "comm_init", fields, stage=stage, keep=frozenset(keep), inline=inline))

    def layout(self, who: Device, member: Member) -> Iterator[str]:
        """Where the ranks are, the trees, and what else stands between START and the channels."""
        if self.version >= (2, 20):
            text = line(
                "nccl_comm",
                "comm_layout",
                comm=hex(member.pointer),
                comm_rank=member.rank,
                nranks=member.size,
                nodes=member.nodes,
                local_ranks=member.local_ranks,
                _uint=member.local_rank,
                _int=0,
            )
            yield self.info(who, text)
        yield self.info(who, line("nccl_info", "p2p_chunk", _uint=524288))

    def ring_order(self, who: Device, channel: int, channels: int, size: int) -> str:
        """A ring as rank 0 tells it."""
        width = 4 if self.version < (2, 23) else len(str(size - 1))
        shown = range(min(size, 20)) if self.version < (2, 23) else range(size)
        order = " " + "".join(f" {n:>{width}}" for n in shown)[:900]
        return self.info(
            who, line("nccl_channel", "ring_order", channel=f"{channel:02}", _uint=f"{channels:02}", order=order)
        )

    def trees(self, who: Device, member: Member, channels: int) -> str:
        """The trees of all channels: a chain."""
        down = str(member.rank + 1) if member.rank + 1 < member.size else "-1"
        one = f"{down}/-1/-1->{member.rank}->{member.rank - 1}"
        return self.info(
            who, line("nccl_channel", "trees", tree_list="".join(f" [{c}] {one}" for c in range(channels)))
        )

    def hop(self, who: Device, hop: Hop) -> str:
        """A connection."""
        by_bus = self.version < (2, 18, 3)
        fields: dict[str, object] = {
            "channel": f"{hop.channel:02}",
            "comm_rank": hop.source,
            "dev": hop.source_device.bus if by_bus else hop.source_device.device,
            "peer": hop.target,
            "peer_dev": hop.target_device.bus if by_bus else hop.target_device.device,
        }
        if hop.transport == "SHM":
            method = "direct" if self.version >= (2, 30, 7) else "direct/direct"
            text = line("nccl_channel", "channel_shm", fields, method=method)
        elif hop.transport == "P2P":
            method = "IPC" if self.version < (2, 19) else "CUMEM"
            text = line("nccl_channel", "channel_p2p", fields, method=method, conn=0)
        else:
            name = "IB" if self.network == "ib" else "Socket"
            gdr = "GDRDMA" if self.network == "ib" else None
            net = {
                "method": name,
                "net_dev": who.device if self.network == "ib" else 0,
                "gdr": gdr,
                "direction": hop.side,
            }
            text = line("nccl_channel", "channel_net", {**fields, **net}, conn=0)
        return self.info(who, text)

    def connected(self, who: Device) -> Iterator[str]:
        """All rings and trees are connected."""
        rings = {"_int": (0, 1)} if self.version >= (2, 24) else {}
        yield self.info(who, line("nccl_info", "connected", rings, keep=frozenset({"all rings"})))
        yield self.info(who, line("nccl_info", "connected", keep=frozenset({"all trees"})))

    def call(self, who: Device, member: Member, call: Call, nth: int) -> str:
        """NCCL_DEBUG_SUBSYS=COLL: one call."""
        name, count = _OPS[call.op], call.numel_in
        number, size = _DTYPES[call.dtype]
        if self.version < (2, 22) and name in ("AllGather", "Broadcast"):
            number, count = 0, count * size
        launches = 0 if (2, 27) <= self.version < (2, 32) and member.nodes == 1 else nth
        base = 0x7F0000000000 + who.pid * 0x100000
        text = line(
            "nccl_coll",
            "coll",
            op=name,
            op_count=f"{launches:x}",
            _ptr=(hex(base), hex(base), hex(0x560000000000 + who.pid * 0x1000)),
            count=count,
            dtype=number,
            redop=0,
            root=call.root,
            comm=hex(member.pointer),
            nranks=member.size,
        )
        return self.info(who, text)

    def destroyed(self, who: Device, member: Member) -> str | None:
        """The end of a communicator; not among the default lines from 2.30 on."""
        if self.version >= (2, 30):
            return None
        return self.info(
            who, line("nccl_comm", "comm_end", self._comm(who, member), end="Destroy", stage="COMPLETE", inline=("r",))
        )

    def _chain(self, who: Device, places: Sequence[tuple[str, int]], code: int) -> Iterator[str]:
        for n, (file, number) in enumerate(places):
            last = n == len(places) - 1
            func = "ncclProxyProgress" if self.version >= (2, 30, 7) else None
            text = line(
                "nccl_warn",
                "chain",
                src_file=file,
                src_line=number,
                func=func,
                code=code,
                detail="Progress Thread" if last else None,
            )
            yield self.info(who, text, 12)

    def closed_text(self, peer: str) -> str:
        """The message of a connection that the peer's end closed."""
        return line("nccl_warn", "closed", _caller="socketProgress: ", peer=peer, keep=frozenset({" "}))

    def reset_text(self, peer: str) -> str:
        """The message of a connection that was reset: the peer's host came up anew, or a router says so."""
        return line(
            "nccl_warn",
            "transfer",
            _caller="socketProgressOpt: ",
            peer=peer,
            keep=frozenset({"Connection reset by peer"}),
        )

    def closed(self, at: float, who: Device, peer: str) -> Iterator[str]:
        """A peer's process is gone: what the proxy thread finds."""
        yield from self._lost(at, who, self.closed_text(peer))

    def reset(self, at: float, who: Device, peer: str) -> Iterator[str]:
        """A peer's host is gone."""
        yield from self._lost(at, who, self.reset_text(peer))

    def _lost(self, at: float, who: Device, text: str) -> Iterator[str]:
        yield ""
        yield self.warn(at, who, place="misc/socket.cc:50", func="socketProgressOpt", text=text, thread=12)
        places = (
            ("misc/socket.cc", 752),
            ("transport/net_socket.cc", 474),
            ("transport/net.cc", 1302),
            ("proxy.cc", 878),
        )
        yield from self._chain(who, places, 6)

    def completion(self, at: float, who: Device, peer: str, status: int, name: str) -> Iterator[str]:
        """The network adapter gave up."""
        yield ""
        text = self.completion_text(who, peer, status, name)
        yield self.warn(at, who, place="transport/net_ib.cc:1295", func="ncclIbTest", text=text, thread=12)
        yield from self._chain(
            who, (("transport/net_ib.cc", 1303), ("transport/net.cc", 1134), ("proxy.cc", 694), ("proxy.cc", 874)), 6
        )

    def completion_text(self, who: Device, peer: str, status: int, name: str) -> str:
        """The message of a failed completion."""
        named = self.version >= (2, 28, 9)
        fields: dict[str, object] = {
            "_net_ib": "NET/IB : " if self.version < (2, 22) else "NET/IB: ",
            "peer": peer,
            "code": status,
            "vendor_err": 129,
            "_int": 0,
        }
        if self.version < (2, 20):
            keep, fields["_length"] = {"error ", " opcode ", " vendor err ", ","}, " len 0,"
        elif not named:
            keep, fields["_length"] = {"status=", " opcode=", " vendor err "}, " len=0"
        else:
            keep, fields["_length"] = {"status=", " opcode=", " vendor_err="}, " reqSize=0"
            fields["_enum"] = (name, "IBV_WC_RDMA_WRITE")
        if self.version >= (2, 18):
            fields["_up_to"] = " (Send) localGid fe80::1 remoteGids fe80::2"
        if self.version >= (2, 22):
            fields["device"] = f"mlx5_{who.device}"
        return line("nccl_warn", "ib_completion", fields, keep=frozenset(keep))
