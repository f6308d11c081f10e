"""A rule as one SQL query: its steps joined into bindings, the bindings grouped into findings.

The query has two levels. The inner one, `bind`, joins the rows of the steps and packs each step's row into a struct of
the columns that are needed; the outer one groups by the finding's identity and works out what the finding says. Every
value of a finding, every picked row of evidence and every count comes out of this one statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replay.expert.catalog import BACKGROUND, SIZES, Catalog
from replay.expert.conditions import (
    DRIVER,
    Conditions,
    Scope,
    conditions,
    reference_fault,
    scope,
    share_test,
    spell,
    visibility_test,
)
from replay.expert.expression import Expression, ExpressionError, quoted
from replay.expert.grouped import distinct_rows, grouped, ranks_of
from replay.expert.rule import IMPACTS, Rule, as_list
from replay.expert.template import Template
from replay.expert.yamlfile import Place

POSSIBLE = 0.8
"""Factor of certainty where a condition of time holds for some of the times within the bounds, not for all."""

PLACE = 2**32
"""Factor that makes one number of a file and a line."""


@dataclass(frozen=True, slots=True)
class Picture:
    """How one step shows in the query's result: whether its rows are evidence, date the finding, have labels."""

    name: str
    step_name: str
    is_evidence: bool
    is_dated: bool
    label: Template | None
    has_size: bool
    single: bool


@dataclass(frozen=True, slots=True)
class Query:
    """The compiled rule: its SQL, and how the columns of its result are to be read (see `build`)."""

    rule: Rule
    sql: str
    proofs: str
    """Counts the proofs of each run: run_id, number."""
    unvetoed: str
    """Counts them as if there were no `unless`."""
    vetoed: tuple[str, ...]
    """Counts what the first, the first two, ... of `unless` leave of them."""
    prefixes: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """What a step adds to the inner level: a table with the conditions that join it ("" if none), and tests."""

    own: Scope
    source: str
    joined_by: tuple[str, ...]
    tests: tuple[str, ...]


class _Builder:
    def __init__(self, rule: Rule, catalog: Catalog, with_places: bool) -> None:
        self.rule = rule
        self.with_places = with_places
        self.scopes = [
            scope(rule, catalog, name, step, ("when", index, name)) for index, (name, step) in enumerate(rule.steps)
        ]
        self.catalog = catalog
        self.joined = [s for s in self.scopes if s.step.is_joined]
        self.shown = [s for s in self.scopes if not s.step.absent]
        self.facts = [s for s in self.shown if s.table.name == "findings"]
        first = self.scopes[0]
        self.driven = not (first.step.is_joined and not first.step.optional and "run_id" in first.table)
        self.run = f"{DRIVER}.run_id" if self.driven else f"{first.alias}.run_id"
        self.list_columns = frozenset(
            (s.name, column) for s in self.shown for column, kind in s.table.columns.items() if kind.endswith("]")
        )
        self.fans_out = len(self.joined) > 1
        self.needed: dict[str, set[str]] = {s.name: set() for s in self.shown}
        self.definite: list[str] = []

    # the inner level

    def parts(self) -> Iterator[_Part]:
        """Yield what each step adds to the inner level."""
        for index, own in enumerate(self.scopes):
            earlier = [s for s in self.scopes[:index] if s.step.is_joined]

            def make(inner: Scope, earlier: list[Scope] = earlier) -> Conditions:
                return conditions(self.rule, inner, earlier, self.run)

            found = make(own)
            tests: list[str] = []
            seen = visibility_test(self.rule, own, earlier, self.run)
            if own.step.absent:
                where = " AND ".join(found.possible) or "TRUE"
                tests = [f"NOT EXISTS (SELECT 1 FROM {own.table.relation} AS {own.alias} WHERE {where})"]
                yield _Part(own, "", (), (*tests, seen) if seen else tuple(tests))
            elif own.step.exists:
                yield _Part(own, "", (), ())
            else:
                self.definite += () if own.step.optional else found.definite
                if own.step.is_counted:
                    tests.append(share_test(self.rule, own, make, self.run))
                    if own.step.count is not None and own.step.count.max is not None and seen:
                        tests.append(seen)
                yield _Part(own, f"{own.table.relation} AS {own.alias}", found.possible, tuple(tests))

    def vetoes(self) -> Iterator[str]:
        """Yield the conditions that `unless` adds."""
        for index, chain in enumerate(self.rule.vetoes):
            scopes: list[Scope] = []
            parts: list[str] = []
            wheres: list[str] = []
            for position, (name, step) in enumerate(chain):
                own = scope(self.rule, self.catalog, name, step, ("unless", index, position, name))
                if any(s.name == name for s in [*self.scopes, *scopes]):
                    raise self.rule.error(own.place, f"the name {name} is used by another step")
                seen = [*self.joined, *scopes]

                def make(inner: Scope, seen: list[Scope] = seen) -> Conditions:
                    return conditions(self.rule, inner, seen, self.run)

                if step.is_counted:
                    wheres.append(share_test(self.rule, own, make, self.run))
                elif step.absent:
                    where = " AND ".join(make(own).possible) or "TRUE"
                    wheres.append(f"NOT EXISTS (SELECT 1 FROM {own.table.relation} AS {own.alias} WHERE {where})")
                    if test := visibility_test(self.rule, own, seen, self.run):
                        wheres.append(test)
                else:
                    parts.append(f"{own.table.relation} AS {own.alias}")
                    wheres += make(own).possible
                    scopes.append(own)
            condition = " AND ".join(wheres) or "TRUE"
            if parts:
                condition = f"EXISTS (SELECT 1 FROM {', '.join(parts)} WHERE {condition})"
            yield f"NOT coalesce({condition}, FALSE)"

    def struct(self, own: Scope, visible: list[Scope], definite: str | None) -> str:
        """Return the SQL of the struct that carries a row of the step to the outer level."""
        alias, table = own.alias, own.table
        bounds = table.bounds(alias) or ("NULL::DOUBLE",) * 4
        line = own.step.line
        for column in (line.file, line.no):
            if column not in table and "line" in own.step.model_fields_set:
                raise self.rule.error((*own.place, "line"), f"{table.name} has no column {column}")
        has_line = line.file in table and line.no in table
        fields = {"_q": f"NOT coalesce({definite}, FALSE)"} if definite else {}
        if table.name == "findings":
            fields |= {"_b": f"-{alias}.certainty"}
        fields |= {
            "_t": bounds[0],
            "_f": f"{alias}.{quoted(line.file)}" if has_line else "NULL::INTEGER",
            "_l": f"{alias}.{quoted(line.no)}" if has_line else "NULL::BIGINT",
            "_i": f"{alias}.rowid",
            "_h": bounds[1],
        }
        if "at" in table:
            fields["_a"] = f"{alias}.{quoted('at')}"
        if "rank" in table:
            fields["_r"] = f"{alias}.{quoted('rank')}"
        if table.name in SIZES:
            fields["_z"] = f"{alias}.{quoted(SIZES[table.name])}::DOUBLE"
        if "is_framework" in table:
            fields["_w"] = f"{alias}.is_framework"
        if self.with_places and "file_id" in table and "line_no" in table:
            fields["_p"] = f"{alias}.file_id::BIGINT * {PLACE} + coalesce({alias}.line_no, -1 - {alias}.rowid)"
        for index, slot in enumerate(_label(own).slots if own.step.label else ()):
            place = (*own.place, "label")
            fields[f"_x{index}"] = spell(self.rule, place, slot.expression, visible, own=own, offset=slot.at)
        for column in sorted(self.needed[own.name]):
            fields[column] = f"{alias}.{quoted(column)}"
        packed = "{" + ", ".join(f"{quoted(name)}: {value}" for name, value in fields.items()) + "}"
        return f"CASE WHEN {alias}.rowid IS NOT NULL THEN {packed} END" if own.step.optional else packed

    def witness(self, own: Scope) -> str:
        """Return the subquery that finds the witness of an `exists` step: sure ones first, then the earliest."""
        index = self.scopes.index(own)
        earlier = [s for s in self.scopes[:index] if s.step.is_joined]
        found = conditions(self.rule, own, earlier, self.run)
        definite = " AND ".join(found.definite) or "TRUE"
        row = self.struct(own, [*earlier, own], definite)
        where = " AND ".join(found.possible) or "TRUE"
        return f"(SELECT min({row}) FROM {own.table.relation} AS {own.alias} WHERE {where})"

    # the outer level

    def group(self, expression: Expression, place: Place, offset: int = 0) -> str:
        """Return the SQL of an expression over the group's rows; the columns that it needs are noted."""
        by_name = {s.name: s for s in self.shown}
        try:
            for reference in expression.references:
                if reference.step is None and reference.column in by_name:
                    continue
                if fault := reference_fault(reference.step, reference.column, by_name, None):
                    raise self.rule.error(place, fault, offset + reference.at)
                if reference.step is not None:
                    self.needed[reference.step].add(reference.column)
            return grouped(expression, self.list_columns, frozenset(by_name), self.fans_out)
        except ExpressionError as error:
            raise self.rule.error(place, str(error), offset + error.at) from None

    def ranks(self, field: str) -> str:
        """Return the SQL of the ranks that `ranks` or `waiting` names."""
        value = getattr(self.rule.conclude, field)
        spelt, many = [], []
        for index, text in enumerate(as_list(value)):
            place = ("conclude", field) if isinstance(value, str) else ("conclude", field, index)
            expression = Expression(text)
            self.group(expression, place)
            plain = expression.plain
            many.append(
                (plain is not None and (plain.step or "", plain.column) in self.list_columns) or text.startswith("[")
            )
            spelt.append(expression.render(lambda s, c: f"{quoted(s)}.{quoted(c)}" if s is not None else None))
        return ranks_of(spelt, many) if spelt else "[]::INTEGER[]"

    def pictures(self) -> list[Picture]:
        """Return how each step shows in the result."""
        return [
            Picture(
                s.name,
                s.step.table,
                s.step.evidence
                and (("file_id" in s.table and "line_no" in s.table) or "line" in s.step.model_fields_set),
                s.step.evidence and s.step.table not in BACKGROUND and s.table.bounds("x") is not None,
                _label(s) if s.step.label else None,
                s.table.name in SIZES,
                s.step.exists,
            )
            for s in self.shown
        ]


def _label(own: Scope) -> Template:
    return Template(own.step.label or "")


def build(rule: Rule, catalog: Catalog, with_places: bool = True) -> Query:
    """Compile the rule.

    Columns of the result: `_run`; `_k0`... the identity; `_cause`; `_proofs` (certainty and premise of each kind of
    proof); `_ranks`, `_waiting`, `_cost`, `_impact`, `_step`, `_t0` (`_t1`); `_own` (all its code is a library's);
    per step `_n_S`, `_first_S`, `_last_S`, `_large_S`, `_places_S`; `_x0`... the slots of say and advice;
    `_r0`... the parameters of repro. Raises RuleError, with its place, for a name that does not exist.
    """
    make = _Builder(rule, catalog, with_places)
    outer: list[tuple[str, str]] = []
    conclude = rule.conclude

    outer.append(("_ranks", make.ranks("ranks")))
    outer.append(("_waiting", make.ranks("waiting")))
    for field in ("cost", "step"):
        text = getattr(conclude, field)
        outer.append((f"_{field}", make.group(Expression(text), ("conclude", field)) if text else "NULL"))
    impact = conclude.impact
    if impact is not None and impact not in IMPACTS:
        outer.append(("_impact", make.group(Expression(impact), ("conclude", "impact"))))
    bounds = as_list(conclude.t)
    outer += [(f"_t{i}", make.group(Expression(text), ("conclude", "t"))) for i, text in enumerate(bounds)]
    slots = [(place, slot) for place, template in rule.templates() if place != ("cause",) for slot in template.slots]
    outer += [(f"_x{i}", make.group(slot.expression, place, slot.at)) for i, (place, slot) in enumerate(slots)]
    parameters = rule.repro.parameters.items() if rule.repro else ()
    texts = [(("repro", "with", key), value) for key, value in parameters if isinstance(value, str)]
    outer += [(f"_r{i}", make.group(Expression(text), place)) for i, (place, text) in enumerate(texts)]

    inner, froms, wheres, prefixes = _bindings(make)
    pictures = make.pictures()
    for own, picture in zip(make.shown, pictures, strict=True):
        outer += _step_columns(make, own, picture)
    own_code = [f'coalesce(bool_and({s.alias}."_w"), FALSE)' for s in make.shown if "is_framework" in s.table]
    if own_code:
        outer.append(("_own", " AND ".join(own_code)))
    outer.append(("_proofs", _proofs(make)))
    facts = [f'list({s.alias}."_i")' for s in make.facts]
    if facts:
        outer.append(("_premises", f"flatten([{', '.join(facts)}])"))

    # Structs come last: what the outer level needs of a step is known only now.
    for own in make.shown:
        packed = make.witness(own) if own.step.exists else make.struct(own, make.joined, None)
        inner.append((own.name, packed))
    keys = [name for name, _ in inner if name == "_cause" or name.startswith("_k")]
    exist = [f"{s.alias} IS NOT NULL" for s in make.shown if s.step.exists]
    source, left = _narrowed(make, froms, wheres)
    sql = "\n".join(
        [
            "WITH bind AS (",
            "  SELECT " + ",\n    ".join(f"{value} AS {quoted(name)}" for name, value in inner),
            "  FROM " + source,
            "  WHERE " + "\n    AND ".join(left),
            ")",
            "SELECT " + ", ".join(["_run", *keys]) + ",",
            "  " + ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in outer),
            "FROM bind",
            *([f"WHERE {' AND '.join(exist)}"] if exist else []),
            "GROUP BY " + ", ".join(["_run", *keys]),
        ]
    )
    steps = len(wheres) - len(rule.unless)
    wheres[steps:steps] = [f"{make.witness(s)} IS NOT NULL" for s in make.shown if s.step.exists]
    steps = len(wheres) - len(rule.unless)
    counts = [
        _counting(f"{make.run}, count(*)", *_narrowed(make, froms, wheres[:end])) + " GROUP BY 1"
        for end in range(steps, len(wheres) + 1)
    ]
    return Query(rule, sql, counts[-1], counts[0], tuple(counts[1:]), tuple(prefixes), tuple(pictures))


def _narrowed(make: _Builder, froms: str, wheres: Sequence[str]) -> tuple[str, list[str]]:
    """Return FROM and conditions with those that are the first step's alone within it: DuckDB asks whether a row exists
    only after all joins, and rows that will not do may join with thousands each.
    """
    if make.driven:
        return froms, list(wheres)
    first, *others = make.joined
    whole = f"{first.table.relation} AS {first.alias}"
    own = [text for text in wheres if not any(f"{other.alias}." in text for other in others)]
    rowid = "rowid, " if first.table.has_rowid else ""
    narrow = f"(SELECT {rowid}* FROM {whole} WHERE {' AND '.join(own)}) AS {first.alias}"
    return narrow + froms[len(whole) :], [text for text in wheres if text not in own] or ["TRUE"]


def _counting(what: str, source: str, wheres: Sequence[str]) -> str:
    return f"SELECT {what} FROM {source} WHERE {' AND '.join(wheres)}"


def _bindings(make: _Builder) -> tuple[list[tuple[str, str]], str, list[str], list[tuple[str, str]]]:
    """Return the plain columns of the inner level, its FROM, its conditions, and a count of each prefix of steps."""
    rule = make.rule
    froms = f"runs AS {DRIVER}" if make.driven else ""
    wheres = [f"{make.run} IS NOT NULL"]
    prefixes: list[tuple[str, str]] = []
    for part in make.parts():
        if part.source and froms:
            kind = "LEFT JOIN" if part.own.step.optional else "JOIN"
            froms += f"\n    {kind} {part.source} ON {' AND '.join(part.joined_by) or 'TRUE'}"
        elif part.source:
            froms = part.source
            wheres += part.joined_by
        wheres += part.tests
        seen = wheres
        if part.own.step.exists:
            seen = [*wheres, f"{make.witness(part.own)} IS NOT NULL"]
        prefixes.append((part.own.name, _counting("count(*)", *_narrowed(make, froms, seen))))
    for number, veto in enumerate(make.vetoes(), 1):
        wheres.append(veto)
        prefixes.append((f"unless {number}", _counting("count(*)", *_narrowed(make, froms, wheres))))

    columns = [("_run", make.run)]
    per = _identity(rule)
    columns += [(f"_k{i}", _bound_expression(make, text, place)) for i, (place, text) in enumerate(per)]
    if rule.cause and "{" in rule.cause:
        template = Template(rule.cause)
        slot = template.slots[0]
        columns.append(("_cause", spell(rule, ("cause",), slot.expression, make.joined, offset=slot.at)))
    certainty = rule.conclude.certainty
    if isinstance(certainty, str):
        columns.append(("_c", f"({_bound_expression(make, certainty, ('conclude', 'certainty'))})::DOUBLE"))
    if make.definite:
        columns.append(("_d", f"coalesce({' AND '.join(make.definite)}, FALSE)"))
    return columns, froms, wheres, prefixes


def _identity(rule: Rule) -> list[tuple[Place, str]]:
    """Return the expressions of `per` with their places."""
    value = rule.conclude.per
    if isinstance(value, str):
        return [(("conclude", "per"), value)]
    return [(("conclude", "per", index), text) for index, text in enumerate(value)]


def _bound_expression(make: _Builder, text: str, place: Place) -> str:
    return spell(make.rule, place, Expression(text), make.joined)


def _proofs(make: _Builder) -> str:
    certainty = make.rule.conclude.certainty
    own = "_c" if isinstance(certainty, str) else f"{float(certainty)}::DOUBLE"
    doubts = ["_d"] if make.definite else []
    doubts += [f'NOT {s.alias}."_q"' for s in make.shown if s.step.exists and any(s.step.times())]
    if doubts:
        own = f"{own} * CASE WHEN {' AND '.join(doubts)} THEN 1.0 ELSE {POSSIBLE} END"
    if make.facts:
        premises = ", ".join(f'-{s.alias}."_b"' for s in make.facts)
        return f"list(DISTINCT {{'own': {own}, 'premise': least({premises})}})"
    return f"[{{'own': max({own}), 'premise': NULL}}]"


def _step_columns(make: _Builder, own: Scope, picture: Picture) -> Sequence[tuple[str, str]]:
    alias = own.alias
    columns = [(f"_n_{own.name}", distinct_rows(own.name)), (f"_first_{own.name}", f"min({alias})")]
    if not picture.single and picture.is_evidence:
        columns.append((f"_last_{own.name}", f"max({alias})"))
        if picture.has_size:
            sized = f"max({{'z': {alias}.\"_z\", 's': {alias}}}) FILTER (WHERE {alias}.\"_z\" IS NOT NULL)"
            columns.append((f"_large_{own.name}", f"({sized}).s"))
    if make.with_places and "file_id" in own.table and "line_no" in own.table:
        columns.append((f"_places_{own.name}", f'list({alias}."_p")'))
    return columns
