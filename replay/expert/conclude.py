"""From the rows of a rule's query to findings: certainty, evidence, sentences, advice for the run's versions."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from replay.expert.coverage import Coverage
from replay.expert.finding import Finding, Picked
from replay.expert.query import Picture, Query
from replay.expert.rule import IMPACTS, Impact, Rule
from replay.expert.taxonomy import Taxonomy
from replay.expert.template import Slot, Template, value_text

_CLAUSE = re.compile(r"\s*(?P<name>[a-z][a-z0-9_-]*)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<version>[0-9]+(?:\.[0-9]+)*)\s*")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)*")

_parsed = cache(Template)

Row = Mapping[str, Any]
Versions = Mapping[str, str]
"""Versions by name (torch, nccl, cuda ...) as a run told them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What findings of a database stand in: causes, coverage, versions by run, and the findings before."""

    taxonomy: Taxonomy
    coverage: Coverage
    versions: Mapping[int, Versions]


def conclude(query: Query, row: Row, setting: Setting, facts: Sequence[Finding]) -> Finding | str | None:
    """Return the finding that a row of the query's result is.

    None where the run could not have shown it; a text where the row names a cause that does not exist. `facts` are the
    findings that the query read as a table, in the order of their rows.
    """
    rule = query.rule
    run_id: int = row["_run"]
    if setting.coverage.missing(run_id, rule.requires):
        return None
    cause = _cause(rule, row)
    if cause is None:
        return None
    known = setting.taxonomy.get(cause)
    if known is None:
        return f"rule {rule.id} concluded {cause}, which is no cause of the taxonomy"
    per = tuple(str(row[name]) for name in row if name.startswith("_k"))
    pictures = [p for p in query.pictures if row[f"_first_{p.name}"] is not None]
    t_lo, t_hi = _time(row, pictures)
    cost = None if row["_cost"] is None else float(row["_cost"])
    slots = iter([row[name] for name in row if name.startswith("_x")])
    summary = _sentence(_parsed(rule.say), slots)
    return Finding(
        key=(rule.id, run_id, cause, per),
        layer=known.layer if rule.cause is None or "{" in rule.cause else rule.layer,
        kind=rule.kind or known.kind,
        ranks=tuple(row["_ranks"]),
        waiting=tuple(row["_waiting"]),
        impact=_impact(rule, row, cost),
        step=None if row["_step"] is None else int(row["_step"]),
        t_lo=t_lo,
        t_hi=t_hi,
        certainty=_certainty(row["_proofs"], setting.coverage.factor(run_id, rule.requires)),
        lost_s=cost,
        summary=summary,
        advice=_advice(rule, slots, setting.versions.get(run_id, {})),
        repro=_repro(rule, row),
        evidence=_evidence(row, pictures),
        places=frozenset(p for name in row if name.startswith("_places_") for p in row[name] or () if p is not None),
        only_library_code=bool(row.get("_own")),
        without=rule.conclude.without,
        premises=tuple(sorted({facts[i].key for i in row.get("_premises") or ()})),
    )


def merged(old: Finding | None, new: Finding) -> Finding:
    """Return the finding with the better proof; the newer one has at least the rows of the older."""
    if old is not None and old.certainty > new.certainty:
        new.certainty = old.certainty
    return new


def _cause(rule: Rule, row: Row) -> str | None:
    if rule.cause is None:
        return rule.id
    if "{" not in rule.cause:
        return rule.cause
    value = row["_cause"]
    return None if value is None else _parsed(rule.cause).fill([value])


def _certainty(proofs: Sequence[Row], coverage: float) -> float:
    values = []
    for proof in proofs:
        own = float(proof["own"] or 0.0) * coverage
        values.append(own if proof["premise"] is None else min(own, proof["premise"]))
    return round(min(max(values, default=0.0), 1.0), 4)


def _impact(rule: Rule, row: Row, cost: float | None) -> Impact:
    named = row.get("_impact") or rule.conclude.impact
    for impact in IMPACTS:
        if named == impact:
            return impact
    return "slow" if cost and cost > 0 else "none"


def _time(row: Row, pictures: Sequence[Picture]) -> tuple[float | None, float | None]:
    if "_t0" in row:
        return row["_t0"], row.get("_t1", row["_t0"])
    dated = [row[f"_first_{p.name}"] for p in pictures if p.is_dated]
    known = [(first["_t"], first["_h"]) for first in dated if first["_t"] is not None or first["_h"] is not None]
    return min(known, key=lambda bounds: bounds[0] if bounds[0] is not None else bounds[1], default=(None, None))


def _evidence(row: Row, pictures: Sequence[Picture]) -> tuple[Picked, ...]:
    """Pick the first, last and largest row of each step: all firsts before the others, in the order of the rule."""
    firsts, others = [], []
    seen: set[tuple[int, int | None, str | None]] = set()
    for picture in pictures:
        if not picture.is_evidence:
            continue
        own: set[tuple[int, int | None, str | None]] = set()
        for which in ("_first_", "_last_", "_large_"):
            item = row.get(which + picture.name)
            if item is None or item["_f"] is None:
                continue
            picked = _picked(picture, item)
            place = (picked.file_id, picked.line_no, picked.at)
            if not own:
                firsts.append(picked)
            elif place not in own and place not in seen:
                others.append(picked)
            own.add(place)
        seen |= own
    return (*firsts, *others)


def _picked(picture: Picture, item: Row) -> Picked:
    at = item.get("_a") if item["_l"] is None else None
    if picture.label is None:
        label = picture.name.replace("_", " ")
    else:
        label = picture.label.fill([item[f"_x{i}"] for i in range(len(picture.label.slots))])
    return Picked(picture.name, label, item["_t"], item.get("_r"), item["_f"], item["_l"], at)


def _filled(template: Template, values: Any) -> str:
    return template.fill([next(values) for _ in template.slots])


def _sentence(template: Template, values: Any) -> str:
    """Fill a sentence; one that begins with ranks_phrase gets a capital: "rank 3" may stand anywhere else."""
    text = _filled(template, values)
    first = template.parts[0]
    is_phrase = isinstance(first, Slot) and any(token.word == "ranks_phrase" for token in first.expression.tokens)
    return text[:1].upper() + text[1:] if is_phrase else text


def _advice(rule: Rule, values: Any, versions: Versions) -> str:
    filled = [(item.condition, _filled(_parsed(item.then), values)) for item in rule.advices]
    return next((text for condition, text in filled if condition is None or version_holds(condition, versions)), "")


def _repro(rule: Rule, row: Row) -> str | None:
    if rule.repro is None:
        return None
    spelt = iter([row[name] for name in row if name.startswith("_r") and name[2:].isdigit()])
    given = {key: next(spelt) if isinstance(value, str) else value for key, value in rule.repro.parameters.items()}
    return json.dumps({"recipe": rule.repro.recipe, "with": given}, default=value_text, sort_keys=True)


def version_holds(condition: str, versions: Versions) -> bool:
    """Tell whether versions meet a condition such as `torch >= 2.6 and nccl < 2.20`; one that is not known does not.

    Raises ValueError for what is no condition.
    """
    for text in re.split(r"\band\b", condition):
        clause = _CLAUSE.fullmatch(text)
        if clause is None:
            raise ValueError(f"{text.strip()} is no condition on a version, such as torch >= 2.6")
        found = _NUMBERS.search(versions.get(clause["name"], ""))
        if found is None or not _compare(_parts(found[0]), clause["sign"], _parts(clause["version"])):
            return False
    return True


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _compare(mine: list[int], sign: str, other: list[int]) -> bool:
    # 2.6 stands for 2.6.0, and `<= 2.6` takes 2.6.1 in: what the condition does not say is not compared.
    if sign in ("<=", "==", "!="):
        mine = mine[: len(other)]
    width = max(len(mine), len(other))
    mine, other = mine + [0] * (width - len(mine)), other + [0] * (width - len(other))
    return {
        ">=": mine >= other,
        "<=": mine <= other,
        ">": mine > other,
        "<": mine < other,
        "==": mine == other,
        "!=": mine != other,
    }[sign]
