"""Makes the derived tables: what can only be seen over many lines and ranks.

All of it is set-based SQL, one file a topic; the order is that of need.
"""

from duckdb import DuckDBPyConnection

from replay.timeline import clocks, order, states
from replay.timeline.statements import Runner

_FILES = (
    "steps",
    "matched",
    "arrivals",
    "stalls",
    "stats",
    "divergences",
    "about",
    "exits",
    "ranks",
    "observed",
    "outcome",
    "compilers",
    "words",
    "absent",
)


def derive(con: DuckDBPyConnection) -> None:
    """Fill the derived tables from the input and event tables. Needs identify to have run."""
    runner = Runner(con)
    runner.run("survived")
    runner.run("operations")
    clocks.fill(con, runner)
    order.fill(con, runner)
    for name in _FILES:
        runner.run(name)
    states.fill(con, runner)
    runner.run("events")
    runner.drop()
