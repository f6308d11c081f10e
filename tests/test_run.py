"""From logs to an open run: the same answer however it came to be, and nothing broken on the way."""

import os
import shutil
from pathlib import Path

import duckdb
import pytest

from replay import run as facade
from replay.errors import InputError, ReplayError, UsageError
from replay.report import json as report_json
from replay.report.log import LogFilter
from replay.run import Progress, open_run
from replay.sources.model import Hints
from replay.store import database, schema

CORPORA = Path(__file__).parent.parent / "corpora"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(CORPORA / "recompile-one-rank" / "logs", tmp_path / "logs")
    return tmp_path / "logs"


def stderr_files(logs: Path) -> list[Path]:
    return sorted(logs.rglob("stderr.log"))


def contents(path: Path) -> dict[str, list[str]]:
    """Return all that a database holds, in its order, but when it was made; as text, in which NaN equals NaN."""
    con = duckdb.connect(str(path), read_only=True)
    tables = {name: [repr(row) for row in con.execute(f"FROM {name}").fetchall()] for name in schema.tables()}
    con.close()
    tables["meta"] = [row for row in tables["meta"] if "made_at" not in row]
    return tables


def told(logs: Path, **options: object) -> str:
    with open_run([logs], **options) as run:  # type: ignore[arg-type]
        return report_json.render(run.report())


def test_a_run_answers(logs: Path) -> None:
    with open_run([logs]) as run:
        assert run.report().coverage.lines == run.sql("SELECT count(*) FROM lines").rows[0][0]
        assert run.findings() == run.report().findings
        assert len(run.inventory().files) == run.report().coverage.files
        assert len(list(run.log(LogFilter(limit=7)))) == 7
        assert run.sql("SELECT ? + 1 AS n", [1]).columns == ("n",)
        with pytest.raises(UsageError, match="nonsense"):
            run.sql("SELECT nonsense")


def test_every_line_is_counted_once(logs: Path) -> None:
    with open_run([logs]) as run:
        wrong = run.sql("SELECT path FROM files WHERE parsed + continuation + plain + malformed <> lines")
        assert wrong.rows == []
        for path, lines in run.sql("SELECT path, lines FROM files WHERE kind = 'text' AND encoding = 'plain'").rows:
            assert (logs / path).read_bytes().count(b"\n") == lines


def test_what_did_not_change_is_not_read_again(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = told(logs)
    monkeypatch.setattr(facade, "_read", lambda *_: pytest.fail("read again"))
    assert told(logs) == first


def test_two_ingests_are_equal_to_the_byte(logs: Path, tmp_path: Path) -> None:
    told(logs, db=tmp_path / "a.duckdb")
    told(logs, db=tmp_path / "b.duckdb")
    assert contents(tmp_path / "a.duckdb") == contents(tmp_path / "b.duckdb")


def test_changed_files_alone_are_read_and_nothing_tells(
    logs: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facade, "KEEP_PARSED_BYTES", 0)
    told(logs)
    first, second, *_ = stderr_files(logs)
    with first.open("a") as file:
        file.write("[rank0]: ValueError: late news\n")
    second.unlink()
    (logs / "0_added.log").write_text("step 1 loss 2.5\nstep 2 loss nan\n")
    read: list[str] = []
    reading = facade._Reading.__init__

    def noted(self: object, file: object, *rest: object) -> None:
        read.append(file.path)  # type: ignore[attr-defined]
        reading(self, file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(facade._Reading, "__init__", noted)
    after = told(logs)
    assert sorted(read) == sorted(["0_added.log", first.relative_to(logs).as_posix()])
    assert told(logs, db=tmp_path / "fresh.duckdb") == after
    (kept,) = own_cache.glob("*.duckdb")
    assert contents(kept) == contents(tmp_path / "fresh.duckdb")
    assert len(list(own_cache.glob("*.parsed"))) == 1


def test_small_logs_keep_no_copy(logs: Path, own_cache: Path) -> None:
    told(logs)
    assert list(own_cache.glob("*.parsed")) == []


def test_other_rules_do_not_read_again(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(logs)
    rules = tmp_path / "mine"
    rules.mkdir()
    (rules / "every-run.yaml").write_text(
        "id: every-run\ntitle: A run\nlayer: environment\ncause: workaround-in-force\nkind: hazard\n"
        "when:\n  - file: {from: packages}\nconclude: {per: []}\nsay: There was a run.\n"
    )
    monkeypatch.setattr(facade, "_read", lambda *_: pytest.fail("read again"))
    told(logs, rules=[rules])
    assert told(logs) == told(logs)


def test_an_interrupt_leaves_the_old_database(logs: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = told(logs)
    (place,) = own_cache.glob("*.duckdb")
    stored = place.read_bytes()
    victim = stderr_files(logs)[0]
    text, times = victim.read_text(), victim.stat()
    victim.write_text(text + "one more line\n")

    def interrupted(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_run([logs], progress=interrupted)
    assert place.read_bytes() == stored
    assert [p for p in own_cache.iterdir() if p.name.startswith(database.SCRATCH)] == []
    victim.write_text(text)
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert told(logs) == before


def test_the_last_one_again(logs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = told(logs)
    monkeypatch.chdir(tmp_path)
    with open_run(["@"]) as run:
        assert run.logs == ("@",)
        assert report_json.render(run.report()) == first
    shutil.rmtree(logs)
    with open_run(["@"]) as run:
        assert report_json.render(run.report()) == first


def test_a_database_is_a_run(logs: Path, tmp_path: Path) -> None:
    first = told(logs, db=tmp_path / "mine.duckdb")
    with open_run([tmp_path / "mine.duckdb"]) as run:
        assert report_json.render(run.report()) == first
    with pytest.raises(UsageError, match="name the logs"):
        open_run([tmp_path / "mine.duckdb"], rules=[tmp_path])


def test_places_that_cannot_be(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="inside the logs"):
        open_run([logs], db=logs / "x.duckdb")
    with pytest.raises(InputError, match="is a folder"):
        open_run([logs], db=tmp_path)
    precious = tmp_path / "precious.txt"
    precious.write_text("not a database at all, but precious")
    with pytest.raises(InputError, match=r"precious\.txt"):
        open_run([logs], db=precious)
    assert precious.read_text().startswith("not a database")
    with pytest.raises(InputError, match="nowhere"):
        open_run([logs], db=tmp_path / "nowhere" / "x.duckdb")
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "blocked"))
    with pytest.raises(InputError, match="REPLAY_CACHE_DIR"):
        open_run([logs])


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for paths in ([tmp_path / "empty"], [tmp_path / "none"], []):
        with pytest.raises(ReplayError) as error:
            open_run(paths)
        assert "\n" not in str(error.value)


def test_hints_have_a_database_of_their_own(logs: Path, own_cache: Path) -> None:
    told(logs)
    told(logs, hints=Hints(year=2020))
    assert len(list(own_cache.glob("*.duckdb"))) == 2


def test_progress_goes_up_to_the_size_of_the_files(logs: Path) -> None:
    seen: list[Progress] = []
    open_run([logs], progress=seen.append).close()
    reading = [p for p in seen if p.stage == "reading"]
    assert [p.done for p in reading] == sorted(p.done for p in reading)
    assert all(0 <= p.done <= p.total for p in reading)
    assert [p.stage for p in seen][-2:] == ["ordering", "diagnosing"]
