"""What is known of one event: its row in words, and what belongs to it (a failed guard, the odd rank, the slow hop)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from replay.report.wording import duration, ranks_phrase, size, visible
from replay.store import schema
from replay.tui.core.window import clock

_COMMON = frozenset({"run_id", "rank", "host", "pid", "writer_id", "t_lo", "t_hi", "file_id", "line_no", "complete"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of details: a name, its value, and whether it is what matters (`is_key`)."""

    name: str
    value: str
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Detail:
    """Title and facts of an event; `values` are the columns of its row, for marking them in the raw line."""

    title: str
    facts: tuple[Fact, ...]
    values: tuple[tuple[str, str], ...] = ()


_Row = dict[str, Any]
_Teller = Callable[[DuckDBPyConnection, _Row], list[Fact]]


def view(con: DuckDBPyConnection, table: str, kind: str, place: tuple[int | None, int | None], run_id: int) -> Detail:
    """Return what is known of the event of a table at a place (file, line)."""
    row = _find(con, table, *place, run_id)
    if row is None:
        return Detail(kind, ())
    told = _TELLERS.get(table, _anything)(con, row)
    told += _where(con, row)
    values = tuple((k, text) for k, v in row.items() if k not in _COMMON and (text := _text(v)))
    return Detail(_TITLES.get(table, kind), tuple(f for f in told if f.value), values)


def _find(con: DuckDBPyConnection, table: str, file_id: int | None, line_no: int | None, run_id: int) -> _Row | None:
    known = schema.tables().get(table)
    if known is None or file_id is None:
        return None
    try:
        cursor = con.execute(
            f"SELECT * FROM {known.name} WHERE run_id = ? AND file_id = ? AND line_no IS NOT DISTINCT FROM ? LIMIT 1",
            [run_id, file_id, line_no],
        )
    except duckdb.BinderException:  # a table without one of these columns
        return None
    return next(iter(_rows(cursor)), None)


def _rows(cursor: DuckDBPyConnection) -> list[_Row]:
    names = [c[0] for c in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return visible(str(value))


def _at(file: str | None, line: int | None) -> str:
    return "" if not file else visible(f"{file}:{line}" if line is not None else file)


def _anything(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    return [Fact(name.replace("_", " "), _text(value)) for name, value in row.items() if name not in _COMMON]


def _where(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    host, pid = row.get("host"), row.get("pid")
    parts = [f"host {visible(host)}" if host else "", f"pid {pid}" if pid is not None else ""]
    torn = [Fact("torn", "the line was cut: not all of it is known")] if row.get("complete") is False else []
    return [Fact("process", ", ".join(p for p in parts if p)), Fact("time", _when(row)), *torn]


def _when(row: _Row) -> str:
    """Between which moments the event lies, where its line has no stamp of its own."""
    low, high = row.get("t_lo"), row.get("t_hi")
    if high is None:
        return "" if low is None else f"not before {clock(low)}"
    if low is None:
        return f"not after {clock(high)}"
    return f"between {clock(low)} and {clock(high)}" if low < high else ""


def _guard(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    dim = f", dim {row['dim']}" if row["dim"] is not None else ""
    return [
        Fact("guard", f"{_text(row['source'])}{dim}" if row["source"] else ""),
        Fact("expected", _text(row["expected"]), True),
        Fact("actual", _text(row["actual"]), True),
        Fact("reason", _text(row["reason"])),
        Fact("kind", _text(row["kind"])),
        Fact("used at", _at(row["user_file"], row["user_line"]), True),
        Fact("function", f"{_text(row['fn'])} ({_at(row['fn_file'], row['fn_line'])})" if row["fn"] else "", True),
        Fact(
            "compile",
            f"{_text(row['compile_id'])}, entry {_text(row['failed_id'])} failed" if row["compile_id"] else "",
        ),
    ]


def _compile(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    guards = _rows(
        con.execute(
            "SELECT * FROM guard_failures WHERE file_id = ? AND compile_line = ? ORDER BY nth LIMIT 3",
            [row["file_id"], row["line_no"]],
        )
    )
    facts = [
        Fact("function", f"{_text(row['fn'])} ({_at(row['fn_file'], row['fn_line'])})" if row["fn"] else "", True),
        Fact("compile", f"{_text(row['compile_id'])}" + (f", time {row['nth'] + 1}" if row["nth"] is not None else "")),
        Fact("took", duration(row["duration_s"]) if row["duration_s"] is not None else "", True),
        Fact("status", _text(row["status"])),
        Fact("user code", _at(row["user_file"], row["user_line"])),
        Fact("backend", _text(row["backend"])),
        Fact("failed", " ".join(filter(None, (_text(row["fail_type"]), _text(row["fail_reason"])))), True),
    ]
    return facts + [Fact("because", _text(g["reason"]), True) for g in guards]


def _collective(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    member = f"{_text(row['comm_rank'])} of {_text(row['nranks'])}"
    number = f"#{row['logged_seq']} by " if row["logged_seq"] is not None else ""
    facts = [
        Fact("operation", f"{_text(row['op'])} #{_text(row['nth'])}", True),
        Fact("payload", _payload(row)),
        Fact("shape", _text(row["shape"])),
        Fact("root", _text(row["root"])),
        Fact("peer", _text(row["peer"])),
        Fact("state", _text(row["state"])),
        Fact("group", f"{_text(row['comm'])}, rank {member}" if row["comm"] else ""),
        Fact("logged as", f"{number}{_text(row['source'])}"),
    ]  # fmt: skip
    matched = _rows(
        con.execute(
            "SELECT * FROM matched WHERE run_id = ? AND comm_id = ? AND source = ? AND nth = ? LIMIT 1",
            [row["run_id"], row["comm_id"], row["source"], row["nth"]],
        )
    )
    for met in matched:
        facts += _met(met)
    return facts


def _payload(row: _Row) -> str:
    parts = [f"{row['count']:,} x {row['dtype']}" if row["count"] is not None and row["dtype"] else ""]
    parts += [size(row["bytes"]) if row["bytes"] is not None else ""]
    return ", ".join(p for p in parts if p)


def _met(met: _Row) -> list[Fact]:
    facts = [Fact("met by", ranks_phrase(met["ranks"] or ()))]
    if met["missing"]:
        facts.append(Fact("missing", ranks_phrase(met["missing"]), True))
    if met["odd"]:
        facts.append(Fact("odd", f"{ranks_phrase(met['odd'])}: {_text(met['odd_aspect'])} is {_text(met['minority'])}, "
                                 f"not {_text(met['majority'])}", True))  # fmt: skip
    if met["last_enter"] is not None and met["first_enter"] is not None and met["last_rank"] is not None:
        wait = met["last_enter"] - met["first_enter"]
        facts.append(Fact("last", f"rank {met['last_rank']}, {duration(wait)} after the first", wait > 0.1))
    return facts


def _comm(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    facts = [
        Fact("event", f"{_text(row['fn'])} {_text(row['event'])}".strip(), True),
        Fact("rank", f"{row['comm_rank']} of {row['nranks']}" if row["comm_rank"] is not None else ""),
        Fact("communicator", _text(row["comm_id"])),
        Fact("device", " ".join(filter(None, (_text(row["device"]), _text(row["bus_id"]))))),
        Fact("split", f"of {row['parent']}, colour {row['color']}" if row["color"] is not None else ""),
        Fact("took", duration(row["total_s"]) if row["total_s"] is not None else ""),
    ]
    groups = _rows(
        con.execute(
            "SELECT * FROM comm_groups WHERE run_id = ? AND comm_id = ? LIMIT 1", [row["run_id"], row["comm_id"]]
        )
    )
    for group in groups:
        late = sorted(set(group["started"] or ()) - set(group["completed"] or ()))
        facts.append(Fact("members", ranks_phrase(group["ranks"] or ())))
        facts.append(Fact("not complete", ranks_phrase(late), True))
    return facts + _ring(con, row)


def _ring(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    """The rank's ring, and the hop of it that goes the slowest way: over the network where others do not."""
    ring = con.execute(
        """
        SELECT prev, me, next FROM rings
        WHERE run_id = ? AND rank IS NOT DISTINCT FROM ? AND me = ? ORDER BY channel LIMIT 1
        """,
        [row["run_id"], row["rank"], row["comm_rank"]],
    ).fetchone()
    hops = con.execute(
        """
        SELECT comm_rank, peer, transport, method, gdr, count(*) FROM channels
        WHERE run_id = ? AND rank IS NOT DISTINCT FROM ? AND transport IS NOT NULL
        GROUP BY ALL ORDER BY list_position(['NET', 'COLLNET', 'SHM', 'P2P'], transport), method DESC, ALL LIMIT 3
        """,
        [row["run_id"], row["rank"]],
    ).fetchall()
    facts = [Fact("ring", f"{ring[0]} → {ring[1]} → {ring[2]}")] if ring else []
    for n, (me, peer, transport, method, gdr, channels) in enumerate(hops):
        how = " ".join(filter(None, (_text(transport), _text(method), "GDRDMA" if gdr else "")))
        facts.append(
            Fact(
                "slowest hop" if n == 0 and len(hops) > 1 else "hop",
                f"{me} → {peer} by {how}, {channels} channels",
                n == 0,
            )
        )
    return facts


def _exception(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    return [
        Fact("exception", _text(row["qualified"] or row["type"]), True),
        Fact("message", _text(row["message"]), True),
        Fact("raised at", f"{_at(row['last_file'], row['last_line'])} {_text(row['last_fn'])}".strip()),
        Fact("user code", f"{_at(row['user_file'], row['user_line'])} {_text(row['user_fn'])}".strip(), True),
        Fact("category", _text(row["category"])),
        Fact("ended it", _text(row["is_uncaught"])),
    ]


def _timeout(con: DuckDBPyConnection, row: _Row) -> list[Fact]:
    absent = con.execute(
        """
        SELECT DISTINCT rank, how, doing FROM absentees
        WHERE run_id = ? AND list_contains(waiting, ?) ORDER BY rank LIMIT 4
        """,
        [row["run_id"], row["rank"]],
    ).fetchall()
    facts = [
        Fact("gave up", f"{_text(row['kind'])} {_text(row['op'])}".strip(), True),
        Fact("waited", duration(row["ran_ms"] / 1000) if row["ran_ms"] is not None else ""),
        Fact("limit", duration(row["timeout_ms"] / 1000) if row["timeout_ms"] is not None else ""),
        Fact("number", _text(row["logged_seq"])),
        Fact("group", _text(row["group_name"])),
        Fact("missing", _text(row["missing"])),
        Fact("text", _text(row["text"])),
    ]
    return facts + [Fact("did not come", f"rank {r} ({_text(how)}, {_text(doing)})", True) for r, how, doing in absent]


_TITLES = {
    "guard_failures": "guard failure",
    "compiles": "compile",
    "collectives": "collective",
    "comms": "communicator",
    "exceptions": "exception",
    "timeouts": "timeout",
    "step_lines": "step",
}
_TELLERS: dict[str, _Teller] = {
    "guard_failures": _guard,
    "compiles": _compile,
    "collectives": _collective,
    "comms": _comm,
    "exceptions": _exception,
    "timeouts": _timeout,
}
