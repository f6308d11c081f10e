"""A small discrete simulation: ranks, operations, waiting.

Every rank is a program (a generator) with a clock of its own. It computes by moving its clock, issues operations on
communicators, and waits for them by yielding. The i-th operation that each member issues on a communicator is one
operation: it ends some time after the last member came, and never where the members do not agree. So whoever is late,
missing or different makes the others wait, and nothing of that is written down anywhere: it follows.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Call:
    """What a rank asks for: the operation by torch's name, elements in and out, datatype, root."""

    op: str
    numel_in: int
    numel_out: int
    dtype: str = "Float"
    root: int = 0


@dataclass(slots=True)
class Operation:
    """One operation of a communicator. `issued` holds who came, when, with what; `end` is NEVER while it is open."""

    comm: "Comm"
    seq: int
    issued: dict[int, tuple[float, Call]] = field(default_factory=dict)
    end: float = NEVER
    waiting: list["Rank"] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether the last member came; it may still never end."""
        return len(self.issued) == len(self.comm.ranks)

    @property
    def disagrees(self) -> bool:
        """Whether the members ask for different things."""
        return len({call for _, call in self.issued.values()}) > 1


@dataclass(slots=True)
class Comm:
    """A communicator: its members by global rank, in order of their rank inside."""

    number: int
    name: str
    desc: str
    ranks: Sequence[int]
    count: dict[int, int] = field(default_factory=dict)
    """Operations that each member has issued."""
    open: dict[int, Operation] = field(default_factory=dict)
    """Operations that have not ended, by number (from 1)."""
    last_end: float = 0.0
    completed: int = 0
    is_stuck: bool = False
    member: dict[int, int] = field(default_factory=dict)
    comm_id: int = 0

    def __post_init__(self) -> None:
        self.member = {rank: n for n, rank in enumerate(self.ranks)}


@dataclass(slots=True)
class Wait:
    """What a program yields: the operations it waits for; `sync` where the CPU waits too, not the device alone."""

    operations: Sequence[Operation]
    sync: bool = True


Program = Generator[Wait, None, None]


@dataclass(slots=True)
class Rank:
    """One process: its clock (seconds since the job began), its program, and where it stands."""

    number: int
    now: float = 0.0
    program: Program | None = None
    wait: Wait | None = None
    is_done: bool = False
    died: float | None = None
    is_ahead: bool = False
    """The device waits for ever, the CPU still issues what stands before its next wait."""
    scheduled: dict[int, int] = field(default_factory=dict)
    """Operations issued while ahead, by number of the communicator."""
    doing: str = ""
    step: int = 0


class Simulation:
    """Runs the programs of all ranks until nobody can go on."""

    def __init__(self, ranks: Sequence[Rank], timeout: float, progress: Callable[[float], None]) -> None:
        self.ranks, self.timeout = ranks, timeout
        self._progress = progress
        self._ready: deque[Rank] = deque()

    def issue(self, rank: Rank, comm: Comm, call: Call, seconds: float) -> Operation | None:
        """Let a rank issue its next operation; None where it only runs ahead of a device that waits for ever."""
        if rank.is_ahead:
            rank.scheduled[comm.number] = rank.scheduled.get(comm.number, 0) + 1
            return None
        seq = comm.count[rank.number] = comm.count.get(rank.number, 0) + 1
        operation = comm.open.get(seq)
        if operation is None:
            operation = comm.open[seq] = Operation(comm, seq)
        operation.issued[rank.number] = (rank.now, call)
        operation.seconds = max(operation.seconds, seconds)
        if operation.is_complete:
            self._complete(operation)
        return operation

    def _complete(self, operation: Operation) -> None:
        comm = operation.comm
        times = [time for time, _ in operation.issued.values()]
        last = max(times)
        if comm.is_stuck or operation.disagrees or last - min(times) > self.timeout:
            comm.is_stuck = True  # in the last case the others have given up before
            return
        operation.end = max(last, comm.last_end) + operation.seconds
        comm.last_end, comm.completed = operation.end, operation.seq
        del comm.open[operation.seq]
        for rank in operation.waiting:
            if rank.wait is not None and all(o.end < NEVER for o in rank.wait.operations):
                self._ready.append(rank)
        operation.waiting.clear()

    def run(self) -> None:
        """Run until every rank is done, dead, or waits for what never comes."""
        self._ready.extend(self.ranks)
        turns = 0
        while self._ready:
            self._advance(self._ready.popleft())
            turns += 1
            if turns % 4096 == 0:
                self._progress(min((r.now for r in self.ranks if not r.is_done), default=0.0))

    def _advance(self, rank: Rank) -> None:
        """Run one rank until it waits for what has not ended."""
        if rank.program is None or rank.is_done:
            return
        if rank.wait is not None:
            rank.now = max([rank.now, *(o.end for o in rank.wait.operations)])
            rank.wait = None
        for wait in rank.program:
            missing = [o for o in wait.operations if o.end == NEVER]
            if missing:
                rank.wait = wait
                for operation in missing:
                    operation.waiting.append(rank)
                return
            if wait.operations:
                rank.now = max([rank.now, *(o.end for o in wait.operations)])
        rank.is_done = True

    def run_ahead(self, rank: Rank) -> None:
        """Let the CPU of a rank that waits for ever issue what stands before its next wait."""
        if rank.program is None or rank.wait is None or rank.wait.sync:
            return
        rank.is_ahead = True
        for wait in rank.program:
            if wait.sync:
                return


def enqueued(comm: Comm, rank: Rank, time: float = NEVER) -> int:
    """Return the number of the last operation that a rank has issued on a communicator by some time."""
    later = sum(o.issued[rank.number][0] > time for o in comm.open.values() if rank.number in o.issued)
    ahead = 0 if later else rank.scheduled.get(comm.number, 0)
    return comm.count.get(rank.number, 0) - later + ahead
