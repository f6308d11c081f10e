"""Codes and names: exit codes, signals, Xid, results of NCCL, CUDA and InfiniBand, graph breaks, variables, causes.

All that is said of them stands in rules/knowledge; how people write them stands in grammars/code.lark.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb

from replay.expert.knowledge import read_knowledge
from replay.expert.load import RuleBook
from replay.explain.model import Meaning, Near, Reader, Role
from replay.explain.readers import Readers, reader
from replay.grammar.executor import shared
from replay.store import schema

Fact = Mapping[str, Any]

_SIGNALS = 128
"""A shell adds this to the number of the signal that ended a process."""
_NEAR = 3
_LIKE = 0.7
_ROLES: dict[str, Role] = {"hardware": "cause", "program": "cause", "before": "victim"}
_OF = {
    "hardware": "Drain the host; nvidia-smi -q, dmesg -T | grep -i xid; reset or replace the GPU.",
    "program": "The program: CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer names the kernel.",
    "before": "The Xid before it.",
}
_BY_NUMBER = ("exit", "nccl", "cuda", "ib", "xid", "errno", "signal")
"""What a bare number can be, the likeliest first."""


@dataclass(frozen=True)
class Codes:
    """The knowledge tables of a rule book, to look codes up in."""

    book: RuleBook

    def find(self, text: str) -> list[Meaning]:
        """Return what a text stands for if it is a code or a name and nothing else; several for a bare number."""
        match = shared().one("code", text)
        if match is None:
            return []
        number = int(match.fields["number"]) if "number" in match.fields else None
        name, form = match.fields.get("name", ""), match.form
        if number is None:
            return list(self.named(name, match.fields.get("value")))
        if form == "number":
            found = [m for kind in _BY_NUMBER for m in self.numbered(kind, number)]
            any_code = next(self._facts("exit_codes", "code", None))["means"]  # says nothing where another meaning does
            return [m for m in found if m.means != any_code] or found
        return list(self.numbered(form, number))

    def numbered(self, kind: str, number: int) -> Iterator[Meaning]:
        """Give what a number of a kind (exit, signal, xid, ib, nccl, cuda, errno, graph_break) stands for."""
        if kind == "exit":
            signal = -number if number < 0 else number - _SIGNALS
            for fact in self._facts("signals", "number", signal):
                yield self._made("exit code", f"{number}: {fact['signal']}", fact, "signals")
            is_signal = any(self._facts("signals", "number", signal))
            known = list(self._facts("exit_codes", "code", number))
            for fact in known or ([] if is_signal else self._facts("exit_codes", "code", None)):
                yield self._made("exit code", str(number), fact, "exit_codes")
        elif kind == "signal":
            for fact in self._facts("signals", "number", number):
                yield self._made("signal", f"{number}: {fact['signal']}", fact, "signals")
        elif kind == "xid":
            for fact in self._facts("xid", "code", number):
                told = {**fact, "role": _ROLES[fact["of"]], "look": _OF[fact["of"]]}
                yield self._made("Xid", str(number), told, "xid")
        elif kind == "graph_break":
            yield from self._breaks(f"GB{number:04}")
        else:
            what, table = _NUMBERED[kind]
            for fact in self._facts(table, "code", number):
                yield self._made(what, f"{number}: {fact['name']}", fact, table)

    def named(self, name: str, value: str | None = None) -> Iterator[Meaning]:
        """Give what a name stands for: a signal, result, variable (with a value: its cost), cause or exception."""
        for fact in self._facts("signals", "signal", name):
            yield self._made("signal", f"{fact['signal']} ({fact['number']})", fact, "signals")
        for what, table in _NUMBERED.values():
            for fact in (*self._facts(table, "name", name), *self._facts(table, "name", f"IBV_WC_{name}")):
                yield self._made(what, f"{fact['name']} ({fact['code']})", fact, table)
        for fact in self._facts("variables", "name", name):
            yield self._variable(fact, value)
        for fact in self._facts("path_types", "name", name):
            yield self._made("path between two devices", fact["name"], fact, "path_types")
        cause = self.book.taxonomy.get(name.lower())
        if cause:
            readers = tuple(reader(self.book, r, "") for r in self.book if (r.cause or r.id) == cause.id)
            role: Role = "victim" if cause.kind == "symptom" else "cause" if cause.kind == "cause" else "none"
            look = f"replay rules explain {readers[0].rule}" if readers else ""
            yield Meaning(
                f"{cause.kind} ({cause.layer})", cause.id, cause.signal, role, look, "rules/taxonomy.yaml", readers
            )
        kind = name.rpartition(".")[2]
        for fact in list(self._facts("exceptions", "type", kind))[:1]:
            for category in self._facts("exception_categories", "category", fact["category"]):
                yield self._made("exception", kind, category, "exceptions")

    def near(self, text: str) -> tuple[Near, ...]:
        """Return the known codes or names that come nearest to one that is not known."""
        match = shared().one("code", text)
        if match is None:
            return ()
        if match.form in ("xid", *_NUMBERED):
            what, table = _NUMBERED.get(match.form, ("Xid", "xid"))
            number = int(match.fields["number"])
            facts = sorted(self.table(table), key=lambda fact: abs(fact["code"] - number))[:_NEAR]
            path = f"rules/knowledge/{self.book.knowledge[f'know_{table}'].name}"
            return tuple(Near(f"{what} {fact['code']}: {fact['means']}", path) for fact in facts)
        if "name" not in match.fields:
            return ()
        by_fold = {name.lower(): name for name in self.names}
        close = difflib.get_close_matches(match.fields["name"].lower(), by_fold, _NEAR, _LIKE)
        return tuple(Near(by_fold[name], "") for name in close)

    @cached_property
    def names(self) -> list[str]:
        """All names that `named` knows."""
        found = [str(f["signal"]) for f in self.table("signals")]
        found += [str(f["name"]) for t in ("variables", *(t for _, t in _NUMBERED.values())) for f in self.table(t)]
        found += [str(f["type"]) for f in self.table("exceptions") if f["type"]]
        return [*dict.fromkeys(found), *self.book.taxonomy]

    def _breaks(self, gb_id: str) -> Iterator[Meaning]:
        rows = [f for f in self.table("graph_breaks") if f["gb_id"] == gb_id]
        kinds = {f["kind"]: f for f in self.table("graph_break_kinds")}
        for fact in rows:
            if fact["gb_type"]:
                kind = kinds[fact["kind"]]
                told = {**fact, "means": f"{fact['kind']}: {kind['means']}", "role": "cause", "look": kind["look"]}
                refined = [f"{f['contains']}: {f['kind']}" for f in rows if f["contains"]]
                if refined:
                    told["look"] += f" The text of the break says more ({'; '.join(refined)})."
                yield self._made("graph break", f"{gb_id}: {fact['gb_type']}", told, "graph_breaks")

    def _variable(self, fact: Fact, value: str | None) -> Meaning:
        name = fact["name"]
        told = f"{fact['means']} (read by {fact['of']}"
        told += f" {fact['since']} and later" if fact["since"] else f" up to {fact['until']}" if fact["until"] else ""
        told += f"; now {fact['now']})" if fact["now"] else ")"
        hints = [
            f"{name}={f['value'] or value} costs something as long as it stays: {f['costs']}."
            for f in self._facts("workarounds", "name", name)
            if value is None or f["value"] in (None, value)
        ]
        if value is not None:
            hints += [
                f"{name}={value} does not do what it seems to: {f['means']}. {f['fix']}"
                for f in self._facts("ineffective_settings", "name", name)
                if _is_ineffective(f, value)
            ]
        if any(self._facts("nccl_settings", "name", name)):
            hints.append("It must be equal on all ranks of a communicator.")
        shown = name if value is None else f"{name}={value}"
        readers = self._read_by("env", {"name": name, "value": value, "origin": fact["of"]})
        return Meaning("variable", shown, told, "none", " ".join(hints), "rules/knowledge/variables.yaml", readers)

    def _made(self, what: str, name: str, fact: Fact, table: str) -> Meaning:
        path = self.book.knowledge[f"know_{table}"]
        source = f"rules/knowledge/{path.name}"
        cause = f" ({fact['cause']})" if fact.get("cause") else ""
        role: Role = fact.get("role") or ("cause" if cause else "none")
        readers = self._read_by(*_SAID[table](fact)) if table in _SAID else ()
        return Meaning(what, name, fact["means"] + cause, role, fact.get("look") or "", source, readers)

    def _read_by(self, table: str, columns: Fact) -> tuple[Reader, ...]:
        """The rules that read a row of an event table which says this."""
        names = ", ".join(columns)
        values = list(columns.values())
        self._con.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", values)
        (last,) = self._con.execute(f"SELECT max(rowid) FROM {table}").fetchone() or (0,)
        return tuple(self._readers.of(table, last))

    @cached_property
    def _con(self) -> duckdb.DuckDBPyConnection:
        con = duckdb.connect()
        schema.create(con)
        return con

    @cached_property
    def _readers(self) -> Readers:
        return Readers(self._con, self.book)

    def _facts(self, table: str, column: str, value: object) -> Iterator[Fact]:
        wanted = value.lower() if isinstance(value, str) else value
        for fact in self.table(table):
            held = fact[column]
            if (held.lower() if isinstance(held, str) else held) == wanted:
                yield fact

    def table(self, name: str) -> list[Fact]:
        """Return the rows of a knowledge table."""
        if name not in self._read:
            known = read_knowledge(name, self.book.knowledge[f"know_{name}"])
            self._read[name] = [dict(zip(known.columns, row, strict=True)) for row in known.rows]
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, list[Fact]]:
        return {}


_NUMBERED = {
    "nccl": ("result of NCCL (ncclResult_t)", "nccl_results"),
    "cuda": ("CUDA error", "cuda_errors"),
    "ib": ("status of an InfiniBand completion (ibv_wc_status)", "ib_status"),
    "errno": ("errno", "errno"),
}

_SAID: dict[str, Callable[[Fact], tuple[str, Fact]]] = {
    "signals": lambda fact: ("exits", {"code": -fact["number"], "signal": fact["signal"]}),
    "exit_codes": lambda fact: ("exits", {"code": fact["code"]}),
    "xid": lambda fact: ("device_faults", {"kind": "xid", "code": fact["code"]}),
    "cuda_errors": lambda fact: ("device_faults", {"kind": "cuda", "code": fact["code"]}),
    "ib_status": lambda fact: ("nccl_warnings", {"level": "warn", "family": "ib-completion", "code": fact["code"]}),
    "graph_breaks": lambda fact: (
        "graph_breaks",
        {"gb_id": fact["gb_id"], "kind": fact["kind"], "cause": f"graph-break-{fact['kind']}"},
    ),
}
"""The row that a line makes of which a code is told, by knowledge table."""


def _is_ineffective(fact: Fact, value: str) -> bool:
    needs, only, never = fact["needs"], fact["only"], fact["never"]
    return (needs is not None and needs not in value) or (only is not None and only != value) or never == value
