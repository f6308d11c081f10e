"""Pasted lines, read as the lines of a log are, and what each of their rows means."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from replay.errors import InputError
from replay.explain.codes import Codes
from replay.explain.model import Field, Meaning, PastedLine, Role, Row, Written
from replay.explain.readers import Readers, holding
from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.grammar.source import form_of, purpose
from replay.parse.clock import Clock
from replay.parse.families import families
from replay.parse.pipeline import parse_file
from replay.parse.segments import Segmenter
from replay.sources.discover import discover
from replay.sources.model import Hints, Line, SourceFile
from replay.sources.read import read_batches
from replay.sources.wrappers import forms
from replay.store import schema
from replay.store.writer import TableSink

_OWN = frozenset({"file_id", "line_no", "writer_id", "run_id", "t_lo", "t_hi", "complete", "text"})
"""Columns of a row that tell where it stands, or all of the line again."""


_PARTS = ("launcher", "traceback", "graph_breaks")
_TELLING = 8
"""Letters of a form that are always the same."""
_FIELD = re.compile(r"<[a-z_0-9]+>")
_RECOMPILE = "V0101 00:00:00.000000 1 torch/_dynamo/guards.py:1] [0/1] [__recompiles] "
_RECOMPILE_HEAD = ("Recompiling function f in f.py:1", "    triggered by the following guard failure(s):")
_ASSUMED = frozenset({"compile_id", "compile_line", "fn", "fn_file", "fn_line", "is_framework", "nth"})


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a row is taken for: a row of rules/knowledge/readings.yaml."""

    where: str
    role: Role
    means: str
    look: str


def read(text: str, codes: Codes) -> list[PastedLine]:
    """Return the lines of a text with all that is known of them; of what is no text, none.

    A line alone that means nothing by itself is tried as a part of the blocks that people paste one line of.
    """
    found = _read(text, codes)
    if len(found) == 1 and not found[0].is_known:
        for form in forms("voted"):
            wrapped = form.match(text)
            if wrapped and (rest := wrapped["text"]) and (inside := _read(rest, codes)) and inside[0].is_known:
                return [replace(inside[0], text=text, wrapper=form.name)]
        for lead, inner, assumed in _blocks(text):
            (*_, last) = _read("\n".join([*lead, inner]), codes)
            if last.rows:
                rows = tuple(_only(row, assumed) for row in last.rows)
                return [replace(last, line=1, text=text, header=None, head=(), rows=rows)]
    return found


def _blocks(text: str) -> Iterator[tuple[tuple[str, ...], str, frozenset[str]]]:
    """Give blocks that a line may be a part of: lines before it, the line in it, columns that only those tell."""
    bare = text.strip()
    reason = bare if bare.startswith("- ") else f"- 0/0: {bare}"
    guard = shared().one("guard_reason", bare)
    if bare.startswith("- ") or (guard and _is_telling(guard, bare)):
        yield tuple(_RECOMPILE + line for line in _RECOMPILE_HEAD), f"{_RECOMPILE}    {reason}", _ASSUMED


def _only(row: Row, assumed: frozenset[str]) -> Row:
    return replace(row, fields=tuple(f for f in row.fields if f.name not in assumed))


def _read(text: str, codes: Codes) -> list[PastedLine]:
    con = duckdb.connect()
    schema.create(con)
    sink = TableSink(con)
    hints = Hints()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pasted"
        path.write_text(text + "\n", encoding="utf8", errors="replace")
        try:
            (file,) = discover([str(path)], hints).files
        except InputError:  # binary
            return []
        parsed = parse_file(file, read_batches(file, hints), sink, hints, shared())
        sink.file(file, parsed, ends_whole=True)
        lines = [line for batch in read_batches(file, hints) for line in batch]
    sink.flush()
    rows = _Rows(con, codes)
    kinds = dict(con.execute("SELECT line_no, class FROM lines").fetchall())
    return [_pasted(line, kinds[line.line_no], file, rows) for line in lines if line.line_no in kinds]


def _pasted(line: Line, kind: str, file: SourceFile, rows: "_Rows") -> PastedLine:
    segment = next(Segmenter(shared(), Clock(None, None)).split(line))
    header = shared().one("headers", line.text) or shared().one("app_headers", line.text)
    if not segment.header:
        header = None
    text = segment.text
    match = _payload(segment.header, segment.head, text)
    if match is None:
        match, text = _part(text) or (None, text)
    said = {name: value for name, value in segment.head.items() if name != "text"}
    identity = segment.identity
    who = {"rank": identity.rank, "host": identity.host, "pid": identity.pid, "device": identity.device}
    head = {**{k: str(v) for k, v in who.items() if v is not None}, **said}
    found = tuple(rows.of(line.line_no, match))
    fields = tuple(Field(name, value, "") for name, value in match.fields.items()) if match else ()
    coded = match is not None and not found and match.family == "launcher" and "code" in match.fields
    meant = tuple(rows.codes.numbered("exit", int(match.fields["code"]))) if match and coded else ()
    return PastedLine(
        line.line_no, line.raw, kind, file.wrapper, _written(header, line.text),
        tuple(Field(name, value, "") for name, value in head.items()), _written(match, text), fields, meant, found,
    )  # fmt: skip


def _payload(header: str, head: dict[str, str], text: str) -> Match | None:
    for family in families(header, head.get("artifact") or head.get("nccl_level")):
        if match := shared().one(family, text):
            return match
    return None


def _part(text: str) -> tuple[Match, str] | None:
    """Return a line that means something only inside of a block, as it stands there; not one that may be anything."""
    bare = text.strip()
    for family in _PARTS:
        for shown in (text, bare, f"  {bare}"):
            match = shared().one(family, shown)
            if match and _is_telling(match, shown):
                return match, shown
    return None


def _is_telling(match: Match, text: str) -> bool:
    """Whether so much of a form is always the same that a text of it is known without the block around it."""
    return sum(map(str.isalpha, _FIELD.sub("", form_of(match, text).looks))) >= _TELLING


def _written(match: Match | None, text: str) -> Written | None:
    if match is None:
        return None
    form = form_of(match, text)
    return Written(purpose(match.family), match.record, form.place, form.remarks)


class _Rows:
    """The rows of a database of pasted lines."""

    def __init__(self, con: duckdb.DuckDBPyConnection, codes: Codes) -> None:
        self._con, self.codes = con, codes
        self._readers = Readers(con, codes.book)
        self._tables = [t for t in schema.tables().values() if t.section == "event"]
        self._readings: dict[str, list[_Reading]] = defaultdict(list)
        for fact in codes.table("readings"):
            self._readings[fact["table"]].append(_Reading(fact["where"], fact["role"], fact["means"], fact["look"]))
        self._categories = {
            fact["category"]: _Reading("true", fact["role"], fact["means"], fact["look"])
            for fact in codes.table("exception_categories")
        }

    def of(self, line_no: int, match: Match | None) -> Iterator[Row]:
        """Give the rows that a line made, those that accuse somebody first."""
        of_form = self._readings.get(f"{match.family}.{match.form}", []) if match else []
        found = []
        for table in self._tables:
            cursor = self._con.execute(
                f"SELECT rowid AS row, * FROM {table.name} WHERE line_no = ? ORDER BY rowid", [line_no]
            )
            names = [column[0] for column in cursor.description or ()]
            found += [self._row(table, dict(zip(names, values, strict=True)), of_form) for values in cursor.fetchall()]
        yield from sorted(found, key=lambda row: row.role == "none")

    def _row(self, table: schema.Table, values: dict[str, Any], of_form: Sequence[_Reading]) -> Row:
        rowid = values["row"]
        docs = {column.name: column.doc for column in table.columns}
        fields = tuple(
            Field(name, str(value), docs[name])
            for name, value in values.items()
            if value is not None and name in docs and name not in _OWN
        )
        reading = of_form[0] if of_form else self._reading(table.name, values)
        codes = tuple(self._coded(table.name, values))
        return Row(
            table.name, table.doc, fields, reading.role, reading.means, reading.look, codes,
            tuple(self._readers.of(table.name, rowid)),
        )  # fmt: skip

    def _reading(self, table: str, values: dict[str, Any]) -> _Reading:
        if table == "exceptions" and (known := self._categories.get(values["category"])):
            return known
        readings = self._readings[table]
        held = holding(self._con, table, values["row"], [reading.where for reading in readings])
        return next(reading for reading, holds in zip(readings, held, strict=True) if holds)

    def _coded(self, table: str, values: dict[str, Any]) -> Iterator[Meaning]:
        """Give what the codes in a row stand for."""
        codes = self.codes
        for kind, number in _NUMBERS.get(table, lambda _: ())(values):
            if number is not None:
                yield from codes.numbered(kind, number)
        if table == "exits" and values["code"] is None and values["signal"]:
            yield from codes.named(values["signal"])
        elif table == "graph_breaks" and values["gb_id"]:
            yield from codes.numbered("graph_break", int(values["gb_id"][2:]))
        elif table == "env":
            yield from codes.named(values["name"], values["value"])
        elif table == "topology_paths" and values["type"]:
            yield from codes.named(values["type"])
        elif table in ("signals", "crashes") and values["signal"]:
            yield from codes.named(values["signal"])


def _of_warning(values: dict[str, Any]) -> list[tuple[str, int | None]]:
    kinds = {
        "ib-completion": "ib",
        "cuda": "cuda",
        "chain": "nccl",
        "socket": "errno",
        "verbs": "errno",
        "shm": "errno",
    }
    kind = "nccl" if values["level"] == "chain" else kinds.get(values["family"], "")
    return [(kind, values["code"])] if kind else []


_NUMBERS = {
    "exits": lambda values: [("exit", values["code"])],
    "nccl_warnings": _of_warning,
    "device_faults": lambda values: [("xid" if values["kind"] == "xid" else "cuda", values["code"])],
}
"""By table: kinds and numbers of the codes in a row."""
