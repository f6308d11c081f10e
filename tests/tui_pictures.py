"""Takes the pictures of the handbook anew, from real runs: python tests/tui_pictures.py [NAME ...]

Only the one of a thousand ranks is of a run that never ran; the hang is one of the labelled runs beside the checkout.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tui_driver import CASES, ROOT, app_of, drive, settle

from replay.synth import Scenario, write
from replay.tui.app import ReplayApp

PLACE = ROOT / "docs" / "pictures"
SIZE = (120, 36)
CORPORA = ROOT / "corpora"
SHOTS: dict[str, tuple[Path, list[str]]] = {
    "recompile": (CORPORA / "recompile-one-rank" / "logs", ["c", "c"]),
    "hang": (CASES / "skipped-allreduce" / "logs", ["t"]),
    "what-if": (CORPORA / "recompile-one-rank" / "logs", ["w"]),
}


def take(name: str, logs: Path, keys: list[str], scratch: Path) -> None:
    """Press keys and save the screen; the answer to a what-if is waited for."""

    async def save(app: ReplayApp, pilot: Any) -> None:
        await settle(app, pilot)
        assert app.failed is None, app.failed
        app.save_screenshot(f"{name}.svg", path=str(PLACE))

    os.chdir(logs.parent)  # where "./logs" is
    drive(app_of(logs, scratch / f"{name}.duckdb", "./logs"), keys, SIZE, save)


def main() -> None:
    """Take those that the command line names, all of them if it names none."""
    wanted = set(sys.argv[1:]) or {*SHOTS, "thousand"}
    with tempfile.TemporaryDirectory(prefix="replay-pictures-") as folder:
        scratch = Path(folder)
        for name in sorted(wanted & SHOTS.keys()):
            take(name, *SHOTS[name], scratch)
        if "thousand" not in wanted:
            return
        scenario = Scenario.model_validate(
            {
                "topology": {"nodes": 125, "gpus": 8},
                "logs": {"torch": ["recompiles"]},
                "faults": [{"kind": "recompile", "ranks": [3]}, {"kind": "slow-data", "ranks": [517]}],
            }
        )
        take("thousand", write(scenario, scratch / "thousand"), ["1"], scratch)


if __name__ == "__main__":
    main()
