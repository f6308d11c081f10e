"""From what the user named to the list of files: folders walked in order, links and odd files judged, nothing opened.

Links are never followed out of what was named; a folder is never entered twice.
"""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replay.errors import InputError
from replay.sources.model import Problem

STDIN = "-"


@dataclass(slots=True)
class Found:
    """Files below `root`, as (path relative to it with forward slashes, path on disk), in order; and what was odd.

    `streams` are named pipes and the like that the user named, and "-".
    """

    root: Path | None
    files: list[tuple[str, Path]] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def expand(paths: Sequence[str]) -> Found:
    """List the files of `paths`: files, folders, glob patterns, "-".

    Raises InputError for a path that does not exist, a pattern that matches nothing, and no path at all.
    """
    if not paths:
        raise InputError("no logs were named: give a file, a folder, a quoted pattern, or - for standard input")
    named: list[Path] = []
    streams: list[str] = []
    for text in paths:
        for path in _named(text):
            if path is None:
                streams.append(STDIN)
            elif stat.S_ISFIFO(mode := _mode(path)) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode):
                streams.append(str(path))
            else:
                named.append(path)
    found = Found(_root(named), streams=streams)
    seen: set[tuple[int, int]] = set()
    for path in named:
        top = Path(os.path.abspath(path))
        base = found.root if found.root is not None else top.parent
        for relative, file in _below(top, base, found.problems, seen):
            found.files.append((relative, file))
    found.files.sort(key=lambda item: item[0].split("/"))
    if not found.files and not streams:
        odd = f": {found.problems[0].text}" if found.problems else ""
        raise InputError(f"{paths[0]}: there is no file in it{odd}")
    return found


def _named(text: str) -> Iterator[Path | None]:
    if text == STDIN:
        yield None
        return
    if not text:
        raise InputError("an empty name was given for the logs; . is the folder that you are in")
    try:
        path = Path(text).expanduser()
        if os.path.lexists(path):
            if not path.exists():
                raise InputError(f"{text}: the link leads nowhere")
            yield path
            return
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, with NUL in it, ~ of nobody
        raise InputError(f"{text}: {_why(error)}") from None
    matches = sorted(glob.glob(str(path), recursive=True)) if glob.has_magic(str(path)) else []
    if not matches:
        what = "no file matches this pattern" if glob.has_magic(str(path)) else "no such file or folder"
        raise InputError(f"{text}: {what}")
    yield from (Path(m) for m in matches)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: {_why(error)}") from None


def _root(named: list[Path]) -> Path | None:
    if not named:
        return None
    tops = [Path(os.path.abspath(p)) for p in named]
    if len(tops) == 1 and tops[0].is_dir():
        return tops[0]
    return Path(os.path.commonpath([t.parent for t in tops]))


def _below(top: Path, base: Path, problems: list[Problem], seen: set[tuple[int, int]]) -> Iterator[tuple[str, Path]]:
    """Files at and below `top`, without any that were seen before (a second link to a file is not a second file)."""
    if not top.is_dir():
        if _first_time(top, seen):
            yield top.relative_to(base).as_posix(), top
        return
    real = top.resolve()
    for folder, folders, files in os.walk(top, onerror=lambda e: _refused(e, base, problems), followlinks=False):
        here = Path(folder)
        kept = []
        for name in sorted(folders):
            if name.startswith(".") or name == "__pycache__":
                continue
            if (here / name).is_symlink():
                _link(here / name, real, base, problems)
            else:
                kept.append(name)
        folders[:] = kept
        for name in sorted(files):
            file = here / name
            if not name.startswith(".") and _is_ours(file, real, base, problems) and _first_time(file, seen):
                yield file.relative_to(base).as_posix(), file


def _link(link: Path, real: Path, base: Path, problems: list[Problem]) -> None:
    """A link to a folder is not entered: inside LOGS its target is walked anyway."""
    shown = link.relative_to(base).as_posix()
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        problems.append(Problem("loop", f"{shown}: the link leads nowhere or to itself"))
        return
    if target == link.parent.resolve() or target in link.parent.resolve().parents:
        problems.append(Problem("loop", f"{shown}: the link leads back to a folder above it"))
    elif not target.is_relative_to(real):
        problems.append(Problem("unreadable", f"{shown}: the link leads out of the logs and was not followed"))


def _is_ours(file: Path, real: Path, base: Path, problems: list[Problem]) -> bool:
    shown = file.relative_to(base).as_posix()
    try:
        if file.is_symlink():
            target = file.resolve(strict=True)
            if not target.is_relative_to(real):
                problems.append(Problem("unreadable", f"{shown}: the link leads out of the logs and was not followed"))
            return False
        if not stat.S_ISREG(file.stat().st_mode):
            problems.append(Problem("unreadable", f"{shown}: neither a file nor a folder"))
            return False
    except (OSError, RuntimeError) as error:
        problems.append(Problem("unreadable", f"{shown}: {_why(error)}"))
        return False
    return True


def _first_time(file: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        info = file.stat()
    except OSError:
        return True
    key = (info.st_dev, info.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _refused(error: OSError, base: Path, problems: list[Problem]) -> None:
    shown = Path(error.filename).relative_to(base).as_posix() if error.filename else "?"
    problems.append(Problem("permission", f"{shown}: {_why(error)}"))


def _why(error: Exception) -> str:
    """The error in words, without number and path."""
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return str(getattr(error, "strerror", None) or error)
