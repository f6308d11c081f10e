"""Three ranks with a file each. Rank 2 has nine batches, its peers ten: they wait in the tenth until the timeout."""

from pathlib import Path

from launch import one_file_per_rank


def run(work: Path) -> None:
    one_file_per_rank(work, 3, "node0/rank_{rank}.log", ["train.py"], seconds=60)
