"""Everything that the ranks of one synthetic run share: machines, clocks, groups, dialects, and the spool.

Random numbers come from one seed and are drawn by a key (rank, purpose), so that a change of one rank's fault does not
change what another rank draws.
"""

import random
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property

from replay.synth.compile_lines import Frame
from replay.synth.engine import Comm, Rank
from replay.synth.nccl_lines import Device, Member, Nccl
from replay.synth.scenario import Fault, OnRanks, Scenario
from replay.synth.spool import Spool
from replay.synth.torch_lines import Group, Torch
from replay.synth.trainers import Trainer


class World:
    """One run: what is fixed before the first rank starts."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario, self.seed = scenario, seed
        self.start = datetime.strptime(scenario.start, "%Y-%m-%d %H:%M:%S")
        self.torch = Torch(scenario.torch, self.start)
        self.nccl = Nccl(scenario.nccl, self.start, scenario.topology.network)
        self.trainer = Trainer(scenario.trainer, scenario.world, scenario.torch, self.start)
        self.spool = Spool()
        self.ranks = [Rank(n) for n in range(scenario.world)]
        shared = self.random(-1, "world")
        self.first_pid = shared.randrange(3000, 60000)
        self.fingerprint = shared.getrandbits(63)
        self.frame = Frame(0, "forward", "/workspace/train.py", 88, _key(shared))
        self.comms = list(self._groups())
        self.of_rank: list[list[Comm]] = [[] for _ in self.ranks]
        for comm in self.comms:
            for rank in comm.ranks:
                self.of_rank[rank].append(comm)
        self.meetings = {comm.number: Comm(-1, comm.name, "", comm.ranks) for comm in self.comms}
        """Where the members of a communicator meet to make it."""
        self._nodes_of = {comm.number: len({self.node(rank) for rank in comm.ranks}) for comm in self.comms}
        self._clock = {clock.node: (clock.offset_s, clock.drift_ppm * 1e-6) for clock in scenario.clocks}

    def random(self, rank: int, purpose: str) -> random.Random:
        """Return the numbers of a rank for a purpose."""
        return random.Random(f"{self.seed}/{rank}/{purpose}")

    # ---- machines

    def node(self, rank: int) -> int:
        """The node of a rank."""
        return rank // self.scenario.topology.gpus

    def local(self, rank: int) -> int:
        """The rank on its node."""
        return rank % self.scenario.topology.gpus

    def host(self, node: int) -> str:
        """The name of a node."""
        return f"{self.scenario.topology.host}-{node:02}"

    def ranks_of(self, node: int) -> range:
        """The ranks of a node."""
        gpus = self.scenario.topology.gpus
        return range(node * gpus, node * gpus + gpus)

    def address(self, node: int) -> str:
        """The address of a node."""
        return f"10.12.{node // 200}.{node % 200 + 11}"

    def agent_pid(self, node: int) -> int:
        """The process of a node's agent."""
        return self.first_pid + (node * 7919) % 20000

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return self.agent_pid(self.node(rank)) + 67 + self.local(rank)

    def device(self, rank: int) -> Device:
        """A rank as NCCL names it."""
        node = self.node(rank)
        return Device(self.host(node), self.pid(rank), self.local(rank), self.address(node))

    def clock(self, node: int, time: float) -> float:
        """What a node's clock shows at a true time."""
        offset, drift = self._clock.get(node, (0.0, 0.0))
        return time + offset + time * drift

    # ---- groups

    def _groups(self) -> Iterator[Comm]:
        """The default group; with tensor parallelism the data-parallel groups and the tensor-parallel ones."""
        world, tp = self.scenario.world, self.scenario.parallel.tp
        yield self._comm(0, "0", "default_pg", range(world))
        if tp == 1:
            return
        number = 1
        if world > tp:
            for first in range(tp):
                yield self._comm(number, str(number), "mesh_dp", range(first, world, tp))
                number += 1
        for first in range(0, world, tp):
            yield self._comm(number, str(number), "mesh_tp", range(first, first + tp))
            number += 1

    def _comm(self, number: int, name: str, desc: str, ranks: range) -> Comm:
        comm_id = self.random(number, "comm").getrandbits(64) | 1 << 60
        return Comm(number, name, desc, ranks, comm_id=comm_id)

    def data_group(self, rank: int) -> Comm | None:
        """The group over which a rank's gradients are summed."""
        found = [c for c in self.of_rank[rank] if c.desc == "mesh_dp"]
        if found:
            return found[0]
        return self.comms[0] if self.scenario.parallel.tp == 1 and self.scenario.world > 1 else None

    def tensor_group(self, rank: int) -> Comm | None:
        """The group that shares a rank's layers."""
        return next((c for c in self.of_rank[rank] if c.desc == "mesh_tp"), None)

    def group(self, comm: Comm, rank: int) -> Group:
        """A group as torch names it on a rank: numbers count on each rank."""
        number = self.of_rank[rank].index(comm)
        desc = comm.desc if comm.desc == "default_pg" or self.torch.version >= (2, 5) else ""
        return Group(number, comm.name, desc, comm.member[rank])

    def member(self, comm: Comm, rank: int) -> Member:
        """A rank of a communicator as NCCL names it."""
        mates = [r for r in self.ranks_of(self.node(rank)) if r in comm.member]
        pointer = 0x55D000000000 + self.pid(rank) * 0x10000 + comm.number * 0x1000
        parent = None if comm.number == 0 else 0x55D000000000 + self.pid(rank) * 0x10000
        return Member(
            comm.member[rank],
            len(comm.ranks),
            pointer,
            comm.comm_id,
            self._nodes_of[comm.number],
            mates.index(rank),
            len(mates),
            parent,
            comm.number,
        )

    def loss(self, step: int) -> float:
        """The loss of a step, the same on all ranks."""
        return 9.2 / (1 + 0.12 * step) + self.random(step, "loss").random() * 0.05

    # ---- faults

    @cached_property
    def faults(self) -> list[list[Fault]]:
        """The faults of each rank."""
        found: list[list[Fault]] = [[] for _ in self.ranks]
        for fault in self.scenario.faults:
            for rank in fault.ranks if isinstance(fault, OnRanks) else ():
                found[rank].append(fault)
        return found

    # ---- lines

    def say(self, rank: int, time: float, stream: str, text: str) -> None:
        """Let a rank write a line at a true time."""
        self.spool.add(time, rank, stream, text)

    def say_nccl(self, rank: int, time: float, text: str | None) -> None:
        """Let a rank's NCCL write a line, to stdout."""
        if text is None:
            return
        if self.scenario.logs.stdout_buffered:
            self.spool.add_block(time, rank, text)
        else:
            self.spool.add(time, rank, "stdout", text)


def _key(numbers: random.Random) -> str:
    return "".join(numbers.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(51))
