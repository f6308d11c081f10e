"""Redacted logs hold no private name and tell the same story."""

from pathlib import Path

import pytest

from replay.errors import InputError
from replay.repro.redact.files import redact
from replay.repro.redact.names import Names
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
