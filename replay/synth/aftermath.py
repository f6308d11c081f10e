"""What follows when ranks wait for what never comes: timeouts, lost connections, aborts, what launchers do about it.

The simulation leaves some ranks dead and others waiting. From there a queue of events goes on: a watchdog whose time is
up, a connection whose other end is gone, a process that ends, an agent that sees it and stops the rest. Each event says
what its process prints and what follows from it.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

from replay.synth import agent, failures
from replay.synth.engine import NEVER, Comm, Operation, Rank, Simulation, enqueued
from replay.synth.launchers import Launcher
from replay.synth.program import Process
from replay.synth.scenario import IbError
from replay.synth.spool import JOB
from replay.synth.torch_lines import Work, whole_ms
from replay.synth.world import World

_IB_NAMES = {
    5: "IBV_WC_WR_FLUSH_ERR",
    11: "IBV_WC_REM_OP_ERR",
    12: "IBV_WC_RETRY_EXC_ERR",
    13: "IBV_WC_RNR_RETRY_EXC_ERR",
}
_REMOTE = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."


class Aftermath:
    """Plays the events of the end until every process has one."""

    def __init__(self, world: World, simulation: Simulation, processes: Sequence[Process], launcher: Launcher) -> None:
        self.world, self.simulation, self.processes, self.launcher = world, simulation, processes, launcher
        self.exits: dict[int, agent.Exit] = {}
        self.gone: set[int] = set()
        """Ranks that ended, in whatever way."""
        self.left: dict[int, float] = {}
        """When each rank was gone."""
        self.spoke: float | None = None
        """When the first watchdog spoke."""
        self.agents_done: set[int] = set()
        self._queue: list[tuple[float, int, int | None, Callable[[float], None]]] = []
        self._order = count()
        self._chance = world.random(-1, "aftermath")
        self._fired: set[int] = set()
        self._job_ended = False

    # ---- the queue

    def push(self, time: float, rank: int | None, event: Callable[[float], None]) -> None:
        """Let something happen to a rank, if it is still there by then, or (None) to whoever it concerns."""
        heapq.heappush(self._queue, (time, next(self._order), rank, event))

    def run(self) -> None:
        """Play to the end."""
        for waiting in self.world.ranks:
            self.simulation.run_ahead(waiting)
        self._begin()
        while self._queue:
            time, _, rank, event = heapq.heappop(self._queue)
            if rank not in self.gone:
                event(time)

    def _begin(self) -> None:
        """What is due at once: deaths, failed adapters, mismatches that DETAIL finds, timers that run."""
        lost = [r for r in self.world.ranks if r.doing == "lost" and r.died is not None]
        moment = min((r.died for r in lost if r.died is not None), default=0.0)
        for rank in self.world.ranks:
            if rank.died is not None:
                self.push(moment if rank.doing == "lost" else rank.died, rank.number, partial(self._on_death, rank))
            elif rank.doing == "ib":
                self.push(
                    rank.now + 6 + 20 * self._chance.random(), rank.number, partial(self._on_adapter, rank.number)
                )
        is_nccl = self.world.scenario.backend == "nccl"
        for rank in self.world.ranks:
            if rank.died is None and (found := self._first_open(rank)) is not None:
                operation, issued = found
                if self.world.scenario.logs.detail and operation.is_complete and operation.disagrees:
                    last = max(time for time, _ in operation.issued.values())
                    event = partial(self._on_mismatch, rank.number, operation)
                    self.push(last + 0.01 + 0.02 * self._chance.random(), rank.number, event)
                event = (
                    partial(self._on_timeout, rank.number, operation)
                    if is_nccl
                    else partial(self._on_gloo_timeout, rank.number)
                )
                due = issued + self.world.scenario.timeout_s + 0.02 + 0.09 * self._chance.random()
                self.push(due, rank.number, event)

    def _first_open(self, rank: Rank) -> tuple[Operation, float] | None:
        """The operation that a rank has waited for longest, and since when."""
        found: tuple[Operation, float] | None = None
        for comm in self.world.of_rank[rank.number]:
            for operation in comm.open.values():
                if rank.number in operation.issued:
                    issued = operation.issued[rank.number][0]
                    if found is None or issued < found[1]:
                        found = operation, issued
        return found

    def _say(self, rank: int, time: float, texts: Iterable[str], stream: str = "stderr") -> None:
        for text in texts:
            self.world.say(rank, time, stream, text)

    def _here(self, rank: int, time: float) -> float:
        return self.world.clock(self.world.node(rank), time)

    # ---- what happens to one process

    def _on_death(self, state: Rank, time: float) -> None:
        torch, how, rank = self.world.torch, state.doing, state.number
        if how == "lost":
            self._end(time, rank, None)
        elif how == "killed":
            self._end(time, rank, -9)
        elif how == "segfault":
            self._say(rank, time, failures.segfault())
            self._end(time + 0.2, rank, -11)
        else:
            block = (
                failures.out_of_memory(torch.version, self.world.local(rank))
                if how == "oom"
                else failures.raised(self.world.random(rank, "raise").randrange(4))
            )
            self._raise(time, rank, block)

    def _raise(self, time: float, rank: int, block: Iterable[str]) -> None:
        """A process raises, says so, and ends a little later."""
        self._say(rank, time, (self.world.torch.ranked(rank, text) for text in block))
        self._end(time + 0.4 + 0.3 * self._chance.random(), rank, 1)

    def _on_adapter(self, rank: int, time: float) -> None:
        peer = self._network_peer(rank)
        status = next((f.status for f in self.world.faults[rank] if isinstance(f, IbError)), 12)
        self._complete_badly(time, rank, peer, status)

    def _complete_badly(self, time: float, rank: int, peer: int, status: int) -> None:
        nccl, device = self.world.nccl, self.world.device(rank)
        address = f"{self.world.address(self.world.node(peer))}<{40000 + self.world.pid(peer) % 20000}>"
        name = _IB_NAMES.get(status, "IBV_WC_GENERAL_ERR")
        if self.world.scenario.logs.nccl in ("warn", "info", "coll"):
            for text in nccl.completion(self._here(rank, time), device, address, status, name):
                self.world.say_nccl(rank, time, text)
        self.push(
            time + 0.3 + 0.7 * self._chance.random(),
            rank,
            partial(self._on_async, rank, nccl.completion_text(device, address, status, name)),
        )

    def _network_peer(self, rank: int) -> int:
        """The next rank on another node in a ring of this rank's."""
        for comm in self.world.of_rank[rank]:
            for step in range(1, len(comm.ranks)):
                other = comm.ranks[(comm.member[rank] + step) % len(comm.ranks)]
                if self.world.node(other) != self.world.node(rank):
                    return other
        return rank

    def _on_peer(self, rank: int, other: int, time: float) -> None:
        """A connection's other end is gone."""
        silent = self.world.ranks[other].doing == "lost"
        if self.world.scenario.topology.network == "ib":
            self._complete_badly(time, rank, other, 12)
            return
        nccl, device = self.world.nccl, self.world.device(rank)
        address = f"{self.world.address(self.world.node(other))}<{40000 + self.world.pid(other) % 20000}>"
        here = self._here(rank, time)
        if self.world.scenario.logs.nccl in ("warn", "info", "coll"):
            for text in nccl.reset(here, device, address) if silent else nccl.closed(here, device, address):
                self.world.say_nccl(rank, time, text)
        last = nccl.reset_text(address) if silent else nccl.closed_text(address)
        self.push(time + 0.3 + 0.7 * self._chance.random(), rank, partial(self._on_async, rank, last))

    def _on_async(self, rank: int, last: str, time: float) -> None:
        """The watchdog reports what NCCL found, and takes the process down."""
        found = self._first_open(self.world.ranks[rank])
        comm = found[0].comm if found else self.world.of_rank[rank][0]
        version = self.world.scenario.nccl
        error = f"NCCL error: remote process exited or there was a network error, NCCL version {version}"
        group = self.world.group(comm, rank)
        texts = list(self.world.torch.given_up(self._here(rank, time), rank, group, error, "checkForNCCLErrors"))
        for text in texts:
            self.world.say(rank, time, "stderr", text)
            if error in text:
                self._say(rank, time, (_REMOTE, "Last error:", last))
        self._end(time + 0.2, rank, -6)

    def _on_timeout(self, rank: int, operation: Operation, time: float) -> None:
        """The watchdog's time is up."""
        work = self._work(rank, operation, time)
        group = self.world.group(operation.comm, rank)
        here = self._here(rank, time)
        recorder = self.world.scenario.logs.flight_recorder
        self._say(rank, time, self.world.torch.watchdog(here, rank, group, work, recorder))
        self._fired.add(rank)
        if self.spoke is None:
            self.spoke = time
            for other in self.world.ranks:
                if other.number != rank and not self._fires_soon(other, time):
                    self.push(
                        time + 0.1 + self._chance.random(), other.number, partial(self._on_signal, other.number, rank)
                    )
        cause = self.world.torch.timed_out(group, work)
        self.push(time + 0.6 + 1.2 * self._chance.random(), rank, partial(self._on_abort, rank, operation.comm, cause))

    def _fires_soon(self, rank: Rank, time: float) -> bool:
        found = self._first_open(rank)
        return found is not None and found[1] + self.world.scenario.timeout_s < time + 1.5

    def _work(self, rank: int, operation: Operation, time: float) -> Work:
        issued, call = operation.issued[rank]
        comm = operation.comm
        timeout = self.world.scenario.timeout_s
        last = enqueued(comm, self.world.ranks[rank], time)
        none = -1 if self.world.torch.version >= (2, 4) else 0
        return Work(
            operation.seq,
            call.op,
            call.numel_in,
            call.numel_out,
            whole_ms(timeout),
            whole_ms(time - issued),
            last,
            comm.completed or none,
        )

    def _on_signal(self, rank: int, first: int, time: float) -> None:
        """Another rank's watchdog has spoken."""
        comm = self._shared(rank, first)
        group = self.world.group(comm, rank)
        last = enqueued(comm, self.world.ranks[rank], time)
        told = self.world.torch.signalled(
            self._here(rank, time),
            rank,
            group,
            from_rank=first,
            enqueued=last,
            completed=min(comm.completed, last),
        )
        self._say(rank, time, told)

    def _shared(self, rank: int, other: int) -> Comm:
        """The smallest group of two ranks."""
        shared = [c for c in self.world.of_rank[rank] if other in c.member]
        return min(shared, key=lambda c: len(c.ranks))

    def _on_abort(self, rank: int, comm: Comm, cause: str, time: float) -> None:
        self._say(
            rank, time, self.world.torch.given_up(self._here(rank, time), rank, self.world.group(comm, rank), cause)
        )
        self._end(time + 0.1, rank, -6)

    def _on_mismatch(self, rank: int, operation: Operation, time: float) -> None:
        """DETAIL compares the fingerprints before the operation: each rank names the first that differs from it."""
        mine = operation.issued[rank][1]
        comm = operation.comm
        other = next(r for r in comm.ranks if operation.issued[r][1] != mine)
        theirs = operation.issued[other][1]
        if mine.op != theirs.op:
            aspects = f" Op type: {mine.op}vs {theirs.op}"
        elif mine.numel_in != theirs.numel_in:
            aspects = f" Tensor Tensor shapes: {mine.numel_in}vs {theirs.numel_in}"
        else:
            aspects = f" Tensor Tensor dtypes: {mine.dtype}vs {theirs.dtype}"
        prints = [failures.fingerprint(operation.seq, c.op, c.numel_in, c.dtype) for c in (mine, theirs)]
        self._raise(time, rank, failures.mismatch(prints[0], prints[1], comm.member[rank], comm.member[other], aspects))

    def _on_gloo_timeout(self, rank: int, time: float) -> None:
        self._raise(time, rank, failures.gloo_timed_out(whole_ms(self.world.scenario.timeout_s)))

    def _on_gloo_closed(self, rank: int, gone: int, time: float) -> None:
        self._raise(time, rank, failures.gloo_closed(self.world.address(self.world.node(gone))))

    # ---- ends, and what they start

    def _end(self, time: float, rank: int, code: int | None) -> None:
        """A process ends; `code` is None where nobody is there to see it."""
        world, node = self.world, self.world.node(rank)
        self.gone.add(rank)
        self.left[rank] = time
        world.spool.cuts[rank] = min(time, world.spool.cuts.get(rank, NEVER))
        if code is not None:
            host, local = world.host(node), world.local(rank)
            self.exits[rank] = agent.Exit(rank, local, world.pid(rank), host, code, self._here(rank, time))
        if code == 1 and world.torch.version >= (2, 3):
            world.spool.flush_block(time, rank)
        self._connections_end(time, rank, code)
        if code is None or code == -15:
            return
        if self.launcher.has_agents:
            if node not in self.agents_done:
                self.agents_done.add(node)
                poll = 0.1 if world.torch.version >= (2, 6) else 5.0
                self.push(time + 0.02 + poll * self._chance.random(), None, partial(self._on_agent, rank))
        elif not self._job_ended:
            self._job_ended = True
            self.push(time + 0.8 + self._chance.random(), None, partial(self._on_job, rank))

    def _connections_end(self, time: float, rank: int, code: int | None) -> None:
        """The neighbours in rings on other nodes notice; in gloo all that wait for the rank do."""
        world = self.world
        noticed: set[int] = set()
        for comm in world.of_rank[rank]:
            if not comm.open and code is not None:
                continue
            if world.scenario.backend == "gloo":
                noticed |= {r for o in comm.open.values() for r in o.issued}
                continue
            size, me = len(comm.ranks), comm.member[rank]
            noticed |= {comm.ranks[(me + step) % size] for step in (1, -1)}
        for other in sorted(noticed - self.gone - {rank}):
            if world.scenario.backend == "gloo":
                self.push(time + 0.01 + 0.05 * self._chance.random(), other, partial(self._on_gloo_closed, other, rank))
            elif world.node(other) != world.node(rank) and self._first_open(world.ranks[other]) is not None:
                wait = 25 + 30 * self._chance.random() if code is None else 0.05 + 0.2 * self._chance.random()
                if world.scenario.topology.network == "ib":
                    wait = 4 + 9 * self._chance.random()
                self.push(time + wait, other, partial(self._on_peer, other, rank))

    def _on_agent(self, first: int, time: float) -> None:
        """Torchrun's agent has seen a worker fail: it stops the others and prints its table."""
        world = self.world
        node = world.node(first)
        writer, pid = -1 - node, world.agent_pid(node)
        for rank in world.ranks_of(node):
            if (rank not in self.gone and not world.ranks[rank].is_done) or self._runs_still(rank, time):
                self.world.say(
                    writer, time, "stderr", agent.sending(world.torch, self._here(rank, time), pid, world.pid(rank))
                )
                self._end(time + 0.03 + 0.02 * self._chance.random(), rank, -15)
        later = time + 0.4 + 0.4 * self._chance.random()
        exits = sorted(
            (self.exits[r] for r in world.ranks_of(node) if r in self.exits), key=lambda e: (e.time, e.code == -15)
        )
        for text in agent.failed(world.torch, self._here(first, later), pid, exits):
            self.world.say(writer, later, "stderr", text)
        if node == 0:
            for other in range(1, world.scenario.topology.nodes):
                self.push(later + 5 + self._chance.random(), None, partial(self._on_heartbeat, other))

    def _runs_still(self, rank: int, time: float) -> bool:
        """Whether a rank whose program is over has not come to its end at a time."""
        state = self.world.ranks[rank]
        return state.is_done and state.died is None and rank not in self.gone and state.now > time

    def _on_heartbeat(self, node: int, time: float) -> None:
        """The host of the rendezvous is gone, and this node's agent is not."""
        if node in self.agents_done or all(r in self.gone for r in self.world.ranks_of(node)):
            return
        text = agent.heartbeat_lost(
            self.world.torch, self.world.clock(node, time), self.world.agent_pid(node), self.world.host(node)
        )
        self.world.say(-1 - node, time, "stderr", text)

    def _on_job(self, first: int, time: float) -> None:
        """Slurm ends the step of which a task failed."""
        world = self.world
        lost = sorted({world.node(r) for r in self.gone if world.ranks[r].doing == "lost"})
        told = {r: self.exits[r].code for r in self.exits}
        self._slurm_exits(time, told)
        for node in lost:
            world.say(JOB, time, "stderr", agent.slurm_node_failed(world.host(node)))
        world.say(JOB, time, "stderr", agent.slurm_aborted())
        why = "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS" if lost else None
        host = world.host(world.node(first))
        cancelled = agent.slurm_cancelled(world.torch, self._here(first, time), host, why)
        world.say(JOB, time + 0.1, "stderr", cancelled)
        stopped = {}
        for rank in world.ranks:
            if rank.number not in self.gone and (not rank.is_done or self._runs_still(rank.number, time)):
                self._end(time + 0.15, rank.number, -15)
                stopped[rank.number] = -15
        self._slurm_exits(time + 0.6, stopped)

    def _slurm_exits(self, time: float, codes: dict[int, int]) -> None:
        groups: dict[tuple[int, int], list[int]] = {}
        for rank, code in sorted(codes.items()):
            groups.setdefault((self.world.node(rank), code), []).append(rank)
        for (node, code), tasks in groups.items():
            self.world.say(JOB, time, "stderr", agent.slurm_exit(self.world.host(node), tasks, code))
