"""Which causes a rule can conclude, and what must have been logged for it to see them."""

from collections.abc import Mapping

from replay.expert.catalog import OBSERVABLES
from replay.expert.expression import Expression
from replay.expert.knowledge import read_knowledge
from replay.expert.load import RuleBook
from replay.expert.rule import Rule
from replay.expert.template import Template

_COLUMNS: Mapping[str, str] = {
    "guard_failures": "recompile-",
    "recompiles": "recompile-",
    "recompile_limits": "recompile-",
    "graph_breaks": "graph-break-",
}
"""Tables with a column `cause`, and how the ids in it begin."""


def causes_of(rule: Rule, book: RuleBook) -> frozenset[str]:
    """Return the ids of the taxonomy that a rule can conclude, also where its rows say which."""
    named = rule.cause or rule.id
    if "{" not in named:
        return frozenset({named})
    steps = dict(rule.steps)
    found: set[str] = set()
    for slot in Template(named).slots:
        found |= _literals(slot.expression, book)
        for reference in slot.expression.references:
            table = steps[reference.step].table if reference.step in steps else ""
            if table in book.knowledge:
                known = read_knowledge(table, book.knowledge[table])
                place = known.columns.index(reference.column) if reference.column in known.columns else None
                found |= {str(row[place]) for row in known.rows} if place is not None else set()
            elif reference.column == "cause" and table in _COLUMNS:
                found |= {cause for cause in book.taxonomy if cause.startswith(_COLUMNS[table])}
    return frozenset(found & book.taxonomy.keys())


def _literals(expression: Expression, book: RuleBook) -> set[str]:
    texts = {token.text[1:-1] for token in expression.tokens if token.kind == "string"}
    return texts & book.taxonomy.keys()


def needs(rule: Rule) -> frozenset[str]:
    """Return what of `observed` must have been on for a rule to see what it is about."""
    read = {
        OBSERVABLES[step.table]
        for _, step in rule.steps
        if step.table in OBSERVABLES and not step.optional and not step.absent and step.observed != "none"
    }
    return frozenset(read.union(rule.requires))
