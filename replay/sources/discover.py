"""What was handed over: every file with its kind, encoding, run and writer, before any line of it is parsed."""

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from replay.errors import InputError, UsageError
from replay.sources import layout, paths, runs, sample, sniff, vote
from replay.sources.copies import FEW_LINES, MANY_FILES, mark_copies
from replay.sources.encoding import EncodingMissing, encoding_of, read_bytes
from replay.sources.model import Hints, Inventory, Problem, SourceFile

LOGS = frozenset({"text", "trace", "flight-recorder", "nccl-ras", "error-json", "compile-debug"})
"""Kinds that tell something about a run."""

_HEAD = 64 << 10
_JSON_LIMIT = 8 << 20


@dataclass(slots=True)
class _Look:
    """A file with what its content showed beyond its row."""

    file: SourceFile
    ranks: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    lines: list[str] = field(default_factory=list)


def discover(named: Sequence[str], hints: Hints) -> Inventory:
    """List what `named` (files, folders, quoted patterns, "-" for standard input) hold.

    Standard input is read to its end into a temporary file, removed when the process ends: a caller that wants to keep
    it moves it. Raises InputError where there is nothing to read, UsageError for a `rank_from` that is no pattern.
    """
    pattern = _rank_pattern(hints.rank_from)
    found = paths.expand(named)
    problems = list(found.problems)
    streams = [(_shown(s), _spool(s)) for s in found.streams]
    everything = found.files + streams
    looks = []
    for file_id, (shown, path) in enumerate(everything, start=1):
        look = _look(file_id, shown, path, problems, brief=len(everything) > MANY_FILES)
        looks.append(look)
    if len(looks) == 1 and looks[0].file.kind == "source" and _is_meant(named[0], looks[0].file):
        looks[0].file.kind = "text"
    if not any(x.file.kind in LOGS for x in looks):
        raise InputError(_nothing(named, looks, problems))
    root = found.root if found.files else None
    _place(looks, root, hints, pattern)
    files = [x.file for x in looks]
    mark_copies(files, {x.file.file_id: x.lines for x in looks}, hints)
    return Inventory(root, files, problems)


def _is_meant(named: str, file: SourceFile) -> bool:
    """Whether the only file must be a log: its own name was given, or its name does not say that it is code."""
    return not os.path.isdir(os.path.expanduser(named)) or not sniff.is_named_as_code(file.path)


def _look(file_id: int, shown: str, path: Path, problems: list[Problem], brief: bool) -> _Look:
    file = SourceFile(file_id, shown, path, "unreadable", "plain", 0, "")
    look = _Look(file)
    try:
        info = path.stat()
        file.size, file.mtime = info.st_size, info.st_mtime
        with path.open("rb") as raw:
            raw_head = raw.read(_HEAD)
        file.encoding = encoding_of(raw_head)
        _content(look, path, problems, brief)
        file.digest = _digest(path, file)
    except EncodingMissing as error:
        problems.append(Problem("unreadable", f"{shown}: {error}", file_id))
    except PermissionError:
        problems.append(Problem("permission", f"{shown}: no permission to read it", file_id))
    except OSError as error:
        problems.append(Problem("unreadable", f"{shown}: {error.strerror or error}", file_id))
    return look


def _content(look: _Look, path: Path, problems: list[Problem], brief: bool) -> None:
    """Decide the kind by the content; of text, also how its lines are wrapped."""
    file = look.file
    taken = sample.take(path, file.encoding, file.size, brief)
    if not taken.head:
        file.kind = "unreadable" if taken.cut else "empty"
        if taken.cut:
            problems.append(Problem("truncated", f"{file.path}: {taken.cut}", file.file_id))
        return
    if sniff.is_recorder_pickle(taken.head):
        file.kind = "flight-recorder"
        return
    if reason := sniff.binary_reason(taken.head):
        file.kind = "binary"
        problems.append(Problem("binary", f"{file.path}: {reason}", file.file_id))
        return
    if taken.head.lstrip()[:3] == b"b'{" or taken.head.lstrip()[:1] in {b"{", b"["}:
        whole = taken.head if taken.whole else read_bytes(path, file.encoding, _JSON_LIMIT)
        size = len(whole) if len(whole) < _JSON_LIMIT else _JSON_LIMIT + 1
        if kind := sniff.json_kind(whole, size):
            file.kind = kind
            return
    outline = vote.outline(taken.places)
    in_tree = any(layout.folder_name(part).record == "debug" for part in PurePosixPath(file.path).parts[:-1])
    file.kind = sniff.text_kind(outline.lines, PurePosixPath(file.path), in_tree)
    file.wrapping, file.wrapper = outline.wrapping, " ".join(outline.layers)
    look.ranks, look.hosts = outline.ranks, outline.hosts
    look.lines = outline.lines[:FEW_LINES] if brief else outline.lines


def _place(looks: list[_Look], root: Path | None, hints: Hints, pattern: "re.Pattern[str] | None") -> None:
    """Fill in run, attempt and writer of each file, with all files in view."""
    above = list(root.parts[-2:]) if root is not None else []
    places = [layout.place(x.file.path, above) for x in looks]
    told = [_as_rank(said, pattern) if pattern and (said := pattern.search(x.file.path)) else None for x in looks]
    clues = [
        runs.Clue(p, x.file.kind, x.ranks if rank is None else frozenset({rank}), x.hosts)
        for p, x, rank in zip(places, looks, told, strict=True)
    ]
    split = runs.split(clues, is_one_world=pattern is not None or hints.world_size is not None)
    guesses = layout.guess_ranks(places, [x.ranks for x in looks])
    for n, (look, where, key) in enumerate(zip(looks, places, split.keys, strict=True)):
        who = where.identity
        node = next((f.text for f in where.folders if f.text in split.nodes), None)
        if node is not None:
            who = replace(who, host=node, label=node)
        if who.host is not None and who.host == who.label and len(look.hosts) == 1:
            who = replace(who, host=next(iter(look.hosts)))
        if look.file.kind == "flight-recorder" and who.rank is None and where.weak is not None:
            who = replace(who, rank=where.weak[1])  # torch appends the global rank to the name it was given
        elif n in guesses and who.rank is None:
            rank, confirmed = guesses[n]
            who = replace(who, rank=rank) if confirmed else replace(who, rank_guess=rank)
        look.file.run_key, look.file.attempt, look.file.identity = key, where.attempt, who
    _ranks_per_node([x.file for x in looks])
    for look, named in zip(looks, told, strict=True):
        if named is not None:
            look.file.identity = replace(look.file.identity, rank=named, rank_guess=None)


def _ranks_per_node(files: list[SourceFile]) -> None:
    """Where names repeat a rank on several nodes of a run (node0/rank0.log, node1/rank0.log) it counts on one node."""
    seen: defaultdict[tuple[str, int], defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for file in files:
        if file.identity.rank is not None and file.identity.host is not None:
            seen[file.run_key, file.attempt][file.identity.rank].add(file.identity.host)
    repeated = {run for run, ranks in seen.items() if any(len(hosts) > 1 for hosts in ranks.values())}
    for file in files:
        who = file.identity
        if who.host is not None and (file.run_key, file.attempt) in repeated:
            file.identity = replace(who, rank=None, local_rank=who.rank if who.rank is not None else who.local_rank)


def _digest(path: Path, file: SourceFile) -> str:
    """Fingerprint of size and content; of files that are not read only of their beginning."""
    with path.open("rb") as raw:
        if file.kind in LOGS:
            value = hashlib.file_digest(raw, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        else:
            value = hashlib.blake2b(raw.read(_HEAD), digest_size=16).hexdigest()
    return f"{file.size:x}-{value}"


def _rank_pattern(text: str | None) -> "re.Pattern[str] | None":
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"--rank-from {text}: not a regular expression: {error}") from None
    if pattern.groups < 1:
        raise UsageError(f"--rank-from {text}: needs a group around the rank, such as 'node([0-9]+)'")
    return pattern


def _as_rank(said: "re.Match[str]", pattern: "re.Pattern[str]") -> int:
    digits = said.group(1) or ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise UsageError(f"--rank-from {pattern.pattern}: its group took {digits!r}, which is no rank")
    return int(digits)


def _shown(stream: str) -> str:
    return "<stdin>" if stream == paths.STDIN else PurePosixPath(stream).name


def _spool(stream: str) -> Path:
    """Copy standard input or a pipe into a temporary file that only this user can read."""
    handle, name = tempfile.mkstemp(prefix="replay-stdin-")
    spooled = Path(name)
    atexit.register(spooled.unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as out:
        if stream == paths.STDIN:
            shutil.copyfileobj(_stdin(), out, 1 << 20)
        else:
            with open(stream, "rb") as pipe:
                shutil.copyfileobj(pipe, out, 1 << 20)
    return spooled


def _stdin() -> BinaryIO:
    return sys.stdin.buffer


def _nothing(named: Sequence[str], looks: list[_Look], problems: list[Problem]) -> str:
    """One line that says why there is nothing to read."""
    if all(x.file.kind == "empty" for x in looks):
        what = "it is empty" if len(looks) == 1 else "all its files are empty"
    elif any(x.file.kind == "source" for x in looks):
        what = "there is no log in it, only code and settings"
    elif problems:
        what = f"no file in it can be read; {problems[0].text}"
    else:
        what = "no file in it can be read"
    shown = "standard input" if list(named) == [paths.STDIN] else named[0]
    return f"{shown}: {what}"
