"""JSON lines of container engines and log collectors: one record wraps one line of the program.

Docker's json-file, Fluentd and Fluent Bit, journald's export, GCP, CloudWatch, Loki: they agree on nothing but that a
string is the line and that a few keys tell who wrote it and when.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_LINE_ALWAYS = ("log", "textPayload", "MESSAGE")
_LINE_WITH_TIME = ("message", "msg", "line")
_OWN_TIMES = ("time", "timestamp", "@timestamp", "ts")
_TIMES = (*_OWN_TIMES, "__REALTIME_TIMESTAMP", "date")
_NESTED = ("attrs", "labels", "kubernetes", "resource", "jsonPayload", "fields", "attributes", "k8s", "metadata")
_RANK = ("rank", "global_rank", "RANK")
_HOST = ("host", "hostname", "node", "node_name", "nodeName", "_HOSTNAME")
_LABEL = ("pod", "pod_name", "podName", "container_name", "container", "SYSLOG_IDENTIFIER", "logStreamName")


@dataclass(frozen=True, slots=True)
class Record:
    """The line that a JSON record wraps, and what the record says of it. `time` is as the record has it. `line` is None
    where the record is the application's own: it stays as it is, and only its time counts.
    """

    line: str | None
    rank: int | None
    local_rank: int | None
    host: str | None
    pid: int | None
    label: str | None
    stream: str | None
    time: object


def unwrap(text: str) -> Record | None:
    """Read a line as a collector's record, or as an application's own that has a time; None if it is neither.

    The wrapped line has its newline at the end taken off; a newline inside stays.
    """
    if not (text.startswith("{") and text.rstrip().endswith("}")):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    flat = _flat(record)
    time = next((flat[k] for k in _TIMES if k in flat), None)
    keys = _LINE_ALWAYS + (_LINE_WITH_TIME if time is not None or "stream" in flat else ())
    line = next((flat[k] for k in keys if isinstance(flat.get(k), str)), None)
    if line is None:
        time = next((record[k] for k in _OWN_TIMES if k in record), None)
        return Record(None, None, None, None, None, None, None, time) if time is not None else None
    stream = flat.get("stream")
    return Record(
        line=line.removesuffix("\n"),
        rank=_first(flat, _RANK, _int),
        local_rank=_first(flat, ("local_rank", "LOCAL_RANK"), _int),
        host=_first(flat, _HOST, _str),
        pid=_first(flat, ("pid", "_PID"), _int),
        label=_first(flat, _LABEL, _str),
        stream=stream if stream in {"stdout", "stderr"} else None,
        time=time,
    )


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the keys of its well-known inner objects; an outer key wins."""
    flat: dict[str, Any] = {}
    for key in _NESTED:
        if isinstance(record.get(key), dict):
            flat |= _flat(record[key])
    return flat | {k: v for k, v in record.items() if not isinstance(v, dict)}


def _first(flat: dict[str, Any], keys: tuple[str, ...], read: Callable[[object], T | None]) -> T | None:
    return next((value for k in keys if k in flat and (value := read(flat[k])) is not None), None)


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def _str(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
