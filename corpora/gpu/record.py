"""Record what every recipe logs on a GPU: python corpora/gpu/record.py [--list] [CAUSE ...]   (needs torch with CUDA)

Recipes that need CUDA or NCCL, and those for the CPU with their tensors on the GPU and NCCL in place of gloo. Each goes
to corpora/gpu/RECIPE-CAUSE/: `logs/`, and `truth.json` with the cause, the ranks, the versions, and whether `replay`
found it. Several ranks on one GPU need NCCL 2.30. `--list` runs nothing and needs no GPU.
"""

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from replay.repro import fill, loop, sandbox, verify
from replay.repro.recipe import causes
from replay.repro.script import Plan

HERE = Path(__file__).resolve().parent
MOST_BYTES = 150_000
SHARES_A_GPU = (2, 30)
"""NCCL that lets several ranks use one GPU (NCCL_MULTI_RANK_GPU_ENABLE)."""


def plans(wanted: list[str]) -> list[Plan]:
    """Return what is to be recorded: recipes for the GPU first, each with as few ranks as it takes."""
    found = [
        replace(fill.default_plan(recipe, cause, recipe.world[0]), device="cuda")
        for cause, recipe in causes()
        if not wanted or cause in wanted
    ]
    return sorted(found, key=lambda plan: plan.recipe.needs != "cuda")


def described(plan: Plan) -> str:
    """Return one line on a plan: where it goes, ranks, and what it needs."""
    made_for = "GPU" if plan.recipe.needs == "cuda" else "CPU"
    needs = "1 GPU" if plan.world == 1 else f"{plan.world} GPUs, or NCCL 2.30"
    return f"{name(plan):<50} {plan.world} ranks  made for {made_for}  {needs}"


def name(plan: Plan) -> str:
    """Return the name of a plan's folder."""
    return f"{plan.recipe.recipe}-{plan.cause}"


def record(plan: Plan, into: Path, versions: dict[str, str]) -> str:
    """Run a plan's script, keep its logs and its truth, and return what came of it."""
    wanted = verify.expected(plan)
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        logs = Path(folder) / "logs"
        trial = loop.try_plan(plan, wanted, keep_logs=logs)
        size = sum(path.stat().st_size for path in logs.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            return f"not kept: {size:,} bytes of logs, more than {MOST_BYTES:,}"
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(logs, into / "logs")
    truth = {
        "cause": [plan.cause],
        "ranks": sorted(wanted.ranks),
        "found": [[cause, list(ranks)] for cause, ranks in trial.verdict.found],
        "verified": trial.verdict.verified,
        **versions,
        "why": f"{plan.recipe.title}: made by the recipe {plan.recipe.recipe}",
    }
    (into / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return "verified" if trial.verdict.verified else f"not verified: {trial.verdict.why_not}"


def main() -> int:
    """Record the causes that the command line names, all of them if it names none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    parser.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument("--into", type=Path, default=HERE, metavar="FOLDER")
    args = parser.parse_args()
    wanted = plans(args.causes)
    if args.list:
        print("\n".join(map(described, wanted)))
        return 0
    if not sandbox.has_cuda():
        print("corpora/gpu/record.py: no GPU here; --list says what would be run", file=sys.stderr)
        return 3
    import torch  # noqa: PLC0415  --list needs none

    gpus, nccl = torch.cuda.device_count(), torch.cuda.nccl.version()
    versions = {
        "torch": torch.__version__,
        "nccl": ".".join(map(str, nccl)),
        "gpu": f"{gpus} x {torch.cuda.get_device_name(0)}",
    }
    bad = 0
    for plan in wanted:
        if plan.world > gpus and nccl[:2] < SHARES_A_GPU and plan.cause != "duplicate-gpu":
            said = f"skipped: {plan.world} ranks on {gpus} GPUs need NCCL 2.30, here is {versions['nccl']}"
        else:
            said = record(plan, args.into / name(plan), versions)
        bad += said.startswith("not")
        print(f"{name(plan):<50} {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
