"""Code that logs carry (graphs as `fx_graph_runnable`, the minifier's launchers): a stranger's, run only with --trust.

It is shown before it is run, and runs under the same bounds as any script. Without --trust it is only listed. Whether
it shows a finding is judged as for our own scripts; to make it smaller, torch's own minifier proposes and the same
judge decides.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.errors import InputError, UsageError
from replay.repro import sandbox, verify
from replay.repro.sandbox import Ended, Limits
from replay.repro.verify import Expected, Verdict

NAMES = ("fx_graph_runnable", "minifier_launcher", "repro_")
CHECKPOINTS = "checkpoints"
"""Folder in which torch's minifier leaves each smaller graph."""
MOST_BYTES = 2 * 2**20
SECONDS, MINIFY_SECONDS = 400.0, 1800.0
"""Compiling C++ for one graph takes half a minute of a core."""
_MOST_JUDGED = 5


@dataclass(frozen=True, slots=True)
class Carried:
    """A file of the logs that is a script: path and size in bytes."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Trusted:
    """A carried script that was run: its text, how it ended, and whether its logs show the finding."""

    text: str
    ended: Ended
    verdict: Verdict


def carried(logs: list[str]) -> Iterator[Carried]:
    """Give the scripts that lie among the logs; nothing outside of them, and no link."""
    for name in logs:
        root = Path(name)
        for path in sorted(root.rglob("*") if root.is_dir() else [root]):
            if _is_script(path) and path.is_file() and not path.is_symlink():
                yield Carried(path, path.stat().st_size)


def _is_script(path: Path) -> bool:
    return path.name.startswith(NAMES) and path.suffix in {".py", ".txt", ""}


def expected(cause: str) -> Expected:
    """Return what a carried script must show: a graph alone has no ranks, and a launcher that tells of roots."""
    return Expected(cause, frozenset(), "any", as_root=False)


def run_carried(script: Carried, wanted: Expected, show: Callable[[str], None], *, trust: bool) -> Trusted:
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
    return _try(text, wanted)


def minify(shown: Trusted, wanted: Expected, told: Callable[[str], None]) -> Trusted:
    """Return the smallest graph of torch's minifier that still shows the finding; what was given, where none does.

    The minifier knows only that a compile fails, not why: so what it left is run and judged, smallest first. Where
    somebody stops it, that holds for what it left until then.
    """
    with tempfile.TemporaryDirectory(prefix="replay-minify-") as folder:
        work = Path(folder)
        copy = work / "carried.py"
        copy.write_text(shown.text, encoding="utf-8")
        told("torch's minifier is at work (interrupt it to take what it has)")
        try:
            # the launcher's own folder is a path of the machine that wrote it
            arguments = ["minify", "--save-dir", str(work / CHECKPOINTS)]
            sandbox.run(copy, work, Limits(seconds=MINIFY_SECONDS), arguments=arguments)
        except KeyboardInterrupt:
            told("stopped")
        left = sorted(work.rglob(f"{CHECKPOINTS}/*.py"), key=lambda path: (path.stat().st_size, path.name))
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in left[:_MOST_JUDGED]]
    for text in texts:
        smaller = _try(text, wanted)
        lines = f"{len(text.splitlines())} lines of {len(shown.text.splitlines())}"
        told(f"{lines}: {'still shows it' if smaller.verdict.verified else smaller.verdict.why_not}")
        if smaller.verdict.verified:
            return smaller
    return shown


def _try(text: str, wanted: Expected) -> Trusted:
    with tempfile.TemporaryDirectory(prefix="replay-trusted-") as folder:
        copy = Path(folder) / "carried.py"
        copy.write_text(text, encoding="utf-8")
        # Launchers take what to do as an argument; without one the minifier's would minify.
        ended = sandbox.run(copy, Path(folder), Limits(seconds=SECONDS), arguments=["run"])
        try:
            verdict = verify.judge(verify.read(Path(folder) / "logs"), wanted)
        except InputError:
            verdict = Verdict(False, (), f"it wrote nothing (exit code {ended.code})")
    return Trusted(text, ended, verdict)


def refuse_without_run() -> None:
    """Raise UsageError: --trust alone does nothing."""
    raise UsageError("--trust is for --run: code out of the logs is only run when something is run")
