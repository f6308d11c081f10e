"""`replay rules`: read, check and explain the rules that findings come from."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen
from replay.errors import UsageError

if TYPE_CHECKING:
    from replay.expert.load import RuleBook
    from replay.expert.rule import Rule, Step

app = typer.Typer(help="The rules that findings come from.", invoke_without_command=True)

_Folders = Annotated[
    list[Path] | None,
    typer.Option("--rules", metavar="DIR", help="A folder of rules beside the built-in ones; may be given again."),
]
_Id = Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule.")]


_KINDS = ((False, "fires"), (True, "stays silent"))


class RuleFormat(StrEnum):
    """How a list of rules is written."""

    TEXT = "text"
    JSON = "json"


class RuleLayer(StrEnum):
    """Where a cause arises."""

    COMPILE = "compile"
    SYNC = "sync"
    INTERPLAY = "interplay"
    REPRODUCIBILITY = "reproducibility"
    ENVIRONMENT = "environment"


@app.callback()
def options(context: typer.Context) -> None:
    """Show the help where no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_rules(
    rules: _Folders = None,
    output: Annotated[RuleFormat, typer.Option("--format", "-f", help="How to write the list.")] = RuleFormat.TEXT,
) -> None:
    """List the rules: id, layer, title."""
    book = _book(rules)
    if output is RuleFormat.JSON:
        items = [{"id": r.id, "layer": r.layer, "cause": r.cause or r.id, "title": r.title} for r in book]
        screen.write(json.dumps(items, indent=1, ensure_ascii=False) + "\n")
        return
    screen.write(screen.table([["rule", "layer", "title"], *([r.id, r.layer, r.title] for r in book)]))


@app.command("show")
def show(rule: _Id, rules: _Folders = None) -> None:
    """Print a rule as it is written."""
    path = rule_named(_book(rules), rule).path
    screen.write(path.read_text() if path is not None else "")


@app.command("check")
def check(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR]...", help="Folders of rules; without any, the built-in ones.")
    ] = None,
) -> None:
    """Check rules against the schema, and against the cases beside them; end with 1 if any is wrong."""
    from replay.expert.cases import run_cases
    from replay.expert.check import check as faults_of
    from replay.expert.check import mutual

    book = _book(folders)
    own = _own(book, folders)
    faults = [str(fault) for fault in faults_of(book, own)]
    results = [] if faults else run_cases(book, own)
    faults += [f"{r.rule}: case {r.case!r}: {r.fault}" for r in results if r.fault]
    for note in mutual(book, own) if folders and not faults else ():
        screen.write(f"note: {note}\n")
    _tell(faults, rules=len(own), cases=len(results))


@app.command("test")
def run_tests(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR]...", help="Folders of rules; without any, the built-in ones.")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Leave out each condition in turn: a case must notice it.")
    ] = False,
) -> None:
    """Run the cases beside rules; end with 1 if one fails or a rule has none that fires or none that is silent."""
    from replay.expert.cases import Bench, cases_of
    from replay.expert.mutants import survivors

    book = _book(folders)
    own = _own(book, folders)
    faults = []
    for rule in own:
        kinds = {case.silent for case in cases_of(rule)}
        faults += [f"{rule.id}: no case in which it {how}" for silent, how in _KINDS if silent not in kinds]
    bench = Bench(book, own)
    results = bench.results(book)
    faults += [f"{r.rule}: case {r.case!r}: {r.fault}" for r in results if r.fault]
    if mutants:
        faults += [f"{s.rule}: no case needs: {s.what}" for s in survivors(bench, book)]
    _tell(faults, rules=len(own), cases=len(results))


@app.command("new")
def new(
    rule: Annotated[str, typer.Argument(metavar="ID", help="Id of the new rule, as data-loader-stuck.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Your own folder of rules; made if it is not there.")],
    table: Annotated[
        str, typer.Option("--from", metavar="TABLE", help="The table that its first step reads (docs/schema.md).")
    ] = "exceptions",
    cause: Annotated[
        str | None, typer.Option("--cause", metavar="CAUSE", help="The cause that it concludes (default: its id).")
    ] = None,
    layer: Annotated[RuleLayer | None, typer.Option("--layer", help="Of a cause that no taxonomy has yet.")] = None,
) -> None:
    """Begin a rule: a file to fill in and its cases, which pass `rules check` as they are."""
    from replay.expert.scaffold import New, scaffold

    book = _book([folder] if folder.is_dir() else None)
    wanted = New(rule, table, cause or rule, layer.value if layer else None)
    for path in scaffold(book, wanted, folder):
        screen.write(f"{path}\n")


@app.command("schema")
def schema_of_rules() -> None:
    """Print the JSON Schema of a rule file, for editors that check and complete YAML."""
    from replay.expert.load import rule_schema

    screen.write(json.dumps(rule_schema(), indent=1, ensure_ascii=False) + "\n")


@app.command("explain")
def explain(
    rule: _Id,
    rules: _Folders = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the query that the rule is compiled to.")] = False,
) -> None:
    """Say what a rule looks for, what it must not be fooled by, and what it advises."""
    book = _book(rules)
    chosen = rule_named(book, rule)
    screen.write(_sql(book, chosen) if sql else _explained(chosen))


def _book(folders: list[Path] | None) -> "RuleBook":
    from replay.expert.load import load_rules

    return load_rules(folders or ())


def _own(book: "RuleBook", folders: list[Path] | None) -> "list[Rule]":
    """The rules in these folders; without any, all."""
    return [r for r in book if not folders or any(r.path and r.path.is_relative_to(f) for f in folders)]


def _tell(faults: list[str], *, rules: int, cases: int) -> None:
    """Print what is wrong and how much was looked at; end with 1 if anything is."""
    for fault in faults:
        screen.write(f"{fault}\n")
    screen.write(f"{rules} rules, {cases} cases, {len(faults)} faults\n")
    if faults:
        raise typer.Exit(1)


def rule_named(book: "RuleBook", name: str) -> "Rule":
    found = book.by_id.get(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, list(book.by_id), 3)
        raise UsageError(
            f"no rule {name}" + (f"; did you mean {' or '.join(near)}?" if near else " (replay rules list)")
        )
    return found


def _explained(rule: "Rule") -> str:
    lines = [f"{rule.id}: {rule.title}", f"concludes {rule.cause or rule.id} ({rule.layer})", ""]
    if rule.requires:
        lines.append(f"needs     {', '.join(rule.requires)} to have been logged")
    for name, step in rule.steps:
        how = "no row of" if step.absent else "a row of" if step.exists else "rows of"
        lines.append(f"when      {how} {_condition(name, step)}")
    lines += ["unless    " + " and ".join(_condition(n, s) for n, s in chain) for chain in rule.vetoes]
    texts = [("says", rule.say), ("safety", rule.safety), ("mistakes", rule.falsepositives)]
    texts += [("advice", f"{a.then}" + (f" (if {a.condition})" if a.condition else "")) for a in rule.advices]
    texts += [("see", reference) for reference in rule.references]
    lines += [f"{name:<10}{' '.join(text.split())}" for name, text in texts if text]
    return "\n".join(lines) + "\n"


def _condition(name: str, step: "Step") -> str:
    return f"{step.table} ({name})" + (f" where {step.where}" if step.where else "")


def _sql(book: "RuleBook", rule: "Rule") -> str:
    import duckdb

    from replay.expert.catalog import Catalog
    from replay.expert.query import build
    from replay.store import schema

    con = duckdb.connect()
    schema.create(con)
    book.prepare(con)
    return build(rule, Catalog.of(con)).sql.strip() + "\n"
