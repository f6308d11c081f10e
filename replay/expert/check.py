"""What is wrong with rules before they meet a log: names, causes, chains, and SQL that DuckDB would not take.

The engine itself looks only at rules that can fire; here every rule is compiled against an empty run database.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import duckdb

from replay.expert.catalog import FACT_COLUMNS, FACTS, WHATS, Catalog
from replay.expert.causes import causes_of
from replay.expert.conclude import version_holds
from replay.expert.conditions import similar
from replay.expert.coverage import Coverage
from replay.expert.expression import Expression, ExpressionError
from replay.expert.load import RuleBook
from replay.expert.query import build
from replay.expert.rule import Rule, Step, as_list
from replay.expert.template import Template
from replay.expert.yamlfile import RuleError
from replay.store import schema


def check(book: RuleBook, own: Iterable[Rule] | None = None) -> list[RuleError]:
    """Return the faults of the rules (of `own` alone, if given), each with file, line and column."""
    con = duckdb.connect()
    schema.create(con)
    book.prepare(con)
    Coverage.measure(con)
    con.execute(f"CREATE TEMP TABLE {FACTS} ({', '.join(f'{n} {t}' for n, t in FACT_COLUMNS.items())})")
    catalog = Catalog.of(con)
    concluded = {rule.id: _concluded(rule, book) for rule in book.rules}
    faults: list[RuleError] = []
    for rule in book.rules if own is None else own:
        faults += _vocabulary(rule, book)
        faults += _place(rule)
        faults += _premises(rule, book, concluded)
        faults += _sql(rule, catalog, con)
    return faults + _circles(book, concluded)


def mutual(book: RuleBook, own: Iterable[Rule]) -> list[str]:
    """Return what is worth knowing of causes that these rules explain, or absorb, and that do the same to them.

    It is no fault: of two such findings the earlier one is the root.
    """
    reach: dict[str, dict[str, str]] = {}
    symptoms = [cause.id for cause in book.taxonomy.values() if cause.kind == "symptom"]
    for rule in book:
        named = {n for e in (*rule.conclude.explained, *rule.conclude.absorbed) for n in as_list(e.cause)}
        effects = named - {"symptoms"} | (set(symptoms) if "symptoms" in named else set())
        for cause in _concluded(rule, book):
            for effect in effects - {cause}:
                reach.setdefault(cause, {}).setdefault(effect, rule.id)
    notes = [
        f"{cause} (rule {rule.id}) and {effect} (rule {reach[effect][cause]}) explain or absorb each other: "
        "the earlier one is the root"
        for rule in own
        for cause in sorted(_concluded(rule, book))
        for effect in sorted(reach.get(cause, {}))
        if reach[cause][effect] == rule.id and cause in reach.get(effect, {})
    ]
    return list(dict.fromkeys(notes))


def _concluded(rule: Rule, book: RuleBook) -> frozenset[str]:
    """The causes that a rule can conclude; none where it says them in a way that cannot be read: others tell that."""
    try:
        return causes_of(rule, book)
    except (ExpressionError, RuleError):
        return frozenset()


def _vocabulary(rule: Rule, book: RuleBook) -> Iterator[RuleError]:
    cause = rule.cause or rule.id
    if "{" in cause:
        try:
            slots = Template(cause).slots
        except ExpressionError as error:
            yield rule.error(("cause",), str(error), error.at)
        else:
            if len(slots) != 1:
                yield rule.error(("cause",), "a cause that the rows say is one {expression}")
    elif cause not in book.taxonomy:
        where = ("cause",) if rule.cause else ("id",)
        yield rule.error(where, f"{cause} is no cause of the taxonomy{similar(cause, book.taxonomy)}")
    else:
        known = book.taxonomy[cause]
        if known.layer != rule.layer:
            yield rule.error(("layer",), f"{cause} belongs to the layer {known.layer}")
        explained = rule.conclude.explained or rule.conclude.absorbed
        if (rule.kind or known.kind) in ("hazard", "note") and explained:
            yield rule.error(("conclude", "explains"), "a hazard or note explains and absorbs nothing")
    for field, effects in (("explains", rule.conclude.explained), ("absorbs", rule.conclude.absorbed)):
        for index, effect in enumerate(effects):
            for name in as_list(effect.cause):
                if name != "symptoms" and name not in book.taxonomy:
                    yield rule.error(
                        ("conclude", field, index), f"{name} is no cause of the taxonomy{similar(name, book.taxonomy)}"
                    )
    for index, what in enumerate(rule.requires):
        if what not in WHATS:
            yield rule.error(("requires", index), f"{what} is nothing that is observed{similar(what, WHATS)}")
    for index, advice in enumerate(rule.advices):
        if advice.condition is not None:
            try:
                version_holds(advice.condition, {})
            except ValueError as error:
                yield rule.error(("advice", index, "if"), str(error))


def _place(rule: Rule) -> Iterator[RuleError]:
    path = rule.path
    if path is None:
        return
    if path.stem != rule.id:
        yield rule.error(("id",), f"the rule {rule.id} belongs into a file {rule.id}.yaml")
    layers = {"compile", "sync", "interplay", "reproducibility", "environment"}
    if path.parent.name in layers and path.parent.name != rule.layer:
        yield rule.error(("layer",), f"a rule of the layer {rule.layer} belongs into the folder {rule.layer}")


def _literals(step: Step, column: str) -> set[str]:
    """Return the texts that a step's `where` compares a column with."""
    found: set[str] = set()
    for part in Expression(step.where).conjuncts() if step.where else ():
        if any(r.column == column for r in part.references):
            found |= {token.text[1:-1] for token in part.tokens if token.kind == "string"}
    return found


def _premises(rule: Rule, book: RuleBook, concluded: Mapping[str, frozenset[str]]) -> Iterator[RuleError]:
    for index, (name, step) in enumerate(rule.steps):
        if step.table != "findings":
            continue
        place = ("when", index, name)
        if step.absent or (step.count is not None and step.count.max is not None):
            yield rule.error(
                (*place, "from"), "the absence of a finding proves nothing: another rule may still make it"
            )
        try:
            causes, rules = _literals(step, "cause"), _literals(step, "rule")
        except ExpressionError:
            continue  # _sql says it.
        for cause in sorted(causes):
            if not any(cause in made for made in concluded.values()):
                yield rule.error(
                    (*place, "where"), f"unreachable: no rule concludes {cause}{similar(cause, book.taxonomy)}"
                )
        for other in sorted(rules - concluded.keys()):
            yield rule.error((*place, "where"), f"unreachable: there is no rule {other}{similar(other, concluded)}")


def _sql(rule: Rule, catalog: Catalog, con: duckdb.DuckDBPyConnection) -> Iterator[RuleError]:
    try:
        query = build(rule, catalog)
    except RuleError as error:
        yield error
        return
    except ExpressionError as error:
        yield rule.error((), str(error))
        return
    try:
        con.execute("EXPLAIN " + query.sql)
    except duckdb.Error as error:
        yield rule.error((), f"DuckDB does not take its SQL: {str(error).splitlines()[0]}")


def _circles(book: RuleBook, concluded: Mapping[str, frozenset[str]]) -> list[RuleError]:
    """Return an error for each rule that reads, over others, what it concludes itself."""
    reads: dict[str, set[str]] = {}
    for rule in book.rules:
        for _, step in rule.steps:
            if step.table != "findings":
                continue
            try:
                causes, rules = _literals(step, "cause"), _literals(step, "rule")
            except ExpressionError:
                continue
            for other, made in concluded.items():
                if (not causes or causes & made) and (not rules or other in rules):
                    reads.setdefault(rule.id, set()).add(other)
    faults = []
    for rule in book.rules:
        seen: set[str] = set()
        work = list(reads.get(rule.id, ()))
        while work:
            other = work.pop()
            if other not in seen:
                seen.add(other)
                work += reads.get(other, ())
        if rule.id in seen:
            faults.append(rule.error(("when",), f"the rule {rule.id} builds on findings that build on it"))
    return faults


def check_folder(folder: Path, book: RuleBook) -> list[RuleError]:
    """Return the faults of the rules of one folder in the book."""
    return check(book, [rule for rule in book.rules if rule.path is not None and rule.path.is_relative_to(folder)])
