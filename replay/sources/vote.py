"""Decides from a sample which ambiguous wrappers the lines of a file carry, and what their numbers mean.

`3: `, `host: `, `[0] ` and `name | ` are also ways to begin an ordinary line. They are wrappers only where most lines
carry one and the file shows that they are labels: writers take turns, or what is behind them is plainly a log line.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from replay.sources import sniff
from replay.sources.escapes import has_lost_colours
from replay.sources.model import Hints, Identity, Voted, Wrapping
from replay.sources.wrappers import Form, Layer, Peeler, forms, last_number, stem, width

_NUMBERED = {"srun_label", "hydra_rank", "torchrun_role", "bare_rank"}
_PADDED = {"srun_label", "compose"}
_HOSTS = {"pdsh_host", "pals_label", "journald_unit"}
_SHARE = {"srun_label": 0.5, "hydra_rank": 0.5, "torchrun_role": 0.4, "bare_rank": 0.3}
_NAMED_SHARE = 0.7
_MIN_LINES = 3
_FEW_SHARE = 0.1
_EVIDENT_SHARE = 0.2
_MAX_LAYERS = 4


@dataclass(slots=True)
class Outline:
    """What a sample shows of a text file."""

    wrapping: Wrapping
    layers: list[str] = field(default_factory=list)
    """Names of the forms that were peeled, outermost first."""
    lines: list[str] = field(default_factory=list)
    """The sample's lines, peeled."""
    ranks: frozenset[int] = frozenset()
    """Global ranks that the lines themselves name."""
    hosts: frozenset[str] = frozenset()
    """Hosts that the lines name."""


def outline(places: list[list[str]]) -> Outline:
    """Find the wrapping of a file from runs of its lines."""
    everything = [line for place in places for line in place]
    wrapping = Wrapping(colours=has_lost_colours(everything))
    for _ in range(_MAX_LAYERS):
        peeler = Peeler(wrapping, Identity(), Hints())
        chosen = next((v for place in places if (v := _vote([peeler.peel(x).text for x in place], wrapping))), None)
        if chosen is None:
            break
        wrapping = Wrapping((*wrapping.voted, chosen), colours=wrapping.colours)
    return _read(everything, wrapping)


def _vote(texts: list[str], wrapping: Wrapping) -> Voted | None:
    """The ambiguous form that most lines carry, if they show that it is one."""
    texts = [t for t in texts if t.strip()]
    taken = {v.form for v in wrapping.voted}
    best: tuple[float, Voted] | None = None
    for form in forms("voted"):
        if form.name not in taken and (found := _ballot(form, texts)) and (best is None or found[0] > best[0]):
            best = found
    return best[1] if best else None


def _ballot(form: Form, texts: list[str]) -> tuple[float, Voted] | None:
    """Share of the lines that carry the form, if it is a wrapper here."""
    matches = [(m, said) for t in texts if (m := form.match(t)) and _plausible(form, said := form.read(m.groupdict()))]
    if len(matches) < _FEW_SHARE * len(texts) or not matches:
        return None
    size: int | None = None
    if form.name in _PADDED:
        size = Counter(width(m.groupdict()) for m, _ in matches).most_common(1)[0][0]
        matches = [(m, said) for m, said in matches if width(m.groupdict()) == size]
    share = len(matches) / len(texts)
    evident = [said for m, said in matches if _evident(form, m["text"] or "")]
    is_evident = len(evident) >= max(2, _EVIDENT_SHARE * len(matches)) or _each_is_evident(
        form, matches, evident, share
    )
    if is_evident and share >= _FEW_SHARE:
        proof = evident
    elif (
        len(matches) >= _MIN_LINES
        and share >= _SHARE.get(form.name, _NAMED_SHARE)
        and _are_labels(form, matches, share)
    ):
        proof = [said for _, said in matches]
    else:
        return None
    stems = tuple(sorted({stem(said["host"]) for said in proof})) if form.name in _HOSTS else ()
    return share, Voted(form.name, size, stems)


def _plausible(form: Form, said: dict[str, str]) -> bool:
    """Hosts have a number or are parts joined: "loss: 0.3" and "INFO: text" are not from a host."""
    if form.name in _HOSTS:
        return any(c.isdigit() or c in "-." for c in said["host"])
    if form.name in _NUMBERED:
        return len(said.get("task") or said.get("local_rank") or said.get("rank") or "") < 6
    return True


def _are_labels(form: Form, matches: list[tuple["re.Match[str]", dict[str, str]]], share: float) -> bool:
    """Labels repeat and take turns, or nearly every line has the same number."""
    labels = ["/".join(f"{k}={v}" for k, v in said.items()) for _, said in matches]
    distinct = len(set(labels))
    if form.stamp in {"month", "time_of_day"}:
        return False
    if distinct * 2 > len(labels):  # a short log of many writers
        return form.name in _NUMBERED and share >= 0.8 and not _counts(labels)
    if distinct == 1:
        return form.name in _NUMBERED and share >= 0.9
    return _take_turns(labels)


def _each_is_evident(
    form: Form, matches: list[tuple["re.Match[str]", dict[str, str]]], evident: list[dict[str, str]], share: float
) -> bool:
    """Several numbers, and a log line is behind each of them: one block of each task, not numbered text."""
    labels = {tuple(sorted(said.items())) for _, said in matches}
    shown = {tuple(sorted(said.items())) for said in evident}
    return form.name in _NUMBERED and len(labels) > 1 and shown == labels and share >= _SHARE[form.name]


def _take_turns(labels: list[str]) -> bool:
    """True if a label comes back after another one: numbers of epochs or of list items do not."""
    seen: set[str] = set()
    last = None
    for label in labels:
        if label != last and label in seen:
            return True
        seen.add(label)
        last = label
    return False


def _counts(labels: list[str]) -> bool:
    """True if the labels are numbers of a list: they first come in their order, or some from 0 on are missing."""
    numbers = [last_number(label) or 0 for label in dict.fromkeys(labels)]
    return numbers == sorted(numbers) or sorted(numbers) != list(range(len(numbers)))


def _evident(form: Form, payload: str) -> bool:
    """True if what is behind the wrapper is plainly the beginning of a log line."""
    found = sniff.hint(payload)
    if found is None or found.record not in {"log", "trace"}:
        return False
    return form.stamp not in {"month", "time_of_day"} or found.form not in {"dated", "ranked", "traceback"}


def _read(lines: list[str], wrapping: Wrapping) -> Outline:
    """Peel the sample and see what the numbers of tasks, ranks and labels stand for."""
    peeler = Peeler(wrapping, Identity(), Hints())
    depths: defaultdict[str, list[int]] = defaultdict(list)
    tasks: defaultdict[int, set[int]] = defaultdict(set)
    labels: defaultdict[str, set[int]] = defaultdict(set)
    processes: defaultdict[tuple[int, str], set[int | str | None]] = defaultdict(set)
    hosts, ranks, texts, doubled = set(), set(), [], False
    for line in lines:
        layers: list[Layer] = []
        texts.append(peeler.peel(line, layers).text)
        said = [int(layer.said["rank"][:9]) for layer in layers if "rank" in layer.said]
        ranks.update(said[-1:])
        doubled = doubled or said[:1] != said[-1:]
        found = sniff.hint(texts[-1])
        if found and found.host:
            hosts.add(found.host)
        for n, layer in enumerate(layers):
            depths[layer.form].append(n)
            if (task := layer.said.get("task")) is not None:
                tasks[int(task[:9])].update(said)
                processes[int(task[:9]), "pid"].add(found.pid if found else None)
                processes[int(task[:9]), "local rank"].update(x.said.get("local_rank") for x in layers)
            if (label := layer.said.get("label")) is not None:
                labels[label].update(said)
    names = [n for n, at in depths.items() if len(at) > 1 or len(lines) < 10]
    names.sort(key=lambda n: sum(depths[n]) / len(depths[n]))
    final = Wrapping(
        wrapping.voted,
        task_is_rank=all(got <= {task} for task, got in tasks.items())
        and all(len(p - {None}) < 2 for p in processes.values()),
        outer_rank_is_local=doubled,
        label_is_rank=_count_from_zero(labels),
        colours=wrapping.colours,
    )
    return Outline(final, names, texts, frozenset(ranks), frozenset(hosts))


def _count_from_zero(labels: dict[str, set[int]]) -> bool:
    """True if the labels are name-0, name-1, ... and no line behind one names another rank."""
    numbers = {label: last_number(label) for label in labels}
    if len(labels) < 2 or None in numbers.values() or len({label.rstrip("0123456789") for label in labels}) > 1:
        return False
    if sorted(n for n in numbers.values() if n is not None) != list(range(len(labels))):
        return False
    return all(said <= {number} for said, number in zip(labels.values(), numbers.values(), strict=True))
