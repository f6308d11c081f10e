"""TORCH_TRACE files and torch_compile_debug trees."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from torch_lines import Rows, parse

from replay.parse.trace_json import read_object

NET = "/srv/job/net.py"


def record(members: dict[str, Any], payload: str = "", nth: int | None = 0, ms: int = 100) -> list[str]:
    ids = {} if nth is None else {"rank": 1, "frame_id": 4, "frame_compile_id": nth, "attempt": 0}
    payload_lines = [f"\t{line}" for line in payload.split("\n")] if payload else []
    head = f"V1130 10:20:30.{ms:03}000 4321 torch/_dynamo/utils.py:9] "
    return [head + json.dumps(members | ids | ({"has_payload": "x"} if payload else {})), *payload_lines]


def artifact(name: str, payload: str, nth: int | None = 0, ms: int = 100) -> list[str]:
    return record({"artifact": {"name": name, "encoding": "json"}}, payload, nth, ms)


STRINGS = [*record({"str": [NET, 0]}, nth=None), *record({"str": ["/srv/job/main.py", 1]}, nth=None)]


def started(nth: int, ms: int) -> list[str]:
    stack = [{"line": 30, "name": "<module>", "filename": 1}, {"line": 12, "name": "forward", "filename": 0}]
    return record({"dynamo_start": {"stack": stack}}, "", nth, ms)


def measured(nth: int, ms: int, **told: object) -> list[str]:
    meta = {
        "compile_id": f"4/{nth}",
        "co_name": "forward",
        "co_filename": NET,
        "co_firstlineno": 12,
        "fail_type": None,
        "fail_reason": None,
        "restart_reasons": [],
        "duration_us": 250000,
        "pytorch_version": "2.13.0+cpu",
        "python_version": "3.11.7 (main, Nov)",
        "dynamo_config": json.dumps({"suppress_errors": False, "recompile_limit": 8, "nested": {"a": 1}}),
    }
    return record({"compilation_metrics": meta | told}, "", nth, ms)


def trace(*parts: list[str]) -> Rows:
    return parse([line for part in parts for line in part], "trace", "dedicated_log_torch_trace_rank_1_ab.log")


def test_a_recompile_with_its_reasons() -> None:
    size = "tensor 'x' size mismatch at index 0. expected {}, actual 5"
    reasons = f'[\n"4/1: {size.format(7)}",\n"4/0: {size.format(8)}"\n]'
    rows = trace(STRINGS, artifact("recompile_reasons", reasons, 2), started(2, 110), measured(2, 400))
    (compile_,) = rows["compiles"]
    assert (compile_["compile_id"], compile_["is_recompile"], compile_["status"]) == ("4/2", True, "done")
    assert (compile_["fn"], compile_["fn_file"], compile_["fn_line"]) == ("forward", NET, 12)
    assert (compile_["duration_s"], compile_["evidence"]) == (0.25, "metrics")
    newest, oldest = rows["guard_failures"]
    assert (newest["failed_id"], newest["expected"], newest["fn"]) == ("4/1", "7", "forward")
    assert (oldest["failed_id"], oldest["expected"], oldest["nth"]) == ("4/0", "8", 1)
    assert newest["compile_line"] == compile_["line_no"]
    assert (rows.counts.plain, rows.counts.malformed) == (0, 0)


def test_one_reason_is_bare_text_with_a_stack() -> None:
    stack = f'User stack trace:\n  File "{NET}", line 14, in forward\n    y'
    text = f"4/0: n == 2     # y = n  # net.py:15 in forward\n{stack}"
    (row,) = trace(STRINGS, artifact("recompile_reasons", text, 1), started(1, 110))["guard_failures"]
    assert (row["kind"], row["expected"], row["user_file"], row["user_line"]) == ("equals", "2", NET, 14)


def test_a_compile_that_does_not_end_is_only_started() -> None:
    (row,) = trace(STRINGS, started(0, 100))["compiles"]
    assert (row["status"], row["fn"], row["evidence"], row["is_recompile"]) == ("started", "forward", "trace", False)


def test_failures() -> None:
    told = {"fail_type": "InductorError", "fail_reason": "CppCompileError: C++ compile error\nCommand:"}
    (row,) = trace(STRINGS, started(0, 100), measured(0, 400, **told))["compiles"]
    assert (row["status"], row["fail_type"]) == ("failed", "InductorError")
    assert row["fail_reason"] == "CppCompileError: C++ compile error Command:"
    (row,) = trace(STRINGS, started(0, 100), measured(0, 400, fail_type="Unsupported", fail_reason="x"))["compiles"]
    assert row["status"] == "skipped"


def test_metrics_of_2_3_have_seconds_and_of_a_backward_are_no_compile() -> None:
    rows = trace(STRINGS, measured(0, 400, duration_us=None, entire_frame_compile_time_s=0.5))
    assert [row["duration_s"] for row in rows["compiles"]] == [0.5]
    assert not trace(STRINGS, measured(0, 400, is_forward=False))["compiles"]


def test_versions_and_settings_once() -> None:
    rows = trace(
        artifact("torch_version", '{\n"pytorch_version": "2.13.0+cpu"\n}', None), measured(0, 1), measured(1, 2)
    )
    assert [(row["name"], row["version"]) for row in rows["packages"]] == [
        ("torch", "2.13.0+cpu"),
        ("python", "3.11.7"),
    ]
    assert [(row["name"], row["value"]) for row in rows["env"]] == [
        ("dynamo.suppress_errors", "False"),
        ("dynamo.recompile_limit", "8"),
    ]


def test_a_graph_break_is_read_as_in_the_log() -> None:
    text = "\n".join(
        [
            f"Graph break in user code at {NET}:14",
            "Graph Break Reason: Data-dependent branching",
            "  Explanation: Detected data-dependent branching",
            "",
            " For more details about this graph break, please visit: https://pytorch.org/site/gb/gb0170.html",
            "",
            "User code traceback:",
            f'  File "{NET}", line 14, in forward',
            "    if x.sum() > 0:",
            "",
            "Traceback (most recent call last):",
            '  File "/opt/lib/python3.11/site-packages/torch/_dynamo/symbolic_convert.py", line 5, in wrapper',
        ]
    )
    (row,) = trace(artifact("dynamo_graph_break_reason", text))["graph_breaks"]
    assert (row["compile_id"], row["gb_id"], row["kind"]) == ("4/0", "GB0170", "data-dependent")
    assert (row["user_file"], row["user_line"], row["line_no"]) == (NET, 14, 2)


def test_graphs_and_caches() -> None:
    graph = (
        "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = torch.relu(x)\n        return (y,)"
    )
    rows = trace(
        record({"dynamo_output_graph": {"sizes": {}}}, graph),
        artifact("fx_graph_cache_miss", '{"key": "fabc", "cache_state": "miss"}'),
        artifact("aotautograd_cache_bypass", '{"cache_bypass_reason": "no", "cache_state": "bypass"}'),
    )
    assert [(row["kind"], row["ops"], row["line_end"]) for row in rows["graphs"]] == [("dynamo", 1, 5)]
    assert [(row["cache"], row["event"], row.get("key"), row.get("reason")) for row in rows["cache_events"]] == [
        ("fx", "miss", "fabc", None),
        ("aotautograd", "bypass", None, "no"),
    ]


def test_a_torn_file() -> None:
    lines = ["\trest of a payload", *measured(0, 100), "V1130 10:20:30.100000 4321 torch/x.py:9] {", "no record"]
    rows = parse(lines, "trace")
    assert rows.kinds == ["malformed", "parsed", "malformed", "malformed"]
    cut = measured(1, 100)[0][:400]
    (row,) = parse([cut], "trace")["compiles"]
    assert (row["compile_id"], row["fn"], row["is_recompile"]) == ("4/1", "forward", True)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), values, max_size=5), st.integers(0, 400))
def test_of_a_cut_object_the_members_before_the_cut_are_read(told: dict[str, Any], at: int) -> None:
    text = json.dumps(told)
    assert read_object(text) == (told, True)
    found, is_whole = read_object(text[: min(at, len(text) - 1)])
    assert not is_whole
    # the last member may be cut, all before it are as they were
    for name in list(found)[:-1]:
        assert found[name] == told[name]


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    read_object(text)
    parse([f"V1130 10:20:30.100000 4321 torch/x.py:9] {text}", f"\t{text}"], "trace")


def test_the_graphs_of_a_debug_tree() -> None:
    graph = [
        "class GraphModule(torch.nn.Module):",
        '    def forward(self, x: "f32[8]"):',
        '        mm: "f32[8]" = torch.ops.aten.relu.default(x)',
    ]
    place = "torch_compile_debug/run_2026_11_30-pid_7/torchinductor/model__0_backward_3.1"
    rows = parse(graph, "compile-debug", f"{place}/fx_graph_readable.py")
    assert [(row["kind"], row["name"], row["ops"]) for row in rows["graphs"]] == [("backward", "model__0", 1)]
    assert rows.kinds == ["parsed", "continuation", "continuation"]
    assert not parse(graph, "compile-debug", f"{place}/fx_graph_runnable.py")["graphs"]


def test_the_messages_of_a_debug_tree() -> None:
    lines = [
        "Step 1: torchdynamo start tracing forward /srv/job/net.py:12",
        "Graph break in user code at /srv/job/net.py:14",
        "Graph Break Reason: Data-dependent branching",
        "User code traceback:",
        '  File "/srv/job/net.py", line 14, in forward',
        "    if x.sum() > 0:",
        "",
        "Step 1: torchdynamo start tracing forward /srv/job/net.py:12",
    ]
    rows = parse(lines, "compile-debug", "torch_compile_debug/run_x-pid_7/torchdynamo/debug.log")
    (row,) = rows["graph_breaks"]
    assert (row["kind"], row["user_line"]) == ("data-dependent", 14)
    assert rows.counts.parsed + rows.counts.continuation == len(lines)
