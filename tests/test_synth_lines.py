"""Lines made by the inverse of a grammar parse back to the record and the fields that they were made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.errors import ReplayError
from replay.grammar.executor import shared
from replay.resources import folder
from replay.synth import read_scenario, write
from replay.synth.inverse import NoInverse, line

NUMBER = st.integers(0, 10**9)


def _round_trip(family: str, record: str, fields: dict[str, object], **decisions: object) -> None:
    found = shared().one(family, line(family, record, fields, **decisions))  # type: ignore[arg-type]
    assert found is not None
    assert found.record == record
    assert found.fields == {k: str(v) for k, v in fields.items() if not k.startswith("_")}


@given(NUMBER, NUMBER, NUMBER, NUMBER)
def test_watchdog(seq: int, numel: int, ran: int, rank: int) -> None:
    fields = {
        "group_rank": rank,
        "seq": seq,
        "op": "ALLREDUCE",
        "numel_in": numel,
        "numel_out": numel,
        "timeout_ms": 600000,
    }
    _round_trip("c10d", "watchdog_timeout", {**fields, "ran_ms": ran, "_backend": "NCCL", "_tail": "."}, runs=(1,))


@given(NUMBER, NUMBER)
def test_calls(count: int, launches: int) -> None:
    fields = {
        "op": "AllReduce",
        "op_count": f"{launches:x}",
        "_ptr": "0x7f00",
        "count": count,
        "dtype": 7,
        "redop": 0,
        "root": 0,
    }
    _round_trip("nccl_coll", "coll", {**fields, "comm": "0x55d0", "nranks": 8})


@given(NUMBER, st.integers(-64, 255), NUMBER)
def test_agent(pid: int, code: int, local_rank: int) -> None:
    fields = {"code": code, "local_rank": local_rank, "pid": pid, "_kind": "binary", "target": "/usr/bin/python3"}
    _round_trip("launcher", "failed", fields)


def test_a_field_that_no_form_has_is_an_error() -> None:
    with pytest.raises(NoInverse, match="colour"):
        line("nccl_coll", "coll", colour=3)


@pytest.mark.parametrize("path", sorted((folder("corpora") / "scenarios").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_library_can_be_written(path, tmp_path) -> None:  # type: ignore[no-untyped-def]
    logs = write(read_scenario(path), tmp_path)
    assert any(file.stat().st_size for file in logs.rglob("*") if file.is_file())


def test_an_error_of_a_scenario_has_its_place(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bad.yaml"
    path.write_text("torch: 2.6.0\nlauncher: teleport\n")
    with pytest.raises(ReplayError, match=r"bad\.yaml:2:11"):
        read_scenario(path)
