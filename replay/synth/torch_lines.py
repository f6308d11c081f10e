"""Lines of torch in the form of one version: headers and the watchdog.

What changed when is told in the grammars; here stands which form a version writes. Line numbers of C++ files are those
that real logs of the version show, or near them: nothing may depend on them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from replay.synth.inverse import line

_SPACE = frozenset({" "})
_LINES = {  # watchdog, status, terminated
    (2, 0): (458, 474, 915),
    (2, 1): (475, 489, 916),
    (2, 2): (523, 1182, 1153),
    (2, 3): (563, 1537, 1414),
    (2, 4): (607, 1664, 1709),
    (2, 5): (616, 1785, 1834),
    (2, 6): (629, 2168, 1895),
    (2, 7): (632, 2271, 1973),
    (2, 8): (655, 2299, 2057),
    (2, 9): (683, 2241, 2057),
    (2, 12): (757, 2395, 2116),
}

_LIB = "/opt/venv/lib/python3.11/site-packages/torch/lib"
_FRAMES = (
    ("c10::Error::Error(c10::SourceLocation, std::string) + 0x96", f"{_LIB}/libc10.so"),
    ("c10d::ProcessGroupNCCL::watchdogHandler() + 0x233", f"{_LIB}/libtorch_cuda.so"),
    ("c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x14d", f"{_LIB}/libtorch_cuda.so"),
    ("<unknown function> + 0xdbbf4", "/lib/x86_64-linux-gnu/libstdc++.so.6"),
)
_STACK = (
    "all_reduce from /opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:2776",
    "main from /workspace/train.py:211",
    "<module> from /workspace/train.py:248",
)
_LIKELY = (
    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the order of"
    " collectives is not same for all ranks or the scheduled collective, for some reason, didn't run."
)


def numbers(version: str) -> tuple[int, ...]:
    """Return the parts of a version, so that versions can be compared."""
    return tuple(int(part) for part in version.split("."))


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as one of its members names it."""

    number: int
    guid: str
    desc: str
    rank: int


@dataclass(frozen=True, slots=True)
class Work:
    """A collective of a process group, and how far this member is."""

    seq: int
    op: str
    numel_in: int
    numel_out: int
    timeout_ms: int
    ran_ms: int
    last_enqueued: int
    last_completed: int


class Torch:
    """Writes torch's lines. Times are seconds since `start` on the clock of the writer's host."""

    def __init__(self, version: str, start: datetime) -> None:
        self.version = numbers(version)[:2]
        self.start = start
        self.lines = _LINES[max(v for v in _LINES if v <= self.version)]

    def moment(self, seconds: float) -> datetime:
        """Return the wall clock's time."""
        return self.start + timedelta(seconds=seconds)

    # ---- headers

    def cpp(self, at: float, rank: int | None, lineno: int, text: str) -> str:
        """An error of torch's C++ side."""
        shown = rank if self.version >= (2, 2) else None
        if self.version < (2, 4):
            return line(
                "headers", "c10_bare", rank=shown, level="E", cpp_file="ProcessGroupNCCL.cpp", lineno=lineno, text=text
            )
        moment = self.moment(at)
        fraction = int((at * 1.000013 + 0.371) % 1 * 1e9)  # of another clock than the second
        return line(
            "headers",
            "c10_stamped",
            rank=shown,
            level="E",
            mdd=f"{moment.month}{moment.day:02}",
            clock_whole=f"{moment:%H:%M:%S}",
            monotonic=f"{fraction:09}",
            cpp_file="ProcessGroupNCCL.cpp",
            lineno=lineno,
            text=text,
        )

    def python(
        self,
        at: float,
        rank: int | None,
        level: str,
        pid: int,
        *,
        path: str,
        lineno: int,
        text: str,
        trace_id: str | None = None,
        artifact: str | None = None,
    ) -> str:
        """A line of torch's Python side; `path` is relative to the package, with a slash."""
        moment = self.moment(at)
        milli = moment.microsecond // 1000
        if self.version < (2, 1) and rank is None:
            return line(
                "headers", "torch_basic", level_name=_name(level), torch_logger=_logger(path), text=text or None
            )
        if self.version < (2, 3):
            return line(
                "headers",
                "torch_dated",
                rank=rank,
                date=f"{moment:%Y-%m-%d}",
                clock=f"{moment:%H:%M:%S},{milli:03}",
                trace_id=trace_id,
                logger=_logger(path),
                artifact=artifact,
                level_name=_name(level),
                text=text or None,
                keep=_SPACE if not text else frozenset(),
            )
        return line(
            "headers",
            "torch_glog",
            rank=rank,
            level=level,
            mmdd=f"{moment:%m%d}",
            clock=f"{moment:%H:%M:%S}.{milli:03}000",
            id=pid if self.version >= (2, 5) else 139_000_000_000_000 + pid,
            path=path,
            lineno=lineno,
            trace_id=trace_id,
            artifact=artifact,
            text=text or None,
            runs=(1,),
        )

    def ranked(self, rank: int, text: str) -> str:
        """A line of an uncaught exception's traceback."""
        if self.version < (2, 3):
            return text
        return line("wrappers", "torch_rank", rank=rank, text=text or None, keep=_SPACE)

    # ---- the watchdog of a collective

    def _who(self, group: Group) -> dict[str, object]:
        if self.version < (2, 2):
            return {"group_rank": group.rank}
        if self.version < (2, 5):
            desc = group.desc if self.version >= (2, 4) and group.desc else None
            return {"group": group.guid, "desc": desc, "group_rank": group.rank}
        return {"_pg_id": f"{group.number} ", "group": group.guid, "desc": group.desc or None, "group_rank": group.rank}

    def _told(
        self, record: str, group: Group, spaces: int = 1, saying: str = "", blanks: int = 1, **fields: object
    ) -> str:
        """A message that its group speaks; the decisions are those of this version's speaker. `spaces` stand behind the
        speaker, `blanks` before whom a signal came from.
        """
        keep = {"GUID ", "ID "} if self.version >= (2, 5) else {" "}
        who = self._who(group)
        return line("c10d", record, {**who, **fields}, keep=frozenset(keep), runs=(spaces, blanks), saying=saying)

    def _work(self, work: Work) -> dict[str, object]:
        sized = self.version >= (2, 1)
        return {
            "_backend": "NCCL",
            "seq": work.seq,
            "op": work.op,
            "numel_in": work.numel_in if sized else None,
            "numel_out": work.numel_out if sized else None,
            "timeout_ms": work.timeout_ms,
            "ran_ms": work.ran_ms,
            "_tail": ".",
        }

    def timed_out(self, group: Group, work: Work) -> str:
        """What the watchdog found."""
        return line("c10d", "watchdog_timeout", self._work(work), group_rank=group.rank, runs=(1,))

    def watchdog(self, at: float, rank: int, group: Group, work: Work, recorder: bool) -> Iterator[str]:
        """The first lines of a rank whose collective timed out."""
        caught, status, _ = self.lines
        yield self.cpp(at, rank, caught, self.timed_out(group, work))
        last = {"seq": work.seq, "last_enqueued": work.last_enqueued, "last_completed": work.last_completed}
        if self.version >= (2, 6):
            status_text = self._told("watchdog_status", group, 2, saying="failure detected", **last)
            yield self.cpp(at + 0.004, rank, status, status_text)
            if recorder:
                yield self.cpp(at + 0.005, rank, caught + 44, line("c10d", "stack_head", keep=_SPACE))
                for number, frame in enumerate(_STACK):
                    yield line("cpp_message", "known", uint=number, _tail=frame, saying="#")
                yield ""
            else:
                hint = (
                    ", potentially because FlightRecorder is disabled. You can enable it by setting"
                    " TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value."
                )
                yield self.cpp(at + 0.005, rank, caught + 38, line("c10d", "no_stack", _tail=hint))
        elif self.version >= (2, 3):
            status_text = self._told("watchdog_status", group, 1, saying="(either an error or timeout)", **last) + "."
            yield self.cpp(at + 0.004, rank, status, status_text)
        if self.version >= (2, 5):
            yield self.cpp(at + 0.006, rank, status + 337, self._told("dump_first", group))
            yield self.cpp(at + 0.010, rank, status - 408, self._own_signal(group, work))
            prepare = (
                " Include stack trace: 1, only active collectives: 0"
                if self.version >= (2, 8)
                else " Include stack trace: 1"
            )
            yield self.cpp(at + 0.011, rank, status - 695, self._told("dump_prepare", group, _tail=prepare))

    def _own_signal(self, group: Group, work: Work) -> str:
        return self._told(
            "dump_signal_own",
            group,
            _plain=("dump signal due to a collective timeout", "we will try our best to "),
            last_enqueued=work.last_enqueued,
            last_completed=work.last_completed,
            _tail=_LIKELY,
        )

    def signalled(
        self, at: float, rank: int, group: Group, *, from_rank: int, enqueued: int, completed: int
    ) -> Iterator[str]:
        """What a rank prints whose peers timed out while it was in no collective (2.5 and later)."""
        if self.version < (2, 5):
            return
        status = self.lines[1]
        yield self.cpp(at, rank, status - 447, self._told("dump_observed", group))
        signal = self._told(
            "dump_signal",
            group,
            blanks=2,
            _plain=("dump signal due to a collective timeout", "we will try our best to "),
            from_rank=from_rank,
            last_enqueued=enqueued,
            last_completed=completed,
            _tail=_LIKELY,
        )
        yield self.cpp(at + 0.004, rank, status - 383, signal)
        yield self.cpp(
            at + 0.005, rank, status - 666, self._told("dump_prepare", group, _tail=" Include stack trace: 1")
        )

    def given_up(self, at: float, rank: int, group: Group, cause: str, where: str = "checkTimeout") -> Iterator[str]:
        """The end of a process whose watchdog raises: `cause` is what it found."""
        caught, _, ended = self.lines
        some = (
            " Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on"
            " corrupted/incomplete data."
        )
        if self.version < (2, 1):
            some += " To avoid data inconsistency, we are taking the entire process down."
        whom = None if self.version[:2] == (2, 1) else group.rank
        yield self.cpp(at, rank, caught + 14, line("c10d", "aftermath", group_rank=whom, _tail=some, runs=(1,)))
        if self.version >= (2, 1):
            down = line("c10d", "aftermath", group_rank=whom, runs=(1,), saying="entire process down")
            yield self.cpp(at + 0.001, rank, caught + 20, down)
        if self.version < (2, 2):
            text = line("c10d", "watchdog_died", group_rank=group.rank, cause=cause, runs=(1,))
        else:
            wording = "NCCL watchdog" if self.version < (2, 3) else "Process group watchdog"
            text = self._told("watchdog_died", group, saying=wording, cause=cause)
        yield self.cpp(at + 0.003, rank, ended, text)
        place = f"../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{caught + 2}"
        yield line(
            "cpp_message", "known", _tail=f"{where} at {place} (most recent call first):", saying="Exception raised"
        )
        for number, (symbol, library) in enumerate(_FRAMES):
            yield line(
                "cpp_message", "known", uint=number, _tail=f"{symbol} (0x7f483a50dd23 in {library})", saying="frame #"
            )
        yield ""
        thrown = "std::runtime_error" if self.version < (2, 1) else "c10::DistBackendError"
        yield line("python", "terminate", type=thrown)
        yield line("python", "what", runs=(2, 2), what=text)


def _name(level: str) -> str:
    return {"V": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "CRITICAL"}[level]


def _logger(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def whole_ms(seconds: float) -> int:
    """Return milliseconds, rounded up as a timer that has expired shows them."""
    return math.ceil(seconds * 1000)
