"""Whether the causes of synthetic runs are named: precision and recall over many drawn runs.

    python bench/synth_accuracy.py [--seeds 200] [--first 0] [--kind KIND] [--keep DIR] [--jobs 1]

Each seed draws a run: a fault (or none), its ranks and step, 16 to 64 ranks, versions, launcher, trainer, logs, clocks;
what is drawn is such that somebody with the logs could know the answer (a slow rank shows only where ranks tell their
times; a wrong datatype only where calls or fingerprints are logged). The folder is diagnosed by the command and counted
as a scorer of labelled runs would: over findings of certainty 0.5 and more, a root is right if its cause is one of the
fault's and its ranks are the fault's. Precision is the right roots among all roots, recall the faults that have one.
`--keep` leaves the folders, each with logs/ and truth.json.
"""

import argparse
import concurrent.futures
import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.cli.main import main as command
from replay.synth import Scenario, write

KINDS = (
    "healthy",
    "recompile",
    "compile-skew",
    "skipped-collective",
    "reordered-collective",
    "mismatched-collective",
    "uneven-batches",
    "straggler-host",
    "slow-data",
    "rank-work",
    "killed",
    "segfault",
    "exception",
    "oom",
    "lost-node",
    "slow-hop",
    "ib-error",
    "clock-skew",
    "lost-output",
    "torn-lines",
)
TORCH = ("2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.11.0")
NCCL = ("2.18.1", "2.19.3", "2.20.5", "2.21.5", "2.23.4", "2.25.1", "2.27.7", "2.29.7", "2.31.2")
TIMED = ("keyed", "words", "json")
"""Trainers of which every rank tells what its parts of a step cost."""


def draw(seed: int, kind: str | None = None) -> tuple[str, Scenario]:
    """Return the kind of run that a seed stands for, and its scenario."""
    chance = random.Random(f"accuracy/{seed}")
    kind = kind or KINDS[seed % len(KINDS)]
    nodes, gpus = chance.choice(((2, 8), (4, 4), (4, 8), (8, 4), (6, 8), (8, 8)))
    world = nodes * gpus
    rank = chance.randrange(world)
    one: dict[str, Any] = {"ranks": [rank], "step": chance.randrange(4, 9)}
    draft: dict[str, Any] = {
        "torch": chance.choice(TORCH),
        "nccl": chance.choice(NCCL),
        "launcher": chance.choice(("torchrun-dirs", "torchrun-tee", "srun", "kubectl", "plain")),
        "trainer": chance.choice((*TIMED, "bracket")),
        "start": f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 28):02} {chance.randrange(24):02}:31:07",
        "timeout_s": chance.choice((300, 600, 1800)),
        "topology": {
            "nodes": nodes,
            "gpus": gpus,
            "network": chance.choice(("ib", "socket")),
            "host": chance.choice(("gpu-node", "worker", "node")),
        },
        "parallel": {
            "tp": chance.choice((1, 1, 1, 2, 4)),
            "buckets": chance.choice((2, 3, 5)),
            "bf16": chance.random() < 0.4,
        },
        "steps": {
            "count": chance.randrange(12, 20),
            "noise": chance.choice((0.01, 0.03, 0.05)),
            "save_every": chance.choice((0, 5)),
        },
        "logs": {"nccl": chance.choice(("version", "warn", "info", "info"))},
        "clocks": [{"node": n, "offset_s": round(chance.uniform(-0.02, 0.02), 4)} for n in range(nodes)],
    }
    logs = draft["logs"]
    match kind:
        case "recompile":
            guard = chance.choice(("size", "dtype", "stride", "python-value", "global-state", "length", "training"))
            fault = {
                "kind": "recompile",
                **one,
                "guard": guard,
                "seconds": chance.uniform(3, 20),
                "times": chance.choice((1, 2, 3)),
            }
            logs["torch"] = chance.choice((["recompiles"], ["recompiles", "dynamo"]))
            draft["trainer"] = chance.choice(TIMED)
        case "compile-skew":
            fault = {"kind": "compile-skew", "ranks": [rank], "seconds": draft["timeout_s"] * chance.uniform(1.2, 2)}
            logs["torch"] = ["inductor"]
        case "skipped-collective":
            fault = {"kind": kind, **one, "bucket": chance.choice((0, 1)), "says_so": chance.random() < 0.3}
            logs["nccl"] = chance.choice(("coll", logs["nccl"]))
        case "reordered-collective":
            fault = {"kind": kind, **one}
            logs["nccl"] = chance.choice(("coll", logs["nccl"]))
        case "mismatched-collective":
            what = chance.choice(("size", "dtype", "root"))
            fault = {"kind": kind, **one, "what": what}
            if what == "size":
                logs |= chance.choice(({}, {"nccl": "coll"}, {"detail": True}))
            else:
                logs |= chance.choice(({"nccl": "coll"}, {"detail": True})) if what == "dtype" else {"nccl": "coll"}
        case "uneven-batches":
            fault = {"kind": kind, **one}
        case "straggler-host":
            ranks = [rank] if chance.random() < 0.6 else list(range(rank // gpus * gpus, rank // gpus * gpus + gpus))
            fault = {"kind": kind, "ranks": ranks, "factor": chance.uniform(1.5, 3)}
            draft["trainer"] = chance.choice(TIMED)
        case "slow-data":
            fault = {
                "kind": kind,
                "ranks": [rank],
                "seconds": chance.uniform(0.3, 2),
                "every": chance.choice((1, 1, 3)),
            }
            draft["trainer"] = chance.choice(TIMED)
        case "rank-work":
            fault = {"kind": kind, "ranks": [0], "seconds": chance.uniform(2, 10), "every": chance.choice((3, 4))}
            draft["trainer"] = chance.choice(TIMED)
            draft["steps"]["save_every"] = 0
        case "killed" | "segfault" | "exception" | "oom":
            fault = {"kind": "dead-rank", **one, "how": kind}
            draft["trainer"] = chance.choice((draft["trainer"], "hf", "megatron", "torchtitan"))
        case "lost-node":
            fault = {"kind": kind, "node": chance.randrange(nodes), "step": one["step"]}
            logs["nccl"] = chance.choice(("warn", "info"))
        case "slow-hop":
            fault = {"kind": kind, "ranks": [rank]}
            logs["nccl"] = "info"
        case "ib-error":
            fault = {"kind": kind, **one}
            draft["topology"]["network"] = "ib"
            logs["nccl"] = chance.choice(("warn", "info"))
        case "clock-skew":
            fault = {}
            draft["clocks"] = [
                {"node": n, "offset_s": round(chance.uniform(-5, 5), 3), "drift_ppm": round(chance.uniform(-50, 50), 1)}
                for n in range(nodes)
            ]
        case "lost-output":
            fault = {"kind": "dead-rank", **one, "how": chance.choice(("killed", "exception"))}
            lost = chance.choice([r for r in range(world) if r != rank])
            draft["faults"] = [{"kind": "lost-output", "ranks": [lost], "step": one["step"] - 2}]
        case "torn-lines":
            fault = (
                {"kind": "dead-rank", **one, "how": chance.choice(("killed", "exception"))}
                if chance.random() < 0.5
                else {}
            )
            draft["launcher"] = "plain"
            logs |= {"stdout_buffered": True, "nccl": "info"}
        case _:
            fault = {}
    if kind in ("straggler-host", "slow-hop"):  # with tensor parallelism the whole group is as slow
        draft["parallel"]["tp"] = 1
    if kind in ("skipped-collective", "reordered-collective") and draft["torch"] < "2.3":
        logs["nccl"] = "coll"  # these watchdogs do not tell how far a rank is
    if fault:
        draft["faults"] = [fault, *draft.get("faults", ())]
    return kind, Scenario.model_validate(draft)


@dataclass(frozen=True, slots=True)
class Score:
    """One run, counted."""

    seed: int
    kind: str
    faults: int
    hits: int
    roots: int
    right: int
    said: str
    shape: str
    seconds: float


def score(seed: int, kind: str | None, keep: Path | None) -> Score:
    """Write, diagnose and count one run."""
    kind, scenario = draw(seed, kind)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (keep or Path(scratch)) / f"{seed:04}-{kind}"
        shutil.rmtree(folder, ignore_errors=True)
        logs = write(scenario, folder, seed)
        truth = json.loads((folder / "truth.json").read_text())
        began = time.process_time()
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            code = command(["diagnose", str(logs), "--format", "json", "--db", f"{scratch}/run.duckdb"])
        seconds = time.process_time() - began
    findings = [f for f in json.loads(said.getvalue())["findings"] if f["certainty"] >= 0.5] if code == 0 else []
    faults = truth.get("faults") or ([{"cause": truth["cause"], "ranks": truth["ranks"]}] if truth["cause"] else [])
    roots = [f for f in findings if f["root"] and f["kind"] == "cause" and f["cause"] not in truth["also"]]

    def is_right(finding: dict[str, Any], fault: dict[str, Any]) -> bool:
        ranks = fault["ranks"] is None or sorted(finding["ranks"]) == sorted(fault["ranks"])
        return finding["cause"] in fault["cause"] and ranks

    s = scenario
    return Score(
        seed,
        kind,
        len(faults),
        sum(any(is_right(f, x) for f in roots) for x in faults),
        len(roots),
        sum(any(is_right(f, x) for x in faults) for f in roots),
        "; ".join(f"{f['rule']}@{f['ranks']}" for f in findings if f["root"]) or f"nothing (exit {code})",
        f"truth {truth['cause']}@{truth['ranks']} {s.launcher} {s.trainer} torch {s.torch} nccl {s.nccl} {s.logs.nccl}"
        f" {s.topology.nodes}x{s.topology.gpus} {s.topology.network} tp {s.parallel.tp}",
        seconds,
    )


def main() -> int:
    """Print each wrong run, then the figures by kind and over all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    wanted = parser.parse_args()
    seeds = range(wanted.first, wanted.first + wanted.seeds)
    with concurrent.futures.ProcessPoolExecutor(wanted.jobs) as pool:
        scores = []
        for one in pool.map(score, seeds, [wanted.kind] * len(seeds), [wanted.keep] * len(seeds)):
            scores.append(one)
            if one.hits < one.faults or one.right < one.roots:
                print(f"{one.seed} {one.kind}: {one.said} | {one.shape}", flush=True)
    by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in scores:
        for name in (one.kind, "all"):
            by_kind[name] += Counter(runs=1, faults=one.faults, hits=one.hits, roots=one.roots, right=one.right)
    for name, n in sorted(by_kind.items(), key=lambda item: (item[0] == "all", item[0])):
        precision, recall = n["right"] / max(n["roots"], 1), n["hits"] / max(n["faults"], 1)
        print(f"{name:22} runs {n['runs']:3}  faults {n['faults']:3}  precision {precision:.3f}  recall {recall:.3f}")
    print(f"CPU seconds a run: {sum(one.seconds for one in scores) / len(scores):.1f}")
    total = by_kind["all"]
    return int(total["right"] < 0.95 * total["roots"] or total["hits"] < 0.95 * total["faults"])


if __name__ == "__main__":
    sys.exit(main())
