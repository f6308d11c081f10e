"""Three ranks started by a shell loop. Rank 1 skips the gradient sum of iteration 7 and is one short from there on."""

from pathlib import Path

from launch import one_file_per_rank


def run(work: Path) -> None:
    one_file_per_rank(work, 3, "worker-{rank}.out", ["train.py"], seconds=60)
