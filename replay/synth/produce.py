"""From a scenario to a folder: logs, and the truth about them."""

import json
from pathlib import Path

from replay.errors import UsageError
from replay.synth.aftermath import Aftermath
from replay.synth.engine import Simulation
from replay.synth.flight import dump
from replay.synth.launchers import launcher
from replay.synth.program import Process
from replay.synth.scenario import Scenario, read_scenario
from replay.synth.spool import Files
from replay.synth.truth import truth
from replay.synth.world import World


def write(scenario: Scenario | Path, folder: Path, seed: int = 0, ranks: int | None = None) -> Path:
    """Write the logs of a run that never ran to `folder`/logs, and what is wrong in it to `folder`/truth.json.

    The same scenario and seed give the same bytes. Returns the folder of the logs. Raises RuleError where a scenario
    file is none, UsageError where there is a folder of logs already or the run cannot have so many ranks.
    """
    if isinstance(scenario, Path):
        scenario = read_scenario(scenario)
    if ranks is not None:
        try:
            scenario = scenario.resized(ranks)
        except ValueError as error:
            raise UsageError(f"{ranks} ranks do not fit the scenario: {_first_line(error)}") from None
    logs = folder / "logs"
    if logs.exists() and any(logs.iterdir()):
        raise UsageError(f"{logs} is not empty; name another folder")
    logs.mkdir(parents=True, exist_ok=True)
    _play(World(scenario, seed), logs)
    (folder / "truth.json").write_text(json.dumps(truth(scenario, seed), indent=1) + "\n", encoding="utf8")
    return logs


def _first_line(error: ValueError) -> str:
    return " ".join(str(error).split("[type")[0].split())


def _play(world: World, logs: Path) -> None:
    files = Files(logs)
    start = launcher(world.scenario, world.torch)
    start.prepare(files)

    def flush(until: float) -> None:
        for entry in world.spool.take(until):
            start.write(entry, files)

    simulation = Simulation(world.ranks, world.scenario.timeout_s, flush)
    processes = [Process(world, simulation, rank) for rank in world.ranks]
    for process in processes:
        process.rank.program = process.run()
    simulation.run()
    aftermath = Aftermath(world, simulation, processes, start)
    aftermath.run()
    flush(float("inf"))
    files.close()
    if world.scenario.logs.flight_recorder:
        _dumps(world, processes, aftermath, logs)


def _dumps(world: World, processes: list[Process], aftermath: Aftermath, logs: Path) -> None:
    """The recorder's files: written when a watchdog speaks, by every rank that lives then."""
    if aftermath.spoke is None:
        return
    for process in processes:
        if aftermath.left.get(process.number, float("inf")) > aftermath.spoke:
            place = logs / "fr" / f"nccl_trace_rank_{process.number}"
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(dump(world, process, aftermath.spoke))
