"""Tells the runs apart that one folder holds.

Folders that are parts of one run (nodes, ranks, streams, attempts) and folders that are runs look alike: names say it
where they can, else the contents do: two folders whose lines name the same global ranks are two runs, two folders that
share no rank are two nodes of one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from replay.sources.layout import Name, Place

_LOGS = {"text", "trace", "flight-recorder", "nccl-ras", "error-json", "compile-debug"}


@dataclass(frozen=True, slots=True)
class Clue:
    """What decides a file's run: its place, its kind, and the ranks and hosts that its lines name."""

    place: Place
    kind: str
    ranks: frozenset[int]
    hosts: frozenset[str]

    @property
    def known_ranks(self) -> frozenset[int]:
        """Ranks by the lines or else by the name."""
        rank = self.place.identity.rank
        return self.ranks or (frozenset() if rank is None else frozenset({rank}))


@dataclass(slots=True)
class Runs:
    """`keys`: run key of each file; `nodes`: folders that turned out to be machines of one run."""

    keys: list[str]
    nodes: set[str]


def split(clues: Sequence[Clue], *, is_one_world: bool = False) -> Runs:
    """Give each file a run key; "" where nothing tells several runs apart.

    `is_one_world`: the user said how large the run is or how paths name its ranks. Then names that look like runs are
    parts of one run as long as no rank is in two of them.
    """
    result = Runs([""] * len(clues), set())
    _Splitter(clues, result, is_one_world).level(list(range(len(clues))), 0, "")
    return result


class _Splitter:
    def __init__(self, clues: Sequence[Clue], result: Runs, is_one_world: bool) -> None:
        self._clues, self._result, self._is_one_world = clues, result, is_one_world

    def level(self, files: list[int], depth: int, key: str) -> None:
        """Split the files of one folder (or of folders that are parts of one run) by their folders at `depth`."""
        here = [n for n in files if len(self._clues[n].place.folders) == depth]
        below: defaultdict[str, list[int]] = defaultdict(list)
        for n in files:
            if len(self._clues[n].place.folders) > depth:
                below[self._clues[n].place.folders[depth].text].append(n)
        self._flat(here, key)
        others = {t: ns for t, ns in below.items() if self._is_open(ns, depth)}
        runs = self._runs(others, depth)
        rest: list[int] = []
        for text, numbers in below.items():
            if text in runs:
                self.level(numbers, depth + 1, _join(key, text))
            elif text in others or self._name(numbers, depth).record == "part":
                rest += numbers
            else:
                self._give(numbers, key)
        if rest:
            self.level(rest, depth + 1, key)

    def _is_open(self, numbers: list[int], depth: int) -> bool:
        """True where the name does not say that the folder is a part of one run."""
        clues = [self._clues[n] for n in numbers]
        if not any(c.kind in _LOGS for c in clues):
            return False
        record = clues[0].place.folders[depth].record
        if record == "index":
            return any(c.place.file.record == "rank" for c in clues)  # 1/rank0.log, 2/rank0.log: no local ranks
        return record in {"run", "launch", "numbered", ""}

    def _runs(self, others: dict[str, list[int]], depth: int) -> set[str]:
        """The folders that are runs of their own."""
        if len(others) < 2:
            return set()
        named = {t for t, ns in others.items() if self._name(ns, depth).record == "run"}
        if len(named) >= 2 and not self._belong(list(others.values())):
            return named
        nodes = {t for t, ns in others.items() if self._name(ns, depth).record in {"numbered", ""}}
        if any(t in self._clues[n].hosts for t, ns in others.items() for n in ns):
            self._result.nodes |= nodes
            return set()
        ranks = {t: self._ranks(ns) for t, ns in others.items()}
        if _overlap([r for r in ranks.values() if r]):
            return set(others)
        if all(ranks.values()) or self._are_nodes(others, depth):
            self._result.nodes |= nodes
            return set()
        slots = {t: frozenset(self._slot(n, depth + 1) for n in ns) for t, ns in others.items()}
        return set(others) if _overlap(list(slots.values())) else set()

    def _ranks(self, numbers: list[int]) -> frozenset[tuple[str, ...]]:
        """What ranks the files are from, by kind: a log and a trace of one rank are no contradiction."""
        clues = [self._clues[n] for n in numbers]
        return frozenset((c.kind, str(rank)) for c in clues for rank in c.known_ranks)

    def _are_nodes(self, others: dict[str, list[int]], depth: int) -> bool:
        names = [self._name(ns, depth) for ns in others.values()]
        if all(n.record == "launch" for n in names):
            ids = {n.fields["rdzv"] for n in names}
            return len(ids) == 1 and ids != {"none"}
        numbers = sorted(n.number("index") or 0 for n in names)
        stems = {n.fields.get("stem") for n in names}
        in_a_row = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return all(n.record == "numbered" for n in names) and len(stems) == 1 and in_a_row

    def _slot(self, n: int, depth: int) -> tuple[str, ...]:
        """The rest of a path without what chance put there."""
        place = self._clues[n].place
        rest = [f.fields.get("rdzv", "") if f.record == "launch" else f.text for f in place.folders[depth:]]
        file = place.file.text if place.file.record != "rank" else f"rank{place.identity.rank}"
        return (*rest, file)

    def _flat(self, files: list[int], key: str) -> None:
        """Runs that only file names tell apart: run1.log and run2.log, slurm-1.out and slurm-2.out."""
        logs = [n for n in files if self._clues[n].kind in _LOGS]
        words = {n: word for n in logs if (word := _word(self._clues[n].place))}
        jobs = {n: job for n in logs if n not in words and (job := self._clues[n].place.file.fields.get("job"))}
        arrays: defaultdict[str, list[int]] = defaultdict(list)
        for n, job in jobs.items():
            if "array" in self._clues[n].place.file.fields:
                arrays[job].append(n)
        for job, tasks in arrays.items():
            ranks = [self._ranks([n]) for n in tasks]
            if not all(ranks) or _overlap(ranks):
                jobs |= {n: f"{job}_{self._clues[n].place.file.fields['array']}" for n in tasks}
        self._give(files, key)
        for tokens in (words, jobs):
            groups: defaultdict[str, list[int]] = defaultdict(list)
            for n, token in tokens.items():
                groups[token].append(n)
            if len(groups) > 1 and not self._belong(list(groups.values())):
                for n, token in tokens.items():
                    self._result.keys[n] = _join(key, token)

    def _belong(self, groups: Sequence[list[int]]) -> bool:
        """True where the user spoke of one run, and the groups have ranks of their own each."""
        ranks = [self._ranks(numbers) for numbers in groups]
        return self._is_one_world and all(ranks) and not _overlap(ranks)

    def _give(self, numbers: list[int], key: str) -> None:
        for n in numbers:
            self._result.keys[n] = key

    def _name(self, numbers: list[int], depth: int) -> Name:
        return self._clues[numbers[0]].place.folders[depth]


def _word(place: Place) -> str | None:
    """What in a file's name is named like a run."""
    return next((name.text for name in (place.lead, place.stem) if name.record == "run"), None)


def _overlap(sets: Sequence[frozenset[tuple[str, ...]]]) -> bool:
    """True if two of the sets share an element."""
    return sum(len(s) for s in sets) > len(frozenset().union(*sets))


def _join(key: str, name: str) -> str:
    return f"{key}/{name}" if key else name
