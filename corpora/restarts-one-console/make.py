"""Three ranks, restarted twice by torchrun; all attempts of all ranks in one console. Rank 1 fails each time."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    options = ["--nproc-per-node", "3", "--max-restarts", "2", "--monitor-interval", "0.5"]
    torchrun(work, [*options, "--log-dir", "kept", "--tee", "3"], ["train.py"], {}, seconds=180)
