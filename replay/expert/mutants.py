"""Whether a rule's cases hold each of its conditions: mutants of the rule, each with one condition left out.

A condition that can go without a case noticing is either of no use or not tested. A mutant leaves out a step, an entry
of `unless`, a step of such a chain, or one condition of a step: a part of `where` that an AND joins, one column of
`same`, one relation in time, a bound of a count or share. A step that the finding's words need becomes optional
instead; one that other steps need is held by them, since the rule does not compile without it. Not looked at:
conditions of optional steps, which only show more, steps that only show the other side of a row
(`rest.rowid = odd.rowid`), and the run itself, which is always there.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from replay.expert.cases import Bench, Case, number_of, shown
from replay.expert.catalog import Catalog
from replay.expert.engine import Session, show_facts
from replay.expert.expression import Expression
from replay.expert.finding import Finding
from replay.expert.load import RuleBook
from replay.expert.query import build
from replay.expert.rule import Rule, as_list
from replay.expert.yamlfile import RuleError

_TIMES = ("after", "before", "overlaps")
_KINDS = ("exists", "absent", "optional", "count", "across")
_SAME_ROW = re.compile(r"\s*(\w+)\.rowid = (\w+)\.rowid\s*")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule without one condition; `what` says which."""

    rule: Rule
    what: str
    is_shown_only: bool
    """It is an optional step: it changes what a finding shows, never whether there is one."""


def mutants(rule: Rule, catalog: Catalog) -> Iterator[Mutant]:
    """Yield the mutants of a rule that compile."""
    source = rule.model_dump(by_alias=True, exclude_unset=True)
    for index, item in enumerate(source["when"]):
        ((name, step),) = item.items()
        if _SAME_ROW.fullmatch(step.get("where") or "") or (
            set(step) <= {"from", "evidence"} and step["from"] == "runs"
        ):
            continue
        yield from _without_step(source, index, name, catalog)
        for what, changed in () if step.get("optional") else _less(name, step):
            document = deepcopy(source)
            document["when"][index] = {name: changed}
            yield from _made(document, f"step {name}: {what}", catalog)
    for index, veto in enumerate(source.get("unless", ())):
        document = deepcopy(source)
        del document["unless"][index]
        yield from _made(document, f"unless {index + 1}", catalog)
        chain = veto if isinstance(veto, list) else [veto if "from" not in veto else {"other": veto}]
        for position, named in enumerate(chain):
            ((name, step),) = named.items()
            where = f"unless {index + 1}, {name}"
            if len(chain) > 1:
                document = deepcopy(source)
                document["unless"][index] = [other for at, other in enumerate(chain) if at != position]
                yield from _made(document, where, catalog)
            for what, changed in _less(name, step):
                document = deepcopy(source)
                document["unless"][index] = [
                    {name: changed} if at == position else other for at, other in enumerate(chain)
                ]
                yield from _made(document, f"{where}: {what}", catalog)


def _without_step(source: Document, index: int, name: str, catalog: Catalog) -> Iterator[Mutant]:
    document = deepcopy(source)
    step = document["when"][index][name]
    del document["when"][index]
    if document["when"]:
        made = list(_made(document, f"step {name}", catalog, bool(step.get("optional"))))
        if made or step.get("optional"):
            yield from made
            return
    kept = ("id", "title", "layer", "when", "unless")
    bare = {key: value for key, value in document.items() if key in kept} | {"conclude": {}, "say": "-"}
    if document["when"] and not list(_made(bare, "", catalog)):
        return
    document = deepcopy(source)
    document["when"][index][name] = {key: value for key, value in step.items() if key not in _KINDS} | {
        "optional": True
    }
    yield from _made(document, f"step {name}", catalog)


def _made(document: Document, what: str, catalog: Catalog, is_shown_only: bool = False) -> Iterator[Mutant]:
    try:
        rule = Rule.model_validate(document)
        build(rule, catalog)
    except (ValueError, RuleError):
        return
    yield Mutant(rule, what, is_shown_only)


def _less(name: str, step: Document) -> Iterator[tuple[str, Document]]:
    """Yield the step without one of its conditions, and which."""
    if step.get("where"):
        parts = Expression(step["where"]).conjuncts()
        for index, part in enumerate(parts):
            rest = [other.text for at, other in enumerate(parts) if at != index]
            yield " ".join(part.text.split()), _changed(step, "where", " AND ".join(rest) or None)
    same = step.get("same") or {}
    for column in same:
        kept = {key: same[key] for key in same if key != column} if isinstance(same, dict) else [*same]
        if isinstance(kept, list):
            kept.remove(column)
        yield f"same {column}", _changed(step, "same", kept or None)
    for relation in _TIMES:
        value = step.get(relation)
        others = as_list(value)
        for other in others:
            left = [one for one in others if one != other]
            yield f"{relation} {other}", _changed(step, relation, left or None)
    for other in step.get("within") or ():
        rest_within = {key: value for key, value in step["within"].items() if key != other}
        yield f"within {other}", _changed(step, "within", rest_within or None)
    count = step.get("count") or {}
    if count.get("min", 1) > 1:
        yield f"count of {count['min']} and more", _changed(step, "count", {**count, "min": 1})
    if count.get("max") is not None:
        yield f"count up to {count['max']}", _changed(step, "count", {"min": count.get("min", 1)})
    if step.get("min_share") is not None:
        fewer = {key: value for key, value in step.items() if key != "min_share"}
        yield "min_share", fewer if count else _changed(fewer, "count", {"min": 1})


def _changed(step: Document, field: str, value: Any) -> Document:
    changed = {**step, field: value}
    return {key: each for key, each in changed.items() if each is not None}


@dataclass(frozen=True, slots=True)
class Survivor:
    """A condition that no case of the rule needs."""

    rule: str
    what: str
    mutant: Mutant


def survivors(bench: Bench, book: RuleBook) -> Iterator[Survivor]:
    """Yield the mutants of the rules on the bench that pass all cases of their rule."""
    session = Session.over(bench.con, book)
    facts = sorted(bench.facts, key=lambda finding: finding.key)
    show_facts(bench.con, facts)
    cases: dict[str, dict[int, Case]] = defaultdict(dict)
    rules = {}
    for number, (rule, case) in enumerate(bench.cases):
        cases[rule.id][number] = case
        rules[rule.id] = rule
    for rule in rules.values():
        own = cases[rule.id]
        sure = _Shown(session, facts, own, rule)
        for mutant in mutants(rule, session.catalog):
            if not sure.differs(_Shown(session, facts, own, mutant.rule), by_number=not mutant.is_shown_only):
                yield Survivor(rule.id, mutant.what, mutant)


class _Shown:
    """What a rule shows in its cases: asked no further than it takes to tell it from another."""

    def __init__(self, session: Session, facts: Sequence[Finding], cases: Mapping[int, Case], rule: Rule) -> None:
        self._session, self._facts, self._cases, self._rule = session, facts, cases, rule

    def differs(self, other: "_Shown", *, by_number: bool) -> bool:
        """Tell whether a case sees another thing; `by_number`: first by whether there is a proof at all."""
        return (by_number and self._proven != other._proven) or self._findings != other._findings

    @cached_property
    def _proven(self) -> set[int]:
        """The cases in which there is a proof."""
        query = build(self._rule, self._session.catalog)
        return {number_of(run) for run, _ in self._session.con.execute(query.proofs).fetchall()} & self._cases.keys()

    @cached_property
    def _findings(self) -> dict[int, list[list[Any]]]:
        """By case what its `finds` look at, as far as the rule alone decides it."""
        found: dict[int, list[list[Any]]] = {number: [] for number in self._cases}
        for finding in sorted(self._session.run(self._rule, self._facts), key=lambda one: one.key):
            case = self._cases.get(number_of(finding.run_id))
            if case is not None:
                asked = sorted({name for wanted in case.finds for name in wanted})
                found[number_of(finding.run_id)].append([shown(finding, name) for name in asked])
        return found
