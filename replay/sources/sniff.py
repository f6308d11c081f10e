"""What a file is, by its first bytes and a sample of its lines. Names only break ties."""

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from replay.grammar.executor import shared

_JSON_LIMIT = 8 << 20
_RAS_KEYS = (b'"communicators_count"', b'"communicators"', b'"nccl_version"')
_RECORDER_KEYS = (b"profiling_name", b"pg_config", b"pg_status", b"nccl_comm_state", b"collective_seq_id")
_BINARY_MAGIC = (
    (b"PK\x03\x04", "is a zip archive (or a checkpoint)"),
    (b"\x7fELF", "is a program"),
    (b"\xff\xfe", "is UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "is UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4: unpack it"),
)
_SETTINGS = {
    ".py",
    ".yaml",
    ".yml",
    ".toml",
    ".cfg",
    ".ini",
    ".sh",
    ".sbatch",
    ".xml",
    ".html",
    ".md",
    ".ipynb",
}
_HOLE = re.compile(rb"\A\0+|\0{64,}")
"""What a file system leaves of a log that was cut off or whose machine lost power."""
_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\r\x1b\f\b\a"


@dataclass(frozen=True, slots=True)
class Hint:
    """What one line tells about its file: "log", "trace", "debug" or "source"; of a NCCL line also host and pid."""

    record: str
    form: str
    host: str | None = None
    pid: int | None = None


def hint(text: str) -> Hint | None:
    """Read one peeled line; None if it tells nothing."""
    found = shared().one("sniff", text)
    if found is None:
        return None
    pid = found.fields.get("pid", "")
    return Hint(found.record, found.form, found.fields.get("host"), int(pid) if 0 < len(pid) < 19 else None)


def binary_reason(head: bytes) -> str | None:
    """Why the content is no text, in a few words; None if it is text."""
    for magic, reason in _BINARY_MAGIC:
        if head.startswith(magic):
            return reason
    if head[257:262] == b"ustar":
        return "is a tar archive: unpack it and hand over the folder"
    sample = _HOLE.sub(b"", head)[:8192]
    if not sample:
        return "holds nothing but zero bytes" if head else None
    odd = len(sample.translate(None, _TEXT_BYTES))
    odd += sample.decode("utf-8", "replace").count("\ufffd") - sample.count("\ufffd".encode())
    return "is no text" if odd > 0.3 * len(sample) else None


def is_recorder_pickle(head: bytes) -> bool:
    """True for a pickle that holds torch's flight record. Nothing of it is executed."""
    return head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and any(k in head for k in _RECORDER_KEYS)


def json_kind(content: bytes, size: int) -> str | None:
    """Kind of a file that is one JSON value: flight-recorder, nccl-ras, error-json, source; None if it is none.

    `content` is all of it or, for a large one, its beginning.
    """
    start = content.lstrip().removeprefix(b"b'")[:1]  # some write the dump by print(bytes)
    if start not in {b"{", b"["}:
        return None
    if b'"entries"' in content and any(b'"' + k + b'"' in content for k in _RECORDER_KEYS):
        return "flight-recorder"
    if all(key in content for key in _RAS_KEYS):  # before it is read as JSON: not all versions write it well
        return "nccl-ras"
    if size > min(len(content), _JSON_LIMIT):
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return "source"
    if "entries" in value and "version" in value:
        return "flight-recorder"
    inner = value.get("message")
    if isinstance(inner, dict) and ("message" in inner or "extraInfo" in inner):
        return "error-json"
    return None if content.strip().count(b"\n") == 0 and (value.keys() & {"log", "message", "msg"}) else "source"


def is_named_as_code(path: str) -> bool:
    """True if the name says that the file holds code or settings."""
    return PurePosixPath(path).suffix.lower() in _SETTINGS


def text_kind(lines: list[str], path: PurePosixPath, in_debug_tree: bool) -> str:
    """Kind of a text file by a sample of its peeled lines: trace, compile-debug, source, text."""
    counts = dict.fromkeys(("log", "trace", "debug", "source"), 0)
    edge = 0
    for line in lines:
        if line and line[0] not in " \t":
            edge += 1
            if found := hint(line):
                counts[found.record] += 1
    if counts["trace"] and counts["trace"] * 2 >= edge:
        return "trace"
    ours = counts["log"] + counts["trace"]
    if (in_debug_tree or counts["debug"]) and ours * 10 <= edge and (in_debug_tree or counts["debug"] * 20 >= edge):
        return "compile-debug"
    named = is_named_as_code(path.name)
    if ours == 0 and (named or (counts["source"] >= 2 and counts["source"] * 20 >= edge)):
        return "source"
    return "text"
