"""Runs a script that this tool wrote: a process group of its own, bounds on time, memory and files, loopback only.

The bounds are the kernel's, set between fork and exec. A network namespace takes all but loopback away where the kernel
lets this user make one; elsewhere the script's own settings keep it to loopback.
"""

import ctypes
import fcntl
import importlib.util
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from replay.errors import CannotTell

_NEW_NET, _NEW_USER = 0x40000000, 0x10000000
_SET_FLAGS, _UP_RUNNING = 0x8914, 0x41
_ALONE = b"alone"
_TAIL_BYTES = 2000
_GIVEN = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run. `memory`: address space of each process in bytes; None: not bounded (CUDA maps far more)."""

    seconds: float = 120.0
    memory: int | None = 24 * 2**30
    file_bytes: int = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: exit code (negative for a signal, None where the time was up), seconds, last output."""

    code: int | None
    seconds: float
    tail: str
    alone: bool = False
    """Whether it had a network of its own, with loopback only."""

    @property
    def network(self) -> str:
        """What of the network it could reach, in words."""
        return "loopback only" if self.alone else "the network was not taken away: the kernel lets this user make none"


def torch_version() -> str | None:
    """Return the version of the installed torch without importing it; None where there is none."""
    if importlib.util.find_spec("torch") is None:
        return None
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - only where torch is there

    try:
        return version("torch")
    except PackageNotFoundError:
        return "unknown"


def needs_torch() -> str:
    """Return the version of torch.

    Raises CannotTell if torch is not installed.
    """
    found = torch_version()
    if found is None:
        raise CannotTell("running a script needs torch: pip install 'torchreplay[repro]'")
    return found


def has_cuda() -> bool:
    """Return whether a driver shows a GPU; torch need not be imported for it."""
    return Path("/proc/driver/nvidia/gpus").is_dir() or Path("/dev/nvidia0").exists()


def run(
    script: Path, work: Path, limits: Limits, env: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> Ended:
    """Run a script in the folder `work`; what its launcher prints goes to logs/console.log there.

    Everything that it started is gone when this returns, also after an interrupt.
    """
    console = work / "logs" / "console.log"
    console.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    heard, tells = os.pipe()  # the child says over it whether it left the network; exec closes its end
    with console.open("wb") as output, os.fdopen(heard, "rb") as answer:
        try:
            process = subprocess.Popen(
                [sys.executable, str(script.resolve()), *arguments],
                cwd=work,
                env=_environment(work) | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _confine(limits, tells),  # noqa: PLW1509 - no threads yet, and only system calls in it
            )
        finally:
            os.close(tells)
        try:
            code: int | None = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        alone = answer.read() == _ALONE
    return Ended(code, time.monotonic() - began, _tail([console, *sorted(work.glob("logs/**/rank*.log"))]), alone)


def _environment(work: Path) -> dict[str, str]:
    given = {name: os.environ[name] for name in _GIVEN if name in os.environ}
    return given | {
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(work / "cache"),
        "TRITON_CACHE_DIR": str(work / "cache" / "triton"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(files: Sequence[Path]) -> str:
    """The last words of the file that has any, the launcher's first."""
    for file in files:
        data = file.read_bytes()[-_TAIL_BYTES:].strip()
        if data:
            return data.decode(errors="replace")
    return ""


def _confine(limits: Limits, tells: int) -> None:
    """Bound this process and all that come of it; say over a pipe whether it has loopback only."""
    seconds = int(limits.seconds) + 1
    bounds = [(resource.RLIMIT_CPU, 4 * seconds), (resource.RLIMIT_FSIZE, limits.file_bytes), (resource.RLIMIT_CORE, 0)]
    if limits.memory is not None:
        bounds.append((resource.RLIMIT_AS, limits.memory))
    for what, most in bounds:
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    with suppress(OSError):
        _loopback_only()
        os.write(tells, _ALONE)


def _loopback_only() -> None:
    """Leave all networks but a loopback of its own. Raises OSError where the kernel does not allow it."""
    if not sys.platform.startswith("linux"):
        raise OSError("only Linux has networks of a process's own")
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NET) != 0:
        if libc.unshare(_NEW_NET | _NEW_USER) != 0:
            raise OSError(ctypes.get_errno(), "no network of its own")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_RUNNING))
