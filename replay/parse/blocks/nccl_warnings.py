"""What NCCL warns of, and the way of errors up its stack; from them the peers that were lost, versions that differ and
memory that was not there.

A process whose peer died can print the same lines a million times a minute. Of equal lines of a writer the first few
become rows; all are counted as lines.
"""

from replay.grammar.numbers import integer
from replay.parse.failure_kinds import cuda_error
from replay.parse.model import Segment, Sink

_SAME = 20
"""Rows of one text and writer."""
_ALIKE = 1000
"""Rows of one writer whose texts differ in digits only."""
_TEXTS = 20_000
"""Different texts that are remembered."""
_COMPARED = 300
"""Characters of a text that are remembered."""
_NO_DIGITS = str.maketrans("", "", "0123456789abcdef")
_LOST = ("closed", "refused", "reset", "no_route", "unreachable", "broken_pipe", "timed_out")
"""Terminals of the grammar that name how a peer was lost."""
_MIB = 1 << 20


class Warnings:
    """The warnings of one writer."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._is_in_trouble = False

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the families nccl_warn and nccl_other."""
        fields, level = segment.fields, _level(segment)
        if segment.record == "chain":
            # what NCCL tries and can do without (a network, a library) leaves such lines too, but warns of nothing
            level = "chain" if self._is_in_trouble or "detail" in fields else "info"
        elif level == "warn" and segment.record != "other":
            self._is_in_trouble = True
        if self._is_repeated(segment.text):
            return
        _warning(sink, segment, level, segment.record.replace("_", "-"))
        lost = next((kind for kind in _LOST if kind in fields), None)
        if lost and level != "info":
            kind, peer = lost.replace("_", "-"), _peer(fields)
            sink.row("peer_losses", segment, kind=kind, layer="nccl", peer=peer, text=segment.text)
        elif segment.record == "version":
            _mismatch(sink, segment)
        elif segment.record == "memory" or "out_of_memory" in fields:
            _memory(sink, segment)

    def remark(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_info: that there is multicast, which an error behind it may be of."""
        if segment.record == "nvls" and not self._is_repeated(segment.text):
            _warning(sink, segment, "info", "nvls")

    def other(self, sink: Sink, segment: Segment) -> None:
        """Take a warning of no family."""
        if segment.record in {"nccl_text", "nccl_known"} and _level(segment) == "warn":
            self._is_in_trouble = True
        if not self._is_repeated(segment.text):
            _warning(sink, segment, _level(segment), "other")

    def _is_repeated(self, text: str) -> bool:
        text = text[:_COMPARED]
        if len(self._seen) > _TEXTS:
            self._seen.clear()
        alike = "~" + text.translate(_NO_DIGITS)
        same = self._seen[text] = self._seen.get(text, 0) + 1
        similar = self._seen[alike] = self._seen.get(alike, 0) + 1
        return same > _SAME or similar > _ALIKE


def _warning(sink: Sink, segment: Segment, level: str, family: str) -> None:
    fields = segment.fields if family != "other" else {}
    file, _, line = segment.head.get("nccl_place", "").partition(":")
    sink.row(
        "nccl_warnings",
        segment,
        level=level,
        family=family,
        text=segment.text,
        src_file=fields.get("src_file") or file or None,
        src_line=integer(fields.get("src_line") or line or None),
        func=fields.get("func") or segment.head.get("nccl_func"),
        code=_code(family, fields),
        vendor_err=integer(fields.get("vendor_err")),
        peer=_peer(fields),
        peer_rank=integer(fields.get("peer_rank")),
        other_rank=integer(fields.get("other_rank")),
        device=fields.get("device"),
        detail=_detail(fields),
    )


def _code(family: str, fields: dict[str, str]) -> int | None:
    """The code that the line names; older versions print an error of CUDA as text only."""
    code = integer(fields.get("code"))
    return cuda_error(_detail(fields) or "")[0] if code is None and family == "cuda" else code


def _level(segment: Segment) -> str:
    return segment.head.get("nccl_level", "INFO").lower()


def _detail(fields: dict[str, str]) -> str | None:
    for name in ("detail", "strerror", "out_of_memory", *_LOST):
        if name in fields:
            return fields[name].strip() or None
    return None


def _peer(fields: dict[str, str]) -> str | None:
    """The peer's address; of a peer that was never known it is "<>" or garbage."""
    peer = fields.get("peer", "")
    return peer if peer.strip("<>") and peer.isascii() and peer.isprintable() else None


def _mismatch(sink: Sink, segment: Segment) -> None:
    fields = segment.fields
    sink.row(
        "mismatches",
        segment,
        other_rank=integer(fields.get("other_rank")),
        aspect="version",
        mine=fields.get("mine"),
        theirs=fields.get("theirs"),
        detail=segment.text,
    )


def _memory(sink: Sink, segment: Segment) -> None:
    """A request that failed; the driver's "out of memory" does not tell how much was asked for."""
    asked = integer(segment.fields.get("bytes"))
    kind = "cuda-oom" if "out_of_memory" in segment.fields else "alloc-failed"
    sink.row("memory", segment, kind=kind, requested_mb=None if asked is None else asked / _MIB, text=segment.text)
