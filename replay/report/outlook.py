"""What the logs could not show, what they do rule out, and what to switch on or to collect while there is time.

Absence is not zero: the table `observed` says per rank what would have been logged. What is missing there is named with
the setting that brings it.
"""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from replay.report.model import Finding, RunInfo, Unseen
from replay.report.wording import PROVEN, ranks_text

_NEXT_SHOWN = 4
_SUSPECTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Switch:
    """One thing that can be logged: the setting that brings it and what it tells. `part` is the value it adds to it."""

    what: str
    of: str
    setting: str
    part: str
    tells: str

    @property
    def enable(self) -> str:
        return f"{self.setting}={self.part}" if self.part else self.setting


_NCCL = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS"
# TORCH_NCCL_TRACE_BUFFER_SIZE is read by every version since 2.2; newer ones call it TORCH_FR_BUFFER_SIZE as well.
_RECORDER = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"
_SWITCHES = (
    _Switch("recompiles", "compile", "TORCH_LOGS", "recompiles_verbose", "which guard failed, and where"),
    _Switch("graph_breaks", "compile", "TORCH_LOGS", "graph_breaks", "where graphs break, and why"),
    _Switch("guards", "compile", "TORCH_LOGS", "guards", "what each compiled graph depends on"),
    _Switch("cache", "compile", "TORCH_LOGS", "+inductor", "hits and misses of the compile caches"),
    _Switch("compiles", "compile", "TORCH_TRACE", "/shared/trace", "when each compile began and ended"),
    _Switch("graphs", "compile", "TORCH_LOGS", "graph_code", "the graphs themselves, to compare ranks"),
    _Switch("nccl-warn", "nccl", "NCCL_DEBUG", "WARN", "NCCL's own warnings"),
    _Switch("nccl-init", "nccl", _NCCL, "INIT", "communicators: who joined and who did not"),
    _Switch("nccl-channels", "nccl", _NCCL, "GRAPH,P2P,SHM,NET", "rings, trees and transports"),
    _Switch("nccl-coll", "nccl", _NCCL, "COLL", "every operation of every rank, to see who left the order"),
    _Switch("flight-recorder", "nccl", _RECORDER, "", "the last operations of every rank at a timeout"),
    _Switch("watchdog", "nccl", "torchrun --redirects 3 --log-dir DIR", "", "every rank's stderr, with its watchdog"),
    _Switch("steps", "run", "print step number and time on every rank", "", "which rank was late, and when"),
    _Switch("metrics", "run", "print loss and step time on every rank", "", "where ranks part, and what a step costs"),
    _Switch("exit", "run", "keep the launcher's and the scheduler's own output", "", "how each process ended"),
    _Switch("env", "run", _NCCL, "ENV", "settings that differ by rank"),
)

_ORDER = {
    "stopped": ("exit", "flight-recorder", "nccl-coll", "nccl-warn", "recompiles", "steps", "watchdog"),
    "slow": ("steps", "recompiles", "metrics", "graph_breaks", "nccl-init", "nccl-channels"),
}

_RULED_OUT = (
    ("recompiles", "no recompile of your code", "SELECT count(*) FROM recompiles"),
    (
        "graph_breaks",
        "no graph break in your code",
        "SELECT count(*) FROM graph_breaks WHERE NOT coalesce(is_framework, FALSE)",
    ),
    (
        None,
        "no Python exception",
        "SELECT count(*) FROM exceptions WHERE coalesce(category, '') NOT IN ('victim', 'child-failed')",
    ),
    (None, "no out-of-memory message", "SELECT count(*) FROM oom"),
    (None, "no crash", "SELECT count(*) FROM crashes"),
    ("nccl-warn", "no NCCL warning", "SELECT count(*) FROM nccl_warnings WHERE level IN ('warn', 'attn')"),
    ("nccl-coll", "no operation that ranks disagree on", "SELECT count(*) FROM matched WHERE odd_aspect IS NOT NULL"),
    ("exit", "no process killed by a signal", "SELECT count(*) FROM exits WHERE signal IS NOT NULL OR code < 0"),
    ("steps", "no stall between steps", "SELECT count(*) FROM stalls"),
)

_ENDED = """
    SELECT run_id FROM exits
    UNION SELECT run_id FROM crashes
    UNION SELECT run_id FROM exceptions WHERE is_uncaught
"""
"""Runs of which at least one process is known to have ended: nothing can be collected from them any more."""


def enabling(what: str) -> tuple[str, ...]:
    """Return the setting that makes something be logged; nothing for what no setting brings."""
    return tuple(switch.enable for switch in _SWITCHES if switch.what == what)


def unseen(con: DuckDBPyConnection) -> tuple[Unseen, ...]:
    """Return what was not logged, or is not known to have been, with the ranks and the setting that brings it."""
    heard = _heard(con)
    uses_nccl = _uses_nccl(con)
    found = []
    for switch in _SWITCHES:
        if switch.of == "nccl" and uses_nccl is False:
            continue
        seen, everywhere = _seen(con, switch.what)
        missing = heard - seen
        if not everywhere and (missing or not heard):
            found.append(Unseen(switch.what, ranks_text(missing), switch.enable))
    return tuple(found)


def ruled_out(con: DuckDBPyConnection) -> tuple[str, ...]:
    """Return what the logs do show not to have happened: it would have been logged on every rank and was not."""
    heard = _heard(con)
    if not heard:
        return ()
    found = []
    for what, sentence, query in _RULED_OUT:
        if what is not None:
            seen, everywhere = _seen(con, what)
            if not everywhere and not heard <= seen:
                continue
        if _number(con, query) == 0:
            found.append(sentence)
    return tuple(found)


def next_time(
    con: DuckDBPyConnection,
    verdict: str,
    findings: tuple[Finding, ...],
    runs: tuple[RunInfo, ...],
    missing: tuple[Unseen, ...],
) -> tuple[str, ...]:
    """Return the few settings that would have told more, the most telling first."""
    if verdict == "healthy":
        return ()
    roots = [f for f in findings if f.root]
    if verdict == "cause" and all(f.certainty >= PROVEN for f in roots):
        names_no_line = any(f.cause.startswith("recompile") for f in roots) and not _number(
            con, "SELECT count(*) FROM recompiles WHERE user_file IS NOT NULL"
        )
        return ("TORCH_LOGS=recompiles_verbose names the line of your code",) if names_no_line else ()
    impacts = {f.impact for f in roots} | {r.outcome for r in runs}
    order = _ORDER["stopped" if impacts & {"failed", "hung", "stopped", "running", "unknown"} else "slow"]
    names = {u.what for u in missing}
    return _settings([s for what in order for s in _SWITCHES if s.what == what and what in names][:_NEXT_SHOWN])


def collect_now(con: DuckDBPyConnection, findings: tuple[Finding, ...], runs: tuple[RunInfo, ...]) -> tuple[str, ...]:
    """Return what to run before a run that hangs, or still runs, is killed; nothing for runs that ended."""
    ended = {run for (run,) in con.execute(_ENDED).fetchall()}
    alive = [r.id for r in runs if r.outcome in {"hung", "running"} and r.id not in ended]
    if not alive:
        return ()
    lines = _stacks(con, [f for f in findings if f.root and f.run in alive], alive)
    if _uses_nccl(con) is not False:
        lines += [
            "ncclras -v  # any node, NCCL 2.24 and later: which ranks of which communicator lag",
            "echo 1 > ${TORCH_NCCL_DEBUG_INFO_PIPE_FILE}RANK.pipe  # where that was set: dumps the flight recorder",
            "nvidia-smi -q  # each node: clocks, throttling, ECC counts",
        ]
    return (*lines, "dmesg -T | tail -n 200  # each node: OOM killer, Xid, network and file system errors")


def _stacks(con: DuckDBPyConnection, roots: list[Finding], alive: list[int]) -> list[str]:
    """Stacks of the ranks at fault first; without any, of those that are behind."""
    suspects = [(w.rank, w.host, w.pid) for f in roots for w in f.where]
    if not suspects:
        suspects = con.execute(
            """
            SELECT rank, host, pid FROM ranks WHERE run_id IN (SELECT unnest(?)) AND rank IS NOT NULL
            ORDER BY last_step NULLS FIRST, last_t NULLS FIRST, rank
            """,
            [alive],
        ).fetchall()
    known = [s for s in dict.fromkeys(suspects) if s[2] is not None]
    return [
        f"py-spy dump --pid {pid}  # rank {rank}{f' on {host}' if host else ''}"
        for rank, host, pid in known[:_SUSPECTS_SHOWN]
    ] or ["py-spy dump --pid PID  # of every rank: where does it stand?"]


def _settings(switches: list[_Switch]) -> tuple[str, ...]:
    """One line per setting: values of one variable are joined, or the last to be pasted would win."""
    joined: dict[str, list[_Switch]] = {}
    for switch in switches:
        joined.setdefault(switch.setting, []).append(switch)
    if _NCCL in joined:  # INFO includes WARN
        warned = joined.pop("NCCL_DEBUG", [])
        joined[_NCCL] += [_Switch(w.what, w.of, _NCCL, "", w.tells) for w in warned]
    lines = []
    for setting, members in joined.items():
        value = ",".join(m.part for m in members if m.part)
        lines.append(f"{setting}{f'={value}' if value else ''}: {'; '.join(m.tells for m in members)}")
    return tuple(lines)


def _heard(con: DuckDBPyConnection) -> set[int]:
    return {rank for (rank,) in con.execute("SELECT rank FROM ranks WHERE heard AND rank IS NOT NULL").fetchall()}


def _seen(con: DuckDBPyConnection, what: str) -> tuple[set[int], bool]:
    """Ranks on which `what` would have been logged, and whether it would have been on all."""
    rows = con.execute("SELECT DISTINCT rank FROM observed WHERE what = ? AND is_on", [what]).fetchall()
    ranks = {rank for (rank,) in rows}
    return {r for r in ranks if r is not None}, None in ranks


def _uses_nccl(con: DuckDBPyConnection) -> bool | None:
    """Whether the run communicates by NCCL; None where nothing tells."""
    if _number(con, "SELECT (SELECT count(*) FROM comms) + (SELECT count(*) FROM nccl_warnings) + "
                    "(SELECT count(*) FROM packages WHERE name = 'nccl')"):  # fmt: skip
        return True
    gloo = _number(con, "SELECT (SELECT count(*) FROM packages WHERE name = 'gloo') + "
                        "(SELECT count(*) FROM timeouts WHERE kind = 'gloo') + "
                        "(SELECT count(*) FROM peer_losses WHERE layer = 'gloo')")  # fmt: skip
    return False if gloo else None


def _number(con: DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0]) if row else 0
