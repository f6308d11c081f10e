"""What was checked: causes whose advised change was run and made the cause vanish, by minor version of torch.

Written by `python -m replay.repro.check_all`, read by `replay diagnose`, so it imports nothing that is slow.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from replay.report.model import Report

FOLDER = Path(__file__).parent / "checked"


def minor(version: str) -> str:
    """Return 2.13 of 2.13.0+cpu."""
    return ".".join(version.split("+", maxsplit=1)[0].split(".")[:2])


def checked(version: str | None) -> Mapping[tuple[str, str], str]:
    """Return what advice was checked on this minor version of torch: recipe and cause, and what was done."""
    file = FOLDER / f"{minor(version)}.json" if version else None
    # A version comes from a log: only a number may name a file.
    if file is None or not minor(version or "").replace(".", "").isdigit() or not file.is_file():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))
    passed = [row for row in rows if row["verified"] and row["fix"] and not row["stand_in"]]
    return {(row["recipe"], row["cause"]): row["fix_says"] for row in passed}


def notes(report: Report) -> dict[str, str]:
    """Return for each root, by fingerprint, how its advice was checked on the torch that its run used."""
    torch = {run.id: run.torch for run in report.runs}
    found = {}
    for finding in report.roots:
        version = torch.get(finding.run)
        recipe = (finding.repro or {}).get("recipe", "")
        if says := checked(version).get((recipe, finding.cause)):
            found[finding.fingerprint] = f"checked on torch {minor(version or '')}: {says}"
    return found
