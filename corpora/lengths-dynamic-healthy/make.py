"""The run of recompile-one-rank with the length marked dynamic: the same sentences, nobody recompiles, nobody waits."""

from pathlib import Path

from launch import torchrun

TRAINER_OF = "recompile-one-rank"


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "4", "--log-dir", "logs", "--redirects", "3"],
        ["train.py", "--mark-dynamic"],
        {"TORCH_LOGS": "recompiles,graph_breaks", "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        seconds=300,
    )
