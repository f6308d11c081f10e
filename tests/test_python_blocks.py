"""Tracebacks and crashes: what they are made of, whose frame is the user's, and which of them ended a process."""

import pytest
from failure_lines import Identity, parse, parse_counted
from hypothesis import given
from hypothesis import strategies as st

from replay.parse.failure_kinds import cuda_error, exception_category

SITE = "/srv/env/lib/python3.12/site-packages"
PLAIN = f"""Traceback (most recent call last):
  File "/srv/job/train.py", line 88, in <module>
    main()
    ~~~~^^
  File "/srv/job/model.py", line 12, in step
    return net(x)
           ^^^^^^
  File "{SITE}/torch/nn/modules/module.py", line 1, in _call_impl
    return forward_call(*args, **kwargs)
  [Previous line repeated 3 more times]
"""


def test_a_traceback_is_one_row_at_its_exceptions_line():
    rows, counts = parse_counted(PLAIN + "RuntimeError: shapes differ: 3 vs 4\n")
    row = rows.one("exceptions")
    assert (row["type"], row["qualified"], row["message"]) == ("RuntimeError", "RuntimeError", "shapes differ: 3 vs 4")
    assert (row["user_file"], row["user_line"], row["user_fn"]) == ("/srv/job/model.py", 12, "step")
    assert row["last_file"].endswith("module.py")
    assert (row["frames"], row["line_no"], row["category"]) == (3, 11, "other")
    assert row["is_uncaught"]
    assert row["is_cause"]
    assert (counts.parsed, counts.continuation, counts.plain) == (1, 10, 0)


def test_what_the_users_own_code_raised_is_the_users():
    rows = parse(
        'Traceback (most recent call last):\n  File "/srv/job/data.py", line 3, in load\n    raise '
        'ValueError("x")\nValueError: x'
    )
    assert rows.one("exceptions")["category"] == "user"


def test_the_traceback_of_a_spawned_process_is_that_processs():
    text = (
        PLAIN
        + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 2 terminated with the following error:\n"
    )
    rows = parse(text + PLAIN + "KeyError: 'label'\n")
    assert [(row["type"], row.get("rank")) for row in rows.tables["exceptions"]] == [
        ("ProcessRaisedException", None),
        ("KeyError", 2),
    ]


def ranked(text: str, rank: int) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def test_tracebacks_of_ranks_that_interleave_by_lines_stay_apart():
    first, second = (ranked(PLAIN + f"ValueError: from {n}", n).splitlines() for n in (0, 3))
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    assert parse("\n".join(mixed)).of("exceptions", "rank", "message", "frames") == [(0, "from 0", 3), (3, "from 3", 3)]


@pytest.mark.parametrize(
    "between",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_of_a_chain_the_first_is_the_cause(between):
    rows = parse(f"{PLAIN}KeyError: 'w'\n\n{between}\n\n{PLAIN}ValueError: no weight\n")
    assert rows.of("exceptions", "type", "is_cause", "is_uncaught", "frames") == [
        ("KeyError", True, True, 3),
        ("ValueError", False, True, 3),
    ]


def test_exceptions_of_a_group_are_causes_and_the_group_is_not():
    rows = parse(
        '  + Exception Group Traceback (most recent call last):\n  |   File "/srv/job/a.py", line 1, in <module>\n'
        "  |     run()\n  | ExceptionGroup: two failed (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
        '    | Traceback (most recent call last):\n    |   File "/srv/job/b.py", line 7, in w\n    |     f()\n'
        "    | ValueError: one\n    +---------------- 2 ----------------\n    | Traceback (most recent call last):\n"
        '    |   File "/srv/job/c.py", line 9, in w\n    |     f()\n    | OSError: two\n    '
        "+------------------------------------\n"
    )
    assert rows.of("exceptions", "type", "message", "is_cause", "user_line") == [
        ("ExceptionGroup", "two failed (2 sub-exceptions)", False, 1),
        ("ValueError", "one", True, 7),
        ("OSError", "two", True, 9),
    ]


def test_exceptions_of_a_group_may_have_no_traceback():
    rows = parse(
        '  + Exception Group Traceback (most recent call last):\n  |   File "/srv/job/a.py", line 1, in <module>\n'
        "  | ExceptionGroup: many (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | ValueError: a\n"
        "    +---------------- 2 ----------------\n    | OSError: b\n    +------------------------------------\n"
    )
    assert rows.of("exceptions", "type", "is_cause") == [
        ("ExceptionGroup", False),
        ("ValueError", True),
        ("OSError", True),
    ]


def test_a_victims_exception_is_not_the_cause_of_a_chain():
    between = "During handling of the above exception, another exception occurred:"
    rows = parse(
        f"{PLAIN}EOFError\n\n{between}\n\n{PLAIN}RuntimeError: DataLoader worker (pid 7) is killed by signal: "
        f"Killed. \n"
    )
    assert rows.of("exceptions", "type", "is_cause") == [("EOFError", False), ("RuntimeError", True)]


def test_what_is_raised_below_the_call_of_the_backend_is_the_backends():
    frames = (
        'Traceback (most recent call last):\n  File "/srv/train.py", line 9, in <module>\n    model(x)\n'
        '  File "/opt/lib/python3.11/site-packages/torch/_dynamo/output_graph.py", line 1446, in {fn}\n    f(gm)\n'
        '  File "/srv/backend.py", line 3, in lower\n    raise ValueError("no lowering")\n'
    )
    for fn, category in (("_call_user_compiler", "backend-compile"), ("step", "user")):
        rows = parse(frames.replace("{fn}", fn) + "ValueError: no lowering\n")
        assert rows.of("exceptions", "category") == [(category,)]


MESSAGES = {
    'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a". \n\tUnexpected '
    'key(s) in state_dict: "_orig_mod.a". ': (
        'Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "a". Unexpected key(s) in '
        'state_dict: "_orig_mod.a".',
        "state-dict",
    ),
    "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nAssertionError: bad\n\nSet "
    'TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information\n\nYou can suppress this '
    "exception and fall back to eager by setting:\n    import torch._dynamo\n    "
    "torch._dynamo.config.suppress_errors = True": (
        "backend='inductor' raised: AssertionError: bad",
        "backend-compile",
    ),
    "torch.distributed.DistBackendError: NCCL error in: ../x/ProcessGroupNCCL.cpp:13, unhandled system error "
    "(run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclSystemError: System call (e.g. socket, "
    "malloc) or external library call failed or device error. \nLast error:\nError while creating shared "
    "memory segment /dev/shm/nccl-x (size 9637888), error: No space left on device (28)": (
        None,
        "limit",
    ),
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates\nParameters which did not receive grad for rank 1: aux.bias, aux.weight\nParameter "
    "indices which did not receive grad for rank 1: 4 5": (
        None,
        "ddp-unused",
    ),
    "AssertionError": (None, "user"),
    "SystemExit: 3": ("3", "interrupt"),
    "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent "
    "expression u0 > 4": (
        "Could not guard on data-dependent expression u0 > 4",
        "guard-data-dependent",
    ),
}


@pytest.mark.parametrize("raised", MESSAGES)
def test_lines_that_belong_to_a_message_are_added_to_it(raised):
    message, category = MESSAGES[raised]
    head = 'Traceback (most recent call last):\n  File "/srv/job/train.py", line 5, in <module>\n    f()\n'
    rows, counts = parse_counted(f"{head}{raised}\nepoch 3 starts\n")
    row = rows.one("exceptions")
    if message is not None:
        assert row["message"] == message
    assert row["category"] == category
    assert row["line_end"] == 3 + raised.count("\n") + 1
    assert counts.continuation == 3 + raised.count("\n")


def test_the_names_of_unused_parameters_are_in_the_message():
    raised = next(m for m in MESSAGES if "aux" in m)
    row = parse(f'Traceback (most recent call last):\n  File "/srv/t.py", line 5, in f\n    g()\n{raised}').one(
        "exceptions"
    )
    assert "aux.bias, aux.weight" in row["message"]


def test_an_exception_of_a_data_loader_worker_is_the_cause_of_the_one_that_carries_it():
    rows = parse(
        f"{PLAIN}OSError: Caught OSError in DataLoader worker process 2.\nOriginal Traceback (most recent call last):\n"
        '  File "/srv/job/data.py", line 40, in __getitem__\n    open(p)\nOSError: [Errno 24] Too many open '
        "files: 'a'\n"
    )
    assert rows.of("exceptions", "is_cause", "category", "user_line") == [(False, "worker", 12), (True, "limit", 40)]


SURVIVED = {
    "ignored": f"Exception ignored in: <function Pool.__del__ at 0x7f00>\n{PLAIN}ValueError: x",
    "thread": f"Exception in thread Thread-4 (poll):\n{PLAIN}ValueError: x",
    "logger": "\n".join(f"2026-11-29 22:51:45,119 - ERROR - {line}" for line in (PLAIN + "ValueError: x").split("\n")),
    "torch 2.0": f"[2023-11-29 12:00:00,123] torch._dynamo.convert_frame: [ERROR] WON'T CONVERT f /srv/a.py line "
    f"3\ndue to: \n{PLAIN}ValueError: x",
}


@pytest.mark.parametrize("how", SURVIVED)
def test_what_is_only_reported_does_not_end_a_process(how):
    assert [r["is_uncaught"] for r in parse(SURVIVED[how]).tables["exceptions"]] == [False]


def test_torchs_own_tracebacks_behind_its_header_are_no_exceptions():
    head = "[rank0]:I1129 22:56:56.736000 25177 torch/_dynamo/convert_frame.py:2413] "
    assert not parse(
        "\n".join(head + line for line in (PLAIN + "torch._dynamo.exc.Unsupported: x").split("\n"))
    ).tables["exceptions"]


STEPS = "".join(f"step={n} loss=0.5\n" for n in range(4, 12))


def test_a_line_that_a_program_printed_about_an_error_ends_nothing():
    assert not parse("ValueError: shard 3 is empty, skipped").one("exceptions")["is_uncaught"]
    assert not parse(f"step=1 loss=1\ntorch.cuda.OutOfMemoryError: x\n{STEPS}").one("exceptions")["is_uncaught"]
    assert not parse(f"torch.cuda.OutOfMemoryError: x\n{STEPS}").one("exceptions")["is_uncaught"]


def test_a_process_that_goes_on_with_steps_survived():
    known = Identity(rank=0)
    assert parse(f"step=3 loss=0.5\n{PLAIN}ValueError: x\n", known).one("exceptions")["is_uncaught"]
    assert not parse(f"step=3 loss=0.5\n{PLAIN}ValueError: x\n{STEPS}", known).one("exceptions")["is_uncaught"]


def test_in_a_file_of_unlabelled_processes_some_steps_more_prove_nothing():
    assert parse(f"step=3 loss=0.5\n{PLAIN}ValueError: x\nstep=4 loss=0.5\n").one("exceptions")["is_uncaught"]
    assert not parse(f"step=3 loss=0.5\n{PLAIN}ValueError: x\n{STEPS}").one("exceptions")["is_uncaught"]


def test_tracebacks_mixed_within_lines_give_the_exceptions_lines():
    rows = parse(
        "Traceback (most recent call last):\nTraceback (most recent call last):\n"
        '  File "/srv/job/a.py", line 3, in <module>\n  File "/srv/job/a.py", line 3, in <module>\n'
        "    open(p)    open(p)\n\n    ^^^^^^^^    \n^^IsADirectoryError^^: ^^[Errno 21] Is a directory: '/d'^^\n"
        "IsADirectoryError: [Errno 21] Is a directory: '/d'\n"
        'IsADirectoryError:   File "/srv/job/a.py", line 9, in g\n'
    )
    assert rows.of("exceptions", "type", "message", "complete") == [
        ("IsADirectoryError", "[Errno 21] Is a directory: '/d'", True),
        ("IsADirectoryError", None, False),
    ]


def test_a_box_of_rich_is_a_traceback():
    rows = parse(
        "╭───────────────────── Traceback (most recent call last) ──────────────────────╮\n"
        "│ /srv/job/train.py:12 in main                                                 │\n"
        "│                                                                              │\n"
        "│ ❱ 12 │   load()                                                              │\n"
        "╰──────────────────────────────────────────────────────────────────────────────╯\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
    )
    row = rows.one("exceptions")
    assert (row["type"], row["category"], row["user_file"], row["user_line"]) == (
        "FileNotFoundError",
        "io",
        "/srv/job/train.py",
        12,
    )


def test_an_exception_without_its_traceback_is_a_row():
    row = parse("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB").one("exceptions")
    assert (row["type"], row["category"], row["frames"]) == ("OutOfMemoryError", "oom", 0)


@pytest.mark.parametrize(
    "line",
    [
        "Error: not found",
        "loss: 3",
        "INFO: ValueError is bad",
        "no error: all fine",
        "MyError",
        "see RuntimeError: above",
    ],
)
def test_lines_that_only_mention_errors_are_no_exceptions(line):
    assert not parse(line).tables["exceptions"]


FAULTHANDLER = f"""Fatal Python error: Segmentation fault

Current thread 0x00007f2b (most recent call first):
  File "{SITE}/torch/nn/modules/module.py", line 1 in _call_impl
  File "/srv/job/model.py", line 21 in forward
  File "/srv/job/train.py", line 9 in <module>

Thread 0x00007f2c (most recent call first):
  File "/srv/job/other.py", line 99 in poll

Extension modules: numpy.core._multiarray_umath, torch._C (total: 2)
"""


def test_a_faulthandlers_stack_runs_from_the_innermost_frame():
    rows, counts = parse_counted(FAULTHANDLER)
    row = rows.one("crashes")
    assert (row["signal"], row["user_file"], row["user_line"], row["line_end"]) == (
        "SIGSEGV",
        "/srv/job/model.py",
        21,
        11,
    )
    assert counts.plain == 0


CRASHES = {
    "Fatal Python error: Aborted": "SIGABRT",
    "Fatal Python error: Bus error": "SIGBUS",
    "Fatal Python error: PyGILState_Release: thread state must be current": "SIGABRT",
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at x.cc:1] "
    "a. b": "SIGABRT",
    "terminate called without an active exception": "SIGABRT",
    "free(): invalid pointer": "SIGABRT",
    "double free or corruption (!prev)": "SIGABRT",
    "python: csrc/a.c:13: int f(int): Assertion `n > 0' failed.": "SIGABRT",
    "!!!!!!! Segfault encountered !!!!!!!": "SIGSEGV",
    "*** SIGSEGV received at time=1700000000 on cpu 3 ***": "SIGSEGV",
    '*** Aborted at 1700000000 (unix time) try "date -d @1" ***\n*** SIGBUS (@0x7f) received by PID 12 (TID '
    "0x7f) from PID 1; stack trace: ***": "SIGBUS",
    "[node-a:04711] *** Process received signal ***\n[node-a:04711] Signal: Segmentation fault (11)\n"
    "[node-a:04711] Signal code:  (128)": "SIGSEGV",
    "[node-a:4711 :0:4711] Caught signal 11 (Segmentation fault: address not mapped to object at (nil))": "SIGSEGV",
}


@pytest.mark.parametrize("text", CRASHES)
def test_crashes_name_their_signal(text):
    assert parse(text).of("crashes", "signal") == [(CRASHES[text],)]


def test_warnings_are_messages_with_their_place():
    row = parse(
        "/srv/env/lib/x.py:123: UserWarning: index_put_ has no deterministic implementation\n  warnings.warn(\n"
    ).one("log_messages")
    assert (row["source"], row["level"], row["logger"]) == ("python", "warning", "/srv/env/lib/x.py:123")
    assert row["text"].startswith("UserWarning: index_put_")


def test_the_knowledge_table_decides_by_type_and_text():
    assert exception_category("RuntimeError", "x Connection closed by peer y", False) == "victim"
    assert exception_category("RuntimeError", "nothing known", False) == "other"
    assert exception_category("RuntimeError", "nothing known", True) == "user"
    assert exception_category("ChildFailedError", "", False) == "child-failed"
    assert exception_category("DistNetworkError", "address already in use", False) == "address"
    assert cuda_error("CUDA error: an illegal memory access was encountered") == (700, "cuda")
    assert cuda_error("CUDA error: uncorrectable ECC error encountered") == (214, "ecc")
    assert cuda_error("something new") == (None, "cuda")


PIECES = st.sampled_from(
    [
        *(PLAIN + "ValueError: x").split("\n"),
        *FAULTHANDLER.split("\n"),
        "plain text",
        "step=3 loss=1",
        "[rank1]: KeyError: 'a'",
        "The above exception was the direct cause of the following exception:",
        "  | ValueError: x",
        "^^^ ~~",
        "Last error:",
        "Original Traceback (most recent call last):",
        "terminate called recursively",
        "  what():  x",
    ]
)


@given(st.lists(PIECES, max_size=40))
def test_every_line_is_classed_once_and_rows_point_to_lines(pieces):
    rows, counts = parse_counted("\n".join([*pieces, "end"]))
    assert counts.lines == len(pieces) + 1 == counts.parsed + counts.continuation + counts.plain + counts.malformed
    for row in [*rows.tables["exceptions"], *rows.tables["crashes"]]:
        assert 1 <= row["line_no"] <= row["line_end"] <= counts.lines
    assert sum("ValueError: x" in piece for piece in pieces) >= sum(
        r["type"] == "ValueError" for r in rows.tables["exceptions"]
    )


@given(st.text(alphabet=st.sampled_from(" :|+-^E.rotailnbFTe\"'(),[]_\n"), max_size=300))
def test_no_text_makes_it_fail(text):
    parse(text)
