"""The cases beside a rule: small tables on which it must fire or stay silent.

`ID.cases.yaml` beside `ID.yaml` is a list of cases: `name`, `rows` (table to rows), and `finds`, what each finding of
the rule must show, or `silent: true`. They test the rule without a log, and show a reader what it is about.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
from pydantic import BaseModel, ConfigDict, model_validator

from replay.expert.engine import diagnose
from replay.expert.load import RuleBook
from replay.expert.rule import Rule
from replay.expert.yamlfile import YamlFile
from replay.store import schema


class Case(BaseModel):
    """One case. Rows without run_id belong to run 1; rows of events without a place get a line of their own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    rows: dict[str, list[dict[str, Any]]]
    finds: list[dict[str, Any]] = []
    silent: bool = False

    @model_validator(mode="after")
    def _one(self) -> "Case":
        if self.silent == bool(self.finds):
            raise ValueError("a case either finds something or is silent")
        return self


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case: `fault` is None where it holds."""

    rule: str
    case: str
    fault: str | None


def cases_of(rule: Rule) -> list[Case]:
    """Return the cases beside the rule's file.

    Raises RuleError where the file is wrong.
    """
    path = rule.path and rule.path.with_name(f"{rule.path.stem}.cases.yaml")
    if path is None or not path.is_file():
        return []
    file = YamlFile.read(path)
    return [file.model(Case, item, (index,)) for index, item in enumerate(file.items())]


def run_cases(book: RuleBook, rule: Rule) -> Iterator[Result]:
    """Run the cases of a rule; the whole book takes part, so that chains work, and its own findings are looked at."""
    for case in cases_of(rule):
        con = duckdb.connect()
        schema.create(con)
        fill(con, case.rows)
        diagnose(con, book)
        cursor = con.execute("SELECT * FROM findings WHERE rule = ? ORDER BY len(finding_id), finding_id", [rule.id])
        names = [column[0] for column in cursor.description or ()]
        found = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        yield Result(rule.id, case.name, _fault(case, found))
        con.close()


def _fault(case: Case, found: list[dict[str, Any]]) -> str | None:
    if len(found) != len(case.finds):
        said = "; ".join(f"{f['cause']} on {f['ranks']}" for f in found) or "nothing"
        return f"{len(case.finds)} findings expected, found {said}"
    for wanted, got in zip(case.finds, found, strict=True):
        for column, value in wanted.items():
            if got.get(column) != value:
                return f"{column} is {got.get(column)!r}, not {value!r}"
    return None


def fill(con: duckdb.DuckDBPyConnection, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Insert the rows, with a run, its ranks and lines of text where the case does not give them."""
    tables = schema.tables()
    given: dict[str, list[dict[str, Any]]] = {table: [dict(row) for row in items] for table, items in rows.items()}
    line = 0
    for table, items in given.items():
        columns = {column.name for column in tables[table].columns}
        for row in items:
            if "run_id" in columns and table != "runs":
                row.setdefault("run_id", 1)
            if tables[table].has_common or "line_no" in columns:
                line += 1
                row.setdefault("file_id", 1)
                row.setdefault("line_no", line)
            if tables[table].has_common:
                row.setdefault("complete", True)
                row.setdefault("t_hi", row.get("t_lo"))
    ranks = sorted({row["rank"] for items in given.values() for row in items if row.get("rank") is not None})
    given.setdefault("runs", [{"run_id": 1, "outcome": "unknown", "ranks_seen": len(ranks)}])
    given.setdefault("ranks", [{"run_id": 1, "rank": rank, "heard": True} for rank in ranks])
    given.setdefault("files", [{"file_id": 1, "path": "case.log"}])
    given.setdefault(
        "lines", [{"run_id": 1, "file_id": 1, "line_no": n, "text": f"line {n}"} for n in range(1, line + 1)]
    )
    for table, items in given.items():
        for row in items:
            names = ", ".join(f'"{name}"' for name in row)
            con.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
