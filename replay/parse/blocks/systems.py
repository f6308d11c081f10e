"""What the system around a run says: schedulers, MPI launchers, pods, shells, and the kernel's log."""

import calendar
import time

from replay.grammar.numbers import integer
from replay.parse.blocks.failing import Saying, log
from replay.parse.model import Sink, Value
from replay.parse.signals import exit_code, of_code, signal_name

_MAX_TASKS = 4096
_ANNOUNCED = {
    "pbs_walltime": "time-limit",
    "lsf_runlimit": "time-limit",
    "lsf_memlimit": "oom-kill",
    "lsf_owner": "cancelled",
    "lsf_preempt": "preemption",
    "lsf_unknown": "unknown",
    "pod_evicted": "eviction",
    "pod_preempted": "preemption",
    "pod_node": "node-failure",
    "slurm_node": "node-failure",
}
_SHELL_WORDS = {
    "shell_killed": "SIGKILL",
    "shell_terminated": "SIGTERM",
    "shell_segv": "SIGSEGV",
    "shell_bus": "SIGBUS",
    "shell_abort": "SIGABRT",
}
_EXITS = {
    "slurm_exit": "slurm",
    "slurm_signal": "slurm",
    "mpi_signal": "mpirun",
    "mpi_abort": "mpirun",
    "hydra_signal": "mpirun",
    "hydra_code": "mpirun",
    "mpi_code": "mpirun",
    "pals_signal": "mpirun",
    "pals_code": "mpirun",
    "pod_code": "kubernetes",
    "pod_command": "kubernetes",
    "shell_signal": "shell",
    "shell_code": "shell",
}


class Schedulers:
    """Rows of exits, signals, memory, peer_losses and log_messages from the family scheduler."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._process: dict[str, str] = {}

    def take(self, saying: Saying) -> None:
        """Take a text of scheduler.lark."""
        record, fields = saying.match.record, saying.fields
        if record in _EXITS:
            self._exits(saying, _EXITS[record])
        elif record in _SHELL_WORDS:
            self._exit(saying, "shell", exit_code(_SHELL_WORDS[record]), signal=_SHELL_WORDS[record])
        elif record in {"mpi_process", "hydra_rank"}:
            self._process = dict(fields)
        elif record == "slurm_cancelled":
            self._announce(saying, _why(fields.get("why", "")))
        elif record in {"slurm_oom", "pod_oom"}:
            self._oom(saying, "slurm" if record == "slurm_oom" else "kubernetes")
        elif record == "pbs_killed":
            self._announce(saying, _why(fields["why"]))
        elif record in _ANNOUNCED:
            self._announce(saying, _ANNOUNCED[record], fields.get("host"))
        elif record == "pod_reason":
            self._reason(saying)
        elif record == "mpi_daemon":
            self._sink.row("peer_losses", saying.segment, kind="remote-exit", layer="agent", text=saying.message)
        else:
            log(self._sink, saying, "scheduler", "error" if "error" in saying.text else "info")

    def close(self) -> None:
        """Nothing is held."""

    def _exits(self, saying: Saying, reporter: str) -> None:
        fields = self._process | saying.fields
        self._process = {}
        signal = signal_name(fields.get("signal_name")) or signal_name(fields.get("signal_word"))
        if signal is None and "signal" in fields:
            signal = signal_name(fields["signal"])
        code = integer(fields.get("code")) if "code" in fields else exit_code(signal)
        common: dict[str, Value] = {
            "of_host": fields.get("host"),
            "of_pid": integer(fields.get("pid")),
            "signal": signal or of_code(code),
        }
        if reporter == "kubernetes" and code == 0:
            return
        for rank in _tasks(fields["tasks"]) if "tasks" in fields else [integer(fields.get("rank"))]:
            self._exit(saying, reporter, code, of_rank=rank, **common)

    def _exit(self, saying: Saying, reporter: str, code: int | None, **columns: Value) -> None:
        self._sink.row("exits", saying.segment, code=code, reporter=reporter, text=saying.message, **columns)

    def _announce(self, saying: Saying, reason: str, host: str | None = None) -> None:
        self._sink.row(
            "signals",
            saying.segment,
            signal="SIGKILL" if reason == "oom-kill" else "SIGTERM",
            direction="announced",
            of_host=host,
            reason=reason,
            text=saying.message,
        )

    def _oom(self, saying: Saying, reporter: str) -> None:
        self._sink.row("memory", saying.segment, kind="host-oom", text=saying.message)
        self._exit(saying, reporter, exit_code("SIGKILL"), signal="SIGKILL")

    def _reason(self, saying: Saying) -> None:
        reason = saying.fields["reason"]
        if reason == "OOMKilled":
            self._oom(saying, "kubernetes")
        elif reason in {"Evicted", "NodeLost", "NodeShutdown", "Preempting", "DeadlineExceeded"}:
            self._announce(saying, _why(reason))
        else:
            log(self._sink, saying, "scheduler")


def _why(text: str) -> str:
    """The reason of a cancellation, in our words; a cancellation without one is somebody's wish."""
    lower = text.lower()
    for word, reason in (
        ("time limit", "time-limit"),
        ("deadline", "time-limit"),
        ("walltime", "time-limit"),
        ("preempt", "preemption"),
        ("node fail", "node-failure"),
        ("nodelost", "node-failure"),
        ("nodeshutdown", "node-failure"),
        ("sister", "node-failure"),
        ("mem", "oom-kill"),
        ("evict", "eviction"),
    ):
        if word in lower:
            return reason
    return "cancelled"


def _tasks(text: str) -> list[int | None]:
    """The numbers of "0-3,5"; at most _MAX_TASKS of them."""
    found: list[int | None] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = integer(first), integer(last or first)
        if low is not None and high is not None:
            found += range(low, min(high, low + _MAX_TASKS) + 1)
    return found[:_MAX_TASKS]


_FAULTS = {"xid": "xid", "sxid": "nvlink", "gpu_lost": "lost", "api_mismatch": "driver", "hardware": "ecc"}
_MONTHS = {name: n for n, name in enumerate(list(calendar.month_abbr)[1:], start=1)}


class Kernel:
    """Rows of device_faults, exits, memory, crashes and log_messages from the family kernel."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def take(self, saying: Saying) -> None:
        """Take a text of kernel.lark."""
        record, fields, times = saying.match.record, saying.fields, _times(saying.fields)
        if record in _FAULTS:
            self._sink.row(
                "device_faults",
                saying.segment,
                kind=_FAULTS[record],
                code=integer(fields.get("code")),
                bus_id=_packed(fields.get("bus_id")),
                text=saying.message,
                **times,
            )
        elif record == "oom_killed":
            self._sink.row("memory", saying.segment, kind="host-oom", text=saying.message, **times)
            self._ended(saying, "SIGKILL", times)
        elif record in {"segfault", "trap"}:
            signal = "SIGSEGV" if record == "segfault" or "protection" in fields.get("what", "") else "SIGILL"
            self._sink.row("crashes", saying.segment, signal=signal, text=saying.message, **times)
            self._ended(saying, signal, times)
        elif record != "known":
            log(self._sink, saying, "kernel", "error" if record in {"blocked", "amdgpu"} else "warning")

    def close(self) -> None:
        """Nothing is held."""

    def _ended(self, saying: Saying, signal: str, times: dict[str, Value]) -> None:
        self._sink.row(
            "exits",
            saying.segment,
            of_pid=integer(saying.fields["pid"]),
            of_host=saying.fields.get("host"),
            code=exit_code(signal),
            signal=signal,
            reporter="kernel",
            text=saying.message,
            **times,
        )


def _packed(bus_id: str | None) -> str | None:
    """A PCI bus id as NCCL prints it, so that a fault finds its rank: "0000:52:00" and "0000:52:00.0" are 52000."""
    if bus_id is None:
        return None
    place, _, function = bus_id.partition(".")
    number = integer(place.replace(":", "") + (function or "0"), base=16)
    return None if number is None else f"{number:x}"


def _times(fields: dict[str, str]) -> dict[str, Value]:
    """The stamp of dmesg -T and syslog, in seconds; nothing where the line has only the time since boot."""
    month = _MONTHS.get(fields.get("month", ""))
    if month is None or "clock" not in fields:
        return {}
    year = integer(fields.get("year")) or time.gmtime().tm_year
    hours, minutes, seconds = (int(part) for part in fields["clock"].split(":"))
    t = float(calendar.timegm((year, month, int(fields["day"]), hours, minutes, seconds)))
    return {"t_lo": t, "t_hi": t + 1}
