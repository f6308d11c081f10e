"""The life of communicators: rows of `comms` and `packages`, and what a pointer means to the lines that follow."""

from dataclasses import dataclass

from replay.parse.model import Segment, Sink
from replay.parse.numbers import integer, real


@dataclass(frozen=True, slots=True)
class Membership:
    """A rank's place in a communicator."""

    comm_id: str | None
    comm_rank: int | None
    nranks: int | None


class Communicators:
    """The communicators that one writer told of, by pointer; a pointer may be used again after its end."""

    def __init__(self) -> None:
        self._by_pointer: dict[str, Membership] = {}

    def find(self, pointer: str) -> Membership | None:
        """What is known of the communicator that has this pointer now."""
        return self._by_pointer.get(pointer)

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_comm."""
        match segment.record:
            case "comm_init":
                event = segment.fields["stage"].lower()
                self.started(segment)
            case "comm_end":
                event = _ending(segment.fields["end"], segment.fields["stage"])
                if event in {"destroy", "abort"}:
                    self._by_pointer.pop(segment.fields["comm"], None)
            case "comm_revoke":
                event = _ending("revoke", segment.fields["stage"])
            case "comm_layout":
                event = "layout"
            case "comm_timings":
                event = "timings"
            case "nccl_version":
                version_row(sink, segment)
                return
            case _:
                driver = integer(segment.fields["driver"])
                if driver:
                    sink.row("packages", segment, name="cuda-driver", version=_cuda(driver))
                return
        comm_row(sink, segment, event)

    def started(self, segment: Segment) -> None:
        """Remember the communicator of a line that starts or completes one."""
        fields = segment.fields
        known = self._by_pointer.get(fields["comm"])
        rank, size = integer(fields.get("comm_rank")), integer(fields.get("nranks"))
        same = known is not None and (known.comm_rank, known.nranks) == (rank, size)
        comm_id = fields.get("comm_id") or (known.comm_id if known and same else None)
        self._by_pointer[fields["comm"]] = Membership(comm_id, rank, size)


def comm_row(sink: Sink, segment: Segment, event: str) -> None:
    """Add the row of `comms` that a line with the fields of a communicator stands for."""
    fields = segment.fields
    sink.row(
        "comms",
        segment,
        event=event,
        fn=fields.get("fn"),
        comm_id=fields.get("comm_id"),
        ptr=fields.get("comm"),
        comm_rank=integer(fields.get("comm_rank")),
        nranks=integer(fields.get("nranks")),
        device=integer(fields.get("device")),
        nvml_dev=integer(fields.get("nvml_dev")),
        bus_id=fields.get("bus_id"),
        parent=fields.get("parent"),
        color=integer(fields.get("color")),
        key=integer(fields.get("key")),
        total_s=real(fields.get("total_s")),
        nodes=integer(fields.get("nodes")),
        local_ranks=integer(fields.get("local_ranks")),
    )


def version_row(sink: Sink, segment: Segment) -> None:
    """Add the version of the library that a banner tells."""
    fields = segment.fields
    sink.row(
        "packages",
        segment,
        name=fields["library"].lower(),
        version=fields["version"],
        built_for=fields.get("built_for"),
    )


def _ending(end: str, stage: str) -> str:
    """The event: destroy, where it is done, destroy-start, where it begins."""
    return end.lower() + ("-start" if stage == "START" else "")


def _cuda(number: int) -> str:
    """12040 is 12.4."""
    return f"{number // 1000}.{number % 1000 // 10}"
