"""The life of communicators: rows of `comms` and `packages`, and what a pointer means to the lines that follow."""

from bisect import bisect_left
from dataclasses import dataclass
from operator import itemgetter

from replay.grammar.numbers import integer, real
from replay.parse.model import Segment, Sink


@dataclass(frozen=True, slots=True)
class Membership:
    """A rank's place in a communicator."""

    comm_id: str | None
    comm_rank: int | None
    nranks: int | None
    parent: str | None = None


class Communicators:
    """The communicators that one writer told of, by pointer; a pointer may be used again after its end.

    NCCL's commId alone does not name one: two splits of a communicator with the same colour can have the same. Where a
    line names the parent, the number of the split is added (all ranks split a parent equally often); before 2.21, where
    none does, the size.
    """

    def __init__(self) -> None:
        self._by_pointer: dict[str, Membership] = {}
        self._splits: dict[str, int] = {}
        self._before: dict[str, list[tuple[int, Membership | None]]] = {}
        """What a pointer meant before each line that changed it."""

    def find(self, pointer: str) -> Membership | None:
        """What is known of the communicator that has this pointer now."""
        return self._by_pointer.get(pointer)

    def changed(self, pointer: str) -> int:
        """The last line that changed what a pointer means, 0 if none did."""
        before = self._before.get(pointer)
        return before[-1][0] if before else 0

    def find_at(self, pointer: str, line_no: int) -> Membership | None:
        """What was known of the communicator that had this pointer at a line that was passed."""
        before = self._before.get(pointer, [])
        later = bisect_left(before, line_no, key=itemgetter(0))
        return before[later][1] if later < len(before) else self._by_pointer.get(pointer)

    def _set(self, pointer: str, membership: Membership | None, segment: Segment) -> None:
        self._before.setdefault(pointer, []).append((segment.line.line_no, self._by_pointer.pop(pointer, None)))
        if membership is not None:
            self._by_pointer[pointer] = membership

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_comm."""
        fields = segment.fields
        match segment.record:
            case "comm_init":
                self.begun(sink, segment, fields["stage"].lower())
            case "comm_end":
                event = _ending(fields["end"], fields["stage"])
                self._row(sink, segment, event)
                if event in {"destroy", "abort"}:
                    self._set(fields["comm"], None, segment)
            case "comm_revoke":
                self._row(sink, segment, _ending("revoke", fields["stage"]))
            case "comm_layout":
                self._row(sink, segment, "layout")
            case "comm_timings":
                self._row(sink, segment, "timings")
            case "bootstrap_timings":
                self._row(sink, segment, "bootstrap")
            case "split_left_out":
                self._count_split(integer(fields["comm_rank"]))
            case "nccl_version":
                version_row(sink, segment)
            case "cuda_driver":
                driver = integer(fields["driver"])
                if driver:
                    sink.row("packages", segment, name="cuda-driver", version=_cuda(driver))

    def begun(self, sink: Sink, segment: Segment, event: str) -> None:
        """Take a line that starts or completes a communicator."""
        fields = segment.fields
        pointer, rank, size = fields["comm"], integer(fields.get("comm_rank")), integer(fields.get("nranks"))
        known = self._by_pointer.get(pointer)
        if known is None or event == "start" or (known.comm_rank, known.nranks) != (rank, size):
            made = Membership(self._name(fields, size), rank, size, fields.get("parent"))
            self._set(pointer, made, segment)
        self._row(sink, segment, event)

    def ended(self, sink: Sink, segment: Segment) -> None:
        """Take a call that ends a communicator."""
        self._row(sink, segment, _ending(segment.fields["end"], "START"))

    def _name(self, fields: dict[str, str], size: int | None) -> str | None:
        comm_id, parent = fields.get("comm_id"), fields.get("parent")
        if parent is not None:
            nth = self._splits[parent] = integer(fields.get("child")) or self._splits.get(parent, 0) + 1
            of = self._by_pointer.get(parent)
            if comm_id is not None:
                return f"{comm_id}/{nth}"
            return f"{of.comm_id}/{nth}/{fields.get('color')}" if of and of.comm_id else None
        return comm_id if comm_id is None or "fn" in fields else f"{comm_id}/{size}"

    def _count_split(self, rank: int | None) -> None:
        """Count a split that left this rank out; its parent is not told: the only communicator that is no split."""
        parents = [p for p, member in self._by_pointer.items() if member.comm_rank == rank and member.parent is None]
        if len(parents) == 1:
            self._splits[parents[0]] = self._splits.get(parents[0], 0) + 1

    def _row(self, sink: Sink, segment: Segment, event: str) -> None:
        fields = segment.fields
        known = self._by_pointer.get(fields.get("comm", ""))
        sink.row(
            "comms",
            segment,
            event=event,
            fn=fields.get("fn"),
            comm_id=known.comm_id if known else None,
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
            bootstrap_s=real(fields.get("bootstrap_s")),
            topo_s=real(fields.get("topo_s")),
            graphs_s=real(fields.get("graphs_s")),
            connections_s=real(fields.get("connections_s")),
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
