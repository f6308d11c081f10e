"""What a rank does: start, steps of data, forward, backward and optimizer, work of its own, end.

A fault changes what its rank does, here and nowhere else; what the others make of it follows in the engine.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from replay.synth.compile_lines import Compile, Speaker, compiling, recompiled
from replay.synth.engine import Call, Comm, Operation, Program, Rank, Simulation, Wait
from replay.synth.guards import guard_reasons
from replay.synth.nccl_lines import Hop
from replay.synth.scenario import (
    CompileSkew,
    DeadRank,
    Fault,
    IbError,
    LostNode,
    LostOutput,
    MismatchedCollective,
    RankWork,
    Recompile,
    ReorderedCollective,
    SkippedCollective,
    SlowData,
    SlowHop,
    StragglerHost,
    UnevenBatches,
)
from replay.synth.trainers import StepDone
from replay.synth.world import World

_CALL_S = 2e-5
"""What issuing an operation costs the CPU."""
_HIT_S, _COLD_S = 3.5, 18.0
"""A first compile with a warm cache, and with a cold one on all ranks."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation as a rank's flight recorder keeps it."""

    operation: Operation | None
    comm: Comm
    seq: int
    call: Call
    time: float


class Process:
    """One rank's program, over the world that it runs in."""

    def __init__(self, world: World, simulation: Simulation, rank: Rank) -> None:
        scenario = world.scenario
        self.world, self.simulation, self.rank, self.number = world, simulation, rank, rank.number
        self.noise = world.random(rank.number, "noise")
        self.faults = world.faults[rank.number]
        self.data, self.tensor = world.data_group(rank.number), world.tensor_group(rank.number)
        self.dtype = "BFloat16" if scenario.parallel.bf16 else "Float"
        self.hop = max((f.factor for f in scenario.faults if isinstance(f, SlowHop)), default=1.0)
        self.recorded: deque[Recorded] = deque(maxlen=64)
        self.entries = 1
        kinds = {type(fault) for fault in scenario.faults}
        self.gathers = ReorderedCollective in kinds
        self.broadcasts = any(isinstance(f, MismatchedCollective) and f.what == "root" for f in scenario.faults)
        self.compiled = scenario.compiled or bool(kinds & {Recompile, CompileSkew})

    # ---- what a program is made of

    def spend(self, seconds: float, noisy: bool = True) -> float:
        """Let time pass; return how much."""
        if noisy:
            seconds *= max(0.2, 1 + self.noise.gauss(0, self.world.scenario.steps.noise))
        self.rank.now += seconds
        return seconds

    def issue(self, comm: Comm, call: Call) -> list[Operation]:
        """Issue an operation, and log what is on."""
        rank, logs = self.rank, self.world.scenario.logs
        rank.now += _CALL_S
        slow = self.hop if comm.desc != "mesh_tp" else 1.0
        seconds = self.world.scenario.steps.collective_ms / 1e3 * slow * (0.05 if call.numel_in < 4096 else 1.0)
        operation = self.simulation.issue(rank, comm, call, seconds)
        seq = comm.count[self.number] + rank.scheduled.get(comm.number, 0)
        if logs.flight_recorder:
            self.recorded.append(Recorded(operation, comm, seq, call, rank.now))
        if logs.nccl == "coll" and self.world.scenario.backend == "nccl":
            member = self.world.member(comm, self.number)
            text = self.world.nccl.call(self.world.device(self.number), member, call, seq - 1)
            self.world.say_nccl(self.number, rank.now, text)
        return [operation] if operation is not None else []

    def at(self, kind: type[Fault], step: int) -> Fault | None:
        """The rank's fault of a kind at a step."""
        return next((f for f in self.faults if isinstance(f, kind) and f.step == step), None)

    def say(self, text: str, stream: str = "stdout", time: float | None = None) -> None:
        """Let the training script say something."""
        moment = self.rank.now if time is None else time
        told = self.world.trainer.say(self.clock(moment), self.number, text)
        self.world.say(self.number, moment, stream, told)

    def clock(self, time: float) -> float:
        """What this rank's host shows."""
        return self.world.clock(self.world.node(self.number), time)

    # ---- the program

    def run(self) -> Program:
        """From start to end."""
        self.spend(2.0 + self.noise.random() * 1.5, noisy=False)
        yield from self.open()
        scenario = self.world.scenario
        for step in range(scenario.steps.count):
            self.rank.step = step
            if self.stops(step):
                return
            if isinstance(self.at(UnevenBatches, step), UnevenBatches):
                self.say(f"iterator exhausted after {step} batches, leaving epoch loop")
                break
            yield from self.step(step)
            if self.rank.died is not None:
                return
            yield from self.work(step)
        yield from self.close()

    def open(self) -> Program:
        """The process group, the communicators, and DDP's look at the parameters."""
        world, logs = self.world, self.world.scenario.logs
        self.world.say(
            self.number, self.rank.now, "stdout", world.trainer.began(self.clock(self.rank.now), self.number)
        )
        talks = logs.nccl in ("info", "coll") and world.scenario.backend == "nccl"
        device = world.device(self.number)
        if talks:
            for text in world.nccl.opening(device, self.number == 0):
                world.say_nccl(self.number, self.rank.now, text)
        elif logs.nccl == "version" and self.number == 0 and world.scenario.backend == "nccl":
            world.say_nccl(0, self.rank.now, world.nccl.banner)
        for comm in world.of_rank[self.number]:
            member = world.member(comm, self.number)
            if talks:
                world.say_nccl(self.number, self.rank.now, world.nccl.init(device, member, "START"))
            meeting = world.meetings[comm.number]
            operation = self.simulation.issue(self.rank, meeting, Call("INIT", 0, 0), 0.4)
            yield Wait([operation] if operation is not None else [])
            if talks:
                for text in self.connections(comm):
                    world.say_nccl(self.number, self.rank.now, text)
                self.spend(0.2)
                world.say_nccl(self.number, self.rank.now, world.nccl.init(device, member, "COMPLETE"))
        if self.data is not None:
            size = len(self.data.ranks)
            yield Wait(self.issue(self.data, Call("_ALLGATHER_BASE", 2, 2 * size, "Long")))
            yield Wait(
                self.issue(
                    self.data,
                    Call(
                        "BROADCAST",
                        4 * world.scenario.parallel.elements,
                        4 * world.scenario.parallel.elements,
                        self.dtype,
                    ),
                )
            )

    def connections(self, comm: Comm) -> Iterator[str]:
        """What NCCL says of layout, rings and trees."""
        world = self.world
        topology, nccl = world.scenario.topology, world.nccl
        device, member = world.device(self.number), world.member(comm, self.number)
        yield from nccl.layout(device, member)
        if member.rank == 0:
            for channel in range(topology.channels):
                yield nccl.ring_order(device, channel, topology.channels, member.size)
        yield nccl.trees(device, member, topology.channels)
        after, before = (member.rank + 1) % member.size, (member.rank - 1) % member.size
        for channel in range(topology.channels):
            for source, target in ((before, member.rank), (member.rank, after)):
                ends = comm.ranks[source], comm.ranks[target]
                transport = self.transport(*ends)
                if transport == "NET" or (source == member.rank and member.size > 1):
                    side = None if transport != "NET" else "send" if source == member.rank else "receive"
                    yield nccl.hop(
                        device,
                        Hop(channel, source, target, world.device(ends[0]), world.device(ends[1]), transport, side),
                    )
        for channel in range(topology.channels):
            for source, target in ((after, member.rank), (member.rank, before)):
                ends = comm.ranks[source], comm.ranks[target]
                if abs(source - target) == 1 and (
                    (transport := self.transport(*ends)) == "NET" or source == member.rank
                ):
                    side = None if transport != "NET" else "send" if source == member.rank else "receive"
                    yield nccl.hop(
                        device,
                        Hop(channel, source, target, world.device(ends[0]), world.device(ends[1]), transport, side),
                    )
        yield from nccl.connected(device)

    def transport(self, source: int, target: int) -> str:
        """How two neighbours of a ring are connected."""
        if self.world.node(source) != self.world.node(target):
            return "NET"
        slow = any(isinstance(f, SlowHop) for rank in (source, target) for f in self.world.faults[rank])
        return "SHM" if slow or self.world.scenario.topology.link == "shm" else "P2P"

    def stops(self, step: int) -> bool:
        """Whether the rank ends here, with its whole node or alone."""
        lost = next((f for f in self.world.scenario.faults if isinstance(f, LostNode) and f.step == step), None)
        if lost is not None and self.world.node(self.number) == lost.node:
            self.rank.died, self.rank.doing = self.rank.now, "lost"
            return True
        if isinstance(self.at(LostOutput, step), LostOutput):
            self.world.spool.cuts[self.number] = self.rank.now
        return False

    def slowness(self, step: int) -> float:
        """How many times longer than the others' this rank's own work takes."""
        found = (f.factor for f in self.faults if isinstance(f, StragglerHost) and step >= f.step)
        return max(found, default=1.0)

    def step(self, step: int) -> Program:
        """One step; its line says how long its parts took."""
        steps = self.world.scenario.steps
        began = self.rank.now
        data = self.spend(steps.data_ms / 1e3)
        for fault in self.faults:
            if isinstance(fault, SlowData) and step >= fault.step and (step - fault.step) % fault.every == 0:
                data += self.spend(fault.seconds)
        forward = self.rank.now
        self.compile(step)
        dead = self.at(DeadRank, step)
        if isinstance(dead, DeadRank):
            self.spend(steps.forward_ms / 2e3)
            self.rank.died, self.rank.doing = self.rank.now, dead.how
            return
        yield from self.forward(step)
        backward = self.rank.now
        yield from self.backward(step)
        optimizer = self.rank.now
        self.spend(steps.optimizer_ms / 1e3)
        if self.world.trainer.speaks(self.number) and step % steps.log_every == 0:
            now = self.rank.now
            done = StepDone(
                self.number,
                step,
                steps.count,
                self.world.loss(step),
                data,
                backward - forward,
                optimizer - backward,
                now - optimizer,
                now - began,
            )
            self.world.say(self.number, now, "stdout", self.world.trainer.step(self.clock(now), done))

    def compile(self, step: int) -> None:
        """The first compile, and what a failing guard costs."""
        if not self.compiled:
            return
        if step == 0:
            skewed = next((f for f in self.faults if isinstance(f, CompileSkew)), None)
            somebody = any(isinstance(f, CompileSkew) for f in self.world.scenario.faults)
            seconds = skewed.seconds if skewed else _HIT_S if somebody else _COLD_S
            self.compiling(0, seconds * (1 + 0.04 * self.noise.random()), hit=somebody and skewed is None)
        for fault in self.faults:
            if not isinstance(fault, Recompile):
                continue
            nth, left = divmod(step - fault.step, fault.every)
            if step >= fault.step and not left and nth < fault.times:
                reasons = guard_reasons(fault.guard, self.world.torch.version, self.entries)
                if "recompiles" in self.world.scenario.logs.torch:
                    now, frame = self.rank.now, self.world.frame
                    for text in recompiled(self.world.torch, self.clock(now), self.speaker(), frame, reasons):
                        self.world.say(self.number, now, "stderr", text)
                self.compiling(self.entries, fault.seconds * (1 + 0.1 * self.noise.random()), hit=False)
                self.entries += 1

    def compiling(self, nth: int, seconds: float, hit: bool) -> None:
        """A compile of the model's frame."""
        logs, world = self.world.scenario.logs.torch, self.world
        began = self.rank.now
        if "dynamo" in logs or "inductor" in logs:
            work = Compile(world.frame, nth, seconds, hit, "inductor" in logs)
            for time, text in compiling(world.torch, self.clock(began), self.speaker(), work):
                world.say(self.number, began + time - self.clock(began), "stderr", text)
        self.spend(seconds, noisy=False)

    def speaker(self) -> Speaker:
        """The rank as torch's Python side names it."""
        return Speaker(self.number, self.world.pid(self.number))

    def forward(self, step: int) -> Program:
        """Layers; with tensor parallelism an all-reduce behind each."""
        parallel, seconds = (
            self.world.scenario.parallel,
            self.world.scenario.steps.forward_ms / 1e3 * self.slowness(step),
        )
        if self.broadcasts and self.data is not None:
            wrong = self.at(MismatchedCollective, step)
            root = 1 if isinstance(wrong, MismatchedCollective) and wrong.what == "root" else 0
            yield Wait(self.issue(self.data, Call("BROADCAST", 8192, 8192, self.dtype, root)), sync=False)
        if self.tensor is None:
            self.spend(seconds)
            return
        for _ in range(parallel.layers):
            self.spend(seconds / parallel.layers)
            yield Wait(self.issue(self.tensor, Call("ALLREDUCE", 4194304, 4194304, self.dtype)), sync=False)

    def backward(self, step: int) -> Program:
        """Gradients, summed over the data group bucket by bucket while the rest is computed."""
        parallel, seconds = (
            self.world.scenario.parallel,
            self.world.scenario.steps.backward_ms / 1e3 * self.slowness(step),
        )
        parts = max(parallel.buckets, parallel.layers if self.tensor is not None else 1)
        pending: list[Operation] = []
        calls = self.bucket_calls(step)
        done = 0
        for part in range(parts):
            self.spend(seconds / parts)
            if self.tensor is not None and part < parallel.layers:
                yield Wait(self.issue(self.tensor, Call("ALLREDUCE", 4194304, 4194304, self.dtype)), sync=False)
            due = len(calls) * (part + 1) // parts
            if self.data is not None:
                for call in calls[done:due]:
                    pending += self.issue(self.data, call)
            done = max(done, due)
            if part == 0 and isinstance(self.at(IbError, step), IbError) and self.data is not None:
                self.rank.doing = "ib"
                self.data.is_stuck = True
        yield Wait(pending)

    def bucket_calls(self, step: int) -> list[Call]:
        """The all-reduces of this rank's backward, with what a fault makes of them."""
        parallel = self.world.scenario.parallel
        sizes = [max(parallel.elements - 65536 * n - 12 * n, 1024 + n) for n in range(parallel.buckets)]
        calls = [Call("ALLREDUCE", size, size, self.dtype) for size in sizes]
        wrong = self.at(MismatchedCollective, step)
        which = min(1, len(calls) - 1)
        if isinstance(wrong, MismatchedCollective) and wrong.what != "root":
            size = sizes[which] - 8192 if wrong.what == "size" else sizes[which]
            other = "Half" if self.dtype == "Float" else "Float"
            calls[which] = Call("ALLREDUCE", size, size, other if wrong.what == "dtype" else self.dtype)
        skipped = self.at(SkippedCollective, step)
        if isinstance(skipped, SkippedCollective):
            if skipped.says_so:
                self.say(f"step={step} skipping all_reduce: no gradient on this rank")
            if skipped.bucket is None:
                calls = []
            else:
                del calls[min(skipped.bucket, len(calls) - 1)]
        if self.gathers and self.data is not None:
            gather = Call("_ALLGATHER_BASE", 16, 16 * len(self.data.ranks), "Float")
            place = 0 if isinstance(self.at(ReorderedCollective, step), ReorderedCollective) else len(calls)
            calls.insert(place, gather)
        return calls

    def work(self, step: int) -> Program:
        """Saving that all do, and work that only this rank does."""
        steps = self.world.scenario.steps
        for fault in self.faults:
            if isinstance(fault, RankWork) and step >= fault.step and (step - fault.step) % fault.every == 0:
                self.say(f"running evaluation at step {step}")
                self.spend(fault.seconds * 0.7)
                self.say(f"saving checkpoint to ckpt/step_{step}.pt")
                self.spend(fault.seconds * 0.3)
                self.say(f"eval+save finished in {fault.seconds:.1f} s")
        if steps.save_every and (step + 1) % steps.save_every == 0:
            if self.number == 0:
                self.say(f"saving checkpoint to ckpt/step_{step}.pt")
            self.spend(steps.save_s)
            if self.number == 0:
                self.say("saved checkpoint")
        yield Wait([])

    def close(self) -> Program:
        """A barrier, and the end of the groups."""
        world = self.world
        if world.scenario.world > 1:
            yield Wait(self.issue(world.comms[0], Call("ALLREDUCE", 1, 1, "Float")))
        self.say("training finished")
        self.spend(0.3)
        if world.scenario.logs.nccl in ("info", "coll") and world.scenario.backend == "nccl":
            for comm in reversed(world.of_rank[self.number]):
                world.say_nccl(
                    self.number,
                    self.rank.now,
                    world.nccl.destroyed(world.device(self.number), world.member(comm, self.number)),
                )
        self.spend(0.2)
        world.spool.flush_block(self.rank.now, self.number)
