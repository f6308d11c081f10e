"""Bad input: one line that names the thing and exit code 2, or a row of `problems` where the rest can go on."""

import gzip
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from replay.cli.main import main
from replay.sources import encoding
from replay.store import database, schema

STEPS = b"".join(b"[rank0]: step %d loss 2.0\n" % n for n in range(400))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


Out = Callable[..., tuple[int, str, str]]


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Out:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert "unexpected" not in said.err
        return code, said.out, said.err

    return call


def refused(answer: tuple[int, str, str], *words: str) -> None:
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.startswith("replay: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


# ------------------------------------------------------------------ what was named


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("no-such", "no-such: no such file or folder"),
        ("no-such-*", "no file matches this pattern"),
        ("", "an empty name"),
        ("x" * 5000, "name too long"),
        ("~nobody-of-this-name/logs", "home directory"),
        ("nul\0byte", "null byte"),
        (os.devnull, "it is empty"),
    ],
)
def test_a_name_that_leads_to_no_log(
    replay: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(replay("diagnose", named), words)


def test_a_file_in_the_place_of_a_folder(replay: Out, logs: Path) -> None:
    (logs / "a.log").write_bytes(STEPS)
    refused(replay("diagnose", logs / "a.log" / "more"), "a.log/more")


def test_one_of_several_names_is_wrong(replay: Out, logs: Path) -> None:
    (logs / "a.log").write_bytes(STEPS)
    refused(replay("diagnose", logs, logs.parent / "nowhere"), "nowhere: no such file or folder")


def test_an_empty_folder(replay: Out, logs: Path) -> None:
    refused(replay("diagnose", logs), "logs: there is no file in it")


def test_a_folder_of_empty_files(replay: Out, logs: Path) -> None:
    for name in ("a.log", "b.log"):
        (logs / name).touch()
    refused(replay("diagnose", logs), "all its files are empty")


def test_a_folder_of_code(replay: Out, logs: Path) -> None:
    (logs / "train.py").write_text("import torch\n")
    refused(replay("diagnose", logs), "only code and settings")


def test_nothing_in_there_is_ours(replay: Out, logs: Path) -> None:
    """Said with exit code 2; the report still says what to switch on."""
    (logs / "diary.txt").write_text("Dear diary,\nnothing happened today.\n")
    code, out, err = replay("diagnose", logs)
    assert code == 2
    assert err == f"replay: {logs}: nothing in there was written by PyTorch, NCCL or a launcher\n"
    assert out.startswith("Not known: nothing in these files was written by PyTorch")
    code, out, err = replay("log", logs)
    assert (code, err) == (0, "")
    assert "Dear diary," in out


def test_binary_garbage_alone(replay: Out, logs: Path) -> None:
    (logs / "core").write_bytes(bytes(range(256)) * 200)
    refused(replay("diagnose", logs), "core: is no text")


def test_binary_garbage_beside_a_log(replay: Out, logs: Path) -> None:
    (logs / "core").write_bytes(bytes(range(256)) * 200)
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0
    assert "odd: binary: core: is no text" in replay("ls", logs)[1]


def test_a_hole_of_zero_bytes_in_a_log(replay: Out, logs: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS[:100] + bytes(20_000) + STEPS)
    assert replay("diagnose", logs)[0] == 0


# ------------------------------------------------------------------ archives


def test_a_cut_archive_is_read_as_far_as_it_goes(replay: Out, logs: Path) -> None:
    whole = gzip.compress(os.urandom(2000).hex().encode() + b"\n" + STEPS)
    (logs / "rank0.log.gz").write_bytes(whole[: len(whole) - 20])
    assert replay("diagnose", logs)[0] == 0
    assert "odd: truncated: rank0.log.gz: ends in the middle of the archive" in replay("ls", logs)[1]


def test_an_archive_of_which_nothing_is_left(replay: Out, logs: Path) -> None:
    (logs / "rank0.log.gz").write_bytes(gzip.compress(STEPS)[:8])
    refused(replay("diagnose", logs), "rank0.log.gz: ends in the middle of the archive")


def test_a_bomb_is_read_to_its_limit(replay: Out, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_BOMB_BYTES", 1 << 20)
    (logs / "rank0.log.gz").write_bytes(gzip.compress(STEPS + bytes(20 << 20)))
    assert replay("diagnose", logs)[0] == 0
    assert "expands to far more than a log does" in replay("ls", logs)[1]


def test_an_archive_that_asks_for_gigabytes(logs: Path) -> None:
    import lzma  # noqa: PLC0415  not built into every Python

    big = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    path = logs / "a.xz"
    path.write_bytes(lzma.compress(STEPS, filters=big))
    chunks = encoding.Chunks(path, "xz")
    assert list(chunks) == []
    assert chunks.cut is not None


# ------------------------------------------------------------------ files that are none, links, permissions


def test_a_loop_of_links(replay: Out, logs: Path) -> None:
    (logs / "again").symlink_to(logs)
    (logs / "itself").symlink_to(logs / "itself")
    refused(replay("diagnose", logs), "the link leads back to a folder above it")
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0
    assert "again: the link leads back to a folder above it" in replay("ls", logs)[1]


def test_links_out_of_the_logs_are_not_followed(replay: Out, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text("secret\n")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "more.log").write_text("secret\n")
    (logs / "a.log").symlink_to(tmp_path / "secret.log")
    (logs / "b").symlink_to(tmp_path / "secrets")
    (logs / "rank0.log").write_bytes(STEPS)
    assert "secret\n" not in replay("log", logs)[1]
    listed = replay("ls", logs)[1]
    assert listed.count("the link leads out of the logs and was not followed") == 2


def test_a_link_that_leads_nowhere(replay: Out, logs: Path) -> None:
    (logs / "a.log").symlink_to(logs / "gone")
    refused(replay("diagnose", logs / "a.log"), "the link leads nowhere")


def test_pipes_and_sockets_in_a_folder_are_passed_over(
    replay: Out, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(logs / "pipe")
    refused(replay("diagnose", logs), "pipe: neither a file nor a folder")
    monkeypatch.chdir(logs)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        (logs / "rank0.log").write_bytes(STEPS)
        assert replay("diagnose", logs)[0] == 0
        listed = replay("ls", logs)[1]
    assert listed.count("neither a file nor a folder") == 2


def test_a_file_without_permission(replay: Out, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may read all: so the file system is made to say no."""
    for name in ("secret.log", "rank0.log"):
        (logs / name).write_bytes(STEPS)
    opened = Path.open

    def guarded(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "secret.log":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", guarded)
    assert replay("diagnose", logs)[0] == 0
    assert "odd: permission: secret.log: no permission to read it" in replay("ls", logs)[1]
    (logs / "rank0.log").unlink()
    refused(replay("diagnose", logs), "secret.log: no permission to read it")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may enter every folder")
def test_a_folder_without_permission(replay: Out, logs: Path) -> None:
    (logs / "closed").mkdir(mode=0)
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0
    assert "odd: permission: closed: no permission to read it" in replay("ls", logs)[1]


def test_a_file_that_goes_while_it_is_read(replay: Out, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rank0.log", "rank1.log"):
        (logs / name).write_bytes(STEPS.replace(b"rank0", name[:5].encode()))
    made = database._writable

    def late(path: Path) -> duckdb.DuckDBPyConnection:
        (logs / "rank1.log").unlink(missing_ok=True)
        return made(path)

    monkeypatch.setattr(database, "_writable", late)
    code, out, _ = replay("sql", logs, "SELECT kind, text FROM problems", "-f", "csv")
    assert code == 0
    assert "unreadable,rank1.log: No such file or directory" in out


# ------------------------------------------------------------------ lines


def test_a_line_of_a_hundred_megabytes(replay: Out, logs: Path) -> None:
    with (logs / "rank0.log").open("wb") as file:
        file.write(STEPS)
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + STEPS)
    code, out, _ = replay("sql", logs, "SELECT lines, parsed, plain, malformed FROM files", "-f", "csv")
    assert code == 0
    assert out.splitlines()[1] == "801,800,1,0"
    code, out, _ = replay("sql", logs, "SELECT max(length(text)) FROM lines", "-f", "csv")
    assert int(out.splitlines()[1]) <= 400


def test_a_line_of_thousands_of_headers(replay: Out, logs: Path) -> None:
    torn = b"host:1:2 [0] NCCL INFO torn off " * 2500
    (logs / "rank0.log").write_bytes(STEPS + torn + b"\n" + STEPS)
    code, out, _ = replay(
        "sql", logs, "SELECT lines, parsed + continuation + plain + malformed FROM files", "-f", "csv"
    )
    assert code == 0
    assert out.splitlines()[1] == "801,801"


# ------------------------------------------------------------------ databases and the cache


def test_a_database_of_another_schema(replay: Out, logs: Path, tmp_path: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    place = tmp_path / "old.duckdb"
    with database.building(place) as con:
        database.write_meta(con, {"schema": str(schema.SCHEMA_VERSION + 1)})
    refused(replay("diagnose", place), "old.duckdb: made by another version of replay", "read the logs again")
    assert replay("diagnose", logs, "--db", place)[0] == 0  # it is ours, so it may be made anew
    assert replay("diagnose", place)[0] == 0


def test_a_database_that_somebody_else_made_is_left_alone(replay: Out, logs: Path, tmp_path: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    place = tmp_path / "precious.duckdb"
    with duckdb.connect(str(place)) as con:
        con.execute(
            "CREATE TABLE precious AS SELECT 42 AS answer; CREATE TABLE meta AS SELECT 'a' AS name, 'b' AS value"
        )
    refused(replay("diagnose", place), "not one that replay made")
    refused(replay("diagnose", logs, "--db", place), "precious.duckdb", "left as it is")
    with duckdb.connect(str(place)) as con:
        assert con.execute("FROM precious").fetchall() == [(42,)]


def test_a_damaged_database(replay: Out, logs: Path, own_cache: Path, tmp_path: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0
    (kept,) = own_cache.glob("*.duckdb")
    damaged = tmp_path / "damaged.duckdb"
    whole = kept.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    refused(replay("diagnose", damaged), "damaged.duckdb")
    refused(replay("diagnose", logs, "--db", damaged), "damaged.duckdb", "left as it is")
    kept.write_bytes(whole[: len(whole) // 2])  # the cache is ours: it is made anew
    assert replay("diagnose", logs)[0] == 0


def test_damage_that_shows_late(replay: Out, logs: Path, own_cache: Path, tmp_path: Path) -> None:
    """Blocks are read when they are asked for: whichever command comes upon a damaged one says so in a line."""
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0
    (kept,) = own_cache.glob("*.duckdb")
    whole = kept.read_bytes()
    damaged = tmp_path / "damaged.duckdb"
    for place in range(12288 + 1000, len(whole), len(whole) // 12):
        damaged.write_bytes(whole[:place] + b"damage" * 20 + whole[place + 120 :])
        for command in ("diagnose", "ls", "log"):
            code, _, err = replay(command, damaged)
            assert code == 0 or (code, err.count("\n")) == (2, 1), err


@pytest.mark.parametrize("place", ["blocked", "blocked/below"])
def test_a_file_where_the_cache_should_be(
    replay: Out, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / place))
    refused(replay("diagnose", logs), place, "cannot be written", "--db", "REPLAY_CACHE_DIR")
    assert replay("diagnose", logs, "--db", tmp_path / "run.duckdb")[0] == 0
    assert replay("cache", "ls")[0] == 0


def test_a_user_without_a_home(replay: Out, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    monkeypatch.delenv("REPLAY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    refused(replay("diagnose", logs), "REPLAY_CACHE_DIR")
    assert replay("diagnose", logs, "--db", tmp_path / "run.duckdb")[0] == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nonsense", "nonsense"),
        ("SELEC 1", "syntax error"),
        ("", "the query is empty"),
        (";", "the query is empty"),
        ("SELECT * FROM no_such_table", "no_such_table"),
        ("@no-such-query", "no query @no-such-query"),
    ],
)
def test_a_query_that_is_none(replay: Out, logs: Path, query: str, words: str) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    refused(replay("sql", logs, query), words)


def test_places_for_an_answer_that_cannot_be(replay: Out, logs: Path, tmp_path: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    for name in ("csv", "jsonl", "parquet"):
        refused(replay("sql", logs, "SELECT 1", "-f", name, "-o", tmp_path / "no" / "x"), "x: cannot be written")
        refused(replay("sql", logs, "SELECT 1", "-f", name, "-o", tmp_path), "cannot be written")
    kept = tmp_path / "kept.parquet"
    kept.write_text("kept")
    late = "SELECT CASE WHEN i = 90000 THEN error('late') ELSE i::VARCHAR END AS x FROM range(100000) AS r(i)"
    refused(replay("sql", logs, late, "-f", "parquet", "-o", kept), "late")
    assert kept.read_text() == "kept"


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose", "LOGS", "--rules", "nowhere"], "nowhere: no such folder of rules"),
        (["diagnose", "LOGS", "--rank-from", "("], "not a regular expression"),
        (["diagnose", "LOGS", "--rank-from", "rank"], "needs a group"),
        (["diagnose", "LOGS", "--rank-from", "(rank)"], "which is no rank"),
        (["diagnose", "LOGS", "--world-size", "0"], "--world-size"),
        (["diagnose", "LOGS", "--world-size", "99999999999999999999"], "--world-size"),
        (["diagnose", "LOGS", "--year", "-5"], "--year"),
        (["diagnose", "LOGS", "--tz", "Mars/Phobos"], "no such time zone"),
        (["diagnose", "LOGS", "--tz", "../../etc/passwd"], "no such time zone"),
        (["log", "LOGS", "--rank", "0-999999999999"], "names no ranks"),
        (["log", "LOGS", "--rank", "5-2"], "names no ranks"),
        (["log", "LOGS", "--rank", "9" * 5000], "written like 0-6,8"),
        (["log", "LOGS", "--grep", "("], "--grep"),
        (["why", "LOGS", "F99"], "F99"),
        (["why-not", "LOGS", "no-such-rule"], "no rule no-such-rule"),
    ],
)
def test_options_that_cannot_be(replay: Out, logs: Path, arguments: list[str], words: str) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    assert replay("diagnose", logs)[0] == 0  # also where the logs were read before
    refused(replay(*(str(logs) if a == "LOGS" else a for a in arguments)), words)


def test_a_width_beyond_all_screens(replay: Out, logs: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS + b"[rank0]: ValueError: x\n")
    code, out, _ = replay("diagnose", logs, "--width", "99999999")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 1000


# ------------------------------------------------------------------ streams, as a shell gives them


def command(*arguments: str | Path, **options: object) -> "subprocess.CompletedProcess[bytes]":
    line = [sys.executable, "-m", "replay.cli.main", *map(str, arguments)]
    return subprocess.run(line, check=False, timeout=120, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload,no-any-return]


def test_standard_input_that_is_closed_or_empty(tmp_path: Path) -> None:
    done = command("diagnose", "-", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"replay: standard input: it is empty\n"
    shell = f"{sys.executable} -m replay.cli.main diagnose - <&-"
    closed = subprocess.run(["sh", "-c", shell], capture_output=True, check=False, timeout=120)
    assert (closed.returncode, closed.stderr) == (2, b"replay: standard input: it is empty\n")


def test_standard_output_that_takes_nothing(logs: Path) -> None:
    (logs / "rank0.log").write_bytes(STEPS)
    shell = f"{sys.executable} -m replay.cli.main sql {logs} 'FROM lines' -f csv"
    if stat.S_ISCHR(os.stat("/dev/full").st_mode if os.path.exists("/dev/full") else 0):
        full = subprocess.run(["sh", "-c", f"{shell} >/dev/full"], capture_output=True, check=False, timeout=120)
        assert full.returncode == 2
        assert full.stderr == b"replay: standard output: cannot be written (No space left on device)\n"
    closed = subprocess.run(["sh", "-c", f"{shell} >&-"], capture_output=True, check=False, timeout=120)
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.parametrize("coding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_unicode(logs: Path, coding: str) -> None:
    (logs / "rank0.log").write_text("[rank0]: step 1 loss 2.0\n[rank0]: ValueError: wörter \U0001d400 \N{BULLET}\n")
    environment = {**os.environ, "PYTHONIOENCODING": coding, "PYTHONUTF8": "0"}
    for form in ("text", "json", "markdown"):
        done = command("diagnose", logs, "-f", form, stdout=subprocess.PIPE, env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        assert "ValueError" in done.stdout.decode(coding)
