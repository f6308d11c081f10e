"""Every command is documented, says failures in one line with the right exit code, and keeps data on stdout."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import example_runs
import pytest
from factory import insert

from replay.cli import docs, screen
from replay.cli.main import main
from replay.cli.progress import describe
from replay.cli.screen import Color
from replay.grammar import kept
from replay.resources import folder
from replay.run import Progress
from replay.store import database, schema

ROOT = Path(docs.__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


def saved(path: Path, make: Callable[[duckdb.DuckDBPyConnection], object]) -> str:
    """Write an example run as a database and return its path."""
    with database.building(path) as con:
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION)})
        make(con)
    return str(path)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    return saved(tmp_path / "slow.duckdb", example_runs.recompile)


Out = Callable[..., tuple[int, str, str]]


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Out:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


# ------------------------------------------------------------------ the command line itself


def test_cli_md_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == docs.render(), "run python -m replay.cli.docs"


def test_every_command_has_help(replay: Out) -> None:
    names = [c.name for c in docs.commands()]
    assert {"replay diagnose", "replay sql", "replay ls", "replay log", "replay why-not", "replay cache rm"} <= set(
        names
    )
    for command in docs.commands():
        code, out, err = replay(*command.name.split()[1:], "--help")
        assert (code, err) == (0, "")
        assert "Usage: " + command.name in out
        assert all(p.written.split(",")[0].split()[0] in out for p in command.parameters if not p.is_argument)


def test_help_and_version(replay: Out) -> None:
    assert replay("--version")[:2] == (0, "replay 0.1.0\n")
    assert replay()[1] == replay("--help")[1]
    assert "diagnose" in replay()[1]
    assert "rm" in replay("cache")[1]
    assert "explain" in replay("rules")[1]


def test_help_loads_no_stage() -> None:
    """Start-up counts: neither the database engine nor any stage is imported to list the commands."""
    code = (
        "import sys; from replay.cli.main import main; main(['--help']); "
        "print([m for m in ('duckdb', 'numpy', 'lark', 'pydantic', 'yaml', 'rich', 'replay.run') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose"], "Missing argument"),
        (["diagnose", "--nonsense", "x"], "--nonsense"),
        (["nonsense"], "nonsense"),
        (["diagnose", "x", "--format", "xml"], "xml"),
        (["diagnose", "/nowhere/at/all"], "/nowhere/at/all"),
        (["log", "x", "--rank", "a-b"], "ranks are written like"),
        (["rules", "show", "no-such-rule"], "no rule no-such-rule"),
        (["cache", "rm"], "--all"),
        (["cache", "path", "never-read"], "not read before"),
        (["diagnose", "@"], "no run was looked at before"),
        (["demo", "no-such-run"], "recompile-one-rank"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(replay: Out, arguments: list[str], words: str) -> None:
    code, out, err = replay(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("replay: ")
    assert words in err


def test_an_unexpected_error_is_one_line_too(replay: Out, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a\nbug")

    monkeypatch.setattr("replay.run.open_run", broken)
    code, out, err = replay("diagnose", slow)
    assert (code, out) == (2, "")
    assert err.startswith("replay: unexpected: RuntimeError: a bug (REPLAY_DEBUG=1")
    assert err.count("\n") == 1
    monkeypatch.setenv("REPLAY_DEBUG", "1")
    assert "Traceback" in replay("diagnose", slow)[2]


def test_an_interrupt_ends_with_130(replay: Out, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("replay.run.open_run", interrupted)
    code, out, err = replay("diagnose", slow)
    assert (code, out) == (130, "")
    assert err.strip() in {"", "replay: interrupted"}


def test_a_closed_pipe_is_no_error(slow: str) -> None:
    """`| head` that has seen enough: no traceback, no complaint."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "replay.cli.main", "sql", slow, "FROM range(100000)", "-f", "csv"]
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------ diagnose


def test_diagnose_in_three_formats(replay: Out, slow: str) -> None:
    code, out, err = replay("diagnose", slow)
    assert (code, err) == (0, "")
    assert out.startswith("F1  Rank 2 recompiled forward")
    assert f"replay why {slow} F1" in out
    assert json.loads(replay("diagnose", slow, "--format", "json")[1])["verdict"] == "cause"
    assert replay("diagnose", slow, "-f", "markdown")[1].startswith("# Rank 2 recompiled")


def test_the_next_command_reads_the_logs_in_the_same_way(replay: Out) -> None:
    logs = str(folder("corpora") / "recompile-one-rank" / "logs")
    told = ("--world-size", "4", "--tz", "Europe/Berlin")
    code, out, err = replay("diagnose", logs, *told)
    assert (code, err) == (0, "")
    assert f"replay why {logs} {' '.join(told)} F1" in out
    assert replay("why", logs, *told, "F1")[0] == 0


def test_exit_codes_of_diagnose(replay: Out, slow: str, tmp_path: Path) -> None:
    assert replay("diagnose", slow, "--exit-code")[0] == 1
    assert replay("diagnose", saved(tmp_path / "h.duckdb", example_runs.healthy), "--exit-code")[0] == 0
    assert replay("diagnose", saved(tmp_path / "u.duckdb", example_runs.hung), "--exit-code")[0] == 3


def test_strict_names_the_lines_that_cannot_be_read(replay: Out, tmp_path: Path) -> None:
    def torn(con: duckdb.DuckDBPyConnection) -> None:
        example_runs.healthy(con)
        for line_no in range(1, 6):
            insert(con, "lines", file_id=1, line_no=line_no, **{"class": "malformed"})

    torn_run = saved(tmp_path / "torn.duckdb", torn)
    code, out, err = replay("diagnose", torn_run, "--strict")
    assert (code, out) == (2, "")
    assert "none_x/attempt_0/0/stderr.log:1" in err
    assert "and 2 more" in err
    assert replay("diagnose", torn_run)[0] == 0


def test_colour_and_width(replay: Out, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replay("diagnose", slow)[1]
    assert "\x1b" not in plain
    assert "\x1b[" in replay("diagnose", slow, "--color", "always")[1]
    assert max(map(len, replay("diagnose", slow, "--width", "120")[1].splitlines())) > 80
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in replay("diagnose", slow)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert replay("diagnose", slow)[1] == plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert screen.colored(Color.AUTO, sys.stdout)
    monkeypatch.setenv("TERM", "dumb")
    assert not screen.colored(Color.AUTO, sys.stdout)


def test_what_is_no_run_database_is_named(replay: Out, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).close()
    code, _, err = replay("diagnose", str(other))
    assert code == 2
    assert "not one that replay made" in err


# ------------------------------------------------------------------ sql


def test_sql_formats(replay: Out, slow: str, tmp_path: Path) -> None:
    query = "SELECT finding_id, ranks, cost_s FROM findings ORDER BY 1"
    code, out, err = replay("sql", slow, query)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["finding_id", "ranks", "cost_s"]
    assert out.splitlines()[-1] == "(3 rows)"
    rows = list(csv.reader(io.StringIO(replay("sql", slow, query, "-f", "csv")[1])))
    assert rows[:2] == [["finding_id", "ranks", "cost_s"], ["F1", "[2]", "5.3"]]
    lines = [json.loads(line) for line in replay("sql", slow, query, "-f", "jsonl")[1].splitlines()]
    assert lines[0] == {"finding_id": "F1", "ranks": [2], "cost_s": 5.3}
    target = tmp_path / "out.csv"
    assert replay("sql", slow, query, "-f", "csv", "-o", str(target))[:2] == (0, "")
    assert target.read_text().startswith("finding_id,ranks,cost_s\nF1,[2],5.3\n")


def test_sql_parquet(replay: Out, slow: str, tmp_path: Path) -> None:
    target = tmp_path / "it's.parquet"
    assert replay("sql", slow, "SELECT finding_id, ranks FROM findings;", "-f", "parquet", "-o", str(target))[0] == 0
    assert duckdb.connect().read_parquet(str(target)).fetchall()[0] == ("F1", [2])
    code, _, err = replay("sql", slow, "FROM findings", "-f", "parquet")
    assert code == 2
    assert "-o FILE" in err


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nonsense FROM findings", "nonsense"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM read_text('/etc/passwd')", "Permission Error"),
        ("SELECT error('late')", "late"),
        ("@nonsense", "no query @nonsense; there are @cache,"),
    ],
)
def test_a_wrong_query_is_one_line(replay: Out, slow: str, query: str, words: str) -> None:
    code, out, err = replay("sql", slow, query)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_a_wrong_query_leaves_the_file(replay: Out, slow: str, tmp_path: Path) -> None:
    target = tmp_path / "precious.csv"
    target.write_text("old")
    assert replay("sql", slow, "SELECT nonsense", "-f", "csv", "-o", str(target))[0] == 2
    assert target.read_text() == "old"


def test_named_queries_all_run(replay: Out, slow: str) -> None:
    code, out, _ = replay("sql", slow, "@")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert "@recompiles" in names
    for name in names:
        code, _, err = replay("sql", slow, name)
        assert (code, err) == (0, ""), name


def test_log_text_cannot_act_on_a_terminal(replay: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = "\x1b]0;owned\x07\x9b2J\u202e"

    def hostile(con: duckdb.DuckDBPyConnection) -> None:
        example_runs.healthy(con)
        insert(con, "lines", run_id=1, rank=0, file_id=1, line_no=1, text=poison, **{"class": "plain"})
        insert(con, "problems", kind="torn", text=poison)

    run = saved(tmp_path / "x.duckdb", hostile)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for arguments in (["sql", run, "SELECT text FROM lines"], ["sql", run, "SELECT text FROM lines", "-f", "csv"],
                      ["sql", run, "SELECT text FROM lines", "-f", "jsonl"], ["ls", run], ["ls", run, "-f", "json"],
                      ["log", run, "--color", "never"], ["log", run, "-f", "jsonl"]):  # fmt: skip
        out = replay(*arguments)[1]
        assert not set(out) & set("\x1b\x07\x9b\u202e"), arguments


# ------------------------------------------------------------------ ls, log, why


def test_ls(replay: Out, slow: str) -> None:
    code, out, _ = replay("ls", slow)
    assert code == 0
    assert "none_x/attempt_0/2/stderr.log" in out
    assert "4 ranks heard (0-3) of 4 on 1 host" in out
    assert "TORCH_LOGS=guards" in out
    assert json.loads(replay("ls", slow, "-f", "json")[1])["ranks"] == [0, 1, 2, 3]


def test_ls_says_what_is_missing(replay: Out, tmp_path: Path) -> None:
    def partly(con: duckdb.DuckDBPyConnection) -> None:
        example_runs.healthy(con)
        con.execute("UPDATE runs SET ranks_expected = 32; UPDATE files SET stream = 'stdout' WHERE file_id = 2")
        insert(con, "writers", writer_id=0, file_id=1, rank=0)
        insert(con, "writers", writer_id=1, file_id=2, rank=1)

    out = replay("ls", saved(tmp_path / "p.duckdb", partly))[1]
    assert "missing: 30 of 32 ranks wrote nothing that was handed over: 2-31" in out
    assert "missing: 1 of 2 ranks have no stderr: rank 1" in out


def test_log_filters(replay: Out, tmp_path: Path) -> None:
    def chatty(con: duckdb.DuckDBPyConnection) -> None:
        example_runs.recompile(con)
        for rank in range(4):
            for n in range(1, 21):
                t = example_runs.START + n if n % 2 else None
                insert(con, "lines", run_id=1, rank=rank, file_id=rank + 1, line_no=n, t_lo=t, form="app_step",
                       text=f"rank {rank} line {n}", **{"class": "plain" if n < 10 else "parsed"})  # fmt: skip

    run = saved(tmp_path / "c.duckdb", chatty)

    def texts(*arguments: str) -> list[str]:
        code, out, err = replay("log", run, "-f", "jsonl", *arguments)
        assert (code, err) == (0, "")
        return [json.loads(line)["text"] for line in out.splitlines()]

    assert len(texts()) == 80
    assert texts("--limit", "5") == [
        "rank 0 line 1",
        "rank 0 line 2",
        "rank 1 line 1",
        "rank 1 line 2",
        "rank 2 line 1",
    ]
    assert texts("--rank", "1-2", "--grep", "line (3|4)$") == [
        "rank 1 line 3", "rank 1 line 4", "rank 2 line 3", "rank 2 line 4"]  # fmt: skip
    assert len(texts("--class", "parsed")) == 44
    assert len(texts("--kind", "app_*", "--rank", "0")) == 20
    assert "rank 1 line 6" in texts("--around", "F1")
    assert "rank 1 line 20" not in texts("--around", "F1")
    shown = replay("log", run, "-n", "1")[1]
    assert shown.split() == ["23:46:41.000", "0", "rank", "0", "line", "1"]
    for wrong in (["--grep", "("], ["--class", "x"], ["--around", "F9"]):
        code, out, err = replay("log", run, *wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_why_shows_the_proof(replay: Out, slow: str) -> None:
    code, out, _ = replay("why", slow, "F1")
    assert code == 0
    assert "none_x/attempt_0/2/stderr.log:270" in out
    assert "F2" in out
    code, _, err = replay("why", slow, "F9")
    assert code == 2
    assert "F9" in err


def test_why_not_says_how_near_a_rule_came(replay: Out, slow: str) -> None:
    code, out, _ = replay("why-not", slow, "rank-exception")
    assert code == 0
    assert out.startswith("rank-exception: ")


# ------------------------------------------------------------------ cache, rules


def test_the_cache(replay: Out, own_cache: Path) -> None:
    assert replay("cache", "path")[1] == f"{own_cache}\n"
    assert replay("cache", "ls")[:2] == (0, "database  size  age  logs\n")
    saved(own_cache / "a-1.duckdb", lambda con: database.write_meta(con, {"logs": '["/runs/a"]'}))
    assert "/runs/a" in replay("cache", "ls")[1]
    assert replay("cache", "path", "/runs/a")[1] == f"{own_cache / 'a-1.duckdb'}\n"
    assert replay("cache", "rm", "/runs/a")[0] == 0
    assert list(own_cache.iterdir()) == []
    saved(own_cache / "b-1.duckdb", example_runs.healthy)
    (own_cache / f"{database.SCRATCH}left").mkdir()
    (own_cache / f"{kept.FOLDER}0123").mkdir()
    assert replay("cache", "rm", "--all")[0] == 0
    assert list(own_cache.iterdir()) == []


def test_rules(replay: Out) -> None:
    code, out, _ = replay("rules", "list")
    assert code == 0
    assert "recompile-barrier-stall" in out
    listed = json.loads(replay("rules", "list", "-f", "json")[1])
    assert {"id", "layer", "cause", "title"} == set(listed[0])
    assert replay("rules", "show", "recompile-barrier-stall")[1].startswith("id: recompile-barrier-stall\n")
    assert "concludes recompile-barrier-stall" in replay("rules", "explain", "recompile-barrier-stall")[1]
    assert "SELECT" in replay("rules", "explain", "recompile-barrier-stall", "--sql")[1]


def test_wrong_rules_are_counted(replay: Out, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bad.yaml").write_text("id: bad\ntitle: x\n")
    code, _, err = replay("rules", "check", str(tmp_path / "mine"))
    assert code == 2
    assert "bad.yaml:" in err


# ------------------------------------------------------------------ drawing


def test_progress_tells_rate_and_time_left() -> None:
    assert describe(Progress("reading", 50 * 2**20, 200 * 2**20), 2.0) == (
        "reading 50.0 MiB of 200.0 MiB, 25.0 MiB/s, 6.0 s left"
    )
    assert describe(Progress("reading", 0, 100), 2.0) == "reading 0 B of 100 B"
    assert describe(Progress("diagnosing"), 2.0) == "diagnosing ..."


def test_tables_align() -> None:
    assert screen.table([["a", "n"], ["xx", "1"], ["y", "10"]], frozenset({1})) == "a    n\nxx   1\ny   10\n"
    assert screen.table([["a"], ["abcdef"]], widest=4) == "a\nabc…\n"


def test_what_if_says_what_a_run_would_have_taken(replay: Out) -> None:
    logs = str(ROOT / "corpora" / "recompile-one-rank" / "logs")
    code, out, err = replay("what-if", logs, "--without", "recompiles@3")
    assert (code, err) == (0, "")
    assert out.startswith("Without recompiles on rank 3: 38.7 s instead of 53.4 s")
    code, out, _ = replay("what-if", "@", "--rank-as-median", "3", "--timeout", "5", "--format", "json")
    answer = json.loads(out)
    assert code == 0
    assert answer["changed_s"] < answer["replayed_s"]
    assert answer["change"]["as_median"] == [3]
    assert answer["causes"][0]["amplification"] > 3


def test_what_if_without_stamps_cannot_tell(replay: Out, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank0.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n")
    code, out, err = replay("what-if", str(tmp_path / "logs"))
    assert (code, out) == (3, "")
    assert "cannot say, because no line carries a stamp; switch on" in err
    code, out, _ = replay("what-if", "@", "-f", "json")
    assert code == 3
    assert json.loads(out)["cannot"].startswith("no line")
    assert replay("what-if", "@", "--without", "noise")[0] == 2
