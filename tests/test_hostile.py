"""Logs are untrusted: no bytes of theirs act on a terminal, end the tool, or make a line go uncounted."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import mutate

from replay.cli.main import main
from replay.run import open_run

POISON = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\x9b2J\x1bP+q\x1b\\ \u202e\u2066\U000e0001 [bold]x[/bold] [/nope] "
    "<script>alert(1)</script> \x00\x01\x7f\r`${x}` \ufffe"
)
ALLOWED = {"\n"}


def acts(shown: str) -> set[str]:
    """Characters that a terminal would obey, or that turn or hide text."""
    return {c for c in shown if c not in ALLOWED and not c.isprintable() and c != "\u2028"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """Logs whose every free text, and whose file names, try to act on the terminal."""
    logs = tmp_path / "logs"
    logs.mkdir()
    p = POISON.replace("\r", "")
    stamp = "V1130 00:00:10.500000 1002 torch/_dynamo/guards.py:3006] [4/1] [__recompiles]"
    (logs / f"rank0{p.replace('/', '').replace(chr(0), '')[:60]}.log").write_text(
        "[rank0]: step 1 loss 2.0\n"
        "[rank0]: Traceback (most recent call last):\n"
        f'[rank0]:   File "/srv/{p}.py", line 3, in {p}\n[rank0]:     raise ValueError({p})\n'
        f"[rank0]: ValueError: {p}\n"
    )
    (logs / "new\nline.log").write_text(
        f"[rank1]:{stamp} Recompiling function {p} in /srv/{p}.py:16\n"
        f"[rank1]:{stamp}     triggered by the following guard failure(s):\n"
        f"[rank1]:{stamp}     - 4/0: tensor '{p}' size mismatch at index 0. expected 8, actual 7\n"
        f"[rank1]: {p}=1.0 step=2 loss={p}\n"
    )
    (logs / "nccl.log").write_text(
        f"host:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to {p}\n"
        f"host:1:2 [0] transport/net.cc:10 NCCL WARN {p}\n"
        f"2026-11-30 00:00:00,000 ERROR {p}\n[pod/{p}/x] text\n" + json.dumps({"log": p, "stream": "stderr"}) + "\n"
    )
    return logs


def test_nothing_in_a_log_acts_on_a_terminal(
    poisoned: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = str(poisoned)
    commands = [
        ["diagnose", logs],
        ["diagnose", logs, "-f", "markdown"],
        ["diagnose", logs, "-f", "json"],
        ["ls", logs],
        ["log", logs],
        ["why", logs, "F1"],
        ["sql", logs, "FROM lines"],
        ["sql", logs, "FROM events"],
        ["sql", logs, "FROM files"],
        ["sql", logs, "PIVOT lines ON text USING count(*)"],
        ["cache", "ls"],
        ["diagnose", f"no-such-{POISON}".replace("\0", "")],
        ["sql", logs, 'FROM "\x1b[2J"'],
    ]
    for command in commands:
        main(command)
        said = capsys.readouterr()
        assert acts(said.out) | acts(said.err) == set(), command
    monkeypatch.setenv("NO_COLOR", "1")  # the tool's own sequences
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for command in (*commands, ["sql", logs, "FROM lines", "-f", "csv"], ["sql", logs, "FROM lines", "-f", "jsonl"],
                    ["log", logs, "-f", "jsonl"], ["ls", logs, "-f", "json"]):  # fmt: skip
        main(command)
        assert acts(capsys.readouterr().out) == set(), command


def test_markup_in_a_log_is_text(poisoned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["diagnose", str(poisoned), "-f", "markdown"])
    shown = capsys.readouterr().out
    outside = "".join(part for n, part in enumerate(shown.split("```")) if n % 2 == 0)
    assert "\\<script\\>" in outside
    assert "<script>" not in outside
    main(["diagnose", str(poisoned), "--width", "1000"])
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_data_for_a_pipe_is_the_log_as_it_is(poisoned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not for a terminal is not changed: another program reads it."""
    main(["sql", str(poisoned), "SELECT text FROM lines", "-f", "jsonl"])
    texts = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert any(POISON.replace("\r", "") in line for line in texts)


# ------------------------------------------------------------------ mutations


@pytest.mark.parametrize("seed", range(3))
def test_no_mutation_crashes_or_loses_a_line(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of what bench/mutate.py reads in full."""
    monkeypatch.setattr(mutate, "BOMB", 1 << 20)
    found, classes = mutate.run_of(seed, mutate.originals([]), 24, tmp_path)
    assert found == []
    assert classes["parsed"] > 0


@pytest.mark.parametrize("name", mutate.BAITS)
def test_a_line_of_64_kib_that_is_made_to_hurt_ends(tmp_path: Path, name: str) -> None:
    """Nothing is asserted of the time: what is not linear does not end within the patience of who runs the tests."""
    (tmp_path / "logs").mkdir()
    bait = mutate.BAITS[name](1 << 16)
    content = f"[rank0]: step 1 loss 2.0\n{bait}\n[rank0]: {bait}\n[rank0]: step 2 loss 1.0\n"
    (tmp_path / "logs" / "rank0.log").write_text(content, newline="")
    with open_run([tmp_path / "logs"], db=tmp_path / "run.duckdb") as run:
        coverage = run.report().coverage
    assert coverage.lines == coverage.parsed + coverage.continuation + coverage.plain + coverage.malformed == 4
