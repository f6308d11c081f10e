"""What the derived tables and what-if cost on large runs: CPU seconds and memory, stage by stage.

    python bench/scale.py [--ranks 1000 --ops 2000] [--hosts 125]

A run that never ran is written as tables, as identify leaves them (tests/made_tables.py): every rank comes to every
operation, with stamps of milliseconds, some ranks late now and then. Then the stages run as `replay` runs them, on a
database on disk with the memory of an ingest. Aim: matched, stalls, states, rules, what-if in 10 s of CPU each, 2 GB.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from made_tables import Delay, Made  # noqa: E402  tests/ is no package

from replay import simulate  # noqa: E402
from replay.expert.engine import diagnose  # noqa: E402
from replay.expert.load import load_rules  # noqa: E402
from replay.store import database, schema  # noqa: E402
from replay.timeline.derive import derive  # noqa: E402
from replay.timeline.states import state_at  # noqa: E402


class Watch:
    """Prints what each stage took."""

    def __init__(self) -> None:
        self._began = time.process_time()

    def lap(self, name: str) -> None:
        """Print the CPU seconds since the last lap, and the most memory so far."""
        now = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {name} | {now - self._began:.1f} | {peak:,.0f} |", flush=True)
        self._began = time.process_time()


def main() -> None:
    """Make the run, run the stages, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=125)
    parser.add_argument("--source", default="app", choices=["app", "nccl-coll"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.duckdb"
        maker = multiprocessing.get_context("fork").Process(target=_make, args=(path, arguments))
        maker.start()  # in a process of its own: what making the run takes is not counted
        maker.join()
        print(f"{arguments.ranks:,} ranks x {arguments.ops:,} operations on {arguments.hosts} hosts\n")
        print("| stage | CPU s | peak MB |\n|---|---|---|")
        with database.rebuilding(path) as con:
            watch = Watch()
            con.execute("BEGIN")
            derive(con, watch.lap)
            con.execute("COMMIT")
            watch.lap("commit")
            diagnose(con, load_rules())
            watch.lap("rules")
        _what_if(path)


def _make(path: Path, arguments: argparse.Namespace) -> None:
    late = tuple(Delay((7 * k) % arguments.ranks, k, 3.0) for k in range(10, arguments.ops, 50))
    made = Made(
        ranks=arguments.ranks, ops=arguments.ops, hosts=arguments.hosts, most_offset=5.0, most_drift=50e-6, delays=late,
        source=arguments.source, has_leave=arguments.source == "app", has_lines=True,
    )  # fmt: skip
    with database.building(path) as con:
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION)})
        made.write(con)


def _what_if(path: Path) -> None:
    with database.open_database(path) as con:
        watch = Watch()
        outcome = simulate.run(con, simulate.Change(as_median=(7,)))
        watch.lap("what-if with a change")
        simulate.run(con, simulate.Change())
        watch.lap("what-if, all causes")
        print(f"\nreplay error {100 * (outcome.replay_error or 0):.2f} %, saved {outcome.saved_s or 0:.1f} s")
        total = state_at(con, con.execute("SELECT (t_first + t_last) / 2 FROM runs").fetchall()[0][0])
        watch.lap(f"state of {len(total):,} ranks at a moment")


if __name__ == "__main__":
    main()
