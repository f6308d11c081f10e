"""What is wrong in a run that a scenario made: the answer, for whoever scores a diagnosis of its logs.

Causes are those of `rules/taxonomy.yaml`. Where a fault looks to the logs like one of several causes, each is right.
"""

from collections.abc import Iterator
from typing import Any

from replay.synth.guards import guard_causes
from replay.synth.scenario import (
    CompileSkew,
    DeadRank,
    Fault,
    IbError,
    LostNode,
    LostOutput,
    MismatchedCollective,
    OnRanks,
    RankWork,
    Recompile,
    ReorderedCollective,
    Scenario,
    SkippedCollective,
    SlowData,
    SlowHop,
    StragglerHost,
    UnevenBatches,
)

_DEATHS = {"killed": "rank-killed", "segfault": "rank-crashed", "exception": "rank-exception", "oom": "device-oom"}
_MISMATCHES = {
    "size": "collective-shape-mismatch",
    "dtype": "collective-dtype-mismatch",
    "root": "collective-root-mismatch",
}


def truth(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Return the content of truth.json."""
    faults = [named for fault in scenario.faults for named in _named(scenario, fault)]
    first = faults[0] if faults else None
    found: dict[str, Any] = {
        "cause": first["cause"] if first else None,
        "ranks": first["ranks"] if first else None,
        "also": sorted({cause for fault in scenario.faults for cause in _beside(fault)}),
        "why": "; ".join(_why(fault) for fault in scenario.faults) or "healthy",
        "torch": scenario.torch,
        "nccl": scenario.nccl,
        "seed": seed,
    }
    if len(faults) > 1:
        found["faults"] = faults
    return found


def _named(scenario: Scenario, fault: Fault) -> Iterator[dict[str, Any]]:
    """The causes that are right for a fault, and its ranks; nothing where the run is sound for all of it."""
    ranks = sorted(fault.ranks) if isinstance(fault, OnRanks) else None
    match fault:
        case Recompile():
            causes = ["recompile-barrier-stall", *guard_causes(fault.guard)]
        case CompileSkew():
            causes = ["compile-skew-timeout"]
        case SkippedCollective():
            causes = ["collective-skipped"]
        case ReorderedCollective():
            causes = ["collective-order-mismatch"]
        case MismatchedCollective():
            causes = [_MISMATCHES[fault.what]]
        case UnevenBatches():
            causes = ["uneven-batches"]
        case StragglerHost():
            causes = ["straggler-host"]
        case SlowData():
            causes = ["straggler-dataloader"]
        case RankWork():
            causes = ["straggler-rank-work"]
        case DeadRank():
            causes = [_DEATHS[fault.how]]
        case LostNode():
            causes = ["node-lost"]
            ranks = list(range(fault.node * scenario.topology.gpus, (fault.node + 1) * scenario.topology.gpus))
        case SlowHop():
            causes = ["ring-bandwidth-mismatch"]
        case IbError():
            causes, ranks = ["ib-transport-error"], None  # both ends of a connection may report it
        case _:
            return
    yield {"cause": causes, "ranks": ranks}


def _beside(fault: Fault) -> tuple[str, ...]:
    """Other causes that may stand beside the right one: the fault's own look from elsewhere."""
    match fault:
        case SkippedCollective():
            return ("collective-shape-mismatch",)
        case CompileSkew():
            return ("compile-cache-miss",)
        case UnevenBatches():
            return ("collective-skipped",)
        case DeadRank() | IbError():
            return ("peer-connection-lost",)
        case LostNode():
            return ("peer-connection-lost", "ib-transport-error")
    return ()


def _why(fault: Fault) -> str:
    """The fault in words."""
    told = {k: v for k, v in fault.model_dump().items() if k != "kind"}
    if isinstance(fault, LostOutput):
        return f"the output of ranks {', '.join(map(str, fault.ranks))} is lost from step {fault.step} on"
    kind = str(getattr(fault, "kind", "fault"))
    return f"{kind}: " + ", ".join(f"{k} {list(v) if isinstance(v, tuple) else v}" for k, v in told.items())
