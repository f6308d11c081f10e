"""`replay synth`: the logs of a run that never ran."""

from pathlib import Path
from typing import Annotated

import typer


def synth(
    scenario: Annotated[
        Path, typer.Argument(help="A scenario (YAML), or the name of one of the library.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Where to write logs/ and truth.json.", show_default=False),
    ],
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, help="Another number of ranks than the scenario's.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Chance: the same seed gives the same bytes.")] = 0,
) -> None:
    """Write the logs of a run that never ran, with the truth about what is wrong in it."""
    from replay.synth import find_scenario, write

    logs = write(find_scenario(scenario), output, seed, ranks)
    typer.echo(str(logs))
