"""Three ranks on one console without a launcher's prefix. Rank 1 gets a SIGKILL; its peers lose the connection."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(work, ["--nproc-per-node", "3"], ["train.py"], {}, seconds=120)
