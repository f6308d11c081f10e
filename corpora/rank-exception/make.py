"""Four ranks with @record, so that torchrun keeps an error.json. Rank 2's loader raises, its peers lose it."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(work, ["--nproc-per-node", "4", "--log-dir", "logs", "--redirects", "3"], ["train.py"], {}, seconds=120)
