"""Which logs a command is about. All commands that read logs take the same argument and options, written once here."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from replay.run import Run
    from replay.sources.model import Hints

_LOGS = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS...",
        help="Folders or files, a quoted glob, - (stdin), a .duckdb made before, or @ (the last one used).",
    ),
]
_Db = Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Where the database goes (default: the cache).")]
_Rules = Annotated[
    list[Path] | None,
    typer.Option("--rules", metavar="DIR", help="A folder of rules beside the built-in ones; may be given again."),
]
_RankFrom = Annotated[
    str | None,
    typer.Option("--rank-from", metavar="REGEX", help="Pattern whose first group is the global rank in a file's path."),
]
_WorldSize = Annotated[
    int | None,
    typer.Option("--world-size", metavar="N", min=1, max=1_000_000, help="Number of ranks of the run."),
]
_Year = Annotated[
    int | None,
    typer.Option(
        "--year", metavar="YEAR", min=1970, max=9999, help="Year of stamps that have none (default: that of the file)."
    ),
]
_Tz = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Time zone of stamps that have none, as Europe/Berlin.")
]
_OPTIONS: dict[str, object] = {
    "db": _Db,
    "rules": _Rules,
    "rank_from": _RankFrom,
    "world_size": _WorldSize,
    "year": _Year,
    "tz": _Tz,
}


@dataclass(frozen=True, slots=True)
class Source:
    """The logs that the user named, and how to read them."""

    logs: list[str]
    db: Path | None = None
    rules: tuple[Path, ...] = ()
    rank_from: str | None = None
    world_size: int | None = None
    year: int | None = None
    tz: str | None = None

    @property
    def hints(self) -> "Hints":
        """What the user said that the logs do not."""
        from replay.sources.model import Hints

        return Hints(self.rank_from, self.world_size, self.year, self.tz)

    @property
    def name(self) -> str:
        """The logs as a shell would take them."""
        import shlex

        return shlex.join(self.logs)

    @property
    def again(self) -> str:
        """The logs and how to read them, for another command that is to see the same."""
        import shlex

        told = {
            "rank-from": self.rank_from, "world-size": self.world_size, "year": self.year, "tz": self.tz, "db": self.db
        }  # fmt: skip
        options = [("rules", folder) for folder in self.rules] + [(n, v) for n, v in told.items() if v is not None]
        return shlex.join([*self.logs, *(word for name, value in options for word in (f"--{name}", str(value)))])

    def open(self) -> "Run":
        """Read them, or what was read before; progress goes to stderr if that is a terminal."""
        from replay.cli.progress import ProgressLine
        from replay.run import open_run

        line = ProgressLine() if sys.stderr.isatty() else None
        try:
            return open_run(self.logs, hints=self.hints, db=self.db, rules=self.rules, progress=line)
        finally:
            if line:
                line.wipe()


def reads_logs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, which takes a `source`, the argument LOGS and the options that say how to read them."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for name, p in signature.parameters.items() if name != "source"]
    logs = inspect.Parameter("logs", inspect.Parameter.KEYWORD_ONLY, annotation=_LOGS)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]

    @functools.wraps(command)
    def wrapper(logs: list[str], **given: Any) -> None:
        reading = {name: given.pop(name) for name in _OPTIONS}
        reading["rules"] = tuple(reading["rules"] or ())
        command(source=Source(logs, **reading), **given)

    parameters = [logs, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *options]
    wrapper.__dict__["__signature__"] = signature.replace(parameters=parameters)
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
