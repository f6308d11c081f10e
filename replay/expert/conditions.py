"""The steps of a rule as SQL conditions: which rows belong together, and how surely in time.

A step sees the rows of earlier joined steps by their names, which are aliases in SQL. Nothing here knows of findings or
evidence; `query` puts the conditions together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from replay.expert.catalog import HEARD, OBSERVABLES, WHATS, Catalog, Table
from replay.expert.expression import Expression, ExpressionError, is_word, literal, quoted
from replay.expert.rule import Rule, Step
from replay.expert.yamlfile import Place

DRIVER = quoted("_run")
"""Alias of `runs` where the first step of a rule gives no row of a run to start from."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A step with the SQL alias that its rows have at one place of a query."""

    name: str
    step: Step
    table: Table
    alias: str
    place: Place


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must hold for a step's row: `possible` is demanded, `definite` holds where time leaves no doubt."""

    possible: tuple[str, ...]
    definite: tuple[str, ...]


def scope(rule: Rule, catalog: Catalog, name: str, step: Step, place: Place) -> Scope:
    """Return the step with its table.

    Raises RuleError if there is no such table.
    """
    table = catalog.tables.get(step.table)
    if table is None:
        raise rule.error((*place, "from"), f"there is no table {step.table}{similar(step.table, catalog.tables)}")
    return Scope(name, step, table, quoted(name), place)


def spell(
    rule: Rule,
    place: Place,
    expression: Expression,
    visible: Sequence[Scope],
    *,
    own: Scope | None = None,
    offset: int = 0,
) -> str:
    """Return the expression as SQL over the visible aliases; a bare name is a column of `own`.

    `offset` is where the expression begins in the text at `place`. Raises RuleError, at the name, for a step or column
    that is not there.
    """
    by_name = {item.name: item for item in visible}

    def naming(step: str | None, column: str) -> str | None:
        if step is None:
            return f"{own.alias}.{quoted(column)}" if own is not None and column in own.table else None
        return f"{by_name[step].alias}.{quoted(column)}"

    try:
        for reference in expression.references:
            if fault := reference_fault(reference.step, reference.column, by_name, own):
                raise rule.error(place, fault, offset + reference.at)
        return expression.render(naming)
    except ExpressionError as error:
        raise rule.error(place, str(error), offset + error.at) from None


def reference_fault(step: str | None, column: str, by_name: dict[str, Scope], own: Scope | None) -> str | None:
    """Say what is wrong with a reference, None if nothing is."""
    if step is None:
        if is_word(column) or (own is not None and column in own.table):
            return None
        if own is None:
            return f"{column} is no step.column"
        return f"{own.table.name} has no column {column}{similar(column, own.table.columns)}"
    if step not in by_name:
        return f"there is no step {step} here{similar(step, by_name)}"
    table = by_name[step].table
    return None if column in table else f"{table.name} has no column {column}{similar(column, table.columns)}"


def conditions(rule: Rule, own: Scope, earlier: Sequence[Scope], run: str) -> Conditions:
    """Return the conditions on a row of `own`; `earlier` are the joined steps before it, `run` the SQL of the run."""
    possible: list[str] = []
    definite: list[str] = []
    if "run_id" in own.table and run != f"{own.alias}.run_id":
        possible.append(f"{own.alias}.run_id = {run}")
    possible += [f"{mine} = {other}" for mine, other in _equalities(rule, own, earlier)]
    if own.step.where is not None:
        place = (*own.place, "where")
        possible.append(f"({spell(rule, place, Expression(own.step.where), [*earlier, own], own=own)})")
    for condition in own.step.times():
        fits, surely = _time(rule, own, earlier, condition)
        possible.append(fits)
        definite.append(surely)
    return Conditions(tuple(possible), tuple(definite))


def _equalities(rule: Rule, own: Scope, earlier: Sequence[Scope]) -> list[tuple[str, str]]:
    found = []
    for column, named in own.step.equalities():
        place = (*own.place, "same", column)
        if column not in own.table:
            raise rule.error(place, f"{own.table.name} has no column {column}{similar(column, own.table.columns)}")
        other_name, _, other_column = (named or "").partition(".")
        other_column = other_column or column
        asked = [s for s in reversed(earlier) if (s.name == other_name if named else not s.step.optional)]
        fitting = [s for s in asked if other_column in s.table]
        if not fitting:
            what = f"step {other_name} with a column {other_column}" if named else f"step with a column {column}"
            raise rule.error(place, f"there is no earlier {what}")
        found.append((f"{own.alias}.{quoted(column)}", f"{fitting[0].alias}.{quoted(other_column)}"))
    return found


def tied_rank(rule: Rule, own: Scope, earlier: Sequence[Scope]) -> str | None:
    """Return the SQL of the rank that `same` ties the step to, None where it is tied to none."""
    mine = f"{own.alias}.{quoted('rank')}"
    return next((other for column, other in _equalities(rule, own, earlier) if column == mine), None)


def _low(bound: str) -> str:
    return f"coalesce({bound}, '-infinity'::DOUBLE)"


def _high(bound: str) -> str:
    return f"coalesce({bound}, 'infinity'::DOUBLE)"


def _time(rule: Rule, own: Scope, earlier: Sequence[Scope], condition: tuple[str, str, float]) -> tuple[str, str]:
    """Return (possible, definite) for one condition of time: relation, step (or step.end), seconds."""
    relation, named, seconds = condition
    place = (*own.place, relation)
    name, _, edge = named.partition(".")
    other = next((item for item in earlier if item.name == name), None)
    if other is None or edge not in ("", "end") or (edge and relation in ("overlaps", "within")):
        raise rule.error(
            place, f"{named} is no earlier step" + (" or its .end" if relation in ("after", "before") else "")
        )
    mine, theirs = own.table.bounds(own.alias), other.table.bounds(other.alias)
    if mine is None or theirs is None:
        raise rule.error(place, f"the table {(own if mine is None else other).table.name} has no times")
    lo, hi, end_lo, end_hi = mine
    o_lo, o_hi, o_end_lo, o_end_hi = theirs
    if relation in ("overlaps", "within"):
        more = f" + {float(seconds)}" if seconds else ""
        return (
            f"({_low(lo)} <= {_high(o_end_hi)}{more} AND {_low(o_lo)} <= {_high(end_hi)}{more})",
            f"({_high(hi)} <= {_low(o_end_lo)}{more} AND {_high(o_hi)} <= {_low(end_lo)}{more})",
        )
    if edge:
        o_lo, o_hi = o_end_lo, o_end_hi
    if relation == "after":
        possible, definite, order = f"{_high(hi)} >= {_low(o_lo)}", f"{_low(lo)} >= {_high(o_hi)}", ">="
    else:
        possible, definite, order = f"{_low(lo)} <= {_high(o_hi)}", f"{_high(hi)} <= {_low(o_lo)}", "<="
    if edge or not all("writer_id" in s.table and "line_no" in s.table for s in (own, other)):
        return f"({possible})", f"({definite})"
    # Within a stream the place decides: stamps there may be missing, coarse or equal.
    stream = f"{own.alias}.writer_id = {other.alias}.writer_id"
    place_order = f"{own.alias}.line_no {order} {other.alias}.line_no"
    decided = f"(CASE WHEN {stream} THEN {place_order} ELSE "
    return f"{decided}{possible} END)", f"{decided}{definite} END)"


def share_test(rule: Rule, own: Scope, make: Callable[[Scope], Conditions], run: str) -> str:
    """Return the test of a counted step: the number of its rows, or of the ranks or hosts that have one."""
    step = own.step
    inner = Scope(own.name, step, own.table, quoted(f"_{own.name}"), own.place)
    where = " AND ".join(make(inner).possible) or "TRUE"
    counted = "*"
    if step.across is not None:
        if step.across not in own.table:
            raise rule.error((*own.place, "across"), f"{own.table.name} has no column {step.across}")
        counted = f"DISTINCT {inner.alias}.{quoted(step.across)}"
    tests = []
    source = f"{own.table.relation} AS {inner.alias}"
    if step.count is not None:
        tests.append(f"count({counted}) >= {step.count.min}")
    if step.count is not None and step.count.max is not None:
        tests.append(f"count({counted}) <= {step.count.max}")
    if step.min_share is not None:
        what = "host" if step.across == "host" else observable(rule, own) or "rank"
        inner_run = f"{inner.alias}.run_id" if "run_id" in own.table else run
        source += f" LEFT JOIN {HEARD} AS _h ON _h.run_id = {inner_run} AND _h.what = {literal(what)}"
        tests.append(f"count({counted}) >= {step.min_share} * max(_h.heard)")
    return f"coalesce((SELECT {' AND '.join(tests)} FROM {source} WHERE {where}), FALSE)"


def observable(rule: Rule, own: Scope) -> str | None:
    """Return what must have been on for the absence of the step's rows to mean something, None if they always show."""
    named = own.step.observed
    if named is None:
        return OBSERVABLES.get(own.table.name)
    if named != "none" and named not in WHATS:
        raise rule.error((*own.place, "observed"), f"{named} is nothing that is observed{similar(named, WHATS)}")
    return None if named == "none" else named


def visibility_test(rule: Rule, own: Scope, earlier: Sequence[Scope], run: str) -> str:
    """Return the test that rows of the step would have been seen, "" where they always are."""
    what = observable(rule, own)
    if what is None:
        return ""
    rank = tied_rank(rule, own, earlier)
    if rank is not None:
        return (
            f"EXISTS (SELECT 1 FROM observed AS _o WHERE _o.run_id = {run} AND _o.what = {literal(what)} AND _o.is_on"
            f" AND (_o.rank = {rank} OR _o.rank IS NULL))"
        )
    return (
        f"EXISTS (SELECT 1 FROM {HEARD} AS _o WHERE _o.run_id = {run} AND _o.what = {literal(what)}"
        f" AND _o.seen > 0 AND _o.unseen = 0)"
    )


def similar(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is nearest, "" if none is near."""
    close = get_close_matches(name, list(known), 1)
    return f"; is {close[0]} meant?" if close else ""
