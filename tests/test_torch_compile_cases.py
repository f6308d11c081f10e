"""Real logs of torch.compile with known causes. They are not part of this repository: skipped where they are absent."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from torch_lines import Rows

from replay.grammar.executor import shared
from replay.parse.pipeline import parse_file
from replay.sources.discover import discover
from replay.sources.model import Hints
from replay.sources.read import read_batches

SHARED = Path(__file__).parent.parent.parent / "shared"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the logs are not here")


def read(place: str, only: str | None = None) -> Rows:
    """Rows of all files of a case; `only` is a kind of file."""
    rows = Rows()
    for file in discover([str(SHARED / place)], Hints()).files:
        if file.kind in {"text", "trace", "compile-debug"} and only in {None, file.kind} and file.duplicate_of is None:
            counts = parse_file(file, read_batches(file, Hints()), rows, Hints(), shared())
            for name in ("lines", "parsed", "continuation", "plain", "malformed"):
                setattr(rows.counts, name, getattr(rows.counts, name) + getattr(counts, name))
    return rows


CAUSES = {
    "rc_alias": "aliasing",
    "rc_autocast_off_srun": "autocast",
    "rc_device_meta": "device",
    "rc_dtype_rank1": "dtype",
    "rc_list_length": "container",
    "rc_new_class_each_third": "object-identity",
    "rc_num_threads": "global-state",
    "rc_requires_grad": "requires-grad",
    "rc_stride_transposed": "stride",
    "rc_tensor_subclass": "tensor-type",
    "ragged-one-rank": "dynamic-shape",
    "ragged-one-rank--kubectl": "dynamic-shape",
    "ragged-one-rank--merged-rankprefix": "dynamic-shape",
    "ragged-one-rank--srun-label-padded": "dynamic-shape",
    "autocast-one-rank": "autocast",
    "autocast-one-rank--crlf": "autocast",
    "ddp-static-recompiles": "dynamic-shape",
    "per-block-processor": "object-identity",
    "async-tensor-flip": "tensor-type",
    "multi_recompile_loader": "dynamic-shape",
    "compiled-order-differs": "python-value",
}


@pytest.mark.parametrize(("case", "cause"), CAUSES.items())
def test_the_cause_of_each_recompile(case: str, cause: str) -> None:
    rows = read(f"cases/{case}/logs", "text")
    assert {row["cause"] for row in rows["guard_failures"]} == {f"recompile-{cause}"}


@pytest.mark.parametrize(
    "case", ["rc_healthy_kubectl", "rc_ragged_mark_dynamic_healthy", "compiled-collectives-healthy"]
)
def test_healthy_runs_have_none(case: str) -> None:
    rows = read(f"cases/{case}/logs")
    assert not rows["guard_failures"]
    assert not [row for row in rows["compiles"] if row["is_recompile"]]


KINDS = Counter(
    {
        "equals": 7,
        "bool": 3,
        "global-state": 6,
        "object-id": 1,
        "size": 1,
        "stride": 2,
        "dtype": 1,
        "ndim": 1,
        "dispatch-key": 1,
        "requires-grad": 1,
        "tensor-type": 1,
        "aliasing": 2,
        "length": 1,
        "zero-one": 1,
        "shape-env": 2,
        "duck": 1,
        "backend": 1,
    }
)


def test_every_kind_of_guard() -> None:
    log, trace = (read("cases/guard-kinds/logs", kind)["guard_failures"] for kind in ("text", "trace"))
    assert Counter(row["kind"] for row in log)["other"] == 0
    assert not {kind for kind in KINDS if kind not in {row["kind"] for row in log}}
    told = [(row["reason"], row["kind"], row["cause"], row.get("source"), row.get("user_line")) for row in log]
    assert told == [
        (row["reason"], row["kind"], row["cause"], row.get("source"), row.get("user_line")) for row in trace
    ]


def test_log_and_trace_tell_the_same_compiles() -> None:
    def told(kind: str) -> list[tuple[Any, ...]]:
        rows = read("cases/ragged-one-rank/logs", kind)["compiles"]
        return sorted(
            (row["compile_id"], row["fn"], row["fn_line"], row["status"], row["is_recompile"], row["restart"])
            for row in rows
            if "compile_id" in row
        )

    assert told("text") == told("trace")


def test_breaks_and_their_ids() -> None:
    outcomes = json.loads((SHARED / "cases/breaks/logs/case_outcomes.json").read_text())
    expected = [gb for outcome in outcomes.values() for gb in outcome["gb"]]
    for kind in ("text", "trace"):
        rows = read("cases/breaks/logs", kind)["graph_breaks"]
        # two ranks, each the whole catalogue
        assert Counter(row["gb_id"] for row in rows) == Counter(expected * 2)
        assert not any(row["is_framework"] for row in rows)
    assert {row["kind"] for row in rows} == {
        "data-dependent",
        "disabled",
        "other",
        "side-effect",
        "unsupported-op",
        "wrapper",
    }


def test_the_graph_of_one_rank_differs() -> None:
    for case, kind in (("graph_div_flag", "text"), ("graph_div_trace", "trace")):
        rows = read(f"cases/{case}/logs", kind)["graphs"]
        digests = Counter(row["digest"] for row in rows if row["kind"] == "dynamo")
        assert sorted(digests.values()) == [1, 2]


def test_the_order_of_collectives_differs() -> None:
    rows = read("cases/compiled-order-differs/logs", "trace")["graphs"]
    lists = {row["collective_list"] for row in rows if row["kind"] == "dynamo"}
    assert lists == {"all_reduce;all_gather_into_tensor", "all_gather_into_tensor;all_reduce"}


@pytest.mark.parametrize("case", ["transformer-healthy", "healthy-all-logs", "cache-hits-and-misses"])
def test_debug_logs_hold_no_line_of_torch_that_is_not_known(case: str) -> None:
    rows = read(f"cases/{case}/logs")
    assert rows.counts.malformed == 0
    assert not [row for row in rows["graph_breaks"] if not row["is_framework"]]
    assert not rows["recompile_limits"]


def test_real_logs() -> None:
    rows = read("wild/49_recompiles.log")
    assert Counter(row["kind"] for row in rows["guard_failures"]) == {"dtype": 16, "size": 10, "shape-env": 2}
    (row,) = read("wild/34_torchtrace_comp_failure.log")["compiles"]
    assert (row["status"], row["fn"]) == ("failed", "fn")
