"""The command `replay`: names the commands, and turns every failure into one line and an exit code.

Commands hold no logic: what they show, the library (replay.run) returns.
"""

import os
import signal
import sys
import traceback
from typing import Annotated, cast

import typer

import replay
from replay.cli import (
    cache,
    check,
    claims,
    corpus,
    diagnose,
    env,
    explain,
    listing,
    proof,
    query,
    redact,
    repro,
    rules,
    screen,
    synth,
    tui,
    whatif,
)
from replay.errors import ReplayError

REPORT_TO = "https://github.com/torchreplay/torchreplay/issues"
_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""Base of all errors that typer finds in a command line; the class itself has no public name in every version."""

app = typer.Typer(
    name="replay",
    help="From the logs of a PyTorch run to what happened first, on which rank, why, and what it cost.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"replay {replay.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Show the help where no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(diagnose.diagnose)
app.command()(query.sql)
app.command()(listing.ls)
app.command()(listing.log)
app.command()(proof.why)
app.command()(proof.why_not)
app.command()(whatif.what_if)
app.command()(check.check)
app.command()(explain.explain)
app.command()(env.env)
app.command()(diagnose.demo)
app.command()(tui.tui)
app.command()(synth.synth)
app.command()(repro.repro)
app.command()(redact.redact)
app.command()(claims.claims)
app.add_typer(rules.app, name="rules")
app.add_typer(corpus.app, name="corpus")
app.add_typer(cache.app, name="cache")


def main(arguments: list[str]) -> int:
    """Run a command line and return its exit code; what went wrong is one line on stderr."""
    try:
        code = typer.main.get_command(app).main(arguments, prog_name="replay", standalone_mode=False)
    except ReplayError as error:
        return _complain(str(error), error.exit_code)
    except _USAGE_ERROR as error:
        return _complain(_usage(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", 130)
    except MemoryError:
        return _complain("out of memory", 2)
    except Exception as error:
        if str(error) == "Query interrupted":  # what DuckDB makes of an interrupt while it works
            return _complain("interrupted", 130)
        if os.environ.get("REPLAY_DEBUG") == "1":
            traceback.print_exc()
        if isinstance(error, OSError) and error.strerror:  # the machine's failure: no space, a folder that is gone
            return _complain(": ".join(str(part) for part in (error.filename, error.strerror) if part), 2)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _complain(f"unexpected: {what} (REPLAY_DEBUG=1 shows where; please report it at {REPORT_TO})", 2)
    return code if isinstance(code, int) else 0


def _usage(error: BaseException) -> str:
    """What is wrong with the command line, and where the right form is told."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "replay"
    told: str = error.format_message() if hasattr(error, "format_message") else str(error)
    return f"{' '.join(told.split())} ({command} --help)"


def _complain(message: str, code: int) -> int:
    from replay.report.wording import visible

    sys.stderr.write(f"replay: {visible(message)}\n")
    return code


def run() -> None:
    """Entry point of the installed command."""
    for ending in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(ending) is signal.SIG_DFL:  # not under nohup
            signal.signal(ending, signal.default_int_handler)  # so that what was half made is removed
    screen.prepare()
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # numpy only moves columns here: its threads cost half its import
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
