"""What one diagnosis of a small run costs: CPU seconds of the whole command, start-up included, beside its peers.

    python bench/case.py [LOGS] [--runs N]

LOGS is the demo's corpus unless given. A figure is user plus system time of the child and of what it started, median
of N runs; each peer is measured in the same breath, so that a slow or busy machine shows in all of them. The last
column is the ratio to `import duckdb`, the least that any tool on this engine can cost.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
DUCKDB = "import duckdb; duckdb.connect().execute('select 1')"
SPLIT = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    path.is_file() and path.read_bytes().split(b"\\n")
"""


def cpu_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Return user plus system seconds of `command`. Raises SystemExit if it fails."""
    child = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}: {said.decode(errors='replace')[-300:]}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("logs", nargs="?", type=Path, default=HERE.parent / "corpora" / "recompile-one-rank" / "logs")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    logs = str(arguments.logs.resolve())
    size = sum(path.stat().st_size for path in Path(logs).rglob("*") if path.is_file())
    replay = [sys.executable, "-m", "replay.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REPLAY_CACHE_DIR": f"{folder}/cache"}
        fresh = (f"{folder}/{number}.duckdb" for number in itertools.count())
        commands = {
            "python -c pass": lambda: [sys.executable, "-c", "pass"],
            "read and split every line": lambda: [sys.executable, "-c", SPLIT, logs],
            "import duckdb": lambda: [sys.executable, "-c", DUCKDB],
            "replay --help": lambda: [*replay, "--help"],
            "replay diagnose, first time": lambda: [*replay, "diagnose", logs, "--db", next(fresh)],
            "replay diagnose, again": lambda: [*replay, "diagnose", logs, "--db", f"{folder}/same.duckdb"],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        cpu_seconds(commands["replay diagnose, again"](), environment)
        for _ in range(arguments.runs):
            for name, command in commands.items():
                taken[name].append(cpu_seconds(command(), environment))
    median = {name: statistics.median(seconds) for name, seconds in taken.items()}
    print(f"{logs}: {size / 1000:.0f} kB, median of {arguments.runs} runs")
    print(f"{'':32}{'CPU s':>8}{'ratio':>8}")
    for name, seconds in median.items():
        print(f"{name:32}{seconds:8.2f}{seconds / median['import duckdb']:8.1f}")


if __name__ == "__main__":
    main()
