"""Make the corpora anew: python corpora/make.py [NAME ...]   (needs torch; a C++ compiler for `inductor` runs)

A corpus is a folder with `train.py` (the trainer with its fault; TRAINER_OF in make.py names that of another
corpus), `make.py` (how it is started), `logs/` (what the run left, byte for byte) and `truth.json` (what was wrong).
corpora/README.md lists them.
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_BYTES = 150_000
"""A corpus travels with the package; a larger one is not written."""


def names() -> list[str]:
    """Return the names of all corpora."""
    return sorted(path.parent.name for path in HERE.glob("*/make.py"))


def make(name: str, logs: Path) -> int:
    """Run the corpus `name` in a folder of its own, put its logs in place of `logs`, return their size in bytes."""
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", HERE / name / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        work = Path(folder)
        shutil.copy(HERE / getattr(module, "TRAINER_OF", name) / "train.py", work)
        module.run(work)
        size = sum(path.stat().st_size for path in (work / "logs").rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise SystemExit(f"{name}: {size} bytes of logs, more than {MOST_BYTES}")
        shutil.rmtree(logs, ignore_errors=True)
        shutil.copytree(work / "logs", logs)
    return size


def main() -> None:
    """Make the corpora that the command line names, all of them if it names none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}")
    parser.add_argument("--into", type=Path, default=HERE, metavar="FOLDER", help="logs go to FOLDER/NAME/logs")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(names()))
    if unknown:
        parser.error(f"no corpus {', '.join(unknown)}; there are {', '.join(names())}")
    for name in args.names or names():
        print(f"{name}: {make(name, args.into / name / 'logs'):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
