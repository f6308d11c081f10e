"""`replay explain`: what one pasted line, code or number means."""

import json
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen

if TYPE_CHECKING:
    from replay.explain import Explanation
    from replay.explain.model import Field, Meaning, PastedLine, Reader, Row, Written

_LABEL = 14
_READERS = 6
_REMARKS = 3
_WRITERS = {"torch": "torch's Python log", "c10": "torch's C++ log", "nccl": "NCCL", "app": "a logger of the program"}
_ROLES = {
    "cause": "a cause, as a rule",
    "victim": "a victim, as a rule",
    "either": "cause or victim: it alone does not tell",
    "none": "accuses nobody",
}


class ExplainFormat(StrEnum):
    """How an explanation is written."""

    TEXT = "text"
    JSON = "json"


def explain(
    text: Annotated[
        str,
        typer.Argument(metavar="LINE", help="A line of a log, a code, a number or a name; - reads lines from stdin."),
    ],
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", metavar="DIR", help="A folder of rules beside the built-in ones; may be given again."),
    ] = None,
    output: Annotated[
        ExplainFormat, typer.Option("--format", "-f", help="How to write the explanation.")
    ] = ExplainFormat.TEXT,
    width: Annotated[
        int | None, typer.Option("--width", metavar="COLUMNS", help="Columns of text (default: the terminal's).")
    ] = None,
) -> None:
    """Say what a pasted line or code means: fields, who prints it, cause or victim, where to look. Needs no logs."""
    from replay.explain import explain as explained

    answer = explained(sys.stdin.read() if text == "-" else text, rules or ())
    if output is ExplainFormat.JSON:
        screen.write(json.dumps(asdict(answer), indent=1, ensure_ascii=sys.stdout.isatty()) + "\n")
    else:
        screen.write("\n".join(_text(answer, screen.width(width))) + "\n")
    if not answer.is_known:
        raise typer.Exit(1)


def _text(answer: "Explanation", width: int) -> list[str]:
    lines: list[str] = []
    for code in answer.codes:
        lines += [*_code(code, width), ""]
    many = len(answer.lines) > 1
    told: set[str] = set()
    for line in answer.lines:
        if line.is_known:
            lines += [*([f"line {line.line}"] if many else []), *_line(line, told, width), ""]
    if answer.is_known:
        unknown = sum(not line.is_known and bool(line.text.strip()) for line in answer.lines)
        return [*lines, f"{unknown} of {len(answer.lines)} lines are not known"] if unknown else lines[:-1]
    lines.append("Not known: no form of a line and no code is like this. It may be the program's own.")
    if answer.nearest:
        lines += ["", "The nearest that is known:"]
        for near in answer.nearest:
            lines += _wrapped(f"  {near.looks}" + (f"  ({near.place})" if near.place else ""), width, "      ")
    return lines


def _code(code: "Meaning", width: int) -> list[str]:
    lines = _wrapped(f"{code.what} {code.name}", width)
    lines += _item("means", code.means, width)
    lines += _item("is", _ROLES[code.role], width) if code.role != "none" else []
    lines += _item("look at", code.look, width)
    lines += _read_by(code.read_by, width)
    return [*lines, *_item("from", code.source, width)]


def _line(line: "PastedLine", told: set[str], width: int) -> list[str]:
    lines: list[str] = []
    for row in line.rows:
        lines += [*_row(row, width), ""]
    if not line.rows and line.form is None:
        lines += _item("means", "only its header is known: the message is none of those that make a row", width)
    elif not line.rows and line.form is not None:
        lines += _item("means", f"known as {line.form.record.replace('_', ' ')}; it makes no row of any table", width)
        for code in line.codes:
            lines += _item("", f"{code.what} {code.name}: {code.means}; {_ROLES[code.role]}", width)
            lines += _item("look at", code.look, width)
        lines += _fields(line.fields, width)
    lines += _written(line, told, width)
    return lines


def _row(row: "Row", width: int) -> list[str]:
    lines = _wrapped(f"{row.table}: {row.doc}", width)
    lines += _item("means", row.means, width)
    lines += _item("is", _ROLES[row.role], width)
    lines += _item("look at", row.look, width)
    for code in row.codes:
        lines += _item("code", f"{code.what} {code.name}: {code.means}", width)
    return [*lines, *_fields(row.fields, width), *_read_by(row.read_by, width)]


def _fields(fields: Iterable["Field"], width: int) -> list[str]:
    from replay.report.wording import visible

    lines, shown = [], list(fields)
    names = max((len(f.name) for f in shown), default=0)
    values = min(max((len(visible(f.value)) for f in shown), default=0), 24)
    for index, field in enumerate(shown):
        head = "fields" if index == 0 else ""
        text = f"{field.name:<{names}}  {visible(field.value):<{values}}  {field.means}".rstrip()
        lines += _wrapped(f"  {head:<{_LABEL - 2}}{text}", width, " " * (_LABEL + names + values + 4))
    return lines


def _written(line: "PastedLine", told: set[str], width: int) -> list[str]:
    """Who wrote it, by which forms; what is said of a form stands once, where it is first met."""
    lines: list[str] = []
    who = _WRITERS.get(line.header.record, line.header.record) if line.header else ""
    if line.head:
        lines += _item(
            "writer", ", ".join([*([who] if who else []), *(f"{f.name} {f.value}" for f in line.head)]), width
        )
    if line.header:
        lines += _remarks(line.header, 1, told, width)
    if line.form:
        lines += _item("printed by", line.form.writer, width) if line.form.writer not in told else []
        told.add(line.form.writer)
        lines += _remarks(line.form, _REMARKS, told, width)
    return lines


def _remarks(written: "Written", most: int, told: set[str], width: int) -> list[str]:
    new = [remark for remark in written.remarks[:most] if remark not in told]
    told.update(new)
    lines = [part for remark in new for part in _item("versions", remark, width)]
    return [*lines, *_item("form", f"{written.record}  {written.place}", width)]


def _read_by(readers: Iterable["Reader"], width: int) -> list[str]:
    known = list(readers)
    if not known:
        return []
    named = [f"{r.rule} ({r.title[:1].lower()}{r.title[1:]})" for r in known[:_READERS]]
    more = f"; and {len(known) - _READERS} more" if len(known) > _READERS else ""
    return _item("read by", "; ".join(named) + more, width)


def _item(label: str, text: str, width: int) -> list[str]:
    return _wrapped(f"  {label:<{_LABEL - 2}}{text}", width, " " * _LABEL) if text else []


def _wrapped(text: str, width: int, indent: str = "    ") -> list[str]:
    from replay.report.wording import visible

    return textwrap.wrap(visible(text), width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)
