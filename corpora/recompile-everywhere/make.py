"""The run of recompile-one-rank with shards sorted by length: two ranks recompile together, nobody waits."""

from pathlib import Path

from launch import torchrun

TRAINER_OF = "recompile-one-rank"


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "2", "--log-dir", "logs", "--redirects", "3"],
        ["train.py", "--sorted"],
        {"TORCH_LOGS": "+recompiles", "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        seconds=300,
    )
