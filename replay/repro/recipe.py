"""Recipes: how a cause is shown by a script. Data in recipes/*.yaml, checked when they are loaded.

A script is a recipe's fixed text below a block of constants. Only the constants come from logs, and they are literals
of checked types, so no text of a log can become code.
"""

import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from replay.errors import UsageError

FOLDER = Path(__file__).parent / "recipes"
NAME = r"^[a-z][a-z0-9_]*$"
_PART = re.compile(r"<<([a-z_]+)>>")
_BOUND = re.compile(r"(>=|<)([0-9]+\.[0-9]+)")
_NUMBERS = re.compile("[0-9]+")

Kind = Literal["int", "float", "bool", "text", "choice"]
Literals = int | float | bool | str


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Model):
    """One constant of a script: its type and bounds, where its value comes from, what it is without one.

    `sql` gives one row: value, and if it likes path and line. It may use $run_id, $finding_id and $ranks.
    """

    type: Kind = "int"
    default: Literals
    says: str
    min: float | None = None
    max: float | None = None
    choices: list[str] = Field(default_factory=list)
    sql: str | None = None
    shrink: bool = True

    @model_validator(mode="after")
    def _default_fits(self) -> "Parameter":
        if self.type in {"int", "float"} and (self.min is None or self.max is None):
            raise ValueError("a number has min and max")
        if self.type == "choice" and self.default not in self.choices:
            raise ValueError("the default is none of the choices")
        if self.accept(self.default) != self.default:
            raise ValueError("the default does not fit the type and its bounds")
        return self

    def accept(self, value: object) -> Literals | None:
        """Return the value as one of this type within the bounds; None where it is nothing of the kind."""
        match self.type:
            case "bool":
                return value if isinstance(value, bool) else None
            case "text":
                return value[:MOST_TEXT] if isinstance(value, str) else None
            case "choice":
                return value if isinstance(value, str) and value in self.choices else None
            case "int" | "float":
                return self._number(value)

    def _number(self, value: object) -> int | float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return None
        try:
            number = float(value)
            within = min(max(number, self.min or 0), self.max or 0)
        except (ValueError, OverflowError):
            return None
        if math.isnan(number):  # not a number has no place between bounds
            return None
        return int(within) if self.type == "int" else within


MOST_TEXT = 200
"""Characters of a text that a script may hold."""


class Replacement(_Model):
    """A change of a script's text: `old` stands in it exactly once."""

    old: str
    new: str


class Fix(_Model):
    """The advised change: what is done, and how the script changes."""

    says: str
    change: list[Replacement]
    torch: str = ""
    """Versions for which it is advised, as `>=2.1` or `>=2.1,<2.6`; empty: all."""

    @model_validator(mode="after")
    def _versions(self) -> "Fix":
        self.is_for("2.0")
        return self

    def is_for(self, torch: str) -> bool:
        """Return whether it is advised for a version of torch, as 2.13.0+cpu."""
        return all(_holds(bound.strip(), torch) for bound in self.torch.split(",") if self.torch)


def _holds(bound: str, torch: str) -> bool:
    found = _BOUND.fullmatch(bound)
    if found is None:
        raise ValueError(f"{bound}: is no bound of a version, as >=2.6 or <2.6")
    here, there = (tuple(map(int, _NUMBERS.findall(v.partition("+")[0])[:2])) for v in (torch, found[2]))
    return here >= there if found[1] == ">=" else here < there


class Shown(_Model):
    """How a recipe shows one cause: the parts that stand for `<<name>>` in its script."""

    parts: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    fix: Fix | list[Fix] | None = None
    """The advised change; of several the first that is for the version of torch."""
    stand_in: bool = False
    """Whether a stand-in shows the fault (a sleep, a signal, a backend made for it): that the cause is gone without the
    stand-in says nothing of the advice."""
    defaults: dict[str, Literals] = Field(default_factory=dict)


class Recipe(_Model):
    """A recipe. `ranks` says whom the fault can be put on: any ranks, some but not all, or the run as a whole."""

    recipe: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    shows: dict[str, Shown]
    needs: Literal["cpu", "cuda"] = "cpu"
    ranks: Literal["any", "some", "all", "whole"] = "any"
    world: Annotated[list[int], Field(min_length=3, max_length=3)] = [1, 2, 4]
    """Fewest, usual and most ranks."""
    runs: list[str] = Field(default_factory=list)
    """Where a cause shows only between runs: their names. `work(rank, run)` is told which it is."""
    group: bool = True
    """Whether the ranks' process group is made before `work` is called."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Environment that makes torch log the cause; set before torch is imported."""
    seconds: int = 30
    """After this many seconds the script ends what still runs."""
    timeout_s: int = 20
    """Timeout of the process group."""
    parameters: dict[Annotated[str, Field(pattern=NAME)], Parameter] = Field(default_factory=dict)
    script: str
    fix: Fix | list[Fix] | None = None
    two_sides: bool = False
    """Whether the odd ranks and the others differ and neither is right: then either side may be called odd."""
    exits: bool = False
    """Whether the launcher tells how each process ended."""

    @model_validator(mode="after")
    def _whole(self) -> "Recipe":
        for cause in self.shows:
            self.body(cause)
            for fix in self.fixes(cause):
                self.changed(self.body(cause), fix)
            unknown = self.shows[cause].defaults.keys() - self.parameters.keys()
            if unknown:
                raise ValueError(f"{cause}: no parameter {min(unknown)}")
        return self

    def body(self, cause: str) -> str:
        """Return the script's text for a cause, without constants."""
        parts = self.shows[cause].parts

        def part(match: re.Match[str]) -> str:
            if match[1] not in parts:
                raise ValueError(f"{cause}: the script's part <<{match[1]}>> is missing")
            return parts[match[1]].rstrip("\n")

        return _PART.sub(part, self.script)

    def fixes(self, cause: str) -> list[Fix]:
        """Return the advised changes for a cause that a script can show, for whatever version of torch."""
        given = self.shows[cause].fix or self.fix or []
        return [given] if isinstance(given, Fix) else given

    def fix_of(self, cause: str, torch: str) -> Fix | None:
        """Return the advised change for a cause on a version of torch, if a script can show it."""
        return next((fix for fix in self.fixes(cause) if fix.is_for(torch)), None)

    @staticmethod
    def changed(text: str, fix: Fix) -> str:
        """Return the text with the advised change."""
        for replacement in fix.change:
            if text.count(replacement.old) != 1:
                raise ValueError(
                    f"the fix changes {replacement.old!r}, which stands {text.count(replacement.old)} times"
                )
            text = text.replace(replacement.old, replacement.new)
        return text

    def settings_of(self, cause: str) -> dict[str, str]:
        """Return the environment that shows a cause."""
        return self.settings | self.shows[cause].settings

    def default(self, cause: str, name: str) -> Literals:
        """Return what a parameter is where no log tells it."""
        return self.shows[cause].defaults.get(name, self.parameters[name].default)


def load(file: Path) -> Recipe:
    """Return the recipe that a file holds.

    Raises UsageError, with the file's name, if it holds none.
    """
    try:
        data: Any = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        recipe = Recipe.model_validate(data)
    except (yaml.YAMLError, ValidationError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())}") from error
    if recipe.recipe != file.stem:
        raise UsageError(f"{file}: calls itself {recipe.recipe}")
    return recipe


@functools.cache
def recipes() -> dict[str, Recipe]:
    """Return all recipes by name."""
    return {recipe.recipe: recipe for recipe in map(load, sorted(FOLDER.glob("*.yaml")))}


def causes() -> Iterator[tuple[str, Recipe]]:
    """Give each cause that a script can show, with its recipes."""
    for recipe in recipes().values():
        yield from ((cause, recipe) for cause in recipe.shows)


def recipe_for(cause: str, named: str | None = None) -> Recipe | None:
    """Return the recipe that shows a cause: the one that its rule names if that is one, else the first that does."""
    if named is not None and (recipe := recipes().get(named)) is not None and cause in recipe.shows:
        return recipe
    return next((recipe for shown, recipe in causes() if shown == cause), None)
