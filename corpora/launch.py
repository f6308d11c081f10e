"""Starts a trainer on several processes of this machine and keeps what they print: loopback only, bounded in time."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def torchrun(
    work: Path, options: Sequence[str], train: Sequence[str], env: Mapping[str, str], *, seconds: float
) -> int:
    """Run `torchrun OPTIONS TRAIN` in `work`; what the launcher itself prints goes to logs/console.log."""
    command = [sys.executable, "-m", "torch.distributed.run", "--master-addr", "127.0.0.1"]
    command += ["--master-port", str(free_port()), *options, *train]
    return wait([start(work, command, env, work / "logs" / "console.log")], seconds)[0]


def one_file_per_rank(work: Path, ranks: int, name: str, train: Sequence[str], *, seconds: float) -> list[int]:
    """Start the ranks as a shell loop would, stdout and stderr of each in logs/NAME with {rank} filled in."""
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    running = [
        start(
            work,
            [sys.executable, *train],
            {**group, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            work / "logs" / name.format(rank=rank),
        )
        for rank in range(ranks)
    ]
    return wait(running, seconds)


def start(work: Path, command: Sequence[str], env: Mapping[str, str], output: Path) -> subprocess.Popen[bytes]:
    """Start one process in a session of its own, with its output in one file."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    local = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(work / "cache")}
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file:
        return subprocess.Popen(
            command,
            cwd=work,
            env={**clean, **local, **env},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait(running: Sequence[subprocess.Popen[bytes]], seconds: float) -> list[int]:
    """Return the exit codes; a process that is still there after `seconds` is killed with all it started."""
    try:
        return [process.wait(seconds) for process in running]
    finally:
        for process in running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
