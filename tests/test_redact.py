"""Redacted logs hold no private name and tell the same story."""

import io
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.cli.main import main
from replay.errors import InputError
from replay.repro.redact.files import redact
from replay.repro.redact.names import Names
from replay.repro.redact.places import Places
from replay.repro.redact.rewrite import Rewriter
from replay.repro.redact.same import differences
from replay.resources import folder
from replay.run import open_run

PLANTED = ("ada_lovelace", "acme_tower", "zebra_loss", "hf_abcdefghijklmnopqrstu", "10.77.3.4", "acmebox-17")
LOG = """\
acmebox-17:100:100 [0] NCCL INFO Bootstrap: Using eth0:10.77.3.4<0>
2026-11-30 00:00:01 HF_TOKEN=hf_abcdefghijklmnopqrstu of ada_lovelace
Traceback (most recent call last):
  File "/home/ada_lovelace/acme_tower/zebra_main.py", line 3, in zebra_loss
    raise ValueError(acme_tower)
ValueError: zebra_loss failed in /home/ada_lovelace/acme_tower/zebra_main.py
"""


def test_no_planted_name_is_left_and_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "nccl.acmebox-17.log").write_text(LOG)
    redact([str(tmp_path / "logs")], tmp_path / "out")
    (shown,) = (tmp_path / "out").iterdir()
    text = shown.name + shown.read_text()
    assert not [name for name in PLANTED if name in text]
    assert shown.read_text().count("\n") == LOG.count("\n")


@pytest.mark.parametrize("name", ["recompile-one-rank", "rank-exception", "uneven-batches"])
def test_the_diagnosis_is_the_same(name: str, tmp_path: Path) -> None:
    logs = str(folder("corpora") / name / "logs")
    redact([logs], tmp_path / "out")
    with open_run([logs]) as before, open_run([tmp_path / "out"]) as after:
        assert differences(before.report(), after.report()) == []


def test_it_writes_into_no_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LOG)
    with pytest.raises(InputError, match="is there already"):
        redact([str(tmp_path / "run.log")], tmp_path)


def test_addresses_of_one_net_stay_in_one_net() -> None:
    names = Names()
    one, two = names.ipv4("10.77.3.4"), names.ipv4("10.77.3.9")
    assert one != two
    assert one.rpartition(".")[0] == two.rpartition(".")[0]
    assert names.ipv4("127.0.0.1") == "127.0.0.1"


def _rewritten(lines: list[str], names: Names | None = None) -> list[str]:
    """Lines as they are written once their names are learned."""
    names = names or Names()
    places = Places(names)
    learner = Rewriter(names, places, learns=True)
    for line in lines:
        learner.line(line)
    rewriter = Rewriter(names, places.again())
    return [rewriter.line(line) for line in lines]


WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=9).map(lambda t: f"q{t}z")


@given(st.lists(WORD, min_size=2, max_size=8, unique=True), st.randoms(use_true_random=False), st.booleans())
def test_equal_names_become_equal_and_other_names_other_ones(
    words: list[str], order: random.Random, keeps_length: bool
) -> None:
    names = Names(keeps_length=keeps_length)
    learn = [names.host, names.user, names.identifier, lambda word: names.component(f"{word}.log", True)]
    for n, word in enumerate(words):
        learn[n % len(learn)](word)
    lines = [f"{word} of {words[0]}: L['{word}'] at {word}-7:12:12 [0]" for word in words]
    shown = dict(zip(lines, _rewritten(lines, names), strict=True))
    order.shuffle(lines)
    assert [shown[line] for line in lines] == _rewritten(lines, names)
    new = [names.chunk(word) for word in words]
    assert len(set(new)) == len(words)
    assert not set(new) & set(words)
    for line, new_line in shown.items():
        assert not [word for word in words if word in new_line]
        assert len(line) == len(new_line) or not keeps_length


KEY = """\
-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MZ1Jk0b1Tn5rX
c2VjcmV0
-----END RSA PRIVATE KEY-----
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-11-30T00:00:01Z stderr F "])
def test_a_private_key_is_masked_and_what_follows_is_not(prefix: str) -> None:
    lines = [f"{prefix}{line}" for line in [*KEY.splitlines(), "step=1 loss=0.5"]]
    shown = _rewritten(lines)
    assert not [part for part in ("MIIE", "c2Vj") if part in "".join(shown)]
    assert [len(line) for line in shown] == [len(line) for line in lines]
    assert shown[-1] == lines[-1]
    (one,) = _rewritten(["key = " + KEY.replace("\n", "\\n")])
    assert "MIIE" not in one
    assert "c2Vj" not in one


def test_hosts_that_lines_of_nccl_cut_are_replaced_in_both_halves() -> None:
    names = Names()
    for host in ("vm", "acm", "gpubox-7"):
        names.host(host)
    acm, box = names.chunk("acm"), names.chunk("gpubox-7")
    assert acm != "acm"
    lines = [
        "Channel 0acm:12:12 [0] NCCL INFO x", "a gpugpubox-7:8:9 [1] NCCL INFO y", "box-7:8:9 [1] NCCL INFO z",
        "NET/3 (6/48acm:12:12 [0] NCCL INFO x", "Channel 0vm:12:12 [0] NCCL INFO x",
    ]  # fmt: skip
    assert _rewritten(lines, names) == [
        f"Channel 0{acm}:12:12 [0] NCCL INFO x",
        f"a {box[:3]}{box}:8:9 [1] NCCL INFO y",
        f"{box[3:]}:8:9 [1] NCCL INFO z",
        f"NET/3 (6/48{acm}:12:12 [0] NCCL INFO x",
        "Channel 0vm:12:12 [0] NCCL INFO x",
    ]


def test_our_own_words_stay_where_a_part_of_them_is_somebodys_name() -> None:
    names = Names()
    names.identifier("obj")
    assert names.chunk("___check_obj_id") == "___check_obj_id"
    assert names.chunk("my_obj") != "my_obj"
    names.identifier("Zebra")
    assert names.chunk("ZebraLoss") != "ZebraLoss"
    names.anywhere["Runtime"] = "Folderx"
    assert names.chunk("RuntimeError") == "RuntimeError"


ACTORS = """\
(AcmeTowerActor pid=4100) INFO 06-03 09:30:00 model_runner.py:146] loading
(EngineCore_DP0 pid=4101) INFO 06-03 09:30:00 core.py:77] loading
(RayWorkerWrapper pid=4102, ip=10.77.3.4) ERROR 06-03 09:31:12 worker_base.py:148] RuntimeError: AcmeTowerActor failed
"""


def test_classes_of_actors_are_no_hosts(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(ACTORS)
    done = redact([str(tmp_path / "run.log")], tmp_path / "out")
    shown = (tmp_path / "out" / "run.log").read_text()
    assert "AcmeTower" not in shown
    assert all(word in shown for word in ("EngineCore_DP0 ", "RayWorkerWrapper ", "RuntimeError: "))
    assert done.replaced == {"name": 1, "address": 1}


def test_stdin_is_read_and_the_diagnosis_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    assert main(["redact", "-", "--out", str(tmp_path / "out")]) == 0
    assert "the diagnosis is the same" in capsys.readouterr().err
    text = (tmp_path / "out" / "stdin.log").read_text()
    assert text.count("\n") == LOG.count("\n")
    assert not [name for name in PLANTED if name in text]


def test_a_diagnosis_that_became_another_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("replay.repro.redact.files.differences", lambda _before, _after: ["verdict: a became b"])
    (tmp_path / "run.log").write_text(LOG)
    assert main(["redact", str(tmp_path / "run.log"), "--out", str(tmp_path / "out")]) == 1
    assert "verdict: a became b" in capsys.readouterr().err
