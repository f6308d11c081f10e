"""The begin of a rule: a file that passes the checks and says what to change, a case that fires and one that does not,
and the cause's entry in a taxonomy where none has it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from replay.errors import InputError, UsageError
from replay.expert.conditions import similar
from replay.expert.load import RuleBook
from replay.expert.rule import ID
from replay.expert.taxonomy import Kind, Layer
from replay.store import schema

_RULE = """\
# A rule: what rows must be there, and what happened then. docs/rules.md says what every field means;
#   replay rules check {folder}       is it right        replay rules test {folder}    do its cases hold
#   replay why-not LOGS {id} --rules {folder}    how far it comes in some logs
# Change what is in capitals.
id: {id}
title: WHAT HAPPENED, IN ONE SENTENCE
layer: {layer}
{cause}when:
  - seen:                                  # a row of a table; more steps may follow (docs/schema.md lists the tables)
      from: {table}
      where: {where}
      label: "{label}"
# unless:                                  # and it was something else if there is such a row
#   - {{from: exits, where: "signal = 'SIGKILL'"}}
conclude:
{ranks}  impact: failed                         # failed, hung, slow, wrong-numbers, none
  certainty: 0.9
{explains}say: "{say}"
advice: WHAT TO DO, WITH THE FLAG, THE API OR THE LINE
safety: WHAT THIS RULE MUST NOT BE FOOLED BY
"""
_RANKS = """\
  per: seen.rank                         # one finding for each
  ranks: seen.rank                       # at fault
"""
_EXPLAINS = """\
  explains: [symptoms]                   # so timeouts and lost connections are no roots
"""
_CASES = """\
- name: what it is about
  rows: {{{table}: [{fires}]}}
  finds: [{{cause: {cause}}}]
- name: something like it that is none
  rows: {{{table}: [{silent}]}}
  silent: true
"""
_CAUSE = """\
- {{id: {cause}, layer: {layer}, kind: cause, signal: "WHAT SHOWS IT IN LOGS"}}
"""

_NUMBERS = frozenset({"BIGINT", "INTEGER", "DOUBLE"})


@dataclass(frozen=True, slots=True)
class New:
    """What a new rule is to be: its id, the table that its first step reads, its cause, the layer of a new cause."""

    id: str
    table: str
    cause: str
    layer: Layer | None = None


def scaffold(book: RuleBook, new: New, folder: Path) -> list[Path]:
    """Write the files of a new rule into a folder and return them.

    Raises UsageError for a name that is none or is taken, InputError where a file is there or cannot be written.
    """
    for name in (new.id, new.cause):
        if not re.match(ID, name):
            raise UsageError(f"{name}: an id is words of small letters and digits with - between, as data-loader-stuck")
    if new.id in book.by_id:
        raise UsageError(f"the rule {new.id} is there already ({book.by_id[new.id].path})")
    tables = {name: t for name, t in schema.tables().items() if t.section in ("event", "derived")}
    if new.table not in tables:
        raise UsageError(f"rules read no table {new.table}{similar(new.table, tables)}")
    known = book.taxonomy.get(new.cause)
    if known is not None and new.layer not in (None, known.layer):
        raise UsageError(f"{new.cause} belongs to the layer {known.layer}")
    layer = known.layer if known else new.layer or "environment"
    files = _texts(new, folder, tables[new.table], layer, known.kind if known else "cause")
    if known is None:
        taxonomy = folder / "taxonomy.yaml"
        before = taxonomy.read_text(encoding="utf8") if taxonomy.is_file() else "# Causes of our own.\n"
        files[taxonomy] = before.rstrip("\n") + "\n" + _CAUSE.format(cause=new.cause, layer=layer)
    if there := next((path for path in files if path.exists() and path.name != "taxonomy.yaml"), None):
        raise InputError(f"{there}: is there already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf8")
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written ({error.strerror})") from error
    return list(files)


def _texts(new: New, folder: Path, table: schema.Table, layer: Layer, kind: Kind) -> dict[Path, str]:
    common = {column.name for column in schema.common()}
    own = [column for column in table.columns if column.name not in common]
    has_rank = table.has_common or any(column.name == "rank" for column in own)
    given = "rank: 3, " if has_rank else ""
    text = next((column.name for column in own if column.type == "VARCHAR"), None)
    value = text or next(column.name for column in own if column.type in _NUMBERS and column.name != "run_id")
    if text:
        where, fires, silent = f"{value} = 'CHANGE ME'", f"{value}: CHANGE ME", f"{value}: something else"
    else:
        where, fires, silent = f"{value} > 100", f"{value}: 101", f"{value}: 1"
    rule = _RULE.format(
        id=new.id,
        folder=folder,
        layer=layer,
        cause="" if new.cause == new.id else f"cause: {new.cause}\n",
        table=table.name,
        where=where,
        label=f"WHAT THIS LINE SHOWS: {{seen.{value}}}",
        ranks=_RANKS if has_rank else "",
        explains=_EXPLAINS if kind == "cause" else "",
        say=("{ranks_phrase(seen.rank)} " if has_rank else "THE RUN ") + f"DID THIS: {{seen.{value}}}",
    )
    cases = _CASES.format(table=table.name, fires=f"{{{given}{fires}}}", silent=f"{{{given}{silent}}}", cause=new.cause)
    return {folder / f"{new.id}.yaml": rule, folder / f"{new.id}.cases.yaml": cases}
