"""Fills a recipe from a finding: each constant from what the rule bound or from the database, with its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.errors import UsageError
from replay.report.model import Finding
from replay.repro.recipe import Parameter, Recipe, recipe_for
from replay.repro.script import Plan, Value
from replay.run import Run

_UNTOLD = ", not told by the logs"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants otherwise than the logs have it."""

    ranks: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


def plan(run: Run, finding: Finding, wanted: Wanted = Wanted()) -> Plan:
    """Return what makes the script of a finding.

    Raises UsageError if no recipe shows its cause or the user asked for something that the recipe cannot do.
    """
    recipe = recipe_for(finding.cause, (finding.repro or {}).get("recipe"))
    if recipe is None:
        raise UsageError(f"{finding.id}: no script can show {finding.cause} yet; `replay why` has its proof")
    total = _total(run, finding)
    world = _world(recipe, total, wanted.ranks)
    values = {name: _value(run, finding, recipe, name) for name in recipe.parameters}
    for name, text in wanted.parameters.items():
        values[name] = Value(_asked(recipe, name, text), ", as asked for")
    told = f"ranks, {total} in the logs" if total is not None and total != world else "ranks"
    if wanted.ranks is not None:
        told += ", as asked for"
    values["world"] = Value(world, told)
    return Plan(recipe, finding.cause, world, odd_ranks(recipe, finding, total, world), values)


def default_plan(recipe: Recipe, cause: str, world: int | None = None) -> Plan:
    """Return the plan of a recipe by itself, without any log."""
    world = world or recipe.world[1]
    odd = tuple(range(world)) if recipe.ranks in {"all", "whole"} or world == 1 else (world - 1,)
    values = {name: Value(recipe.default(cause, name)) for name in recipe.parameters}
    return Plan(recipe, cause, world, odd, values | {"world": Value(world, "ranks")})


def odd_ranks(recipe: Recipe, finding: Finding, total: int | None, world: int) -> tuple[int, ...]:
    """Return the ranks that the script puts the fault on, so that they stand to its world as they do in the logs."""
    everyone = tuple(range(world))
    if recipe.ranks in {"all", "whole"} or world == 1:
        return everyone
    at_fault = set(finding.ranks)
    is_whole = not at_fault or (total is not None and len(at_fault) >= total)
    if is_whole:
        return everyone if recipe.ranks == "any" and at_fault else (world - 1,)
    if len(at_fault) == 1:
        rank = min(at_fault)
        return (rank if rank < world else world - 1,)
    most = min(len(at_fault), world - 1)
    if total is not None and 2 * len(at_fault) < total:  # the fewer are the odd ones: so they stay the fewer
        most = max(min(most, (world - 1) // 2), 1)
    first = [0] if 0 in at_fault else []
    return tuple(sorted([*first, *everyone[world - (most - len(first)) :]]))


def _total(run: Run, finding: Finding) -> int | None:
    """How many ranks the run had, as told or as heard."""
    info = next((r for r in run.report().runs if r.id == finding.run), None)
    return (info.ranks_expected or info.ranks_seen or None) if info else None


def _world(recipe: Recipe, total: int | None, asked: int | None) -> int:
    fewest, usual, most = recipe.world
    if asked is not None:
        if asked < fewest:
            raise UsageError(f"--ranks {asked}: {recipe.recipe} needs at least {fewest}")
        return asked
    return min(max(total, fewest), most) if total else usual


def _asked(recipe: Recipe, name: str, text: str) -> int | float | bool | str:
    parameter = recipe.parameters.get(name)
    if parameter is None:
        raise UsageError(f"{name}: {recipe.recipe} has no such parameter; it has {', '.join(recipe.parameters)}")
    given: object = {"true": True, "false": False}.get(text.lower(), text) if parameter.type == "bool" else text
    value = parameter.accept(given)
    if value is None:
        raise UsageError(f"{name}={text}: is no {parameter.type} that {recipe.recipe} takes")
    return value


def _value(run: Run, finding: Finding, recipe: Recipe, name: str) -> Value:
    """The value of a parameter: as the rule bound it, as its query finds it, or its default."""
    parameter = recipe.parameters[name]
    bound = (finding.repro or {}).get("with") or {}
    place = ""
    found: object = None
    if finding.repro and finding.repro.get("recipe") == recipe.recipe and bound.get(name) is not None:
        found = bound[name]
        place = _evidence_of(finding, found)
    elif parameter.sql is not None:
        found, place = _asked_of_database(run, finding, parameter)
    value = parameter.accept(found) if found is not None else None
    if value is None:
        return Value(recipe.default(finding.cause, name), _UNTOLD)
    told = "" if same(value, found) else f", {str(found)[:40]} in the logs"
    return Value(value, f"{told}: {place}" if place else told)


def same(value: object, found: object) -> bool:
    """Return whether a constant is what the logs say; a number may be written as text there."""
    try:
        return value == found or (isinstance(value, (int, float)) and float(str(found)) == value)
    except ValueError:
        return False


def _evidence_of(finding: Finding, found: object) -> str:
    """The line that tells a bound value: the first of the finding's evidence that has it, else the first of all."""
    lines = [e for e in finding.evidence if e.line is not None]
    with_it = [e for e in lines if str(found) in e.text]
    return next((f"{e.file}:{e.line}" for e in [*with_it, *lines]), "")


def _asked_of_database(run: Run, finding: Finding, parameter: Parameter) -> tuple[object, str]:
    given: dict[str, Any] = {"run_id": finding.run, "finding_id": finding.id, "ranks": list(finding.ranks)}
    query = parameter.sql or ""
    row = run.con.execute(query, {name: given[name] for name in given if f"${name}" in query}).fetchone()
    if row is None or row[0] is None:
        return None, ""
    _, path, line = (*row, None, None)[:3]
    return row[0], f"{path}:{line}" if path and line is not None else ""
