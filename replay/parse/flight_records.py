"""Dumps of torch's flight recorder: a pickle, or the same as JSON.

Versions (key `version`): a bare list of entries (2.2), `seq_id` for `collective_seq_id` (2.3), since then additions.
A timed-out collective of gloo is "scheduled" and retired; `pg_status` counts it as completed.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

from replay.grammar.numbers import integer
from replay.parse import plain_pickle
from replay.parse.model import Counts, LineSink
from replay.parse.ops import dtype, operation, size_of
from replay.parse.places import is_installed
from replay.parse.whole_files import Unreadable, content, count_lines, place, problem
from replay.sources.model import Hints, Line, SourceFile
from replay.sources.stamps import Stamps

_MAX_ENTRIES = 200_000
_MAX_LIST = 256
_TEXT_CUT = 400
_STATES = {"scheduled": "issued", "started": "started", "completed": "completed"}


def read_flight_record(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, hints: Hints) -> Counts:
    """Read a dump into flight_records and collectives. Rows have no line; `at` names their entry."""
    is_pickle = False
    try:
        data = content(file)
        is_pickle = data[:1] == b"\x80"
        value = plain_pickle.loads(data) if is_pickle else _json(data)
        is_ok = isinstance(value, dict | list)
        if is_ok:
            _Dump(file, sink, hints).read(value)
        else:
            problem(file, sink, "is no flight record")
    except (Unreadable, plain_pickle.PickleRefused, ValueError, RecursionError, MemoryError) as error:
        is_ok = False
        problem(file, sink, f"the flight record {error}")
    return Counts() if is_pickle else count_lines(file, batches, sink, "flight-recorder", ok=is_ok)


def _json(data: bytes) -> Any:
    text = data.decode("utf-8", "replace").strip()
    if text.startswith(("b'", 'b"')):  # print(bytes)
        try:
            text = ast.literal_eval(text).decode("utf-8", "replace")
        except (SyntaxError, AttributeError):
            raise ValueError("is no JSON") from None
    return json.loads(text)


class _Dump:
    """One dump, of one rank."""

    def __init__(self, file: SourceFile, sink: LineSink, hints: Hints) -> None:
        self._file, self._sink = file, sink
        self._stamps = Stamps(hints.tz, None, None)
        self._ranks: dict[str, str] = {}

    def read(self, value: dict[str, Any] | list[Any]) -> None:
        entries = value if isinstance(value, list) else value.get("entries", [])
        if isinstance(value, dict):
            for name, config in _items(value.get("pg_config")):
                if isinstance(config, dict):
                    self._ranks[name] = _text(config.get("ranks")) or ""
            for name, status in _items(value.get("pg_status")):
                self._status(name, status)
            version = _text(value.get("comm_lib_version"))
            if version:
                segment = place(self._file, self._sink)
                self._sink.row("packages", segment, name="nccl", version=version, line_no=None)
        if isinstance(entries, list):
            for nth, entry in enumerate(entries[:_MAX_ENTRIES]):
                if isinstance(entry, dict):
                    self._entry(nth, entry)

    def _status(self, name: str, status: object) -> None:
        if isinstance(status, dict):
            enqueued, completed = (_number(status.get(f"last_{what}_collective")) for what in ("enqueued", "completed"))
            self._sink.row(
                "flight_records",
                place(self._file, self._sink),
                at=f"pg_status[{name[:40]}]",
                group_name=name[:_TEXT_CUT],
                state="status",
                last_enqueued=enqueued,
                last_completed=completed,
                line_no=None,
            )

    def _entry(self, nth: int, entry: dict[str, Any]) -> None:
        group, desc = _group(entry)
        name = _text(entry.get("profiling_name")) or ""
        created = _number(entry.get("time_created_ns"))
        t = None if not created else self._stamps.local(created / 1e9)
        ended = _number(entry.get("time_discovered_completed_ns"))
        exit_t = None if not ended else self._stamps.local(ended / 1e9)
        seq = _number(entry.get("collective_seq_id", entry.get("seq_id")))
        ranks = self._ranks.get(group or "") or None
        state = _text(entry.get("state")) or ""
        shape, count = _sizes(entry.get("input_sizes"))
        out_shape, out_count = _sizes(entry.get("output_sizes"))
        kinds = _texts(entry.get("input_dtypes")) or _texts(entry.get("output_dtypes"))
        kind = dtype(kinds[0]) if kinds else None
        op, at = operation(name) if name else None, f"entries[{nth}]"
        segment = place(self._file, self._sink, t)
        self._sink.row(
            "flight_records",
            segment,
            at=at,
            line_no=None,
            record_id=_number(entry.get("record_id", entry.get("id"))),
            group_name=group,
            group_desc=desc,
            group_ranks=ranks,
            collective_seq=seq,
            p2p_seq=_number(entry.get("p2p_seq_id")),
            op_id=_number(entry.get("op_id")),
            op=op,
            profiling_name=name,
            state=state,
            retired=bool(entry.get("retired")),
            in_sizes=shape,
            out_sizes=out_shape,
            in_dtypes=", ".join(kinds) or None,
            created_ns=created,
            frame=_frame(entry.get("frames")),
        )
        is_p2p = bool(entry.get("is_p2p")) or op in {"send", "recv"}
        own, peer = _ends(name)
        count = count if count is not None else out_count
        width = size_of(kind)
        self._sink.row(
            "collectives",
            segment,
            at=at,
            line_no=None,
            exit_lo=exit_t,
            exit_hi=exit_t,
            source="flight-recorder",
            comm=group,
            comm_rank=own if own is not None else self._index(ranks),
            nranks=len(_rank_list(ranks)) or None,
            logged_seq=_number(entry.get("p2p_seq_id")) if is_p2p else seq,
            op=op,
            dtype=kind,
            count=count,
            bytes=None if count is None or width is None else count * width,
            peer=peer,
            shape=shape or out_shape,
            state=_STATES.get(state, state or None),
        )

    def _index(self, ranks: str | None) -> int | None:
        members, rank = _rank_list(ranks), self._file.identity.rank
        return members.index(rank) if rank in members else None


def _items(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(key), item) for key, item in value.items())


def _group(entry: dict[str, Any]) -> tuple[str | None, str | None]:
    """Name and description: a pair since 2.4, before only a number."""
    found = entry.get("process_group")
    if isinstance(found, list | tuple) and found:
        return _text(found[0]), (_text(found[1]) or None) if len(found) > 1 else None
    number = _number(entry.get("pg_id"))
    return (None if number is None else str(number)), None


def _number(value: object) -> int | None:
    """A number, or the digits of one: the JSON form has some as texts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    return integer(value) if isinstance(value, str) else None


def _text(value: object) -> str | None:
    return value[:_TEXT_CUT] if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [item[:40] for item in value[:_MAX_LIST] if isinstance(item, str)] if isinstance(value, list | tuple) else []


def _sizes(value: object) -> tuple[str | None, int | None]:
    """Sizes of all tensors as text, and their elements."""
    if not isinstance(value, list | tuple):
        return None, None
    tensors = [
        [n for n in sizes[:_MAX_LIST] if isinstance(n, int)]
        for sizes in value[:_MAX_LIST]
        if isinstance(sizes, list | tuple)
    ]
    if not tensors:
        return None, None
    count = sum(prod(sizes) for sizes in tensors)
    return str(tensors)[:_TEXT_CUT], count if abs(count) < 1 << 63 else None


def _rank_list(ranks: str | None) -> list[int]:
    """Ranks of "[0, 1, 2]"."""
    parts = (integer(part.strip()) for part in (ranks or "").strip("[]").split(","))
    return [part for part in parts if part is not None]


def _ends(name: str) -> tuple[int | None, int | None]:
    """Own rank and peer of "nccl:send 0->1" and "nccl:recv 1<-0"."""
    ends = name.rpartition(" ")[2]
    for arrow in ("->", "<-"):
        if arrow in ends:
            own, _, peer = ends.partition(arrow)
            return integer(own), integer(peer)
    return None, None


def _frame(frames: object) -> str | None:
    """Innermost frame of the user's own; frames run from the innermost to the outermost."""
    for frame in frames[:_MAX_LIST] if isinstance(frames, list | tuple) else ():
        if isinstance(frame, dict):
            file, line = _text(frame.get("filename")), _number(frame.get("line"))
            if file and not is_installed(file):
                return f"{file}:{line}"
    return None
