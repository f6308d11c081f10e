"""Three ranks under TORCH_DISTRIBUTED_DEBUG=DETAIL. Rank 2 gathers 39 scores where its peers gather 40."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "3", "--log-dir", "logs", "--redirects", "3"],
        ["train.py"],
        {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        seconds=120,
    )
