"""Logs are untrusted: no bytes of theirs act on a terminal, end the tool, or make a line go uncounted."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from replay.cli.main import main
from replay.report import json as report_json
from replay.report import markdown, text
from replay.resources import folder
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

JUNK = [
    b"\0", b"\xff", b"\r", b"\x1b[31m", b"\x1b]0;x\x07", b"\xe2\x80\xae", b"\n\n", b"\xe2\x96", b"(" * 50, b"[" * 50,
    b"]:[", b"{", b'"', b"'", b"nan", b"-1", b"9" * 30, b"rank ", b": ", b"[rank7]:", b"[rank999999]:", b"1e999", b"0x",
    b"Traceback (most recent call last):\n", b'  File "', b"RuntimeError: ", b"h:1:2 [0] NCCL INFO ",
    b"2026-13-45 99:99:99", b"9999-12-31 23:59:59", b"0001-01-01 00:00:00", b"E1399 25:61:61.999999 ",
]  # fmt: skip
LARGEST = 16_000
BLOCK = 4096


def mutated(random: random.Random, content: bytes) -> bytes:
    """Return a piece of a log with some of the things done to it that disks, pipes and people do."""
    at = random.randrange(max(len(content) - LARGEST, 1))
    data = bytearray(content[at : at + LARGEST] + b"\n")
    for _ in range(random.choice([1, 2, 5, 20])):
        begin = random.randrange(len(data) + 1)
        end = min(begin + random.choice([1, 10, 100, 1000]), len(data))
        piece = bytes(data[begin:end])
        match random.randrange(9):
            case 0:
                data[begin:end] = b""
            case 1:
                data[begin:begin] = piece
            case 2:
                data[begin:begin] = random.choice(JUNK)
            case 3:
                data[begin:end] = random.randbytes(end - begin)
            case 4:
                data[begin:end] = piece[::-1]
            case 5:
                data[begin:end] = piece.replace(b"\n", random.choice([b"", b"\r", b"\r\n", b"\0"]))
            case 6:
                data[begin:end] = bytes(random.choice(b"0123456789") if 48 <= c <= 57 else c for c in piece)
            case 7:
                lines = bytes(data).split(b"\n")
                lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
                data = bytearray(b"\n".join(lines))
            case _:  # two writers, one pipe
                first, second = data[: len(data) // 2], data[len(data) // 2 :]
                blocks = range(0, len(second), BLOCK)
                data = bytearray(b"".join(bytes(first[n : n + BLOCK] + second[n : n + BLOCK]) for n in blocks))
    return bytes(data)


def lines_in(content: bytes) -> int:
    return content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))


ORIGINALS = sorted(p for p in folder("corpora").glob("*/logs/**/*") if p.is_file() and p.stat().st_size)


@pytest.mark.parametrize("seed", range(8))
def test_no_mutation_crashes_or_loses_a_line(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    expected: dict[str, int] = {}
    for number in range(40):
        content = mutated(chance, chance.choice(ORIGINALS).read_bytes())
        name = chance.choice(["rank{}.log", "{}/stderr.log", "node{0}/out.{0}", "{}.txt"]).format(number)
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if chance.random() < 0.1:
            path = path.with_name(path.name + ".gz")
            path.write_bytes(gzip.compress(content))
        else:
            path.write_bytes(content)
        expected[path.relative_to(tmp_path / "logs").as_posix()] = lines_in(content)
    with open_run([tmp_path / "logs"], db=tmp_path / "run.duckdb") as run:
        counted = run.sql("SELECT path, lines, parsed + continuation + plain + malformed, kind FROM files").rows
        assert run.sql("SELECT count(*) FROM lines").rows == [(sum(lines for _, lines, _, _ in counted),)]
        for path, lines, classed, kind in counted:
            assert lines == classed, path
            assert lines == (0 if kind in {"binary", "empty", "unreadable"} else expected[path]), path
        assert {path for path, *_ in counted} == set(expected)
        assert run.sql("SELECT text FROM problems WHERE text LIKE 'rule %'").rows == []
        report = run.report()
        for show in (report_json.render, markdown.render, _as_text):
            assert acts(show(report)) == set()
        assert len(list(run.log())) == sum(lines for _, lines, _, _ in counted)


def _as_text(report: "text.Report") -> str:
    return text.render(report, text.Style())


REASON = "V1130 00:00:10.5 1 torch/_dynamo/guards.py:1] [0/1] [__recompiles]     - 0/0: "
BAITS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "(" * n,
    "nested JSON": lambda n: '{"a":' * (n // 5),
    "wrapped JSON": lambda n: '{"log":"' + '{\\"log\\":' * (n // 10),
    "prefixes": lambda n: "[rank0]:[1,0]<stderr>:" * (n // 22),
    "headers": lambda n: "host:1:2 [0] NCCL INFO x " * (n // 25),
    "a host without end": lambda n: "a" * n + " NCCL INFO x",
    "bars": lambda n: "50%|####\r" * (n // 9),
    "escapes": lambda n: "\x1b[31m" * (n // 5),
    "figures": lambda n: "step 1 loss=2 " * (n // 14),
    "blanks": lambda n: "epoch" + " " * n + "x",
    "guards": lambda n: REASON + "L['x'].a[0](" * (n // 12),
    "quotes": lambda n: REASON + "'\"" * (n // 2),
    "error": lambda n: "aError: " * (n // 8),
    "digits": lambda n: "NCCL version 2." + "1" * n + "x",
}


@pytest.mark.parametrize("name", BAITS)
def test_a_line_of_64_kib_that_is_made_to_hurt_ends(tmp_path: Path, name: str) -> None:
    """Nothing is asserted of the time: what is not linear does not end within the patience of who runs the tests."""
    (tmp_path / "logs").mkdir()
    bait = BAITS[name](1 << 16)
    content = f"[rank0]: step 1 loss 2.0\n{bait}\n[rank0]: {bait}\n[rank0]: step 2 loss 1.0\n"
    (tmp_path / "logs" / "rank0.log").write_text(content, newline="")
    with open_run([tmp_path / "logs"], db=tmp_path / "run.duckdb") as run:
        coverage = run.report().coverage
    assert coverage.lines == coverage.parsed + coverage.continuation + coverage.plain + coverage.malformed == 4
