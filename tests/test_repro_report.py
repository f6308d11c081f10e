"""The bug report: its sections, its bounds, and that no private name of the logs is left in it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from replay.cli.main import main
from replay.errors import CannotTell, InputError
from replay.repro.make import NAMES, RECORD, REPORT, Orders, chosen, make
from replay.repro.outcome import Outcome
from replay.repro.redact.vocabulary import is_public
from replay.repro.report import MOST_CHARACTERS, Bug, Unmasked, redacted_note, render_report
from replay.resources import folder
from replay.run import Run, open_run

SECTIONS = ["### 🐛 Describe the bug", "### Error logs", "### Versions"]
XID = """\
[rank0]: step 1 loss 2.0
[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: \
CUDA error: uncorrectable ECC error encountered
[Mon Jun  3 09:31:11 2024] NVRM: Xid (PCI:0000:52:00): 48, pid=88120, name=python, DBE (double bit error) detected
"""


@pytest.fixture
def died() -> Iterator[Run]:
    with open_run([folder("corpora") / "rank-exception" / "logs"]) as run:
        yield run


def _made(of: Run, out: Path, **orders: bool) -> tuple[Outcome, str]:
    outcome = make(of, chosen(of, None), out, Orders(**orders), lambda _: None)
    return outcome, (out / REPORT).read_text(encoding="utf-8")


def _screen(report: str) -> list[str]:
    """What is seen of it before the script is opened."""
    before, _, rest = report.partition("<details>")
    return (before + rest.partition("</details>")[2]).splitlines()


def test_it_has_the_sections_of_the_issue_form_and_tells_what_is_needed(died: Run, tmp_path: Path) -> None:
    outcome, report = _made(died, tmp_path)
    assert [line for line in report.splitlines() if line.startswith("### ")] == SECTIONS
    for part in ("**To see it:** `python repro.py`", "**Expected:**", "**Actual:** failed", "```python", "| read by |"):
        assert part in report
    evidence = chosen(died, None).evidence[0]
    assert f":{evidence.line}" in report
    assert len(_screen(report)) < 60
    assert json.loads((tmp_path / RECORD).read_text())["status"] == outcome.status == "written"
    assert (tmp_path / NAMES).stat().st_mode & 0o777 == 0o600


def test_nothing_is_replaced_if_so_wished(died: Run, tmp_path: Path) -> None:
    _, report = _made(died, tmp_path, redact=False)
    finding = chosen(died, None)
    assert finding.evidence[0].file in report
    assert "Replaced, each name" not in report
    assert not (tmp_path / NAMES).exists()


def test_a_cause_that_no_script_can_show_is_reported(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").write_text(XID)
    with open_run([tmp_path / "logs"], db=tmp_path / "run.duckdb") as run:
        outcome, report = _made(run, tmp_path / "out")
    assert (outcome.status, outcome.cause) == ("no script", "device-fault")
    assert "**No script** can show this cause" in report
    assert "run.log:3" in report
    assert [line for line in report.splitlines() if line.startswith("### ")] == SECTIONS
    assert not (tmp_path / "out" / "repro.py").exists()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1), times=st.integers(1, 500), ranks=st.integers(1, 5000))
def test_it_stays_below_the_bound_whatever_the_logs_hold(died: Run, text: str, times: int, ranks: int) -> None:
    finding = chosen(died, None)
    huge = text * times
    link = replace(finding.chain[0], text=huge, label=huge, ranks=tuple(range(0, ranks, 2)))
    proof = replace(finding.evidence[0], text=huge, file=huge)
    finding = replace(
        finding, summary=huge, advice=huge, chain=(link,) * 50, evidence=(proof,) * 50, waiting=link.ranks,
        ranks=link.ranks,
    )  # fmt: skip
    outcome = Outcome(finding.id, finding.cause, "", "no script", huge, "", 0, 0, (), (), {}, fix="gone", fix_says=huge)
    report = render_report(Bug(died, finding, outcome, None), Unmasked())
    report += redacted_note([("name", str(n), huge) for n in range(500)])
    assert len(report) < MOST_CHARACTERS
    assert [line for line in report.splitlines() if line.startswith("### ")] == SECTIONS


LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAME = st.text(LETTERS, min_size=5, max_size=9).map(lambda t: f"q{t}x").filter(lambda t: not is_public(t))
KEY = st.text(LETTERS + "0123456789", min_size=24, max_size=40).map(lambda t: f"hf_{t}")
ADDRESS = st.tuples(*[st.integers(11, 250)] * 3).map(lambda t: "10.{}.{}.{}".format(*t))


@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking is slow
@given(names=st.lists(NAME, min_size=7, max_size=7, unique=True), key=KEY, address=ADDRESS, wrapped=st.booleans())
def test_no_secret_of_a_hostile_log_is_left(
    names: list[str], key: str, address: str, wrapped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user, project, module, function, variable, host, kind = names
    assume(not any(a != b and a in b for a in names for b in names))
    path = f"/home/{user}/{project}/{module}.py"
    log = (
        f"{host}-3:4242:4242 [0] NCCL INFO Bootstrap: Using eth0:{address}<0>",
        f"2026-11-30 00:00:01 [trainer rank=0] step=1 loss=0.5 of {user}",
        "Traceback (most recent call last):",
        f'  File "{path}", line 12, in {function}',
        f"    {variable} = {function}({variable}, token='{key}')",
        f'  File "{path}", line 7, in {function}',
        f"    raise {kind.title()}({variable})",
        f"{module}.{kind.title()}: {function} of {user} at {host}-3 ({address}) with {key} in {path}: "
        "tensor([[0.1234, 5.6789]])",
    )
    place = tmp_path_factory.mktemp("hostile")
    logs = place / f"logs_{project}"
    logs.mkdir()
    prefix = "[rank0]: " if wrapped else ""
    (logs / "rank0.log").write_text("".join(f"{prefix}{line}\n" for line in log))
    with open_run([logs], db=place / "run.duckdb") as run:
        assert run.findings()
        _, report = _made(run, place / "out")
        found = _listed(place / "out", report)
    left = [s for s in (user, project, module, function, variable, host, kind, key, address) if s in report.lower()]
    assert not left
    assert "0.1234" not in report
    assert "5.6789" not in report
    assert user in found


def _listed(out: Path, report: str) -> set[str]:
    """The names in the owner's list; equal names became equal words, and different ones different words."""
    listed = json.loads((out / NAMES).read_text(encoding="utf-8"))
    for names in listed.values():
        assert len(set(names.values())) == len(names)
        assert all(new in report for new in names.values())
    return {name for names in listed.values() for name in names}


def test_the_command_cannot_tell_where_no_script_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").write_text(XID)
    command = ["repro", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "no script" in capsys.readouterr().out
    assert main([*command, "--run", "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["status"] == "no script"
    assert (tmp_path / "out" / REPORT).exists()


def test_what_an_earlier_finding_left_is_taken_away_and_what_is_not_ours_is_kept(died: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _made(died, out)
    for name in ("fixed.py", "graph.py", "logs/rank0.log"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("of another finding")
    _made(died, out)
    assert {path.name for path in out.iterdir()} == {"repro.py", RECORD, REPORT, NAMES}
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "repro.py").write_text("my own")
    with pytest.raises(InputError, match="not of `replay repro`"):
        _made(died, mine)
    assert (mine / "repro.py").read_text() == "my own"
    with pytest.raises(InputError, match="is a file"):
        _made(died, mine / "repro.py")


def test_nothing_is_written_where_a_script_cannot_be_run(
    died: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replay.repro.sandbox.torch_version", lambda: None)
    with pytest.raises(CannotTell, match="needs torch"):
        _made(died, tmp_path / "out", run=True)
    assert not (tmp_path / "out").exists()


def test_nothing_is_put_into_the_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_text(XID)
    assert main(["repro", str(tmp_path), "f1", "--out", str(tmp_path / "out")]) == 2
    assert "lies inside the logs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
