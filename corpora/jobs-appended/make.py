"""One file to which each job appends, as `>> job.log` does: the first loses rank 2, the second runs to its end."""

import sys
from pathlib import Path

from launch import free_port, start, wait


def run(work: Path) -> None:
    for job in ("1", "2"):
        group = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "JOB": job}
        command = [sys.executable, "-m", "torch.distributed.run", "--master-addr", "127.0.0.1"]
        command += ["--master-port", str(free_port()), "--nproc-per-node", "3", "train.py"]
        wait([start(work, command, group, work / "logs" / "job.log")], 120)
