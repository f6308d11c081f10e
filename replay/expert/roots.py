"""What explains what, and so which findings are roots: the part of the engine that looks at all findings of a run.

An edge goes from a cause to its effect (`explains`) or from a whole to its part (`absorbs`). What such an edge reaches
is no root. Edges that run in a circle are cut where they enter the earliest finding of the circle.
"""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from replay.expert.finding import Finding
from replay.expert.rule import IMPACTS, Effect, Rule, as_list
from replay.expert.taxonomy import Taxonomy

SLACK_S = 1.0
"""Seconds that an effect may seem to come before its cause: stamps of many lines count whole seconds."""

LIKELY = 0.5
"""Certainty from which a finding can be a root, and can keep another from being one."""

NEARLY_NOTHING_S = 1.0
NEARLY_NOTHING_SHARE = 0.01
"""A cost below the one or below this share of the run is as good as none."""

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|attempt_[0-9]+|[0-9]{4,}")


def settle(
    findings: Sequence[Finding], rules: Mapping[str, Rule], taxonomy: Taxonomy, spans: Mapping[int, float | None]
) -> list[Finding]:
    """Return the findings in the order of a report, with edges, roots, ids and fingerprints.

    `spans` are the lengths of the runs in seconds.
    """
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for finding in sorted(findings, key=lambda f: f.key):
        by_run[finding.run_id].append(finding)
    for run_id, group in by_run.items():
        _connect(group, rules, taxonomy)
        _demote(group, spans.get(run_id))
        _cut_cycles(group)
        _spread_impact(group)
        _mark_roots(group)
    ordered = sorted((f for group in by_run.values() for f in group), key=_order)
    for number, finding in enumerate(ordered, 1):
        finding.finding_id = f"F{number}"
        finding.fingerprint = fingerprint(finding)
    return ordered


def _connect(group: Sequence[Finding], rules: Mapping[str, Rule], taxonomy: Taxonomy) -> None:
    by_cause: dict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(group, key=_age):
        by_cause[finding.cause].append(finding)
    symptoms = [f for f in group if f.kind == "symptom"]
    for one in group:
        if one.kind not in ("cause", "symptom"):
            continue
        conclude = rules[one.rule].conclude
        explained, absorbed = _Edges(one.explains), _Edges(one.absorbs)
        for effect in conclude.explained:
            for other in _named(effect, by_cause, symptoms, but=one.cause):
                if other.cause != one.cause and _explains(effect, one, other):
                    explained.add(other)
        for effect in conclude.absorbed:
            for other in _named(effect, by_cause, symptoms):
                if other is not one and _fits(effect, one, other) and _shares(effect, one, other):
                    absorbed.add(other)
    for alike in by_cause.values():
        _explain_alike(alike, rules)
        _absorb_same(alike)


class _Edges:
    """Adds findings to a list, each once."""

    def __init__(self, target: list[Finding]) -> None:
        self._target = target
        self._seen = {id(finding) for finding in target}

    def add(self, other: Finding) -> None:
        if id(other) not in self._seen:
            self._seen.add(id(other))
            self._target.append(other)


def _named(
    effect: Effect, by_cause: Mapping[str, list[Finding]], symptoms: list[Finding], but: str = ""
) -> Iterator[Finding]:
    for cause in as_list(effect.cause):
        if cause != but:
            yield from symptoms if cause == "symptoms" else by_cause.get(cause, ())


def _explains(effect: Effect, one: Finding, other: Finding) -> bool:
    return other is not one and not _earlier(other, one) and _fits(effect, one, other)


def _explain_alike(alike: Sequence[Finding], rules: Mapping[str, Rule]) -> None:
    """Draw edges between findings of one cause, the older ones first: each is explained by the first that fits.

    A thousand ranks that fail one after the other would make a million edges otherwise.
    """
    sources = []
    for one in alike:
        effects = [e for e in rules[one.rule].conclude.explained if {one.cause, f"{one.kind}s"} & set(as_list(e.cause))]
        if effects and one.kind in ("cause", "symptom"):
            sources.append((one, effects))
    sources.sort(key=lambda source: source[0].certainty < LIKELY)
    for other in alike:
        for one, effects in sources:
            if any(_explains(effect, one, other) for effect in effects):
                one.explains.append(other)
                break


def _earlier(effect: Finding, cause: Finding) -> bool:
    """Tell whether the effect began before the cause for all times within their bounds."""
    return effect.t_hi is not None and cause.t_lo is not None and effect.t_hi < cause.t_lo - SLACK_S


def _fits(effect: Effect, one: Finding, other: Finding) -> bool:
    if effect.ranks != "any":
        asked = set(one.waiting if effect.ranks == "waiting" else one.ranks)
        if asked.isdisjoint(other.ranks) != (effect.ranks == "other"):
            return False
    if effect.within is None:
        return True
    lo, hi = one.t_lo, one.t_hi
    return (lo is None or other.t_hi is None or other.t_hi >= lo - effect.within) and (
        hi is None or other.t_lo is None or other.t_lo <= hi + effect.within
    )


def _shares(effect: Effect, whole: Finding, part: Finding) -> bool:
    if effect.sharing == "ranks":
        return set(part.ranks) <= set(whole.ranks)
    return bool(whole.places & part.places)


def _absorb_same(alike: Sequence[Finding]) -> None:
    """Two rules that found the same cause on the same ranks are two proofs of one thing: the better one stands."""
    best: dict[tuple[int, ...], Finding] = {}
    for finding in sorted(alike, key=lambda f: (-f.certainty, f.key)):
        standing = best.setdefault(finding.ranks, finding)
        if standing is not finding and standing.rule != finding.rule and finding not in standing.absorbs:
            standing.absorbs.append(finding)


def _demote(group: Sequence[Finding], span: float | None) -> None:
    """Make notes of causes in library code that had no effect: every DDP run breaks graphs in torch's own code."""
    little = max(NEARLY_NOTHING_S, NEARLY_NOTHING_SHARE * (span or 0.0))
    for finding in group:
        harmless = not finding.explains and finding.impact in ("slow", "none") and (finding.lost_s or 0.0) < little
        if finding.kind == "cause" and finding.only_library_code and harmless:
            finding.kind = "note"
            finding.absorbs = []


def _cut_cycles(group: Sequence[Finding]) -> None:
    while circles := [circle for circle in _components(group) if len(circle) > 1]:
        for circle in circles:
            first = min(circle, key=_age)
            for member in circle:
                member.explains = [f for f in member.explains if f is not first]
                member.absorbs = [f for f in member.absorbs if f is not first]


def _components(group: Sequence[Finding]) -> list[list[Finding]]:
    """Return the strongly connected parts of the edges (Tarjan, without recursion), only edges that count."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[Finding] = []
    on_stack: set[int] = set()
    parts: list[list[Finding]] = []
    for start in group:
        if id(start) in number:
            continue
        work: list[tuple[Finding, Iterator[Finding]]] = [(start, iter(_effects(start)))]
        number[id(start)] = low[id(start)] = len(number)
        stack.append(start)
        on_stack.add(id(start))
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[id(work[-1][0])] = min(low[id(work[-1][0])], low[id(node)])
                if low[id(node)] == number[id(node)]:
                    cut = next(i for i, f in enumerate(stack) if f is node)
                    parts.append(stack[cut:])
                    on_stack -= {id(f) for f in stack[cut:]}
                    del stack[cut:]
            elif id(following) not in number:
                number[id(following)] = low[id(following)] = len(number)
                stack.append(following)
                on_stack.add(id(following))
                work.append((following, iter(_effects(following))))
            elif id(following) in on_stack:
                low[id(node)] = min(low[id(node)], number[id(following)])
    return parts


def _effects(finding: Finding) -> list[Finding]:
    return [*finding.explains, *finding.absorbs]


def _spread_impact(group: Sequence[Finding]) -> None:
    """A cause does at least what its effects do: what explains a hang is worse than what only cost time."""
    worst: dict[int, int] = {}
    for (finding,) in _components(group):  # Without circles each part is one finding, effects before causes.
        own = IMPACTS.index(finding.impact)
        worst[id(finding)] = min([own, *(worst[id(effect)] for effect in _effects(finding))])
        if finding.kind in ("cause", "symptom"):
            finding.impact = IMPACTS[worst[id(finding)]]


def _mark_roots(group: Sequence[Finding]) -> None:
    reached = {id(effect) for finding in group if finding.certainty >= LIKELY for effect in _effects(finding)}
    free = [f for f in group if f.certainty >= LIKELY and id(f) not in reached]
    causes = [f for f in free if f.kind == "cause"]
    for finding in causes or [f for f in free if f.kind == "symptom"]:
        finding.is_root = True


def _order(finding: Finding) -> tuple[object, ...]:
    """Roots first, the worst effect first, then the earliest (runs are numbered in time order), surest, dearest."""
    kinds = ("cause", "symptom", "hazard", "note")
    effect = {"failed": 0, "hung": 0, "slow": 1, "wrong-numbers": 2, "none": 3}[finding.impact]
    cost = finding.lost_s or 0.0
    magnitude = -math.floor(math.log10(cost)) if effect == 1 and cost > 0 else 0
    return (
        not finding.is_root, kinds.index(finding.kind), effect, magnitude, finding.run_id, _or_last(finding.t),
        -finding.certainty, -cost, finding.key,
    )  # fmt: skip


def _age(finding: Finding) -> tuple[object, ...]:
    return _or_last(finding.t), -finding.certainty, finding.key


def _or_last(t: float | None) -> float:
    return math.inf if t is None else t


def fingerprint(finding: Finding) -> str:
    """Return 12 hex digits over cause and place, equal for the same fault in another attempt.

    The place is what `per` names (else the ranks), without addresses, process numbers and attempts.
    """
    locus: Iterable[str] = finding.key[3] or map(str, finding.ranks)
    text = "\n".join([finding.cause, *(_VOLATILE.sub("#", value) for value in locus)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
