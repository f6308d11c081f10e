"""`replay redact`: logs that can be shown to somebody else."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from replay.errors import InputError

_MOST_SHOWN = 400


def redact(
    logs: Annotated[list[str], typer.Argument(metavar="LOGS...", help="Folders or files, or - (stdin).")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="New folder for the logs.")],
    names: Annotated[
        Path | None,
        typer.Option("--names", metavar="FILE", help="Where the list of names goes (default: DIR.names.json)."),
    ] = None,
) -> None:
    """Write logs anew with names of hosts, people, paths and functions, addresses and keys replaced.

    What the program itself printed in its own words stays, and so do the names and values of its figures, which the
    diagnosis needs: read the result before you show it to anybody. Exit code 1: the diagnosis is another one.
    """
    from replay.report.wording import visible
    from replay.repro.redact.files import redact as write

    listed = names or out.with_name(out.name + ".names.json")
    if listed.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{listed}: the list of names must not lie in what is shown")
    if listed.exists():
        raise InputError(f"{listed}: is there already; name another file with --names")
    if names is not None and not names.parent.is_dir():
        raise InputError(f"{names.parent}: no such folder")
    done = write(logs, out)
    with os.fdopen(os.open(listed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(done.table())
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(done.replaced.items())) or "nothing"
    sys.stderr.write(f"{out}: {done.files} files, {done.lines:,} lines; replaced: {kinds}\n")
    for path, why in done.left_out:
        sys.stderr.write(f"left out: {path} ({why})\n")
    sys.stderr.write(f"{listed}: the list of names; keep it to yourself\n")
    if done.otherwise:
        sys.stderr.write(f"{done.otherwise} lines are understood otherwise than before, as where others cut a path\n")
    if done.differences:
        for line in done.differences:
            sys.stderr.write(f"replay: {visible(line[:_MOST_SHOWN])}\n")
        sys.stderr.write("replay: the diagnosis of what was written is another one\n")
        raise typer.Exit(1)
    sys.stderr.write("the diagnosis is the same\n")
