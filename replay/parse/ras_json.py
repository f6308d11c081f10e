"""What `ncclras -f json` prints of NCCL's RAS service (NCCL 2.28.7 and later), to the rows that its text gives: ranks
that are not where most of their communicator are, and those that gave no data.

Format: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html, "JSON output".
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from replay.parse.clock import Clock
from replay.parse.model import Counts, LineSink, Value
from replay.parse.ops import operation
from replay.parse.whole_files import Unreadable, content, count_lines, place, problem
from replay.sources.model import Hints, Line, SourceFile

_NO_COMMA = re.compile(r'([0-9"}\]el])(\s*\n\s*)(?="[^"\n]*"\s*:)')
"""NCCL 2.28.9 forgets the comma between two members of `missing_ranks`."""
_FLAGS = {"finalize_called": "FINALIZE", "destroy_flag": "DESTROY", "abort_flag": "ABORT"}

Columns = dict[str, Value]


def read_ras_json(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, hints: Hints) -> Counts:
    """Read a report into ras_reports and packages; a row stands at the line that names its rank."""
    try:
        text = content(file).decode("utf-8", "replace")
        value = _loads(text)
        is_ok = isinstance(value, dict) and isinstance(value.get("communicators"), list)
        if is_ok:
            _rows(file, sink, hints, value, text)
        else:
            problem(file, sink, "is no report of NCCL's RAS service")
    except (Unreadable, ValueError, RecursionError) as error:
        problem(file, sink, f"the report of NCCL's RAS service {error}")
        is_ok = False
    return count_lines(file, batches, sink, "nccl-ras", ok=is_ok)


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_NO_COMMA.sub(r"\1,\2", text))


def _rows(file: SourceFile, sink: LineSink, hints: Hints, value: dict[str, Any], text: str) -> None:
    date, _, clock = str(value.get("timestamp", "")).partition(" ")
    t: float | None = None
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", f"{date} {clock}"):
        t = Clock(hints.year, file.mtime).dated(date, clock)
    if isinstance(value.get("nccl_version"), str):
        sink.row("packages", place(file, sink, t, 1), name="nccl", version=value["nccl_version"])
    lines = _lines(text)
    for nth, comm in enumerate(value["communicators"]):
        if not isinstance(comm, dict):
            continue
        common: Columns = {
            "comm_hash": str(comm.get("hash", "")).removeprefix("0x"),
            "group_no": nth,
            "comm_size": _integer(comm.get("size")),
        }
        first = lines.get((nth, None), 1)
        for columns in (*_odd(_members(comm, "ranks")), *_missing(_members(comm, "missing_ranks"))):
            line_no = lines.get((nth, columns["comm_rank"]), first)
            sink.row("ras_reports", place(file, sink, t, line_no), **common, **columns)


def _odd(ranks: Sequence[dict[str, Any]]) -> Iterator[Columns]:
    """What ranks have alone, behind what most of them have: operations that were launched, and states."""
    counts = [r["collective_counts"] if isinstance(r.get("collective_counts"), dict) else {} for r in ranks]
    for op in dict.fromkeys(op for told in counts for op in told):
        launched = [_integer(told.get(op)) for told in counts]
        for rank, times, number in _apart(ranks, launched):
            told = f"have launched {number} {op}" if rank is None else f"has launched {number} {op}"
            kind: Columns = {"finding": "mismatch", "aspect": "launched", "op": operation(op), "launched": number}
            yield kind | _who(rank, times, told)
    for rank, times, state in _apart(ranks, [_state(r) for r in ranks]):
        told = f"have status {state}" if rank is None else f"has status {state}"
        yield {"finding": "mismatch", "aspect": "status", "status": state} | _who(rank, times, told)
    for rank in ranks:
        error = _integer(_status(rank).get("async_error"))
        if error:
            kind = {"finding": "error", "aspect": "error", "status": f"asynchronous error {error}"}
            yield kind | _who(rank, 1, f"reported asynchronous error {error}")


def _missing(ranks: Sequence[dict[str, Any]]) -> Iterator[Columns]:
    for rank in ranks:
        is_dead = bool(_status(rank).get("considered_dead"))
        state = "considered dead" if is_dead else "unresponsive"
        kind: Columns = {"finding": "dead" if is_dead else "incomplete", "aspect": "missing", "status": state}
        yield kind | _who(rank, 1, f"gave no data: {state}")


def _apart(
    ranks: Sequence[dict[str, Any]], values: Sequence[Value]
) -> Iterator[tuple[dict[str, Any] | None, int, Value]]:
    """The value that most ranks have, without a rank, how many have it, and each rank that has another; nothing where
    all have one.
    """
    common = Counter(values).most_common(1)
    if not common or common[0][1] == len(values):
        return
    most, times = common[0]
    yield None, times, most
    for rank, value in zip(ranks, values, strict=True):
        if value != most:
            yield rank, 1, value


def _who(rank: dict[str, Any] | None, times: int, told: str) -> Columns:
    if rank is None:
        return {"ranks_count": times, "comm_rank": None, "text": f"{times} ranks {told}"}
    number, gpu = _integer(rank.get("rank")), _integer(rank.get("cuda_dev"))
    return {
        "ranks_count": 1,
        "comm_rank": number,
        "node": str(rank["host"]) if "host" in rank else None,
        "of_pid": _integer(rank.get("pid")),
        "gpu": None if gpu is None else str(gpu),
        "text": f"rank {number} {told}",
    }


def _state(rank: dict[str, Any]) -> str:
    """The state as the report's text names it."""
    status = _status(rank)
    flags = [word for flag, word in _FLAGS.items() if status.get(flag)]
    return ",".join(flags) or ("INIT" if status.get("init_state") else "RUNNING")


def _status(rank: dict[str, Any]) -> dict[str, Any]:
    status = rank.get("status")
    return status if isinstance(status, dict) else {}


def _members(comm: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = comm.get(name)
    return [member for member in found if isinstance(member, dict)] if isinstance(found, list) else []


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _lines(text: str) -> dict[tuple[int, Value], int]:
    """Where each communicator and each of its ranks is named, by its place in the report; all at 1 in one long line."""
    found: dict[tuple[int, Value], int] = {}
    nth = -1
    for number, line in enumerate(text.split("\n"), 1):
        key, _, value = line.strip().rstrip(",").partition(":")
        if key == '"hash"':
            nth += 1
            found[nth, None] = number
        elif key == '"rank"' and value.strip().isdecimal():
            found.setdefault((nth, int(value)), number)
    return found
