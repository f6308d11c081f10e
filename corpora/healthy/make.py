"""Three ranks on one console as torchrun's --tee shows it, all of torch's messages on. Nothing is wrong."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "3", "--tee", "3", "--log-dir", "logs"],
        ["train.py"],
        {"TORCH_LOGS": "recompiles,graph_breaks", "TORCH_DISTRIBUTED_DEBUG": "INFO"},
        seconds=120,
    )
