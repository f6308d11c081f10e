"""Flight-recorder dumps and error files: read as values, never executed."""

import contextlib
import gzip
import json
import pickle
from pathlib import Path

import pytest
from failure_lines import Identity, Rows
from hypothesis import given
from hypothesis import strategies as st

from replay.grammar.executor import shared
from replay.parse.ops import dtype, operation
from replay.parse.pipeline import parse_file
from replay.parse.plain_pickle import PickleRefused, loads
from replay.sources.model import Hints, Line, SourceFile

ENTRY = {
    "frames": [
        {"name": "all_reduce", "filename": "/srv/env/lib/python3.12/site-packages/torch/distributed/c.py", "line": 3},
        {"name": "step", "filename": "/srv/job/train.py", "line": 41},
        {"name": "<module>", "filename": "/srv/job/train.py", "line": 90},
    ],
    "record_id": 12,
    "pg_id": 0,
    "process_group": ("0", "default_pg"),
    "collective_seq_id": 5,
    "p2p_seq_id": 0,
    "op_id": 6,
    "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1_700_000_000_500_000_000,
    "input_sizes": [[4, 3], [2]],
    "input_dtypes": ["BFloat16", "BFloat16"],
    "output_sizes": [[4, 3], [2]],
    "output_dtypes": ["BFloat16", "BFloat16"],
    "state": "completed",
    "time_discovered_started_ns": None,
    "time_discovered_completed_ns": 1_700_000_001_000_000_000,
    "retired": True,
    "timeout_ms": 600000,
    "is_p2p": False,
}
SEND = ENTRY | {"profiling_name": "nccl:send 1->3", "is_p2p": True, "p2p_seq_id": 9, "state": "scheduled"}
DUMP = {
    "version": "2.10",
    "comm_lib_version": "2.27.5",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
    "pg_status": {"0": {"last_enqueued_collective": 6, "last_started_collective": 5, "last_completed_collective": 5}},
    "entries": [ENTRY, SEND],
}


def read(path: Path, kind: str = "flight-recorder", rank: int | None = 1, encoding: str = "plain") -> Rows:
    rows = Rows()
    file = SourceFile(0, path.name, path, kind, encoding, path.stat().st_size, "", identity=Identity(rank=rank))
    lines = [Line(0, 1, 0, "{}", "{}", file.identity)]
    parse_file(file, [lines], rows, Hints(), shared())
    return rows


def dumped(tmp_path: Path, value: object, protocol: int = 2) -> Rows:
    path = tmp_path / "fr_1"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return read(path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_entries_of_a_dump(tmp_path, protocol):
    rows = dumped(tmp_path, DUMP, protocol)
    entry = next(r for r in rows.tables["flight_records"] if r["at"] == "entries[0]")
    assert entry["line_no"] is None
    assert (entry["rank"], entry["record_id"], entry["collective_seq"], entry["op"]) == (1, 12, 5, "allreduce")
    assert (entry["group_name"], entry["group_desc"], entry["group_ranks"]) == ("0", "default_pg", "[0, 1, 2, 3]")
    assert (entry["in_sizes"], entry["in_dtypes"], entry["state"]) == (
        "[[4, 3], [2]]",
        "BFloat16, BFloat16",
        "completed",
    )
    assert (entry["frame"], entry["created_ns"]) == ("/srv/job/train.py:41", 1_700_000_000_500_000_000)


def test_entries_are_collectives_too(tmp_path):
    rows = dumped(tmp_path, DUMP)
    first, send = rows.tables["collectives"]
    assert (first["source"], first["op"], first["count"], first["dtype"], first["bytes"]) == (
        "flight-recorder",
        "allreduce",
        14,
        "bfloat16",
        28,
    )
    assert (first["comm"], first["comm_rank"], first["nranks"], first["logged_seq"], first["at"]) == (
        "0",
        1,
        4,
        5,
        "entries[0]",
    )
    assert (first["t_lo"], first["exit_hi"], first["state"]) == (1_700_000_000.5, 1_700_000_001.0, "completed")
    assert (send["op"], send["peer"], send["logged_seq"], send["state"]) == ("send", 3, 9, "issued")


def test_the_state_of_each_group_is_a_row(tmp_path):
    rows = dumped(tmp_path, {k: v for k, v in DUMP.items() if k != "entries"})
    assert rows.of("flight_records", "at", "group_name", "state", "last_enqueued", "last_completed") == [
        ("pg_status[0]", "0", "status", 6, 5)
    ]
    assert rows.one("packages")["version"] == "2.27.5"


@pytest.mark.parametrize("spelt", [json.dumps, lambda v: repr(json.dumps(v).encode())])
def test_the_json_twin(tmp_path, spelt):
    path = tmp_path / "fr_1.json"
    status = {"0": {"last_enqueued_collective": "6", "last_completed_collective": "5"}}
    entry = {k: v for k, v in ENTRY.items() if k != "frames"} | {"time_discovered_completed_ns": 0}
    path.write_text(spelt(DUMP | {"entries": [entry], "pg_status": status}))
    rows = read(path)
    assert [r["at"] for r in rows.tables["flight_records"]] == ["pg_status[0]", "entries[0]"]
    assert rows.tables["flight_records"][0]["last_enqueued"] == 6
    assert rows.one("collectives")["exit_hi"] is None
    assert rows.kinds == ["parsed"]


def test_the_bare_list_of_2_2(tmp_path):
    entry = {
        "id": 3,
        "pg_id": 1,
        "seq_id": 8,
        "profiling_name": "nccl:broadcast",
        "state": "started",
        "input_sizes": [[7]],
    }
    rows = dumped(tmp_path, [entry])
    assert rows.of("flight_records", "record_id", "group_name", "collective_seq", "op") == [(3, "1", 8, "broadcast")]


def test_a_compressed_dump(tmp_path):
    path = tmp_path / "fr.gz"
    path.write_bytes(gzip.compress(pickle.dumps(DUMP, protocol=2)))
    assert len(read(path, encoding="gz").tables["collectives"]) == 2


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("executed"),))


def test_a_pickle_that_calls_something_is_refused_and_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in (0, 2, 4):
        rows = dumped(tmp_path, {"pg_config": {}, "entries": [Bomb()]}, protocol)
        assert not rows.tables["flight_records"]
        assert not (tmp_path / "executed").exists()
        if protocol:  # protocol 0 does not begin as a pickle of torch's does
            assert "plain value" in rows.one("problems")["text"]


HOSTILE = {
    "global": b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00idtR.",
    "memo far away": b"\x80\x02}r\xff\xff\xff\x7f.",
    "huge bytes": b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "key of nested tuples": b"\x80\x02})" + b"\x85" * 5000 + b"K\x01s.",
    "no end": b"\x80\x02}",
    "left over": b"\x80\x02}}.",
    "empty": b"\x80\x02.",
    "pop from nothing": b"\x80\x02a.",
    "unknown opcode": b"\x80\x02\xff.",
    "persistent id": b"\x80\x02K\x01Q.",
    "extension": b"\x80\x02\x82\x01.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused(name, tmp_path):
    if name == "memo far away":
        assert loads(HOSTILE[name]) == {}
        return
    with pytest.raises(PickleRefused):
        loads(HOSTILE[name])
    path = tmp_path / "fr_1"
    path.write_bytes(HOSTILE[name])
    assert read(path).one("problems")["kind"] == "malformed"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5) | st.integers(0, 300), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_out_as_they_went_in(value, protocol):
    assert loads(pickle.dumps(value, protocol=protocol)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(data):
    with contextlib.suppress(PickleRefused):
        loads(b"\x80\x02" + data)


WEIRD = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda i: st.lists(i, max_size=4) | st.dictionaries(st.sampled_from([*ENTRY, *DUMP]), i, max_size=6),
    max_leaves=40,
)


@given(value=WEIRD)
def test_a_dump_of_any_shape_gives_rows_of_the_right_types(tmp_path_factory, value):
    rows = dumped(
        tmp_path_factory.mktemp("fr"),
        {"version": "9", "entries": [value, ENTRY], "pg_config": value, "pg_status": {"0": value}},
    )
    assert any(r["at"] == "entries[1]" for r in rows.tables["flight_records"])
    for row in [*rows.tables["flight_records"], *rows.tables["collectives"]]:
        assert all(v is None or isinstance(v, str | int | float | bool) for v in row.values())


ERROR = {
    "message": {
        "message": "ValueError: corrupt shard\nat offset 7",
        "extraInfo": {
            "py_callstack": "Traceback (most recent call last):\n  File "
            '"/srv/env/lib/python3.12/site-packages/torch/e.py", line 1, in wrapper\n    return f()\n  File '
            '"/srv/job/data.py", line 21, in load\n    raise ValueError\nValueError: corrupt shard\n',
            "timestamp": "1700000042",
        },
    }
}


def test_an_error_file_is_an_exception_with_the_time_of_the_failure(tmp_path):
    path = tmp_path / "error.json"
    path.write_text(json.dumps(ERROR))
    row = read(path, "error-json", rank=6).one("exceptions")
    assert (row["rank"], row["type"], row["message"], row["category"]) == (
        6,
        "ValueError",
        "corrupt shard at offset 7",
        "user",
    )
    assert (row["line_no"], row["t_lo"], row["user_file"], row["user_line"]) == (
        1,
        1_700_000_042.0,
        "/srv/job/data.py",
        21,
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"message": 3}', '{"message": {"message": null}}', '"x"'])
def test_error_files_of_another_shape_give_no_row(tmp_path, text):
    path = tmp_path / "error.json"
    path.write_text(text)
    rows = read(path, "error-json")
    assert not rows.tables["exceptions"]
    assert rows.kinds == ["malformed"]


OPERATIONS = {
    "ALLREDUCE": "allreduce",
    "_ALLGATHER_BASE": "allgather",
    "ALLGATHER_COALESCED": "allgather",
    "_REDUCE_SCATTER_BASE": "reducescatter",
    "REDUCE_SCATTER_TENSOR_COALESCED": "reducescatter",
    "ALLTOALL_BASE": "alltoall",
    "RECVANYSOURCE": "recv",
    "BARRIER": "barrier",
    "nccl:all_gather_into_tensor_coalesced": "allgather",
    "nccl:all_to_all_single": "alltoall",
    "nccl:all_reduce_barrier": "barrier",
    "gloo:broadcast": "broadcast",
    "nccl:recv 1<-0": "recv",
    "nccl:coalesced": "coalesced",
    "UNKNOWN": "unknown",
}


@pytest.mark.parametrize("text", OPERATIONS)
def test_operations_have_one_spelling(text):
    assert operation(text) == OPERATIONS[text]


def test_data_types_have_torchs_names():
    assert [dtype(t) for t in ("Float", "BFloat16", "c10::Half", "Float8_e4m3fn", "Long Long", "", None)] == [
        "float32",
        "bfloat16",
        "float16",
        "float8_e4m3fn",
        "int64",
        None,
        None,
    ]
