"""What the README shows is what the tool does: every `$ replay ...` in it is run, and its output compared.

`python tests/test_readme.py` writes what the tool prints now into the README; read the difference before you commit it.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, list[str]]]:
    """Return each command of the README's console blocks that calls replay, with the lines that it should print."""
    found: list[tuple[str, list[str]]] = []
    for block in FENCE.findall((ROOT / "README.md").read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            call = command.split(" && ")[-1]
            if call.startswith("replay "):
                found.append((call, output))
    return found


def run(call: str, cache: Path) -> list[str]:
    """Return what `call` prints on stdout in a terminal of 80 columns without colour, at the top of the checkout."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "REPLAY_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "replay.cli.main", *shlex.split(call)[1:]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [line.rstrip().replace(f"{ROOT}/", "") for line in done.stdout.rstrip("\n").split("\n")]


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Tell whether the lines are equal, where a shown line `...` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(agrees(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and agrees(shown[1:], printed[1:])


@pytest.mark.parametrize(("call", "shown"), examples(), ids=lambda value: value if isinstance(value, str) else "")
def test_an_example_prints_what_the_readme_shows(call: str, shown: list[str], tmp_path: Path) -> None:
    printed = run(call, tmp_path)
    assert agrees(shown, printed), "\n".join(printed)


def test_the_demo_is_the_first_thing_the_readme_shows() -> None:
    call, shown = examples()[0]
    assert call == "replay demo"
    assert len(shown) > 5


def test_ci_runs_what_the_readme_says() -> None:
    readme, script = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    assert "pip install -e '.[dev]' && pytest\n" in readme
    assert "pip install --quiet -e '.[dev]'" in script
    assert "check pytest" in script


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "..."], ["a"], True),
        (["a", "...", "c"], ["a", "b"], False),
    ],
)
def test_comparing(shown: list[str], printed: list[str], expected: bool) -> None:
    assert agrees(shown, printed) is expected


def updated(readme: str, cache: Path) -> str:
    """Return the README with what each example prints now; one that ends in `...` keeps its number of paragraphs."""
    for call, shown in examples():
        printed = "\n".join(run(call, cache))
        if shown and shown[-1] == "...":
            paragraphs = "\n".join(shown[:-1]).rstrip().count("\n\n") + 1
            printed = "\n\n".join(printed.split("\n\n")[:paragraphs]) + "\n\n..."
        before = "\n".join([call, *shown]) + "\n```"
        assert readme.count(before) == 1, before
        readme = readme.replace(before, f"{call}\n{printed}\n```")
    return readme


if __name__ == "__main__":
    file = ROOT / "README.md"
    with tempfile.TemporaryDirectory() as folder:
        file.write_text(updated(file.read_text(), Path(folder)))
