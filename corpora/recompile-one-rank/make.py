"""Four ranks, inductor, torchrun's own log folders. The last rank meets two longer sentences and recompiles alone."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "4", "--log-dir", "logs", "--redirects", "3"],
        ["train.py"],
        {"TORCH_LOGS": "recompiles,graph_breaks", "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        seconds=300,
    )
