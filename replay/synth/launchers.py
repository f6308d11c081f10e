"""Where lines end up: the folders, files and prefixes of one way to start a job.

A launcher gives every writer a file and may put something before each of its lines. What it prints itself (its table of
failures, its signals) stands in `ending`.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from replay.synth.inverse import line
from replay.synth.scenario import Scenario
from replay.synth.spool import JOB, Entry, Files
from replay.synth.torch_lines import Torch


class Launcher(Protocol):
    """Puts lines into files."""

    @property
    def has_agents(self) -> bool:
        """Whether torchrun's agent runs on each node."""
        ...

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        ...

    def prepare(self, files: Files) -> None:
        """Make files that exist although nothing is written to them."""
        ...


@dataclass(frozen=True)
class _Base:
    scenario: Scenario
    torch: Torch
    has_agents: bool = True

    def node(self, writer: int) -> int:
        """The node of a writer."""
        return writer // self.scenario.topology.gpus if writer >= 0 else -1 - writer

    def local(self, rank: int) -> int:
        """The rank on its node."""
        return rank % self.scenario.topology.gpus

    def host(self, node: int) -> str:
        """The name of a node."""
        return f"{self.scenario.topology.host}-{node:02}"

    def prepare(self, files: Files) -> None:
        """Nothing to make."""


class TorchrunDirs(_Base):
    """`torchrun --log-dir D --redirects 3`, one folder a node: D/HOST/RDZV_random/attempt_0/LOCAL/std{out,err}.log.

    What the agent says is the console.
    """

    def path(self, rank: int, stream: str) -> str:
        """The file of a stream of a rank."""
        return f"{self.host(self.node(rank))}/job4821_k3f9x2ab/attempt_0/{self.local(rank)}/{stream}.log"

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        path = (
            f"{self.host(self.node(entry.writer))}/console.log"
            if entry.writer < 0
            else self.path(entry.writer, entry.stream)
        )
        if entry.writer == JOB:
            return
        files.append(path, entry.text if entry.is_raw else f"{entry.text}\n")

    def prepare(self, files: Files) -> None:
        """Torchrun makes the files of both streams before it starts a worker."""
        for rank in range(self.scenario.world):
            files.touch(self.path(rank, "stdout"))
            files.touch(self.path(rank, "stderr"))
        for node in range(self.scenario.topology.nodes):
            files.touch(f"{self.host(node)}/console.log")


class _Lined(_Base):
    """Launchers that read a process's pipe line by line: a piece of a line waits for its rest."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rest", {})

    def lines(self, entry: Entry) -> list[str]:
        """The whole lines of an entry."""
        if not entry.is_raw:
            return [entry.text]
        rest: dict[int, str] = self.__dict__["_rest"]
        *whole, rest[entry.writer] = (rest.get(entry.writer, "") + entry.text).split("\n")
        return whole


class TorchrunTee(_Lined):
    """`torchrun --tee 3`: one console a node, `[default3]:` before each line of a worker."""

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        if entry.writer == JOB:
            return
        path = f"{self.host(self.node(entry.writer))}.log"
        for text in self.lines(entry):
            files.append(path, f"{self.label(entry.writer, text)}\n")

    def label(self, writer: int, text: str) -> str:
        """The line with its writer before it."""
        if writer < 0:
            return text
        return line("wrappers", "torchrun_tee", local_rank=self.local(writer), text=text or None)


class Srun(_Lined):
    """`srun -l python train.py`, a task a rank: one file for all, the task's number before each line."""

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        for text in self.lines(entry):
            files.append("slurm-48213.out", f"{self.label(entry.writer, text)}\n")

    def label(self, writer: int, text: str) -> str:
        """The line with its task before it, padded to the width of the largest."""
        if writer < 0:
            return text
        pad = " " * (len(str(self.scenario.world - 1)) - len(str(writer))) or None
        return line("wrappers", "srun_label", pad=pad, task=writer, text=text or None, keep=frozenset({" "}))


class Kubectl(_Lined):
    """`kubectl logs --timestamps` of a pod a node, in which torchrun starts a worker a GPU."""

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        if entry.writer == JOB:
            return
        moment = self.torch.start + timedelta(seconds=entry.time)
        for text in self.lines(entry):
            stamp = line(
                "wrappers",
                "stamped",
                date=f"{moment:%Y-%m-%d}",
                clock=f"{moment:%H:%M:%S}.{moment.microsecond * 1000 + entry.order % 1000:09}",
                zone="Z",
                text=text or None,
                keep=frozenset({" "}),
            )
            files.append(f"{self.scenario.topology.host}-{self.node(entry.writer)}.log", f"{stamp}\n")


class Plain(_Base):
    """Everybody writes to one file, as it comes."""

    def write(self, entry: Entry, files: Files) -> None:
        """Write one line where it belongs."""
        if entry.writer != JOB:
            files.append("train.log", entry.text if entry.is_raw else f"{entry.text}\n")


def launcher(scenario: Scenario, torch: Torch) -> Launcher:
    """Return the launcher that a scenario names."""
    match scenario.launcher:
        case "torchrun-dirs":
            return TorchrunDirs(scenario, torch)
        case "torchrun-tee":
            return TorchrunTee(scenario, torch)
        case "srun":
            return Srun(scenario, torch, has_agents=False)
        case "kubectl":
            return Kubectl(scenario, torch)
        case "plain":
            return Plain(scenario, torch)
