"""What `ncclras` prints of NCCL's RAS service: which ranks of a communicator are not where the others are."""

from replay.grammar.numbers import integer
from replay.parse.model import Segment, Sink
from replay.parse.ops import operation

_ODD = frozenset({"ras_one", "ras_one_none", "ras_many", "ras_none", "ras_missing"})
_IDLE = frozenset({"ras_one_none", "ras_none"})
"""Ranks that have launched nothing yet."""


class RasReport:
    """The report in one stream. What it says of ranks stands below the name of their communicator."""

    def __init__(self) -> None:
        self._sizes: dict[str, str] = {}
        self._comm: dict[str, str] = {}
        self._op: str | None = None

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_ras."""
        fields, record = segment.fields, segment.record
        if record == "ras_version":
            sink.row("packages", segment, name="nccl", version=fields["version"])
        elif record == "ras_group":
            self._sizes[fields["group_no"]] = fields["comm_size"]
        elif record == "ras_comm":
            self._comm, self._op = fields, None
        elif record == "ras_differ":
            op = fields.get("op", "collective")
            self._op = None if op == "collective" else operation(op)
        elif record in _ODD and self._comm:
            sink.row("ras_reports", segment, **self._columns(record, fields), text=segment.text.strip())

    def _columns(self, record: str, fields: dict[str, str]) -> dict[str, str | int | None]:
        """What a line tells of one rank, or of so many as have the same to tell."""
        group = self._comm["group_no"]
        aspect = (
            "launched"
            if record in _IDLE
            else next((a for a in ("launched", "status", "error") if a in fields), "missing")
        )
        return {
            "comm_hash": self._comm["comm_hash"],
            "group_no": integer(group),
            "comm_size": integer(size) if (size := self._sizes.get(group, "")).isdigit() else None,
            "finding": self._comm["finding"].lower(),
            "aspect": aspect,
            "ranks_count": integer(fields["ranks"]) if "ranks" in fields else 1,
            "comm_rank": integer(fields.get("comm_rank")),
            "op": self._op,
            "launched": 0 if record in _IDLE else integer(fields.get("launched")),
            "status": (fields.get("status") or fields.get("error") or "").strip() or None,
            "node": fields.get("node"),
            "of_pid": integer(fields.get("process")),
            "gpu": fields.get("gpu"),
        }
