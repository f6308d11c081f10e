"""What launchers say of the end: torchrun's agent with its table of failures, and Slurm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from replay.synth.inverse import line
from replay.synth.torch_lines import Torch

_SIGNALS = {-6: "SIGABRT", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}
_SPOKEN = {-6: "Aborted", -9: "Killed", -11: "Segmentation fault", -15: "Terminated"}
_API = "torch/distributed/elastic/multiprocessing/api.py"
_PACKAGES = "/opt/venv/lib/python3.11/site-packages"
_FRAMES = (
    ("/opt/venv/bin/torchrun", 8, "<module>", "sys.exit(main())"),
    (
        f"{_PACKAGES}/torch/distributed/elastic/multiprocessing/errors/__init__.py",
        355,
        "wrapper",
        "return f(*args, **kwargs)",
    ),
    (f"{_PACKAGES}/torch/distributed/run.py", 919, "main", "run(args)"),
    (f"{_PACKAGES}/torch/distributed/run.py", 910, "run", "elastic_launch("),
    (
        f"{_PACKAGES}/torch/distributed/launcher/api.py",
        138,
        "__call__",
        "return launch_agent(self._config, self._entrypoint, list(args))",
    ),
    (f"{_PACKAGES}/torch/distributed/launcher/api.py", 269, "launch_agent", "raise ChildFailedError("),
)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: exit code (negative: the signal), and when on its host's clock."""

    rank: int
    local_rank: int
    pid: int
    host: str
    code: int
    time: float


def sending(torch: Torch, at: float, agent: int, pid: int) -> str:
    """The agent stops a worker."""
    text = line("launcher", "sending", pid=pid, signal="SIGTERM", saying="closing signal")
    return torch.python(at, None, "W", agent, path=_API, lineno=897, text=text)


def failed(torch: Torch, at: float, agent: int, exits: Sequence[Exit]) -> Iterator[str]:
    """The agent's last words: which worker it saw fail first, and the table of all.

    `exits` are in the order of their times.
    """
    first = exits[0]
    text = line(
        "launcher",
        "failed",
        code=first.code,
        local_rank=first.local_rank,
        pid=first.pid,
        _kind="binary",
        target="/opt/venv/bin/python3.11",
    )
    yield torch.python(at, None, "E", agent, path=_API, lineno=869, text=text)
    yield line("python", "traceback")
    for file, number, name, source in _FRAMES:
        yield f'  File "{file}", line {number}, in {name}'
        yield f"    {source}"
    yield line("python", "raised_child", keep=frozenset({" "}))
    rule, thin = "=" * 60, "-" * 60
    yield rule
    yield line("launcher", "table_title", _name="train.py")
    yield thin
    yield line("launcher", "table_failures", saying="Failures:")
    if len(exits) == 1:
        yield line("launcher", "table_none")
    for n, item in enumerate(exits[1:], 1):
        yield from _item(torch, n, item)
    yield thin
    yield line("launcher", "table_root", saying="(first observed failure)")
    yield from _item(torch, 0, first)
    yield rule


def _item(torch: Torch, number: int, item: Exit) -> Iterator[str]:
    moment = torch.start + timedelta(seconds=item.time)
    signal = _SIGNALS.get(item.code)
    tail = f"  ({signal})" if signal and torch.version >= (2, 5) else " " if not signal else None
    told = (
        f"Signal {-item.code} ({signal}) received by PID {item.pid}"
        if signal
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    yield line("launcher", "table_item", number=number)
    yield line("launcher", "table_time", date=f"{moment:%Y-%m-%d}", clock=f"{moment:%H:%M:%S}", runs=(6,))
    yield line("launcher", "table_host", host=item.host, runs=(6,))
    yield line("launcher", "table_rank", rank=item.rank, local_rank=item.local_rank, runs=(6,))
    yield line("launcher", "table_code", code=item.code, pid=item.pid, _tail=tail, runs=(2,))
    yield line("launcher", "table_file", file="<N/A>")
    yield line("launcher", "table_text", text=told, runs=(1,), saying="traceback")


def heartbeat_lost(torch: Torch, at: float, agent: int, node: str) -> str:
    """The host of the rendezvous is gone."""
    text = line(
        "launcher",
        "agent_lost",
        node=f"{node}_{agent}_0",
        rendezvous="job4821",
        error="RendezvousConnectionError",
        saying="heartbeat",
    )
    path = "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py"
    return torch.python(at, None, "W", agent, path=path, lineno=1267, text=text)


def slurm_exit(host: str, tasks: Sequence[int], code: int) -> str:
    """srun: how tasks of a host ended."""
    many = frozenset({"s"}) if len(tasks) > 1 else frozenset[str]()
    named = _ranges(tasks)
    if code < 0:
        dumped = frozenset({" (core dumped)"}) if code in (-6, -11) else frozenset[str]()
        return line("scheduler", "slurm_signal", host=host, tasks=named, signal_name=_SPOKEN[code], keep=many | dumped)
    return line("scheduler", "slurm_exit", host=host, tasks=named, code=code, keep=many)


def _ranges(tasks: Sequence[int]) -> str:
    """Tasks as Slurm writes them: 0-3,5."""
    found: list[list[int]] = []
    for task in tasks:
        if found and found[-1][1] == task - 1:
            found[-1][1] = task
        else:
            found.append([task, task])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def slurm_cancelled(torch: Torch, at: float, host: str, why: str | None) -> str:
    """slurmstepd: the step ends on a host."""
    moment = torch.start + timedelta(seconds=at)
    stamp = f"{moment:%Y-%m-%dT%H:%M:%S}"
    return line(
        "scheduler", "slurm_cancelled", _stepd="slurmstepd: ", _job="STEP 48213.0", host=host, at=stamp, why=why
    )


def slurm_node_failed(host: str) -> str:
    """srun: the controller gave a node up."""
    return line("scheduler", "slurm_node", host=host)


def slurm_aborted() -> str:
    """srun: the step is about to be ended."""
    tail = "Waiting up to 32 seconds for job step to finish."
    return line("scheduler", "slurm_known", _tail=tail, saying="Job step aborted")
