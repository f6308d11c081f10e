"""What else it might have been, and why it was not: the rivals of a run's verdict.

A rival is another cause that was found but is no root, or a rule all of whose steps are there and that one of its own
vetoes kept silent. Rules that lack a step are no rivals; `why_not` tells of each what it lacks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from replay.expert.catalog import Catalog
from replay.expert.conclude import Setting
from replay.expert.finding import Finding
from replay.expert.query import build
from replay.expert.roots import LIKELY
from replay.expert.rule import Rule, Step
from replay.expert.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Rival:
    """Another cause of a run, the rule that speaks for it, its finding if it made one, and why it lost."""

    run_id: int
    cause: str
    rule: str
    finding_id: str | None
    summary: str
    why: str


def found(findings: Sequence[Finding]) -> Iterator[Rival]:
    """Yield the causes that were found and are no roots, in the order of the findings. They are settled."""
    above: dict[int, list[str]] = {}
    for finding in findings:
        for effects, how in ((finding.explains, "explains it"), (finding.absorbs, "holds it as a part")):
            for effect in effects:
                above.setdefault(id(effect), []).append(f"{finding.finding_id} {how}")
    for finding in findings:
        if finding.kind == "cause" and not finding.is_root:
            unsure = f"{finding.certainty:.2f} sure, less than the {LIKELY} that a root needs"
            why = "; ".join(above.get(id(finding), [])) or unsure
            yield Rival(finding.run_id, finding.cause, finding.rule, finding.finding_id, finding.summary, why)


def vetoed(
    con: duckdb.DuckDBPyConnection,
    rules: Sequence[Rule],
    catalog: Catalog,
    setting: Setting,
    findings: Sequence[Finding],
) -> Iterator[Rival]:
    """Yield, of the rules of causes, those that only a veto kept silent in a run."""
    fired = {(finding.run_id, finding.rule) for finding in findings}
    for rule in rules:
        cause = silent_cause(rule, setting.taxonomy)
        if cause is None:
            continue
        query = build(rule, catalog, with_places=False)
        try:
            stood = _runs(con, query.unvetoed)
            for run_id in sorted(stood - _runs(con, query.proofs) if stood else ()):
                if (run_id, rule.id) not in fired and not setting.coverage.missing(run_id, rule.requires):
                    number = next(n for n, sql in enumerate(query.vetoed) if run_id not in _runs(con, sql))
                    yield Rival(run_id, cause, rule.id, None, rule.title, _veto(rule, number))
        except duckdb.Error:
            continue  # on odd data; the engine has said so of the rule


def silent_cause(rule: Rule, taxonomy: Taxonomy) -> str | None:
    """Return the cause that a rule would have found where only a veto keeps it silent; None where that says nothing."""
    cause = rule.id if rule.cause is None or "{" in rule.cause else rule.cause
    kind = rule.kind or (taxonomy[cause].kind if cause in taxonomy else "cause")
    return cause if rule.unless and not rule.is_chained and kind == "cause" else None


def _runs(con: duckdb.DuckDBPyConnection, sql: str) -> set[int]:
    return {run_id for run_id, _ in con.execute(sql).fetchall()}


def _veto(rule: Rule, number: int) -> str:
    chain = [step for _, step in rule.vetoes[number]]
    return next((step.because for step in chain if step.because), " and ".join(map(_spelt, chain)))


def _spelt(step: Step) -> str:
    how = "no row of " if step.absent else ""
    return " ".join(f"{how}{step.table}{f' where {step.where}' if step.where else ''}".split())
