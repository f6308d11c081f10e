"""Makes a script smaller while it still shows its cause: delta debugging over what it can do without, then bisection.

Units are ranks, each number that may shrink, and the marked lines of the recipe. Each try is a run of the script under
the same oracle as before. The order comes from a seed, so the same seed gives the same script.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from replay.repro.script import Plan, Value, groups, render

WORLD = "world"
_GROUP = "lines "


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest plan that was verified, how many scripts were run, and whether somebody stopped it."""

    plan: Plan
    runs: int
    interrupted: bool = False


Oracle = Callable[[Plan], bool]
Told = Callable[[str], None]


class _Search:
    """Remembers what was tried, and the best so far."""

    def __init__(self, plan: Plan, oracle: Oracle, told: Told) -> None:
        self.best, self.runs = plan, 0
        self._oracle, self._told = oracle, told
        self._known: dict[str, bool] = {render(plan): True}

    def holds(self, plan: Plan, what: str) -> bool:
        text = render(plan)
        if text not in self._known:
            self.runs += 1
            self._known[text] = self._oracle(plan)
            lines = len(text.splitlines())
            self._told(f"{self.runs}: {what}: {'still shows it' if self._known[text] else 'lost'}, {lines} lines")
        if self._known[text] and _size(plan) <= _size(self.best):
            self.best = plan
        return self._known[text]


def shrink(plan: Plan, oracle: Oracle, told: Told, seed: int = 0) -> Shrunk:
    """Return the smallest plan found that the oracle accepts; the plan itself must be accepted already."""
    search = _Search(plan, oracle, told)
    try:
        names = [name for name in units(plan) if without(plan, [name]) != plan]
        random.Random(seed).shuffle(names)
        kept = _ddmin(plan, names, search)
        base = without(plan, [name for name in names if name not in kept])
        for name in sorted(name for name in kept if not name.startswith(_GROUP)):
            base = _bisect(base, name, search)
    except KeyboardInterrupt:
        return Shrunk(search.best, search.runs, interrupted=True)
    return Shrunk(search.best, search.runs)


def units(plan: Plan) -> list[str]:
    """Return what may be left out or made as small as it can be."""
    numbers = [n for n, p in plan.recipe.parameters.items() if p.shrink and p.type in {"int", "float"}]
    return [WORLD, *numbers, *(_GROUP + name for name in groups(plan.recipe, plan.cause))]


def without(plan: Plan, names: Sequence[str]) -> Plan:
    """Return the plan with these units left out: numbers at their least, lines gone, as few ranks as can be."""
    for name in names:
        if name.startswith(_GROUP):
            plan = replace(plan, without=frozenset(plan.without) | {name.removeprefix(_GROUP)})
        else:
            plan = _with_number(plan, name, _least(plan, name))
    return plan


def with_world(plan: Plan, world: int) -> Plan:
    """Return the plan for fewer ranks; those with the fault stand to the others as before."""
    if len(plan.odd) == plan.world:
        odd = tuple(range(world))
    elif len(plan.odd) == 1:
        odd = plan.odd if plan.odd[0] < world else (world - 1,)
    else:
        fewest = 4 if 2 * len(plan.odd) < plan.world else 2  # the fewer stay the fewer
        both = 0 in plan.odd and world > fewest
        odd = tuple(sorted({0, world - 1} if both else {0} if 0 in plan.odd else {world - 1}))
    values = dict(plan.values) | {WORLD: Value(world, _said(plan, WORLD))}
    return replace(plan, world=world, odd=odd, values=values)


def _least(plan: Plan, name: str) -> int | float:
    if name == WORLD:
        needed = 2 if len(plan.odd) < plan.world else 1
        return max(plan.recipe.world[0], needed)
    low = plan.recipe.parameters[name].min or 0
    return int(low) if plan.recipe.parameters[name].type == "int" else low


def _with_number(plan: Plan, name: str, number: float) -> Plan:
    if name == WORLD:
        return with_world(plan, int(number)) if number < plan.world else plan
    if plan.value(name) == number:
        return plan
    return replace(plan, values=dict(plan.values) | {name: Value(number, _said(plan, name))})


def _said(plan: Plan, name: str) -> str:
    """What a constant's comment says once it was made smaller: what it was, and where that came from."""
    value = plan.values[name]
    if ", shrunk from " in value.source:
        return value.source
    head = "ranks, shrunk from " if name == WORLD else ", shrunk from "
    return f"{head}{value.value}{value.source.removeprefix('ranks')}"


def _size(plan: Plan) -> tuple[int, int, float]:
    numbers = sum(float(v.value) for v in plan.values.values() if isinstance(v.value, (int, float)))
    return plan.world, -len(plan.without), numbers


def _ddmin(plan: Plan, names: list[str], search: _Search) -> list[str]:
    """Return units that cannot all be left out: Zeller's ddmin, after a try to leave out everything at once."""
    if search.holds(without(plan, names), "everything as small as can be"):
        return []
    kept, parts = list(names), 2
    while len(kept) >= 2:
        chunks = [kept[i * len(kept) // parts : (i + 1) * len(kept) // parts] for i in range(parts)]
        for chunk in chunks:
            rest = [name for name in kept if name not in chunk]
            left_out = [name for name in names if name not in rest]
            if chunk and search.holds(without(plan, left_out), f"without {', '.join(chunk)}"):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(kept):
                break
            parts = min(parts * 2, len(kept))
    return kept


def _bisect(plan: Plan, name: str, search: _Search) -> Plan:
    """Return the plan with one whole number as small as the oracle allows, taking it that less shows less."""
    if name != WORLD and plan.recipe.parameters[name].type != "int":
        return plan
    low, high = int(_least(plan, name)), int(plan.world if name == WORLD else plan.value(name))
    while low < high:
        middle = (low + high) // 2
        smaller = _with_number(plan, name, middle)
        if search.holds(smaller, f"{name} = {middle}"):
            plan, high = smaller, middle
        else:
            low = middle + 1
    return plan
