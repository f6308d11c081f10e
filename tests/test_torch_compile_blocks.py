"""Recompiles, limits, compiles and graph breaks in the wording of each version."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_lines import Rows, parse, v20, v22, v23, v213

LIB = "/opt/venv/lib/python3.11/site-packages"


def only(rows: Rows, table: str) -> dict[str, Any]:
    (row,) = rows[table]
    return row


def recompile(reasons: list[str], artifact: str = "recompiles", trace_id: str = "0/1", ms: int = 100) -> list[str]:
    texts = ["Recompiling function step in /srv/job/net.py:12", "    triggered by the following guard failure(s):"]
    return v213([*texts, *(f"    - {reason}" for reason in reasons)], artifact, trace_id, ms=ms)


# ---- recompiles


def test_2_13_one_row_a_reason_newest_first() -> None:
    size = "tensor 'x' size mismatch at index 0. expected {}, actual 5"
    rows = parse(recompile([f"0/1: {size.format(7)}", f"0/0: {size.format(8)}"], trace_id="0/2"))
    newest, oldest = rows["guard_failures"]
    assert (newest["failed_id"], newest["nth"], newest["expected"], newest["line_no"]) == ("0/1", 0, "7", 3)
    assert (oldest["failed_id"], oldest["nth"], oldest["expected"], oldest["line_no"]) == ("0/0", 1, "8", 4)
    assert {row["compile_line"] for row in rows["guard_failures"]} == {1}
    compile_ = only(rows, "compiles")
    assert compile_["line_no"] == 1
    assert (compile_["compile_id"], compile_["frame"], compile_["nth"]) == ("0/2", 0, 2)
    assert compile_["is_recompile"]
    assert "end_hi" not in compile_
    assert (compile_["user_file"], compile_["user_line"]) == ("/srv/job/net.py", 12)


def test_2_11_lines_of_the_stack_are_no_reasons_but_name_the_place() -> None:
    stack = [
        "User stack trace:",
        f'  File "{LIB}/torch/_dynamo/external_utils.py", line 69, in inner',
        "    return fn(*args, **kwargs)",
        '  File "/srv/job/net.py", line 14, in step',
        "    return x * self.scale",
    ]
    row = only(parse(recompile(["0/0: self.scale == 2", *stack])), "guard_failures")
    assert (row["reason"], row["user_file"], row["user_line"]) == ("self.scale == 2", "/srv/job/net.py", 14)


def test_a_shortened_path_in_a_comment_is_the_functions_file() -> None:
    row = only(parse(recompile(["0/0: n == 2     # y = n  # job/net.py:15 in step"])), "guard_failures")
    assert (row["user_file"], row["user_line"]) == ("/srv/job/net.py", 15)


def test_a_place_in_torch_is_not_the_users() -> None:
    text = "0/0: fn._modules['1'].training == True   # F.dropout(x)  # nn/modules/dropout.py:73 in forward"
    assert "user_file" not in only(parse(recompile([text])), "guard_failures")


def test_verbose_gives_all_reasons_of_an_entry() -> None:
    texts = ["guard 0 failures:", "- 0/0: tensor 'x' dtype mismatch. expected Float, actual Half; n == 2"]
    lines = recompile([], "recompiles_verbose") + v213([f"    {t}" for t in texts], "recompiles_verbose", "0/1")
    assert [row["kind"] for row in parse(lines)["guard_failures"]] == ["dtype", "equals"]


def test_2_6_an_empty_reason_is_a_reason() -> None:
    assert only(parse(recompile(["0/0: "])), "guard_failures")["kind"] == "other"


def test_2_2_no_id_on_the_message() -> None:
    texts = [
        "Recompiling function step in /srv/job/net.py:12",
        "    triggered by the following guard failure(s):",
        "    - tensor 'L['x']' size mismatch at index 0. expected 4, actual 5",
        "    - L['n'] == 3",
    ]
    start = ["Step 1: torchdynamo start tracing step /srv/job/net.py:12"]
    rows = parse(v22(texts, "recompiles") + v22(start, trace_id="0/1", level="INFO"))
    assert [row["kind"] for row in rows["guard_failures"]] == ["size", "equals"]
    compile_ = only(rows, "compiles")
    assert (compile_["compile_id"], compile_["line_no"], compile_["is_recompile"]) == ("0/1", 1, True)


def test_2_1_one_line_is_a_tuple() -> None:
    reason = "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5"
    head = ("Recompiling function step in /srv/job/net.py:12", f"triggered by the following guard failure: {reason}")
    stack = ["Stack (most recent call last):", '  File "/srv/job/main.py", line 3, in <module>', "    step(x)"]
    rows = parse(v22([str(head), *stack], "recompiles"))
    row = only(rows, "guard_failures")
    assert (row["reason"], row["kind"], row["fn"], row["line_no"]) == (reason, "size", "step", 1)
    assert "user_file" not in row
    assert rows.kinds == ["parsed", "continuation", "continuation", "continuation"]


def test_a_format_without_prefixes() -> None:
    rows = parse(
        [
            "DEBUG:torch._dynamo.guards.__recompiles:Recompiling function step in /srv/job/net.py:12",
            "    triggered by the following guard failure(s):",
            "    - 0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16",
            "an application's line",
            "Recompiling function other in /srv/job/net.py:40",
            "triggered by the following guard failure(s):",
            "- 0/0: tensor 'y' dtype mismatch. expected Float, actual Half",
            "- a list of the application's",
        ]
    )
    assert [(row["fn"], row["kind"]) for row in rows["guard_failures"]] == [("step", "size"), ("other", "dtype")]
    assert rows.kinds[3] == "plain"


ERRORS = [
    "torch._dynamo.exc.RecompileError: Recompiling function step in /srv/job/net.py:12",
    "RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '/srv/job/net.py', "
    "function name: 'step', line number: 12",
]


@pytest.mark.parametrize("text", ERRORS)
def test_where_recompiling_is_an_error(text: str) -> None:
    reasons = [
        "    triggered by the following guard failure(s):",
        "    - 0/0: tensor 'x' rank mismatch. expected 2, actual 3",
    ]
    row = only(parse(["Traceback (most recent call last):", text, *reasons, "", "next"]), "guard_failures")
    assert (row["fn"], row["fn_file"], row["fn_line"], row["kind"]) == ("step", "/srv/job/net.py", 12, "ndim")


def test_a_message_without_its_head_is_not_complete() -> None:
    row = only(parse(recompile(["0/0: n == 3"])[1:]), "guard_failures")
    assert not row["complete"]
    assert "fn" not in row


def test_one_compile_for_two_heads_of_one_id_is_two() -> None:
    lines = recompile(["0/0: n == 1"]) + recompile(["0/0: n == 1"], ms=900)
    assert [row["line_no"] for row in parse(lines)["compiles"]] == [1, 4]


def test_stamps_within_a_message_may_differ() -> None:
    lines = recompile(["0/0: n == 1"])
    lines[1] = lines[1].replace(":30.100000", ":30.117000")
    lines[2] = lines[2].replace(":30.100000", ":30.123000")
    assert only(parse(lines), "guard_failures")["fn"] == "step"


def test_a_line_of_somebody_else_in_between_ends_nothing() -> None:
    lines = recompile(["0/0: n == 1"]) + recompile(["0/0: m == 1"], trace_id="1/1")
    rows = parse([*lines[:2], "a print of the application", *lines[2:4], "  another", *lines[4:]])
    assert [(row["reason"], row["fn"]) for row in rows["guard_failures"]] == [("n == 1", "step"), ("m == 1", "step")]
    assert rows.counts.plain == 2


# ---- the limit

LIMITS = [
    (
        v213(
            [
                "torch._dynamo hit config.recompile_limit (8)",
                "   function: 'step' (/srv/job/net.py:12)",
                "   last reason: 0/7: tensor 'x' size mismatch at index 0. expected 9, actual 10",
                "User stack trace:",
                '  File "/srv/job/net.py", line 12, in step',
                'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
                "To diagnose recompilation issues, see https://pytorch.org/docs",
            ],
            trace_id="0/8",
            level="W",
        ),
        "recompile_limit",
    ),
    (
        v22(
            [
                "torch._dynamo hit config.cache_size_limit (8)",
                "   function: 'step' (/srv/job/net.py:12)",
                "   last reason: tensor 'L['x']' size mismatch at index 0. expected 9, actual 10",
                'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
                "To diagnose recompilation issues, see https://pytorch.org/docs.",
            ],
            level="WARNING",
        ),
        "cache_size_limit",
    ),
    (
        v20(
            [
                "torch._dynamo hit config.cache_size_limit (64)",
                "   function: 'step' (/srv/job/net.py:12)",
                "   reasons:  tensor 'L['x']' size mismatch at index 0. expected 9, actual 10",
                "to diagnose recompilation issues, see https://pytorch.org/docs.",
            ]
        ),
        "cache_size_limit",
    ),
]


@pytest.mark.parametrize(("lines", "name"), LIMITS)
def test_limits(lines: list[str], name: str) -> None:
    rows = parse([*lines, "loss went down"])
    row = only(rows, "recompile_limits")
    assert (row["limit_name"], row["fn"], row["fn_line"], row["kind"]) == (name, "step", 12, "size")
    assert rows.kinds == ["parsed"] + ["continuation"] * (len(lines) - 1) + ["plain"]
    assert not rows["log_messages"]


def test_a_compile_that_the_limit_refused_was_skipped() -> None:
    row = only(parse(LIMITS[0][0]), "compiles")
    assert (row["compile_id"], row["status"], row["fn"], row["is_recompile"]) == ("0/8", "skipped", "step", True)


# ---- compiles


def start(fn: str, trace_id: str, ms: int, file: str = "/srv/job/net.py") -> list[str]:
    return v213([f"Step 1: torchdynamo start tracing {fn} {file}:12"], "", trace_id, "I", ms)


def test_from_the_first_to_the_last_line_of_an_id() -> None:
    lines = [
        *start("step", "3/0", 100),
        *v213(["Restarting analysis due to torch/x.py:3 in f"], "", "3/0", "I", 150),
        *start("step", "3/0_1", 160),
        *v213(["Step 2: calling compiler function inductor"], "", "3/0_1", "I", 200),
        *v213(["Step 2: done compiler function inductor"], "", "3/0_1", "I", 700),
        *v213(["put_code_state: no cache key, skipping"], "", "3/0_1", "I", 750),
        *v213(["Step 3: torchinductor compiling BACKWARDS graph 0"], "", "3/0", "I", 990),
    ]
    row = only(parse(lines), "compiles")
    assert (row["restart"], row["backend"], row["status"]) == (1, "inductor", "done")
    assert (row["duration_s"], row["is_recompile"]) == (0.65, False)
    assert row["end_hi"] - row["t_lo"] == pytest.approx(0.65, abs=1e-3)


def test_a_backend_that_raised_is_never_done_with() -> None:
    lines = [
        *start("step", "0/0", 100),
        *v213(["Step 2: calling compiler function mine"], "", "0/0", "I", 200),
        *v213(["run_gc_after_compile: running gc"], "", "0/0", "I", 210),
    ]
    row = only(parse(lines), "compiles")
    assert (row["status"], row["backend"], row["duration_s"]) == ("failed", "mine", 0.11)


def test_ids_that_come_again_are_other_compiles() -> None:
    lines = start("one", "0/0", 100) + start("two", "1/0", 200) + start("three", "0/0", 300)
    assert [(row["fn"], row["status"]) for row in parse(lines)["compiles"]] == [
        ("one", "done"),
        ("two", "done"),
        ("three", "started"),
    ]


def test_a_frame_that_was_given_up() -> None:
    lines = start("step", "0/0", 100) + v213(
        [
            "WON'T CONVERT step /srv/job/net.py line 12 ",
            "due to: ",
            "Traceback (most recent call last):",
            '  File "/srv/job/net.py", line 13, in step',
            "torch._dynamo.exc.BackendCompilerFailed: backend='mine' raised:",
            "RuntimeError: no",
        ],
        "",
        "",
        "W",
        200,
    )
    rows = parse(lines)
    row = only(rows, "compiles")
    assert (row["status"], row["fail_type"]) == ("skipped", "BackendCompilerFailed")
    assert not rows["graph_breaks"]


def test_the_frame_of_torch_that_wraps_the_users() -> None:
    file = f"{LIB}/torch/_dynamo/external_utils.py"
    stack = [
        f"torchdynamo start compiling inner {file}:67, stack (elided 5 frames):",
        '  File "/srv/job/main.py", line 30, in <module>',
        "    loss = model(x)",
        f'  File "{LIB}/torch/nn/modules/module.py", line 1778, in _call_impl',
        "    return forward_call(*args, **kwargs)",
        "",
    ]
    row = only(parse(v213(stack, "", "0/0") + start("inner", "0/0", 200, file)), "compiles")
    assert (row["is_framework"], row["user_file"], row["user_line"]) == (True, "/srv/job/main.py", 30)


# ---- graph breaks

BODY = [
    "Failed to trace builtin operator",
    "  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str']",
    "  Hint: Avoid calling builtin `print`.",
    "",
    "  Developer debug context: builtin print [<class 'ConstantVariable'>] False",
    "",
    " For more details about this graph break, please visit: https://pytorch.org/site/gb/gb0059.html",
]
STACK = [
    "User code traceback:",
    '  File "/srv/job/main.py", line 30, in <module>',
    "    loss = model(x)",
    '  File "/srv/job/net.py", line 14, in forward',
    '    print("here")',
    "    ^^^^^^^^^^^^^",
]


def test_2_13_graph_break() -> None:
    reason = "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):"
    head = "Graph break in user code at /srv/job/net.py:14"
    rows = parse(v213([head, reason, "", *BODY, "", *STACK, ""], "graph_breaks"))
    row = only(rows, "graph_breaks")
    assert (row["gb_id"], row["gb_type"], row["kind"]) == ("GB0059", "Failed to trace builtin operator", "side-effect")
    assert row["cause"] == "graph-break-side-effect"
    assert (row["user_file"], row["user_line"], row["user_fn"]) == ("/srv/job/net.py", 14, "forward")
    assert row["context"].startswith("builtin print")
    assert not any(row[name] for name in ("is_fatal", "is_duplicate", "skips_frame", "is_framework"))
    assert rows.counts.continuation == rows.counts.lines - 1


def test_verbose_shows_the_callers_stack_before() -> None:
    region = ["", "========== most recent `torch.compile` tracing attempt started here ==========", "", *STACK[3:]]
    rest = ["", "NOTE: the most recent `torch.compile` tracing attempt might not be where you applied `torch.compile`!"]
    trace = ["", "Most recent bytecode instructions traced (max 20):", "TRACE RESUME 0 []"]
    head = ["Graph break in user code at /srv/job/net.py:14", f"Graph Break Reason: {BODY[0]}", *BODY[1:]]
    row = only(parse(v213([*head, *STACK[:3], *region, *rest, *trace], "graph_breaks")), "graph_breaks")
    assert (row["user_file"], row["user_line"]) == ("/srv/job/net.py", 14)


def test_a_duplicate_has_the_place_of_the_first() -> None:
    inner = f"{LIB}/lib/talk.py"
    stack = [*STACK, f'  File "{inner}", line 7, in say', "    print(x)"]
    head = f"Graph break in user code at {inner}:7"
    again = "Graph break (user stack suppressed due to duplicate graph break) in user code at "
    lines = v213([head, f"Graph Break Reason: {BODY[0]}", *BODY[1:], *stack], "graph_breaks")
    lines += v213([f"{again}{inner}:7", f"Graph Break Reason: {BODY[0]}", *BODY[1:]], "graph_breaks", "0/1")
    first, second = parse(lines)["graph_breaks"]
    assert (second["is_duplicate"], second["kind"]) == (True, "side-effect")
    assert [row["user_line"] for row in (first, second)] == [14, 14]


def test_a_frame_that_is_skipped() -> None:
    reason = "Failed to handle graph break gracefully. Skipping the function and falling back to eager."
    head = "Graph break in user code at /srv/job/net.py:14"
    lines = v213([head, f"Graph Break Reason: {reason} Graph break encountered:", "", *BODY, *STACK], "graph_breaks")
    assert only(parse(lines), "graph_breaks")["skips_frame"]


def test_a_break_in_a_wrapper_of_torch_is_not_the_users() -> None:
    ddp = f"{LIB}/torch/nn/parallel/distributed.py"
    stack = [
        *STACK[:3],
        f'  File "{LIB}/torch/_dynamo/external_utils.py", line 69, in inner',
        "    return fn(*args, **kwargs)",
        f'  File "{ddp}", line 1757, in _pre_forward',
        "    self.logger.set_runtime_stats_and_log()",
    ]
    head = f"Graph break in user code at {ddp}:1757"
    row = only(
        parse(v213([head, "Graph Break Reason: Unsupported method call", *stack], "graph_breaks")), "graph_breaks"
    )
    assert row["is_framework"]
    assert "user_file" not in row


def test_a_break_in_fsdp_is_not_the_users_although_the_users_module_is_below() -> None:
    fsdp = f"{LIB}/torch/distributed/fsdp/_fully_shard/_fsdp_common.py"
    stack = [*STACK[:5], f'  File "{fsdp}", line 30, in dynamo_disable', "    return disable(f)"]
    head = f"Graph break in user code at {fsdp}:30"
    row = only(parse(v213([head, "Graph Break Reason: x", *stack], "graph_breaks")), "graph_breaks")
    assert (row["is_framework"], row["user_line"]) == (True, 14)


OLD = [
    (
        v22(
            [
                "Graph break: call_function BuiltinVariable(print) [ConstantVariable(str)] {} from user code at:",
                *STACK[3:5],
            ],
            "graph_breaks",
        ),
        "side-effect",
        False,
    ),
    (
        v22(["Graph break: generic_jump TensorVariable() from user code at:", *STACK[3:5]], "graph_breaks"),
        "data-dependent",
        False,
    ),
    (
        v20(["Graph break: Tensor.item from user code at " + STACK[1], STACK[2], *STACK[3:5]]),
        "data-dependent",
        False,
    ),
    (
        v23(
            [
                "Graph break: from user code at:",
                *STACK[3:5],
                "Traceback (most recent call last):",
                f'  File "{LIB}/torch/_dynamo/symbolic_convert.py", line 500, in wrapper',
                "    return inner_fn(self, inst)",
                "torch._dynamo.exc.Unsupported: 'skip function graph_break in file /opt/decorators.py'",
            ],
            "graph_breaks",
        ),
        "disabled",
        False,
    ),
    (
        v23(
            [
                "Graph break: skip: from user code at:",
                *STACK[3:5],
                "Traceback (most recent call last):",
                "torch._dynamo.exc.Unsupported: data dependent operator: aten._local_scalar_dense.default",
            ],
            "graph_breaks",
        ),
        "data-dependent",
        True,
    ),
    (
        v213(
            ["Graph break in user code at /srv/job/net.py:14", "Reason: Data-dependent jump", *STACK],
            "graph_breaks",
        ),
        "data-dependent",
        False,
    ),
    (
        v213(
            [
                "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.",
                "torch.compile will skip tracing the frame forward (/srv/job/net.py line 12) and fall back to eager.",
                "The graph break occurred in the following user code:",
                *STACK[3:5],
                "Traceback (most recent call last):",
                "torch._dynamo.exc.Unsupported: Unsupported context manager",
            ],
            "graph_breaks",
        ),
        "wrapper",
        True,
    ),
]


@pytest.mark.parametrize(("lines", "kind", "skips"), OLD)
def test_other_versions(lines: list[str], kind: str, skips: bool) -> None:
    row = only(parse(lines), "graph_breaks")
    assert (row["kind"], row["skips_frame"]) == (kind, skips)
    assert (row["user_file"], row["user_line"], row["user_fn"]) == ("/srv/job/net.py", 14, "forward")
    assert not row["is_fatal"]


def test_a_break_that_is_not_allowed() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/srv/job/main.py", line 30, in <module>',
        "    loss = model(x)",
        "torch._dynamo.exc.Unsupported: Data-dependent branching",
        "  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).",
        "",
        "  Developer debug context: attempted to jump with TensorVariable()",
        "",
        " For more details about this graph break, please visit: https://pytorch.org/site/gb/gb0170.html",
        "",
        "from user code:",
        '   File "/srv/job/net.py", line 14, in forward',
        "    if x.sum() > 0:",
        "",
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
        "",
        "the application goes on",
    ]
    row = only(parse(lines), "graph_breaks")
    assert (row["is_fatal"], row["gb_id"], row["kind"], row["line_no"]) == (True, "GB0170", "data-dependent", 4)
    assert (row["user_file"], row["user_line"]) == ("/srv/job/net.py", 14)


def test_torch_logs_off_the_warning_counts() -> None:
    warned = [
        "Graph break from `Tensor.item()`, consider setting:",
        "    torch._dynamo.config.capture_scalar_outputs = True",
        "",
        "Graph break: from user code at:",
        *STACK[3:5],
    ]
    lines = v213(warned, "", "0/0", "W")
    row = only(parse(lines), "graph_breaks")
    assert (row["kind"], row["user_line"]) == ("data-dependent", 14)
    logged = v213(["Graph break in user code at /srv/job/net.py:14", "Graph Break Reason: x", *STACK], "graph_breaks")
    assert len(parse(lines + logged)["graph_breaks"]) == 1


# ---- the rest


def test_warnings_without_a_table_are_messages_of_several_lines() -> None:
    lines = v213(["Profiler record function f will be ignored", "and a second line"], "", "0/0", "W")
    row = only(parse([*lines, *v213(["loud at level info"], "", "0/0", "I", 200)]), "log_messages")
    assert (row["source"], row["level"]) == ("torch", "warning")
    assert row["text"] == "Profiler record function f will be ignored and a second line"


CACHES = [
    ("fx graph cache miss for key fabc", "I", ("fx", "miss", "fabc")),
    ("fx graph cache hit for key fabc", "I", ("fx", "hit", "fabc")),
    ("Bypassing FX Graph Cache because 'Unsupported post grad custom pass'", "I", ("fx", "bypass", None)),
    ("AOTAutograd cache hit for key aabc", "I", ("aotautograd", "hit", "aabc")),
    ("Bypassing autograd cache due to: Unsupported call_function target cond. ", "I", ("aotautograd", "bypass", None)),
    ("FX cache hit with key: fabc", "V", None),
]


@pytest.mark.parametrize(("text", "level", "told"), CACHES)
def test_caches(text: str, level: str, told: tuple[str, str, str | None] | None) -> None:
    rows = parse(v213([text], "", "0/0", level))["cache_events"]
    assert [(row["cache"], row["event"], row.get("key")) for row in rows] == ([told] if told else [])


def test_a_cache_entry_that_cannot_be_read_has_the_reason_of_its_traceback() -> None:
    texts = [
        "fx graph cache unable to load compiled graph",
        "Traceback (most recent call last):",
        '  File "/x.py", line 3, in f',
        "_pickle.UnpicklingError: invalid load key, 'x'.",
    ]
    rows = parse(v213(texts, "", "0/0", "W") + v213(["fx graph cache miss for key fabc"], "", "0/0", "I"))
    corrupt, miss = rows["cache_events"]
    assert (corrupt["event"], corrupt["reason"]) == ("corrupt", "_pickle.UnpicklingError: invalid load key, 'x'.")
    assert miss["event"] == "miss"


CUDAGRAPHS = [
    (["skipping cudagraphs due to ['mutated inputs']"], "", ("skipped", None)),
    (["skipping cudagraphs due to multiple devices: device(type='cuda', index=0)"], "perf_hints", ("skipped", None)),
    (
        [
            "CUDAGraph supports dynamic shapes by recording a new graph for each distinct input size. Recording too "
            "many CUDAGraphs may lead to extra overhead. We have observed 9 distinct sizes. Please consider"
        ],
        "perf_hints",
        ("rerecord", 9),
    ),
    (["Recording function 3 of graph recording id 7"], "cudagraphs", ("recorded", 7)),
    (
        ["skipping cudagraph due to function 2 exceeding max re-recording limit (=128) on cudagraph node 5 due to x."],
        "cudagraphs",
        ("skipped", 128),
    ),
]


@pytest.mark.parametrize(("texts", "artifact", "told"), CUDAGRAPHS)
def test_cudagraphs(texts: list[str], artifact: str, told: tuple[str, int | None]) -> None:
    row = only(parse(v213(texts, artifact, "0/0", "W")), "cudagraphs")
    assert (row["event"], row.get("count")) == told


def test_a_lost_output_of_a_cuda_graph() -> None:
    text = "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: x"
    assert only(parse([f"RuntimeError: {text}"]), "cudagraphs")["event"] == "overwritten"


def test_autotune_tables_of_old_and_new() -> None:
    rows = parse(
        [
            "Autotune Choices Stats:",
            '{"num_choices": 2, "num_triton_choices": 1, "best_kernel": "mm"}',
            "AUTOTUNE mm(512x256, 256x512)",
            "strides: [256, 1], [512, 1]",
            "dtypes: torch.float32, torch.float32",
            "  mm 0.0123 ms 100.0% ",
            "  triton_mm_3 0.0246 ms 50.0% ACC_TYPE='tl.float32', BLOCK_K=32",
            "SingleProcess AUTOTUNE benchmarking takes 0.32 seconds and 1.2 seconds precompiling for 2 choices",
            "  an indented line of the application 1 ms 2%",
            "AUTOTUNE addmm(4, 4x8, 8x4)",
            "  addmm 0.0010s 100.0%",
        ]
    )["autotune"]
    assert [(row["op"], row["choice"], row["time_ms"], row["is_best"]) for row in rows] == [
        ("mm", "mm", 0.0123, True),
        ("mm", "triton_mm_3", 0.0246, False),
        ("addmm", "addmm", 1.0, True),
    ]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60), max_size=12))
def test_no_line_with_a_header_of_torch_is_plain(texts: list[str]) -> None:
    for artifact in ("", "graph_breaks", "recompiles", "guards", "graph_code"):
        rows = parse(v213([text.replace("\r", " ") for text in texts], artifact))
        assert rows.counts.plain == rows.counts.malformed == 0
        assert rows.counts.lines == len(texts)
