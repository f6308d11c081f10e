"""Record what torch logs of each cause that a CPU can show: python corpora/record.py [CAUSE ...]   (needs torch)

The scripts are those of `replay repro`, with their defaults. recorded/CAUSE/ holds the logs of the script and the truth
about it, recorded/CAUSE-mended/ those of the script with the advised change: a run in which nothing is wrong.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from replay import resources
from replay.expert.taxonomy import load_taxonomy
from replay.repro import fill, loop, sandbox, verify
from replay.repro.recipe import Recipe, causes

HERE = Path(__file__).resolve().parent / "recorded"
MOST_BYTES = 60_000
"""Corpora travel with the package; a larger recording is not kept."""
PYTHON = b"/opt/venv"
"""Where Python lies in what is kept: the same on each machine that records."""


def record(cause: str, recipe: Recipe, kind: str, torch: str) -> str:
    """Run the script of a cause, and the one with the advised change; keep their logs. Return what came of it."""
    plan = fill.default_plan(recipe, cause)
    wanted = verify.expected(plan)
    fix = recipe.fix_of(cause, torch)
    told = []
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        trial = loop.try_plan(plan, wanted, keep_logs=logs)
        truth = {
            "cause": [cause],
            "ranks": sorted(wanted.ranks) if wanted.relation == "exactly" else None,
            "also": [],
            "why": f"script of the recipe {recipe.recipe}, torch {torch}, gloo",
        }
        if kind == "hazard":
            truth["kind"] = kind
        told.append(f"found, {keep(cause, logs, truth)}" if trial.verdict.verified else "NOT found, not kept")
        if fix is not None:
            trial = loop.try_fix(plan, fix, wanted, keep_logs=logs)
            healthy = {"cause": None, "ranks": None, "also": [], "why": f"as {cause}, but {fix.says}"}
            if trial.verdict.verified and not trial.verdict.found:  # another cause may have come instead
                told.append(f"mended {keep(f'{cause}-mended', logs, healthy)}")
    return "; ".join(told)


def keep(name: str, logs: Path, truth: dict[str, object]) -> str:
    """Put the recording in place of the old one. Return its size in words."""
    size = sum(path.stat().st_size for path in logs.rglob("*") if path.is_file())
    shutil.rmtree(HERE / name, ignore_errors=True)
    if not size or size > MOST_BYTES:
        return f"{size:,} bytes, not kept"
    shutil.copytree(logs, HERE / name / "logs")
    for path in (HERE / name / "logs").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(sys.prefix.encode(), PYTHON))
    (HERE / name / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return f"{size:,} bytes"


def main() -> None:
    """Record the causes that the command line names, all of them if it names none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    wanted = parser.parse_args().causes
    torch = sandbox.needs_torch()
    taxonomy = load_taxonomy([resources.folder("rules")])
    for cause, recipe in causes():
        kind = taxonomy[cause].kind
        if recipe.needs == "cpu" and kind in ("cause", "hazard") and (not wanted or cause in wanted):
            print(f"{cause}: {record(cause, recipe, kind, torch)}", file=sys.stderr)


if __name__ == "__main__":
    main()
