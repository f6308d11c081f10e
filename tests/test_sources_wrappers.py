"""Wrappers come off in any nesting, and lines that only look wrapped stay as they are."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import UsageError
from replay.sources.escapes import strip_escapes
from replay.sources.model import Hints, Identity, Wrapping
from replay.sources.sample import take
from replay.sources.vote import outline
from replay.sources.wrappers import Peeled, Peeler, forms

PAYLOADS = [
    "I1129 22:51:29.204000 15856 torch/_dynamo/convert_frame.py:1] [0/0] text",
    "gpu-a:100:200 [3] NCCL INFO Channel 00/0 : 3[3] -> 0[0] via P2P/IPC",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "[E331 14:10:00.003278867 ProcessGroupNCCL.cpp:683] [Rank 2] Watchdog caught collective operation timeout",
    "step 4 loss 2.5",
    "",
]
"""Lines of programs that no wrapper may take anything from."""

CERTAIN = {
    "torch": ("[rank3]: ", Identity(rank=3)),
    "tee": ("[default3]:", Identity(local_rank=3)),
    "mpirun": ("[1,3]<stderr>:", Identity(rank=3, stream="stderr")),
    "prte": ("[prterun-gpu-1-77@1,3]<stdout>: ", Identity(rank=3, stream="stdout")),
    "sagemaker": ("[1,mpirank:3,algo-1]<stdout>:", Identity(rank=3, host="algo-1", stream="stdout")),
    "ray": ("(WorkerDict pid=77, ip=10.0.0.7) ", Identity(pid=77, host="10.0.0.7", label="WorkerDict")),
    "vllm": ("(Worker_TP1 pid=78) ", Identity(pid=78, label="Worker_TP1")),
    "kubectl": ("[pod/trainer-3/main] ", Identity(label="trainer-3")),
    "stamp": ("2026-11-29T22:51:25.464000100Z ", Identity()),
    "cri": ("2026-11-29T22:51:25.464000100Z stderr F ", Identity(stream="stderr")),
    "syslog": ("Nov 29 22:51:25 gpu-b python[77]: ", Identity(host="gpu-b", pid=77, label="python")),
    "rfc5424": ("<34>1 2026-11-29T22:51:25.464Z gpu-b app 77 - - ", Identity(host="gpu-b", pid=77, label="app")),
}
VOTED = {
    "srun": ("{n}: ", {"rank": "n"}),
    "srun padded": ("{n:3}: ", {"rank": "n"}),
    "hydra": ("[{n}] ", {"rank": "n"}),
    "role": ("[trainer{n}]:", {"local_rank": "n"}),
    "pals": ("x1000c0s0b0n{n} {n}: ", {"rank": "n", "host": "x1000c0s0b0n{n}"}),
    "pdsh": ("worker-{n}: ", {"host": "worker-{n}"}),
    "journald": ("gpu-{n} python[{n}]: ", {"host": "gpu-{n}", "pid": "n"}),
    "compose": ("trainer-{n}  | ", {"label": "trainer-{n}"}),
    "stern": ("trainer-{n} main ", {"label": "trainer-{n}"}),
    "kubetail": ("[trainer-{n}] ", {"label": "trainer-{n}"}),
    "torchx": ("trainer/{n} ", {"label": "trainer/{n}"}),
    "gh": ("job\tstep {n}\t2026-11-29T22:51:25.464Z ", {}),
}


def peel(text: str, wrapping: Wrapping | None = None, hints: Hints | None = None) -> Peeled:
    return Peeler(wrapping or Wrapping(), Identity(), hints or Hints()).peel(text)


def peel_file(lines: list[str]) -> list[Peeled]:
    peeler = Peeler(outline([lines]).wrapping, Identity(), Hints())
    return [peeler.peel(line) for line in lines]


@pytest.mark.parametrize(("prefix", "identity"), CERTAIN.values(), ids=CERTAIN)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_certain_forms_come_off_any_line(prefix: str, identity: Identity, payload: str) -> None:
    got = peel(prefix + payload)
    assert (got.text, got.identity) == (payload, identity)
    assert peel(prefix.rstrip(" ")).text in {"", prefix.rstrip(" ")}


@pytest.mark.parametrize("outer", CERTAIN)
@pytest.mark.parametrize("inner", CERTAIN)
def test_certain_forms_nest(outer: str, inner: str) -> None:
    for payload in PAYLOADS:
        assert peel(CERTAIN[outer][0] + CERTAIN[inner][0] + payload).text == payload


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(sorted(CERTAIN)), max_size=5), st.sampled_from(PAYLOADS))
def test_any_nesting_comes_off(names: list[str], payload: str) -> None:
    assert peel("".join(CERTAIN[n][0] for n in names) + payload).text == payload


def voted_lines(form: str, inner: str = "") -> tuple[list[str], list[str]]:
    numbers = [0, 1, 2, 3, 1, 0, 3, 2, 0, 1, 2, 3]
    payloads = [inner.format(n=n) + p for n, p in zip(numbers, itertools.cycle(PAYLOADS), strict=False)]
    return [form.format(n=n) + p for n, p in zip(numbers, payloads, strict=True)], payloads


@pytest.mark.parametrize(("form", "says"), VOTED.values(), ids=VOTED)
def test_voted_forms_come_off_where_the_file_carries_them(form: str, says: dict[str, str]) -> None:
    lines, payloads = voted_lines(form)
    got = peel_file(lines)
    assert [g.text for g in got] == payloads
    for field, value in says.items():
        expected = {int(n) if value == "n" else value.format(n=n) for n in range(4)}
        assert {getattr(g.identity, field) for g in got} == expected


@pytest.mark.parametrize("form", [form for form, _ in VOTED.values()], ids=VOTED)
@pytest.mark.parametrize("certain", [prefix for prefix, _ in CERTAIN.values()], ids=CERTAIN)
def test_voted_forms_nest_with_certain_ones(form: str, certain: str) -> None:
    lines, payloads = voted_lines(form, "[rank{n}]: ")
    plain = [p.split("]: ", 1)[1] for p in payloads]
    assert [g.text for g in peel_file([certain + line for line in lines])] == plain


@pytest.mark.parametrize("form", [form for form, _ in VOTED.values()], ids=VOTED)
def test_one_line_alone_is_not_peeled_of_a_voted_form(form: str) -> None:
    line = form.format(n=3) + "step 4 loss 2.5"
    text = peel(line).text
    assert text.endswith(line) or line.startswith("job")


@pytest.mark.parametrize(
    "lines",
    [
        ["stack backtrace:", "   0: std::panicking::begin_panic", "   1: core::ops::function", "   2: main::run"],
        ["0: first", "1: second", "2: third", "3: fourth"],
        ["0: train", "0: validate", "1: train", "1: validate", "2: train", "2: validate"],
        ["epoch-1: loss 3", "epoch-1: loss 2", "epoch-2: loss 1", "epoch-2: loss 1"],
        ["INFO: starting", "WARNING: slow", "INFO: step", "ERROR: died", "INFO: step"],
        ["loss: 3.1", "loss: 2.9", "lr: 0.1", "loss: 2.7", "lr: 0.1"],
        ["name  | time", "mm    | 3.1", "addmm | 2.2", "relu  | 0.1"],
        ["[1] first point", "[2] second point", "[3] third point"],
        ["[Rank 2] Watchdog caught collective operation timeout", "[Rank 1] Some NCCL operations have failed"],
        ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-03-04_08:00:10", "[1]:", "  host : a"],
        ["- 0/6: ___check_obj_id(self, 1)", "0/5: tag == 'a'"],
        ['{"step": 3, "loss": 2.5}', '{"message": {"message": "nested"}}', '{"log": 3}', "{not json}"],
        ["2026-11-29 22:51:25.464 [trainer] step 3", "2026-11-29 22:51:26.464 [trainer] step 4"],
    ],
    ids=lambda lines: lines[0][:20],
)
def test_payloads_that_look_wrapped_stay(lines: list[str]) -> None:
    assert [g.text for g in peel_file(lines)] == lines


def test_a_short_log_of_many_tasks_is_labelled() -> None:
    """Each task says one thing, in the order in which they came up."""
    lines = [f" {n}: init" for n in (3, 1, 0, 2)] + [" 0: step 1", " 0: step 2", "srun: error: a: task 2: Killed"]
    assert [g.identity.rank for g in peel_file(lines)] == [3, 1, 0, 2, 0, 0, None]


def test_a_payload_behind_a_label_may_look_like_the_label() -> None:
    lines = ["0: [rank0]: x", "1: [rank1]: y", "0:    0: frame", "1: 1: z", "0: [rank0]: x", "1: 2: a"]
    assert [g.text for g in peel_file(lines)] == ["x", "y", "   0: frame", "1: z", "x", "2: a"]


def test_a_label_of_tasks_that_hold_several_ranks_is_no_rank() -> None:
    lines = [f"{n // 4}: [rank{n}]: step 1" for n in range(8)] + ["0: launcher line", "1: launcher line"]
    got = peel_file(lines)
    assert [g.identity.rank for g in got] == [*range(8), None, None]
    assert [g.identity.label for g in got[-2:]] == ["0", "1"]


def test_processes_of_one_task_show_that_it_is_no_rank() -> None:
    lines = [f"{n // 2}: gpu-a:{100 + n}:{100 + n} [{n % 2}] NCCL INFO cudaDriverVersion 12040" for n in range(4)]
    assert {g.identity.rank for g in peel_file(lines)} == {None}


def test_local_ranks_behind_a_task_show_that_it_is_no_rank() -> None:
    lines = [f"{n % 2}: [default{n // 2}]:step {n}" for n in range(8)]
    assert {(g.identity.rank, g.identity.local_rank) for g in peel_file(lines)} == {(None, n) for n in range(4)}
    assert {g.identity.rank for g in peel_file([f"{n % 2}: [default0]:step {n}" for n in range(8)])} == {0, 1}


def test_the_inner_of_two_rank_prefixes_is_the_global_one() -> None:
    lines = ["[rank0]:[titan] loading", "[rank0]:[rank8]: Traceback (most recent call last):", "[rank1]:[rank9]: x"]
    assert [(g.text, g.identity.rank, g.identity.local_rank) for g in peel_file(lines)] == [
        ("[titan] loading", None, 0),
        ("Traceback (most recent call last):", 8, 0),
        ("x", 9, 1),
    ]
    assert peel("[rank0]:[rank0]: x").identity == Identity(rank=0)


def test_labels_that_count_from_zero_may_be_ranks() -> None:
    lines, _ = voted_lines("trainer-{n}  | ")
    assert {g.identity.rank_guess for g in peel_file(lines)} == {0, 1, 2, 3}
    shifted = [line.replace("trainer-0", "trainer-4") for line in lines]
    assert {g.identity.rank_guess for g in peel_file(shifted)} == {None}
    contradicted = [f"trainer-{n % 2}  | [rank{n}]: x" for n in (0, 1, 2, 3, 0, 1)]
    assert {g.identity.rank_guess for g in peel_file(contradicted)} == {None}


@pytest.mark.parametrize(
    ("text", "payload", "identity", "t"),
    [
        (
            '{"log":"[rank1]: x\\n","stream":"stderr","time":"2026-11-29T22:53:51.188Z"}',
            "x",
            Identity(rank=1, stream="stderr"),
            1795992831.188,
        ),
        (
            '{"textPayload":"x","timestamp":"2026-11-29T22:53:51Z","resource":{"labels":{"pod_name":"w-1"}}}',
            "x",
            Identity(label="w-1"),
            1795992831.0,
        ),
        (
            '{"@timestamp":1795992831188,"message":"x","kubernetes":{"host":"gpu-a","labels":{"rank":"2"}}}',
            "x",
            Identity(rank=2, host="gpu-a"),
            1795992831.188,
        ),
        (
            '{"MESSAGE":"\\u001b[31mx\\u001b[0m","__REALTIME_TIMESTAMP":"1795992831188000","_HOSTNAME":"a","_PID":"7"}',
            "x",
            Identity(host="a", pid=7),
            1795992831.188,
        ),
    ],
)
def test_json_records_give_line_writer_and_time(text: str, payload: str, identity: Identity, t: float) -> None:
    got = peel(text)
    assert (got.text, got.identity) == (payload, identity)
    assert got.t == pytest.approx(t)


def test_stamps_become_the_local_time_of_the_log() -> None:
    assert peel("2026-11-29T22:51:25.5Z x").t == 1795992685.5
    assert peel("2026-11-29T23:51:25.5+01:00 x").t == 1795992685.5
    assert peel("2026-11-29T22:51:25.5Z x", hints=Hints(tz="Europe/Berlin")).t == 1795992685.5 + 3600
    assert peel("2026-07-29T22:51:25Z x", hints=Hints(tz="Europe/Berlin")).t == 1785365485 + 7200
    assert peel("Nov 29 22:51:25 a b[1]: x", hints=Hints(year=2026)).t == 1795992685
    assert peel("2026-11-29T22:51:25Z [pod/a/b] 2026-11-29T00:00:00Z x").t == 1795992685
    assert peel("2026-02-31T22:51:25Z x").t is None
    with pytest.raises(UsageError, match="--tz Mars"):
        peel("x", hints=Hints(tz="Mars/Base"))


def test_a_stamp_before_log_lines_is_a_wrapper() -> None:
    lines = [" 2025-02-18 04:44 [rank3]:[E218 04:54:10.069451811 a.cpp:1] x", " 2025-02-18 04:44 iter 3"] * 3
    assert {g.text for g in peel_file(lines)} == {"[E218 04:54:10.069451811 a.cpp:1] x", "iter 3"}


def test_a_record_of_the_application_keeps_its_text_and_gives_its_time() -> None:
    for text, t in (
        ('{"time": "2026-11-29T22:51:25.5", "step": 3, "loss": 2.5}', 1795992685.5),
        ('{"step": 3, "ts": 1795992685.5}', 1795992685.5),
        ('{"step": 3, "time": 0.36}', None),
    ):
        assert (peel(text).text, peel(text).t) == (text, t)


def test_a_split_record_is_partial() -> None:
    assert peel("2026-11-29T22:51:25Z stdout P half").partial
    assert not peel("2026-11-29T22:51:25Z stdout F whole").partial


def test_escapes_go_and_lone_ones_stay() -> None:
    assert peel("\x1b[36m(Foo pid=1)\x1b[0m \x1b[1;31mred\x1b[K\x1b[0m").text == "red"
    assert strip_escapes("\x1b]0;title\x07a\x1b(Bb") == "ab"
    assert strip_escapes("key \x1b bytes") == "key \x1b bytes"


@pytest.mark.parametrize("esc", ["", "^[", "\\x1b", "\\033", "\\u001b", "#033", "\ufffd", "\u241b"])
def test_colours_without_esc_go_where_a_line_begins_and_ends_one(esc: str) -> None:
    lines = [f"{esc}[36m(Foo pid=1){esc}[0m INFO x[3m]", f"{esc}[36m(Foo pid=1){esc}[0m [rank2]: y"]
    assert [g.text for g in peel_file(lines)] == ["INFO x[3m]".replace("[3m", ""), "y"]
    assert peel_file(["size [3m] of [2m]"])[0].text == "size [3m] of [2m]"


def test_every_form_of_the_grammar_is_tried_here() -> None:
    lines = [prefix + "x" for prefix, _ in CERTAIN.values()]
    lines += [form.format(n=1) + "x" for form, _ in VOTED.values()]
    lines += ["[rank 1] x", "[RANK 1] x", "rank1: x", "(raylet) x", "2026-11-29T22:51:25Z 00O x"]
    lines += ["[2026-11-29T22:51:25Z] ab12cd34 || x", "Nov 29 22:51:25 x", "2026-11-29 22:51:25 x"]
    for form in (*forms("certain"), *forms("voted")):
        assert any(form.match(line) for line in lines), form.name


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_no_text_breaks_the_peeler(text: str) -> None:
    line = text.replace("\n", " ")
    assert peel(line).text is not None
    assert outline([[line, line, line]]).lines


def test_a_sample_sees_the_end_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("plain start\n" * 20000 + "".join(f"{n % 4}: [rank{n % 4}]: x\n" for n in range(5000)))
    taken = take(path, "plain", path.stat().st_size)
    assert outline(taken.places).layers == ["srun_label", "torch_rank"]
