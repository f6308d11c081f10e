"""Three ranks with a file each. Rank 1 reads its data 0.35 s longer than its peers, at every step."""

from pathlib import Path

from launch import one_file_per_rank


def run(work: Path) -> None:
    one_file_per_rank(work, 3, "train_rank{rank}.txt", ["train.py"], seconds=60)
