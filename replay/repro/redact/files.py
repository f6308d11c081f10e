"""Writes a tree of logs anew with its private names replaced: same files, same lines, same compression."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from replay.errors import InputError
from replay.parse import plain_pickle
from replay.repro.redact.collect import collect
from replay.repro.redact.names import Names
from replay.repro.redact.places import Places
from replay.repro.redact.rewrite import Rewriter
from replay.repro.redact.same import differences, lines_otherwise
from replay.run import Run, open_run
from replay.sources.discover import discover
from replay.sources.encoding import Chunks, EncodingMissing, read_bytes
from replay.sources.layout import folder_name
from replay.sources.model import Hints, SourceFile

_PIECE = 1 << 20
"""Bytes of one line that are looked at together; a longer line is cut at a blank or comma."""
_RECORD_LIMIT = 256 << 20
_NO_TEXT = frozenset({"binary", "unreadable"})
_GENERATED = frozenset({"fx_graph_runnable.py", "fx_graph_readable.py", "fx_graph_transformed.py", "output_code.py",
                        "minifier_launcher.py", "repro.py"})  # fmt: skip
"""Code that torch wrote from graphs; other code in the logs is the user's."""
_CODE_ENDINGS = (".py", ".ipynb", ".sh", ".sbatch", ".slurm", ".cu", ".cpp", ".yaml", ".yml", ".toml", ".cfg", ".ini")

Tell = Callable[[str, int, int], None]


@dataclass(slots=True)
class Redacted:
    """What was done. `left_out` names files and why; `replaced` counts names by kind."""

    out: Path
    files: int = 0
    lines: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    differences: list[str] = field(default_factory=list)
    """How the diagnosis of what was written differs from that of the logs, a sentence each."""
    otherwise: int = 0
    """Lines that are understood otherwise than in the logs."""

    @property
    def replaced(self) -> dict[str, int]:
        """How many names of each kind were replaced."""
        counts: dict[str, int] = {}
        for kind, _, _ in self.names.all():
            counts[kind.split()[0]] = counts.get(kind.split()[0], 0) + 1
        return counts

    def table(self) -> str:
        """The list of names and their replacements, as JSON: for its owner only."""
        rows: dict[str, dict[str, str]] = {}
        for kind, text, new in self.names.all():
            rows.setdefault(kind.split()[0], {})[text] = new
        return json.dumps({"out": str(self.out), "replaced": rows}, indent=1, ensure_ascii=False) + "\n"


def redact(logs: list[str], out: Path, hints: Hints | None = None, tell: Tell | None = None) -> Redacted:
    """Write `logs` to the new folder `out` with private names replaced; of stdin (`-`) comes `out`/stdin.log.

    `tell` hears of the stage, files done and files in all. Raises InputError if the logs cannot be read, if `out` has
    something in it or lies inside the logs, and if it cannot be written.
    """
    with _named(logs) as named:
        return _redact(named, out, hints or Hints(), tell or (lambda _stage, _done, _total: None))


@contextmanager
def _named(logs: list[str]) -> Iterator[list[str]]:
    """The logs with a file in place of stdin, which can be read only once."""
    if "-" not in logs:
        yield logs
        return
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        spooled = Path(folder) / "stdin.log"
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [str(spooled) if name == "-" else name for name in logs]


def _redact(logs: list[str], out: Path, hints: Hints, tell: Tell) -> Redacted:
    _refuse(logs, out)
    with open_run(logs, hints=hints) as run:
        before = run.report()
        inventory = discover(logs, hints)
        result = Redacted(out)
        places = Places(result.names)
        collect(run, result.names, places)
        texts = [f for f in inventory.files if _is_text(f)]
        learner = Rewriter(result.names, places, learns=True)
        for done, file in enumerate(texts):
            tell("learning names", done, len(texts))
            for text, writer in _lines(file, run):
                learner.line(text.decode("utf-8", "surrogateescape"), writer)
        places = places.again()
        try:
            _write_all(inventory.files, run, result, places, tell)
        except OSError as error:
            raise InputError(f"{error.filename or out}: cannot be written ({error.strerror})") from error
    tell("comparing", 0, 1)
    with open_run([out], hints=hints) as run:
        after = run.report()
    result.differences, result.otherwise = differences(before, after), lines_otherwise(before, after)
    return result


def _refuse(logs: list[str], out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; name a new folder")
    for name in logs:
        place = Path(name).expanduser()
        if place.is_dir() and out.resolve().is_relative_to(place.resolve()):
            raise InputError(f"{out}: lies inside the logs; name another folder")


def _is_users_code(file: SourceFile) -> bool:
    name = file.path.rsplit("/", 1)[-1]
    if name in _GENERATED or any(folder_name(p).record == "debug" for p in file.path.split("/")[:-1]):
        return False
    return file.kind not in {"text", "trace"} and name.endswith(_CODE_ENDINGS)


def _is_text(file: SourceFile) -> bool:
    return file.kind not in _NO_TEXT and not _is_pickle(file) and not _is_users_code(file)


def _is_pickle(file: SourceFile) -> bool:
    if file.kind != "flight-recorder" or file.abspath is None:
        return False
    return read_bytes(file.abspath, file.encoding, 1) == b"\x80"


def _write_all(files: list[SourceFile], run: Run, result: Redacted, places: Places, tell: Tell) -> None:
    taken: set[str] = set()
    for done, file in enumerate(files):
        tell("writing", done, len(files))
        shown = _shown_path(file.path, result.names)
        while shown in taken:
            shown += "~"
        taken.add(shown)
        if file.kind in _NO_TEXT or file.abspath is None:
            result.left_out.append((shown, "is no text"))
        elif _is_users_code(file):
            result.left_out.append((shown, "is code or settings of the user"))
        else:
            target = result.out / shown
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                _write(file, target, run, result, places)
            except (EncodingMissing, plain_pickle.PickleRefused) as error:
                target.unlink(missing_ok=True)
                result.left_out.append((shown, str(error)))
                continue
            result.files += 1
            if file.mtime is not None:  # stamps without a year are of the file's
                os.utime(target, (file.mtime, file.mtime))


def _shown_path(path: str, names: Names) -> str:
    """The file's path with the private names in it replaced; what launchers called it stays."""
    return "/".join(names.chunk(part) for part in path.split("/"))


def _write(file: SourceFile, target: Path, run: Run, result: Redacted, places: Places) -> None:
    assert file.abspath is not None, "files without a place are left out"
    rewriter = Rewriter(result.names, places)
    if _is_pickle(file):
        data = read_bytes(file.abspath, file.encoding, _RECORD_LIMIT + 1)
        if len(data) > _RECORD_LIMIT:
            raise plain_pickle.PickleRefused("is larger than any flight record")
        shown = _plain(plain_pickle.loads(data), rewriter)
        with _opened(target, file.encoding) as out:
            out.write(pickle.dumps(shown, protocol=data[1] if data[1:2] in {b"\x02", b"\x03", b"\x04"} else 2))
        return
    with _opened(target, file.encoding) as out:
        for text, writer in _lines(file, run):
            body = text.removesuffix(b"\n")
            line = rewriter.line(body.decode("utf-8", "surrogateescape"), writer)
            out.write(line.encode("utf-8", "surrogateescape"))
            if len(body) < len(text):
                out.write(b"\n")
                result.lines += 1


def _plain(value: Any, rewriter: Rewriter) -> Any:
    """A record's values with their texts rewritten; keys are torch's own."""
    if isinstance(value, str):
        return rewriter.line(value)
    if isinstance(value, dict):
        return {k: _plain(v, rewriter) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v, rewriter) for v in value)
    return value


def _opened(target: Path, encoding: str) -> BinaryIO:
    match encoding:
        case "gz":
            return cast("BinaryIO", gzip.GzipFile(target, "wb", mtime=0))
        case "bz2":
            return cast("BinaryIO", bz2.BZ2File(target, "wb"))
        case "xz":
            return cast("BinaryIO", lzma.LZMAFile(target, "wb"))
        case "zst":
            import zstandard  # noqa: PLC0415  an extra: absent where nobody has zst logs

            return cast("BinaryIO", zstandard.ZstdCompressor().stream_writer(target.open("wb"), closefd=True))
    return target.open("wb")


def _lines(file: SourceFile, run: Run) -> Iterator[tuple[bytes, object]]:
    """Each line with its newline, and who wrote it as far as the run database knows. Very long ones come in pieces."""
    assert file.abspath is not None, "stdin is spooled to a file"
    writers = _writers(file, run)
    line, carry = 1, b""
    for chunk in Chunks(file.abspath, file.encoding):
        *whole, carry = (carry + chunk).split(b"\n")
        for text in whole:
            yield text + b"\n", writers(line)
            line += 1
        while len(carry) > _PIECE:
            at = max(carry.rfind(b" ", 0, _PIECE), carry.rfind(b",", 0, _PIECE)) + 1 or _PIECE
            yield carry[:at], writers(line)
            carry = carry[at:]
    if carry:
        yield carry, writers(line)


def _writers(file: SourceFile, run: Run) -> Callable[[int], object]:
    """Who wrote a line; lines are asked for in order."""
    result = run.ask(
        "SELECT l.line_no, l.writer_id FROM lines AS l JOIN files AS f USING (file_id) WHERE f.path = ? "
        "ORDER BY l.line_no",
        [file.path],
    )
    rows = (row for batch in result.batches(4096) for row in batch)
    state: dict[str, Any] = {"row": next(rows, None), "writer": None}

    def writer(line: int) -> object:
        while state["row"] is not None and state["row"][0] <= line:
            state["writer"] = state["row"][1]
            state["row"] = next(rows, None)
        return state["writer"]

    return writer
