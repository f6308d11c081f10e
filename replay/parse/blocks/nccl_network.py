"""Interfaces and network devices, and the variables that NCCL read."""

from replay.grammar.numbers import integer
from replay.parse.model import Segment, Sink
from replay.parse.rows import Column, Rows, constant, text

VARIABLE = Rows(
    "env",
    {
        "name": text("name"),
        "value": Column(lambda number, value: number or value, ("number", "value")),
        "origin": constant("nccl"),
    },
)

NETWORK = Rows("net_devices", {"transport": text("network"), "usable": constant(True)})
"""Of "Using network IB"."""


def variable_row(sink: Sink, segment: Segment) -> None:
    """Take a line of the family nccl_env."""
    VARIABLE.row(sink, segment)


def network_rows(sink: Sink, segment: Segment) -> None:
    """Take a line of the family nccl_net."""
    fields = segment.fields
    match segment.record:
        case "bootstrap_using":
            _interfaces(sink, segment, "bootstrap")
        case "socket_using":
            _interfaces(sink, segment, "Socket")
        case "ib_using":
            _interfaces(sink, segment, "bootstrap")
            _hcas(sink, segment)
        case "network":
            NETWORK.row(sink, segment)
        case "ib_none":
            sink.row("net_devices", segment, transport="IB", usable=False)
        case "ib_library":
            sink.row("net_devices", segment, transport="IB", name=fields["library"], usable=False)
        case "plugin_failed":
            sink.row("net_devices", segment, transport=fields["network"], usable=False)
        case "gdr_hca" | "gdr_gpu_hca":
            gdr = fields["gdr"] == "Enabled"
            sink.row("net_devices", segment, transport=fields["network"], name=fields["hca"], gdr=gdr)


def _interfaces(sink: Sink, segment: Segment, transport: str) -> None:
    """Rows for "eth0:10.0.0.1<0>", "[0]ib0:fe80::1%ib0<0> [1]ib1:..", "node1:29500"."""
    for item in segment.fields["devices"].split():
        name, colon, rest = item.rpartition("]")[2].partition(":")
        if colon:
            address = rest.partition("<")[0]
            sink.row("net_devices", segment, transport=transport, name=name, address=address, usable=True)


def _hcas(sink: Sink, segment: Segment) -> None:
    """Rows for "[0]mlx5_0:1/IB", "[1]mlx5_1:1/RoCE/SHARP", and for merged devices, "[0]{[0] mlx5_0:1/RoCE, [1] .."."""
    for item in segment.fields["hcas"].replace("[", " [").replace("]", "] ").split():
        name, colon, rest = item.strip("{},").partition(":")
        if colon:
            port, _, link = rest.partition("/")
            sink.row(
                "net_devices",
                segment,
                transport="IB",
                name=name,
                port=integer(port) if port.isdigit() else None,
                link=link.partition("/")[0] or None,
                usable=True,
            )
