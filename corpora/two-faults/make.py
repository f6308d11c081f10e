"""Four ranks, a file each. Rank 3 reads slowly at every step; rank 1 meets a file that is not there, at step 14."""

from pathlib import Path

from launch import one_file_per_rank


def run(work: Path) -> None:
    one_file_per_rank(work, 4, "rank{rank}.log", ["train.py"], seconds=180)
