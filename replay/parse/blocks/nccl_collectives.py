"""Operations as NCCL logs them: rows of `collectives` and `tuning`."""

from replay.parse.blocks.nccl_comms import Communicators
from replay.parse.model import Segment, Sink
from replay.parse.numbers import integer

# ncclDataType_t: name and size
_DTYPES = {
    0: ("int8", 1),
    1: ("uint8", 1),
    2: ("int32", 4),
    3: ("uint32", 4),
    4: ("int64", 8),
    5: ("uint64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("bfloat16", 2),
    10: ("float8_e4m3", 1),
    11: ("float8_e5m2", 1),
}
_REDOPS = {0: "sum", 1: "prod", 2: "max", 3: "min", 4: "avg"}
_ALGOS = {0: "TREE", 1: "RING", 2: "COLLNET_DIRECT", 3: "COLLNET_CHAIN", 4: "NVLS", 5: "NVLS_TREE", 6: "PAT"}
_PROTOS = {0: "LL", 1: "LL128", 2: "SIMPLE"}
_REDUCING = {"allreduce", "reduce", "reducescatter"}
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_PAIRED = {"send", "recv"}
_OTHER_NAMES = {"bcast": "broadcast"}


class Collectives:
    """The operations of one writer."""

    def __init__(self, comms: Communicators) -> None:
        self._comms = comms

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_coll."""
        fields = segment.fields
        match segment.record:
            case "coll":
                self._operation(sink, segment, "nccl-coll")
            case "call":
                self._operation(sink, segment, "nccl-call")
            case "call_init" | "call_split":
                self._comms.begun(sink, segment, "start")
            case "call_end":
                self._comms.ended(sink, segment)
            case "tuning" | "tuning_kernel" | "tuning_copy":
                sink.row(
                    "tuning",
                    segment,
                    op=fields["op"],
                    bytes=integer(fields["bytes"]),
                    algo=fields["algo"],
                    proto=fields.get("proto"),
                    channels=fields.get("channels"),
                )
            case "tuning_numbers":
                sink.row(
                    "tuning",
                    segment,
                    op=fields.get("op"),
                    bytes=integer(fields["bytes"]),
                    algo=_named(_ALGOS, fields["algo_number"]),
                    proto=_named(_PROTOS, fields["proto_number"]),
                )

    def _operation(self, sink: Sink, segment: Segment, source: str) -> None:
        fields = segment.fields
        op = fields["op"].lower()
        op = _OTHER_NAMES.get(op, op)
        count, root, redop = integer(fields["count"]), integer(fields["root"]), integer(fields["redop"])
        code = integer(fields["dtype"])
        dtype, size = _DTYPES.get(-1 if code is None else code, (fields["dtype"], None))
        known = self._comms.find(fields["comm"])
        sink.row(
            "collectives",
            segment,
            source=source,
            comm=fields["comm"],
            comm_id=known.comm_id if known else None,
            comm_rank=known.comm_rank if known else None,
            nranks=integer(fields.get("nranks")) or (known.nranks if known else None),
            logged_seq=integer(fields.get("op_count"), 16),
            op=op,
            dtype=dtype,
            count=count,
            bytes=count * size if count is not None and size else None,
            root=root if op in _ROOTED else None,
            redop=_REDOPS.get(-1 if redop is None else redop, "user") if op in _REDUCING else None,
            peer=root if op in _PAIRED else None,
            state="issued",
        )


def _named(names: dict[int, str], number: str) -> str:
    value = integer(number)
    return number if value is None else names.get(value, number)
