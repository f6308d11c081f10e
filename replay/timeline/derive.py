"""Makes the derived tables: what can only be seen over many lines and ranks.

All of it is set-based SQL, one file a topic; the order is that of need.
"""

from collections.abc import Callable

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


def derive(con: DuckDBPyConnection, done: Callable[[str], None] = lambda stage: None) -> None:
    """Fill the derived tables from the input and event tables. Needs identify to have run.

    `done` is told the name of each stage when it is over.
    """
    runner = Runner(con)
    runner.run("survived")
    runner.run("operations")
    done("operations")
    clocks.fill(con, runner)
    done("clocks")
    order.fill(con, runner)
    done("order")
    for name in _FILES:
        runner.run(name)
        done(name)
    states.fill(con, runner)
    done("states")
    runner.run("events")
    runner.drop()
    done("events")
