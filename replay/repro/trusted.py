"""Code that logs carry (graphs as `fx_graph_runnable`, the minifier's launchers): a stranger's, run only with --trust.

It is shown before it is run, and runs under the same bounds as any script. Without --trust it is only listed.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.errors import InputError, UsageError
from replay.repro import sandbox
from replay.repro.sandbox import Ended, Limits

NAMES = ("fx_graph_runnable", "minifier_launcher", "repro_")
MOST_BYTES = 2 * 2**20
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Carried:
    """A file of the logs that is a script: path and size in bytes."""

    path: Path
    size: int


def carried(logs: list[str]) -> Iterator[Carried]:
    """Give the scripts that lie among the logs; nothing outside of them, and no link."""
    for name in logs:
        root = Path(name)
        for path in sorted(root.rglob("*") if root.is_dir() else [root]):
            if _is_script(path) and path.is_file() and not path.is_symlink():
                yield Carried(path, path.stat().st_size)


def _is_script(path: Path) -> bool:
    return path.name.startswith(NAMES) and path.suffix in {".py", ".txt", ""}


def run_carried(script: Carried, show: Callable[[str], None], *, trust: bool) -> Ended:
    """Show a carried script, then run a copy of it in a folder of its own.

    Raises UsageError without trust, InputError if it is too large to be looked at.
    """
    if not trust:
        raise UsageError(f"{script.path}: is code out of the logs; look at it, then --trust runs it")
    if script.size > MOST_BYTES:
        raise InputError(f"{script.path}: {script.size} bytes are too many to be looked at")
    text = script.path.read_text(encoding="utf-8", errors="replace")
    show(text)
    sandbox.needs_torch()
    with tempfile.TemporaryDirectory(prefix="replay-trusted-") as folder:
        copy = Path(folder) / "carried.py"
        copy.write_text(text, encoding="utf-8")
        return sandbox.run(copy, Path(folder), Limits(seconds=SECONDS))


def refuse_without_run() -> None:
    """Raise UsageError: --trust alone does nothing."""
    raise UsageError("--trust is for --run: code out of the logs is only run when something is run")
