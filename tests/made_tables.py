"""Runs that never ran, as tables: ranks that work, meet in collectives and write stamps by clocks that are off.

What identify leaves is made here without any file, so that a stage is tested on its own, with the truth known.
"""

from dataclasses import dataclass, field

import duckdb
import numpy as np

from replay.store import schema

START = 1_800_000_000.0


@dataclass(frozen=True)
class Delay:
    """Seconds that a rank works longer before an operation."""

    rank: int
    nth: int
    seconds: float


@dataclass
class Made:
    """A run with its truth: times in seconds of true time, by rank and operation."""

    ranks: int
    ops: int
    hosts: int = 1
    seed: int = 0
    work_s: float = 0.05
    jitter: float = 0.1
    latency_s: float = 0.0005
    most_offset: float = 0.0
    most_drift: float = 0.0
    resolution: float = 1e-3
    delays: tuple[Delay, ...] = ()
    source: str = "app"
    has_leave: bool = True
    unstamped: tuple[int, ...] = ()
    has_lines: bool = False
    enter: np.ndarray = field(init=False)
    leave: np.ndarray = field(init=False)
    offset: np.ndarray = field(init=False)
    drift: np.ndarray = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        self.host = np.arange(self.ranks) * self.hosts // self.ranks
        self.offset = rng.uniform(-self.most_offset, self.most_offset, self.hosts)
        self.drift = rng.uniform(-self.most_drift, self.most_drift, self.hosts)
        self.offset[0] = self.drift[0] = 0.0
        work = self.work_s * (1 + self.jitter * rng.standard_exponential((self.ops, self.ranks)))
        for delay in self.delays:
            work[delay.nth, delay.rank] += delay.seconds
        self.enter, self.leave = np.empty_like(work), np.empty_like(work)
        free = np.zeros(self.ranks)
        late = self.latency_s * (1 + rng.standard_exponential((self.ops, self.ranks)))
        for k in range(self.ops):
            self.enter[k] = free + work[k]
            free = self.enter[k].max() + late[k]
            self.leave[k] = free

    def ahead(self, t):
        """Clock reading minus true time [s] of each host at the true time t since the start."""
        return self.offset + self.drift * t

    def stamp(self, t):
        """What lines of all ranks are stamped with, of true times [operation, rank]."""
        reading = t + (self.offset[self.host] + self.drift[self.host] * t)
        return START + np.floor(reading / self.resolution) * self.resolution

    def write(self, con=None):
        """Return a database of this run as identify leaves it; `con` is one with all tables, none: in memory."""
        if con is None:
            con = duckdb.connect()
            schema.create(con)
        ranks, n = np.arange(self.ranks), self.ops
        known = ~np.isin(ranks, self.unstamped)
        names = np.array([f"node{h:04}" for h in range(self.hosts)], object)[self.host]
        enter, leave = self.stamp(self.enter), self.stamp(self.leave)
        first, last = self.stamp(np.zeros((1, self.ranks)))[0], leave[-1] + 0.01
        _put(
            con,
            "files",
            file_id=ranks + 1,
            path=np.array([f"rank{r}.log" for r in ranks], object),
            rank=ranks,
            kind=np.full(self.ranks, "text", object),
            lines=np.full(self.ranks, 2 * n + 2),
        )
        _put(
            con,
            "writers",
            writer_id=ranks + 1,
            file_id=ranks + 1,
            prefix_rank=ranks,
            host=names,
            run_id=np.ones(self.ranks, int),
            rank=ranks,
            how=np.full(self.ranks, "folder", object),
        )
        con.execute("INSERT INTO runs (run_id, key, name, attempt) VALUES (1, '', '', 0)")
        rank = np.tile(ranks, n)
        nth = np.repeat(np.arange(n), self.ranks)
        op = {
            "run_id": np.ones(len(rank), int),
            "rank": rank,
            "host": names[rank],
            "writer_id": rank + 1,
            "file_id": rank + 1,
        }
        place = {"line_no": 2 * nth + 2}

        def times(values, mask):
            return np.ma.masked_array(values, ~mask)

        stamped = known[rank]
        leaves = (
            {"exit_lo": times(leave.ravel(), stamped), "exit_hi": times(leave.ravel(), stamped)}
            if self.has_leave
            else {}
        )
        texts = {
            "source": self.source,
            "comm": "world",
            "comm_id": "world",
            "op": "allreduce",
            "dtype": "float32",
            "state": "completed" if self.has_leave else "issued",
        }
        _put(
            con,
            "collectives",
            **op,
            **place,
            **{k: np.full(len(rank), v, object) for k, v in texts.items()},
            comm_rank=rank,
            nranks=np.full(len(rank), self.ranks),
            count=np.full(len(rank), 1024),
            complete=np.ones(len(rank), bool),
            t_lo=times(enter.ravel(), stamped),
            t_hi=times(enter.ravel(), stamped),
            **leaves,
        )
        for line, t in ((1, first), (2 * n + 2, last)):
            _put(
                con,
                "lines",
                run_id=np.ones(self.ranks, int),
                rank=ranks,
                writer_id=ranks + 1,
                file_id=ranks + 1,
                line_no=np.full(self.ranks, line),
                t_lo=times(t, known),
                t_hi=times(t, known),
            )
        if self.has_lines:
            told = {name: op[name][stamped] for name in ("run_id", "rank", "writer_id", "file_id")}
            stamps = {name: enter.ravel()[stamped] for name in ("t_lo", "t_hi")}
            _put(con, "lines", **told, line_no=place["line_no"][stamped], **stamps)
        silent = {name: op[name][~stamped] for name in ("run_id", "rank", "writer_id", "file_id")}
        _put(con, "lines", **silent, line_no=place["line_no"][~stamped])
        return con


def _put(con, table, **columns):
    flat = {}
    expressions = []
    for name, values in columns.items():
        flat[name] = np.asarray(values)
        if isinstance(values, np.ma.MaskedArray):
            flat[f"{name}_none"] = np.ma.getmaskarray(values)
            expressions.append(f"IF({name}_none, NULL, {name})")
        else:
            expressions.append(name)
    con.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(expressions)} FROM flat")
