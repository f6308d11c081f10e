"""What to export before the next run so that its logs tell more: right for its versions, with its measured cost.

The settings are rules/knowledge/logging_settings.yaml. Costs are only those that were measured; a setting that nobody
measured has none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from replay.errors import UsageError
from replay.expert.conclude import version_holds
from replay.expert.load import RuleBook
from replay.explain.codes import Codes, Fact

Goal = Literal["hang", "recompiles", "numerics", "perf"]

_VERSION = re.compile(r"[0-9]+\.[0-9]+(?:\.[0-9]+)*")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a setting was measured to cost: bytes that a rank writes `per` something; `on` says of what."""

    on: str
    bytes: int
    per: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable. `costs` is what was measured, nothing where nobody did; an optional one is to be used with care."""

    name: str
    value: str
    tells: str
    costs: tuple[Cost, ...]
    is_optional: bool


def settings(goal: Goal, torch: str, nccl: str | None, book: RuleBook) -> tuple[Setting, ...]:
    """Return the settings for a goal, for these versions; where NCCL's is not known, what all its versions take.

    Raises UsageError for what is no version.
    """
    versions = {"torch": torch} | ({"nccl": nccl} if nccl is not None else {})
    for name, version in versions.items():
        if not _VERSION.match(version):
            raise UsageError(f"--{name} {version}: is no version, such as {'2.6' if name == 'torch' else '2.21'}")
    codes = Codes(book)
    chosen: dict[tuple[str, bool], Setting] = {}
    for fact in codes.table("logging_settings"):
        key = fact["name"], fact["optional"]
        if fact["goal"] == goal and key not in chosen and (fact["if"] is None or version_holds(fact["if"], versions)):
            costs = tuple(_costs(fact["name"], fact["value"], nccl, codes))
            chosen[key] = Setting(fact["name"], fact["value"], fact["tells"], costs, fact["optional"])
    return tuple(chosen.values())


def _costs(name: str, value: str, nccl: str | None, codes: Codes) -> Iterator[Cost]:
    for fact in codes.table("logging_costs"):
        is_folder = fact["value"] is None  # whatever its name
        if fact["name"] == name and (is_folder or str(fact["value"]) == value):
            yield Cost(f"torch {fact['torch']}, {fact['of']}", fact["bytes_per_graph"], "compiled graph")
    volume = _nearest(codes.table("nccl_log_volume"), nccl)
    on = f"NCCL {volume['nccl']}"
    if name == "NCCL_DEBUG":
        yield Cost(on, volume["bytes_per_rank"], f"set-up of a communicator of {volume['ranks']} ranks")
    elif name == "NCCL_DEBUG_SUBSYS" and "COLL" in value.split(","):
        yield Cost(on, volume["bytes_per_operation"], "operation")


def _nearest(facts: Sequence[Fact], nccl: str | None) -> Fact:
    """The measured version that comes next before the one asked for; the newest where none is named."""
    if nccl is None:
        return facts[-1]
    wanted = _parts(nccl)
    before = [fact for fact in facts if _parts(fact["nccl"]) <= wanted]
    return before[-1] if before else facts[0]


def _parts(version: str) -> list[int]:
    found = _VERSION.match(version)
    return [int(part) for part in found[0].split(".")] if found else []
