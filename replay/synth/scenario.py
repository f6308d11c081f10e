"""What a scenario may say: the run, its machines, its logs, and what goes wrong in it.

A scenario is a YAML file; whatever it leaves out has a default, so the smallest one is empty. Times are in seconds
unless their name ends in _ms; ranks are global.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from replay.errors import InputError
from replay.expert.yamlfile import YamlFile
from replay.resources import folder

Launcher = Literal["torchrun-dirs", "torchrun-tee", "srun", "kubectl", "plain"]
Trainer = Literal["keyed", "words", "bracket", "json", "torchtitan", "megatron", "hf"]
Guard = Literal["size", "dtype", "stride", "requires-grad", "global-state", "python-value", "training", "length"]
Version = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
Seconds = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """Unknown fields are errors: a word that is spelled wrongly must not pass as a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Topology(Model):
    """Machines: `nodes` hosts with `gpus` ranks each, links inside a host and between hosts."""

    nodes: Annotated[int, Field(ge=1, le=4096)] = 2
    gpus: Annotated[int, Field(ge=1, le=16)] = 4
    link: Literal["nvlink", "shm"] = "nvlink"
    network: Literal["ib", "socket"] = "ib"
    channels: Annotated[int, Field(ge=1, le=32)] = 2
    host: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] = "gpu-node"


class Parallel(Model):
    """Process groups: tensor-parallel groups of `tp` neighbouring ranks; the rest is data-parallel. `buckets` are the
    all-reduces of a backward, `elements` the size of each.
    """

    tp: Annotated[int, Field(ge=1, le=16)] = 1
    layers: Annotated[int, Field(ge=1, le=256)] = 2
    buckets: Annotated[int, Field(ge=1, le=256)] = 3
    elements: Annotated[int, Field(ge=1)] = 6553600
    bf16: bool = False


class Steps(Model):
    """A step's own times, the same on all ranks but for the noise (a share of each)."""

    count: Annotated[int, Field(ge=1, le=100000)] = 12
    data_ms: Seconds = 2.0
    forward_ms: Seconds = 120.0
    backward_ms: Seconds = 240.0
    optimizer_ms: Seconds = 8.0
    collective_ms: Seconds = 4.0
    noise: Annotated[float, Field(ge=0, le=0.5)] = 0.03
    save_every: Annotated[int, Field(ge=0)] = 0
    save_s: Seconds = 0.2
    log_every: Annotated[int, Field(ge=1)] = 1


class Logs(Model):
    """Which logs are on. `stdout_buffered`: NCCL's lines leave a process in blocks that end anywhere (its stdout is a
    pipe); where several processes share the pipe, lines tear.
    """

    nccl: Literal["off", "version", "warn", "info", "coll"] = "info"
    torch: frozenset[Literal["recompiles", "dynamo", "inductor"]] = frozenset()
    flight_recorder: bool = False
    detail: bool = False
    stdout_buffered: bool = False


class Clock(Model):
    """A host's clock: so many seconds ahead at the start, gaining so many millionths."""

    node: Annotated[int, Field(ge=0)]
    offset_s: float = 0.0
    drift_ppm: Annotated[float, Field(ge=-1000, le=1000)] = 0.0


class Fault(Model):
    """Common to all faults: from which step on (from 0)."""

    step: Annotated[int, Field(ge=0)] = 5


class OnRanks(Fault):
    """A fault of some ranks."""

    ranks: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]


class Recompile(OnRanks):
    """Some ranks compile their forward again; each time costs `seconds`."""

    kind: Literal["recompile"]
    guard: Guard = "size"
    seconds: Seconds = 8.0
    times: Annotated[int, Field(ge=1, le=8)] = 2
    every: Annotated[int, Field(ge=1)] = 3


class CompileSkew(OnRanks):
    """The first compile finds its cache cold on these ranks: `seconds` instead of the others' few."""

    kind: Literal["compile-skew"]
    seconds: Seconds = 900.0


class SkippedCollective(OnRanks):
    """These ranks leave out one collective (or all of a step) and go on."""

    kind: Literal["skipped-collective"]
    bucket: Annotated[int, Field(ge=0)] | None = None
    says_so: bool = False


class ReorderedCollective(OnRanks):
    """These ranks issue two collectives of a step in the other order, of different operations."""

    kind: Literal["reordered-collective"]


class MismatchedCollective(OnRanks):
    """These ranks call one collective with another size, datatype or root."""

    kind: Literal["mismatched-collective"]
    what: Literal["size", "dtype", "root"] = "size"


class UnevenBatches(OnRanks):
    """These ranks run out of data at this step and leave the loop."""

    kind: Literal["uneven-batches"]


class StragglerHost(OnRanks):
    """These ranks compute more slowly by a factor, from the step on."""

    kind: Literal["straggler-host"]
    factor: Annotated[float, Field(gt=1)] = 2.5
    step: Annotated[int, Field(ge=0)] = 0


class SlowData(OnRanks):
    """These ranks wait for their data, at every step or every so many."""

    kind: Literal["slow-data"]
    seconds: Seconds = 0.6
    every: Annotated[int, Field(ge=1)] = 1
    step: Annotated[int, Field(ge=0)] = 0


class RankWork(OnRanks):
    """One rank evaluates and saves while the others wait."""

    kind: Literal["rank-work"]
    seconds: Seconds = 3.0
    every: Annotated[int, Field(ge=1)] = 4
    step: Annotated[int, Field(ge=0)] = 3


class DeadRank(OnRanks):
    """A rank is killed, crashes, raises, or runs out of device memory."""

    kind: Literal["dead-rank"]
    how: Literal["killed", "segfault", "exception", "oom"] = "killed"


class LostNode(Fault):
    """A host is gone with all of its ranks; nothing on it says so."""

    kind: Literal["lost-node"]
    node: Annotated[int, Field(ge=0)]


class SlowHop(OnRanks):
    """A GPU without its fast links: its hops in the rings go through host memory."""

    kind: Literal["slow-hop"]
    factor: Annotated[float, Field(ge=1)] = 8.0
    step: Annotated[int, Field(ge=0)] = 0


class IbError(OnRanks):
    """The network adapter of a rank gives up sending (retry exceeded)."""

    kind: Literal["ib-error"]
    status: Annotated[int, Field(ge=1, le=22)] = 12


class LostOutput(OnRanks):
    """No cause: what these ranks wrote is lost from this step on."""

    kind: Literal["lost-output"]


AnyFault = Annotated[
    Recompile
    | CompileSkew
    | SkippedCollective
    | ReorderedCollective
    | MismatchedCollective
    | UnevenBatches
    | StragglerHost
    | SlowData
    | RankWork
    | DeadRank
    | LostNode
    | SlowHop
    | IbError
    | LostOutput,
    Field(discriminator="kind"),
]


class Scenario(Model):
    """A run that never ran."""

    about: str = ""
    torch: Version = "2.6.0"
    nccl: Version = "2.21.5"
    launcher: Launcher = "torchrun-dirs"
    trainer: Trainer = "keyed"
    backend: Literal["nccl", "gloo"] = "nccl"
    compiled: bool = False
    start: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$")] = (
        "2026-03-14 09:12:05"
    )
    timeout_s: Seconds = 600.0
    topology: Topology = Topology()
    parallel: Parallel = Parallel()
    steps: Steps = Steps()
    logs: Logs = Logs()
    clocks: tuple[Clock, ...] = ()
    faults: tuple[AnyFault, ...] = ()

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.topology.nodes * self.topology.gpus

    @model_validator(mode="after")
    def _fits(self) -> "Scenario":
        for trouble in self.misfits():
            raise ValueError(trouble)
        return self

    def misfits(self) -> Iterator[str]:
        """What cannot be: ranks, nodes and groups that do not exist."""
        if self.world % self.parallel.tp:
            yield f"tp {self.parallel.tp} does not divide the {self.world} ranks"
        if self.topology.gpus % self.parallel.tp:
            yield f"tp {self.parallel.tp} does not divide the {self.topology.gpus} ranks of a node"
        for fault in self.faults:
            if isinstance(fault, LostNode):
                if fault.node >= self.topology.nodes:
                    yield f"{fault.kind}: there is no node {fault.node}"
            elif max(fault.ranks) >= self.world:
                yield f"{fault.kind}: there is no rank {max(fault.ranks)}"
        for clock in self.clocks:
            if clock.node >= self.topology.nodes:
                yield f"clocks: there is no node {clock.node}"

    def resized(self, ranks: int) -> "Scenario":
        """Return the scenario for another number of ranks; a node keeps the number of its ranks where that divides it.

        Raises pydantic.ValidationError where a fault names a rank that is gone.
        """
        gpus = min(self.topology.gpus, ranks)
        while ranks % gpus:
            gpus -= 1
        topology = self.topology.model_copy(update={"gpus": gpus, "nodes": ranks // gpus})
        return Scenario.model_validate({**dict(self), "topology": topology})


def find_scenario(name: Path) -> Path:
    """Return the file of a scenario: the path itself, or one of the library by its name.

    Raises InputError where there is neither.
    """
    if name.is_file():
        return name
    library = folder("corpora") / "scenarios"
    found = library / f"{name.name.removesuffix('.yaml')}.yaml"
    if name.parent == Path() and found.is_file():
        return found
    names = ", ".join(sorted(path.stem for path in library.glob("*.yaml")))
    raise InputError(f"there is no scenario {name}; the library has {names}")


def read_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Raises RuleError, with file, line and column, where it is none.
    """
    file = YamlFile.read(path)
    return file.model(Scenario, file.value if file.value is not None else {})
