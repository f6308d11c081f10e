"""Which lanes there are: one for each rank, or for ranks that behave alike, or for the ranks of a node.

A thousand lanes cannot be looked at. Ranks that did the same are one lane, and the few that did not have lanes of
their own:
"1,016 alike, 8 not". Every group unfolds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from replay.report.wording import count, duration, ranks_text, visible
from replay.tui.core.spans import STATES, Spans

_APART = 6.0
"""Median deviations from the median at which a rank is no longer like the others."""
_LEAST_SHARE = 0.02
"""Share of the run that a difference must reach: below it nobody looks."""


class Grouping(StrEnum):
    """How lanes are made."""

    RANKS = "ranks"
    ALIKE = "alike"
    NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the picture. `key` names a group (None: a rank of its own), `depth` is 1 for a member of an unfolded
    group.
    """

    ranks: tuple[int, ...]
    label: str
    note: str = ""
    key: str | None = None
    depth: int = 0
    is_open: bool = False


def lanes(
    grouping: Grouping,
    ranks: Iterable[int],
    spans: Spans,
    hosts: Mapping[int, str],
    *,
    at_fault: Iterable[int] = (),
    unfolded: frozenset[str] = frozenset(),
) -> list[Lane]:
    """Return the lanes, those that differ from the others first within a group."""
    everyone = sorted(set(ranks))
    if grouping is Grouping.RANKS:
        return [Lane((rank,), str(rank)) for rank in everyone]
    groups = _by_node(everyone, hosts) if grouping is Grouping.NODES else _alike(everyone, spans, frozenset(at_fault))
    found: list[Lane] = []
    for key, note, members in groups:
        if len(members) == 1:
            found.append(Lane(members, str(members[0]), note))
            continue
        is_open = key in unfolded
        found.append(Lane(members, _name(members), note, key, is_open=is_open))
        if is_open:
            found += [Lane((rank,), str(rank), depth=1) for rank in members]
    return found


def summary(grouping: Grouping, made: Iterable[Lane]) -> str:
    """Return the picture in words: `1,016 alike, 8 not` or `4 nodes`."""
    heads = [lane for lane in made if lane.depth == 0]
    if grouping is Grouping.NODES:
        return count(len(heads), "node")
    if grouping is Grouping.RANKS or not heads:
        return ""
    sizes = sorted((len(lane.ranks) for lane in heads), reverse=True)
    rest = sum(sizes[1:])
    return f"{sizes[0]:,} alike, {rest:,} not" if rest else f"all {sizes[0]:,} alike"


def _name(members: tuple[int, ...]) -> str:
    return ranks_text(members)


def _by_node(ranks: list[int], hosts: Mapping[int, str]) -> list[tuple[str, str, tuple[int, ...]]]:
    nodes: dict[str, list[int]] = {}
    for rank in ranks:
        nodes.setdefault(hosts.get(rank, ""), []).append(rank)
    named = [(f"node {host}", visible(host) or "no host named", tuple(members)) for host, members in nodes.items()]
    return sorted(named, key=lambda group: group[2])


def _alike(ranks: list[int], spans: Spans, at_fault: frozenset[int]) -> list[tuple[str, str, tuple[int, ...]]]:
    """Groups of ranks that behaved alike: the largest first, then the others, smallest first."""
    odd = _oddities(spans)
    groups: dict[str, list[int]] = {}
    for rank in ranks:
        groups.setdefault(odd.get(rank, "at fault" if rank in at_fault else ""), []).append(rank)
    if not groups:
        return []
    named = [(f"alike {note}", note, tuple(members)) for note, members in groups.items()]
    usual = max(named, key=lambda group: (len(group[2]), group[1] == ""))
    others = sorted((g for g in named if g is not usual), key=lambda group: (len(group[2]), group[2]))
    return [usual, *others]


def _oddities(spans: Spans) -> dict[int, str]:
    """Ranks that differ from the others, with what tells: the state whose time differs most, or how the rank ended."""
    if len(spans.ranks) < 3:
        return {}
    seconds, middle = spans.seconds(), spans.usual()
    spread = np.median(np.abs(seconds - middle), axis=0)
    least = _LEAST_SHARE * max(float(seconds.sum(axis=1).max()), 1e-9)
    apart = (seconds - middle) / np.maximum(_APART * spread, least)
    worst = np.abs(apart).argmax(axis=1)
    last = spans.last_states()
    codes, counts = np.unique(last, return_counts=True)
    usual_end = codes[counts.argmax()]
    found: dict[int, str] = {}
    for row, rank in enumerate(spans.ranks):
        state = int(worst[row])
        if last[row] != usual_end and STATES[int(last[row])] in {"failed", "gone", "waiting"}:
            found[int(rank)] = f"ends {STATES[int(last[row])]}"
        elif abs(apart[row, state]) > 1:
            found[int(rank)] = f"{'more' if apart[row, state] > 0 else 'less'} {STATES[state]}"
    return found


def difference(rank: int, spans: Spans) -> str:
    """Return how a rank differs from the others, in words: `compiling 13.2 s more than most`; empty where it does
    not.
    """
    row = int(np.searchsorted(spans.ranks, rank))
    if row >= len(spans.ranks) or spans.ranks[row] != rank or len(spans.ranks) < 3:
        return ""
    apart = spans.seconds()[row] - spans.usual()
    state = int(np.abs(apart).argmax())
    if abs(apart[state]) < 0.001:
        return ""
    return f"{STATES[state]} {duration(abs(float(apart[state])))} {'more' if apart[state] > 0 else 'less'} than most"
