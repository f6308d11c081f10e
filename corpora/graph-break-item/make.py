"""Two ranks, metrics as JSON lines, graph breaks logged. The model fetches a value with .item() in the middle."""

from pathlib import Path

from launch import torchrun


def run(work: Path) -> None:
    torchrun(
        work,
        ["--nproc-per-node", "2", "--log-dir", "logs", "--redirects", "3"],
        ["train.py"],
        {"TORCH_LOGS": "graph_breaks,recompiles"},
        seconds=120,
    )
