"""How much NCCL logs: `python bench/nccl_log_volume.py FOLDER --write`.

FOLDER holds logs of NCCL's wheels by version: VERSION_fk8_info_default.log, eight ranks that set up one communicator
with NCCL_DEBUG=INFO and end, and VERSION_fk4_graph_tuning_coll.log, which holds lines of COLL. The wheels ran without
a GPU (CUDA stood in for), so times are not real; what is printed is. Writes rules/knowledge/nccl_log_volume.csv, which
`replay env` shows.
"""

import argparse
import csv
import sys
from pathlib import Path

PLACE = Path(__file__).parent.parent / "rules" / "knowledge" / "nccl_log_volume.csv"
RANKS = 8


def main() -> None:
    """Measure and print, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for path in arguments.folder.glob("*_fk8_info_default.log"):
        version = path.name.partition("_")[0]
        data = path.read_bytes()
        other = path.with_name(f"{version}_fk4_graph_tuning_coll.log")
        calls = [line for line in other.read_bytes().split(b"\n") if b": opCount " in line] if other.is_file() else []
        per_call = round(sum(len(line) + 1 for line in calls) / len(calls)) if calls else ""
        rows.append({
            "nccl": version, "ranks": RANKS, "bytes_per_rank": round(len(data) / RANKS),
            "lines_per_rank": round(data.count(b"\n") / RANKS), "bytes_per_operation": per_call,
        })  # fmt: skip
    rows.sort(key=lambda row: [int(part) for part in str(row["nccl"]).split(".")])
    target = PLACE.open("w", newline="") if arguments.write else sys.stdout
    writer = csv.DictWriter(target, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main()
