"""Every way to name logs and to say what they do not, through the whole command; and the same answer each time."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from replay.cli.main import main
from replay.resources import folder

DEMO = folder("corpora") / "recompile-one-rank" / "logs"
HEALTHY = folder("corpora") / "healthy" / "logs"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


Out = Callable[..., str]


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Out:
    def call(*arguments: str | Path, code: int = 0) -> str:
        returned = main([str(a) for a in arguments])
        said = capsys.readouterr()
        assert returned == code, said.err
        assert (said.err == "") == (code == 0)
        return said.out if code == 0 else said.err

    return call


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))[1:]


# ------------------------------------------------------------------ LOGS


class Stdin:
    """Standard input that holds bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_standard_input(replay: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (HEALTHY / "console.log").read_bytes()
    monkeypatch.setattr("sys.stdin", Stdin(content))
    report = json.loads(replay("diagnose", "-", "-f", "json"))
    assert report["coverage"]["lines"] == content.count(b"\n")
    assert rows(replay("sql", "@", "SELECT path FROM files", "-f", "csv")) == [["<stdin>"]]


def test_a_pipe(replay: Out, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"cat {HEALTHY}/console.log > {pipe}"]):
        assert "console" not in replay("ls", pipe)


def test_a_quoted_pattern(replay: Out) -> None:
    listed = rows(replay("sql", f"{HEALTHY}/*/*/*/stderr.log", "SELECT path FROM files", "-f", "csv"))
    assert listed == [[f"{rank}/stderr.log"] for rank in range(3)]


def test_several_names(replay: Out) -> None:
    paths = rows(replay("sql", DEMO, HEALTHY / "console.log", "SELECT path FROM files", "-f", "csv"))
    assert ["healthy/logs/console.log"] in paths
    assert ["recompile-one-rank/logs/console.log"] in paths


def test_the_last_one_used(replay: Out, tmp_path: Path) -> None:
    first = replay("diagnose", DEMO, "-f", "json")
    assert replay("diagnose", "@", "-f", "json") == first
    replay("diagnose", HEALTHY, "--db", tmp_path / "kept.duckdb")
    healthy = replay("diagnose", "@", "-f", "json")
    assert json.loads(healthy)["verdict"] == "healthy"
    replay("diagnose", DEMO)
    replay("ls", tmp_path / "kept.duckdb")
    assert replay("diagnose", "@", "-f", "json") == healthy


def test_a_database_made_before(replay: Out, tmp_path: Path) -> None:
    place = tmp_path / "mine.duckdb"
    first = replay("diagnose", DEMO, "--db", place, "-f", "json")
    before = place.read_bytes()
    assert replay("diagnose", place, "-f", "json") == first
    assert place.read_bytes() == before
    options = {"--world-size": "4", "--year": "2020", "--tz": "UTC", "--rank-from": "(1)", "--rules": tmp_path}
    for option in (options | {"--db": tmp_path / "x.duckdb"}).items():
        assert "name the logs instead of the database" in replay("diagnose", place, *option, code=2)


def test_logs_and_databases_by_other_clients(replay: Out, tmp_path: Path) -> None:
    """A run that is open here can be read by any DuckDB client at the same time."""
    place = tmp_path / "mine.duckdb"
    replay("diagnose", DEMO, "--db", place)
    ask = f"import duckdb; print(duckdb.connect({str(place)!r}, read_only=True).execute('FROM runs').fetchall()[0][0])"
    with duckdb.connect(str(place), read_only=True):
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True, timeout=60)
        assert done.stdout == b"1\n"
        assert replay("ls", place)


# ------------------------------------------------------------------ what the logs do not say


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Files whose names hold the rank where nobody would look, with stamps that lack year and zone."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for rank in range(3):
        lines = [f"I1130 10:00:0{n}.500000 7 torch/_dynamo/convert.py:1] text\nstep {n} loss 2.5\n" for n in range(3)]
        (logs / f"job7.machine{rank}x.part").write_text("".join(lines))
    return logs


def test_rank_from(replay: Out, nodes: Path) -> None:
    found = replay(
        "sql", nodes, "--rank-from", r"machine(\d+)x", "SELECT DISTINCT rank FROM lines ORDER BY 1", "-f", "csv"
    )
    assert rows(found) == [["0"], ["1"], ["2"]]


def test_world_size(replay: Out, nodes: Path) -> None:
    options = ["--rank-from", r"machine(\d+)x", "--world-size", "8"]
    report = json.loads(replay("diagnose", nodes, *options, "-f", "json"))
    assert [(r["ranks_expected"], r["ranks_seen"]) for r in report["runs"]] == [(8, 3)]
    assert "5 of 8 ranks wrote nothing that was handed over: 3-7" in replay("ls", nodes, *options)


def test_year(replay: Out, nodes: Path) -> None:
    query = "SELECT strftime(make_timestamp((min(t_lo) * 1e6)::BIGINT), '%Y-%m-%d %H') FROM lines"
    assert rows(replay("sql", nodes, "--year", "2021", query, "-f", "csv")) == [["2021-11-30 10"]]


def test_time_zone(replay: Out, tmp_path: Path) -> None:
    """A zone places stamps that have none among those that have one."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank0.log").write_text(
        "2026-11-30T10:00:00.000000000Z stdout F step 1 loss 2.0\n"
        "2026-11-30T10:00:01.000000000Z stdout F step 2 loss 2.0\n"
    )
    (tmp_path / "logs" / "rank1.log").write_text(
        "Nov 30 11:00:00 host train[1]: step 1 loss 2.0\nNov 30 11:00:01 host train[1]: step 2 loss 2.0\n"
    )
    query = "SELECT file_id, min(t_lo) FROM lines GROUP BY ALL ORDER BY ALL"
    found = rows(replay("sql", tmp_path / "logs", "--tz", "Europe/Berlin", "--year", "2026", query, "-f", "csv"))
    assert found[0][1] == found[1][1]


# ------------------------------------------------------------------ SQL


def test_a_query_by_name_and_the_list_of_them(replay: Out) -> None:
    assert "@recompiles" in replay("sql", DEMO, "@")
    assert "forward" in replay("sql", DEMO, "@recompiles")


def test_answers_as_files(replay: Out, tmp_path: Path) -> None:
    query = "SELECT rank, line_no, text FROM lines ORDER BY file_id, line_no"
    wanted = rows(replay("sql", DEMO, query, "-f", "csv"))
    for name in ("csv", "jsonl", "parquet"):
        assert replay("sql", DEMO, query, "-f", name, "-o", tmp_path / f"it's.{name}") == ""
    from_json = [json.loads(line) for line in (tmp_path / "it's.jsonl").read_text().splitlines()]
    assert rows((tmp_path / "it's.csv").read_text()) == wanted
    assert [[str(v) if v is not None else "" for v in r.values()] for r in from_json] == wanted
    held = duckdb.connect().read_parquet(str(tmp_path / "it's.parquet")).fetchall()
    assert [[str(v) if v is not None else "" for v in r] for r in held] == wanted


def escapes(secret: Path, target: Path) -> list[str]:
    """Return ways out of the database."""
    return [
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM read_blob('{secret}')",
        f"SELECT * FROM read_json('{secret}')",
        f"SELECT * FROM read_parquet('{secret}')",
        f"SELECT * FROM sniff_csv('{secret}')",
        f"SELECT * FROM glob('{secret.parent}/*')",
        f"SELECT * FROM parquet_metadata('{secret}')",
        f"ATTACH '{target}' AS x",
        f"COPY lines TO '{target}'",
        f"COPY lines FROM '{secret}'",
        f"EXPORT DATABASE '{target}'",
        f"IMPORT DATABASE '{secret.parent}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        f"LOAD '{secret}'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET enable_external_access",
        f"SET temp_directory = '{target}'",
        "SET threads = 64",
        f"PRAGMA temp_directory='{target}'",
        f"SET allowed_paths = ['{secret}']",
        f"CREATE SECRET s (TYPE s3, KEY_ID 'a'); SELECT * FROM read_csv('{secret}')",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO runs (run_id) VALUES (9)",
        "UPDATE findings SET summary = ''",
        "DELETE FROM lines",
        "DROP TABLE lines",
        "ALTER TABLE lines ADD COLUMN x INTEGER",
        "CREATE OR REPLACE VIEW recompiles AS SELECT 1",
        "SELECT getenv('HOME')",
        "SELECT * FROM 'https://example.com/x.csv'",
    ]


def test_no_query_reaches_beyond_the_database_or_changes_it(replay: Out, tmp_path: Path) -> None:
    secret, target = tmp_path / "secret.csv", tmp_path / "target"
    secret.write_text("a,b\nsecret,1\n")
    place = tmp_path / "run.duckdb"
    replay("diagnose", DEMO, "--db", place)
    before = place.read_bytes()
    for query in escapes(secret, target):
        said = replay("sql", place, query, code=2)
        assert said.startswith("replay: SQL: "), query
        assert said.count("\n") == 1
        assert "secret,1" not in said
    for query in escapes(secret, target):
        out = tmp_path / "out.parquet"
        assert main(["sql", str(place), query, "-f", "parquet", "-o", str(out)]) == 2, query
        assert not out.exists()
    nested = f"SELECT 1) TO '{target}' (FORMAT csv); COPY (SELECT 1"
    assert main(["sql", str(place), nested, "-f", "parquet", "-o", str(tmp_path / "out.parquet")]) == 2
    assert not target.exists()
    assert place.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "run.duckdb", "secret.csv"]


# ------------------------------------------------------------------ the same answer


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "replay.cli.main", *map(str, arguments)]


@pytest.mark.parametrize("logs", [DEMO, HEALTHY], ids=["recompile", "healthy"])
def test_two_runs_from_scratch_say_the_same_to_the_byte(logs: Path, tmp_path: Path) -> None:
    said = []
    for number, seed in enumerate(["0", "1", "42"]):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        line = command("diagnose", logs, "-f", "json", "--db", tmp_path / f"{number}.duckdb")
        said.append(subprocess.run(line, env=environment, capture_output=True, check=True, timeout=120).stdout)
    assert said[0] == said[1] == said[2] != b""


def test_several_processes_on_one_cache(own_cache: Path) -> None:
    started = [subprocess.Popen(command("diagnose", DEMO, "-f", "json"), stdout=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert said[0] == said[1] == said[2] != b""
    assert sorted(p.suffix for p in own_cache.iterdir() if p.is_file()) == [".duckdb", ".json"]


def test_a_log_that_grew_is_read_again(replay: Out, tmp_path: Path) -> None:
    shutil.copytree(HEALTHY, tmp_path / "logs")
    before = json.loads(replay("diagnose", tmp_path / "logs", "-f", "json"))
    with (tmp_path / "logs" / "console.log").open("a") as file:
        file.write("[rank1]: ValueError: the ship is sinking\n")
    after = json.loads(replay("diagnose", tmp_path / "logs", "-f", "json"))
    assert after["coverage"]["lines"] == before["coverage"]["lines"] + 1
    assert "the ship is sinking" in replay("log", "@", "--grep", "ship")


ENDED = """
import os, signal, sys
import replay.run
from replay.cli.main import run
begun = replay.run._derive
number = int(sys.argv.pop())
signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
def ended(*arguments):
    os.kill(os.getpid(), number)
    begun(*arguments)
replay.run._derive = ended
run()
"""
"""The command, which a signal meets while the new database is half made; a shell in the background ignores some."""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_reading_leaves_the_old_database(
    own_cache: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(HEALTHY, logs)
    subprocess.run(command("diagnose", logs), check=True, capture_output=True, timeout=120)
    (kept,) = own_cache.glob("*.duckdb")
    before = kept.read_bytes()
    with (logs / "console.log").open("a") as file:
        file.write("one more line\n")
    line = [sys.executable, "-c", ENDED, "diagnose", str(logs), str(int(ending))]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (130, b""), done.stderr
    assert done.stderr in {b"", b"replay: interrupted\n"}
    assert kept.read_bytes() == before
    assert list(own_cache.glob(".building-*")) == []


def test_a_signal_inside_the_engine_is_an_interrupt(
    replay: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("replay.run._derive", interrupted)
    assert replay("diagnose", HEALTHY, code=130) == "replay: interrupted\n"
