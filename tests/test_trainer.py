"""The application's own lines: what grammars/trainer.lark and pairs.lark make of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.grammar.executor import shared
from replay.parse.blocks.figures import number, read, seconds, spelled
from replay.parse.pipeline import FileParser
from replay.sources.model import Hints, Identity, Line, SourceFile

EXECUTOR = shared()


class Rows:
    """A sink that keeps what it is given."""

    def __init__(self):
        self.writers, self.rows, self.classes = {}, [], []

    def writer(self, file, identity):
        return self.writers.setdefault(identity, len(self.writers))

    def line(self, line, writer_id, kind, form, t):
        self.classes.append(kind)

    def row(self, table, segment, **columns):
        self.rows.append((table, segment, columns))

    def of(self, table, *names):
        return [tuple(c.get(n) for n in names) for t, _, c in self.rows if t == table]


def parse(text):
    sink = Rows()
    parser = FileParser(SourceFile(0, "x.log", None, "text", "plain", 0, ""), sink, Hints(), EXECUTOR)
    parser.feed([Line(0, n, 0, line, line, Identity()) for n, line in enumerate(text.split("\n"), 1)])
    parser.close()
    return sink


STEPS = [
    ("step=4 loss=0.02 fwd_ms=0.3", 4, None, None, {"loss": 0.02, "fwd_ms": 0.3}),
    ("step 15 loss 2.60", 15, None, None, {"loss": 2.6}),
    ("step: 4 - loss: 0.1", 4, None, None, {"loss": 0.1}),
    ("Step 10/100 | loss 3.2 | lr 1e-4", 10, None, 100, {"loss": 3.2, "lr": 1e-4}),
    ("step 00000/02000 (0.00%) | loss: 11.020 | dt: 8123.10ms", 0, None, 2000, {"loss": 11.02, "dt_ms": 8123.1}),
    ("step    2 | loss 10.600 | 4.30s/it", 2, None, None, {"loss": 10.6, "s_per_it": 4.3}),
    ("iter 0 | loss 4.0085 | 36939 ms", 0, None, None, {"loss": 4.0085, "time_ms": 36939}),
    ("iter 10: loss 3.1, time 120.1ms, mfu 3%", 10, None, None, {"loss": 3.1, "time_ms": 120.1, "mfu": 3}),
    ("Epoch: [0]  [  10/1000]  eta: 0:01:00  loss: 6.9 (7.0)  data: 0.1", 10, 0, 1000, {"loss": 6.9, "data": 0.1}),
    (
        "Epoch: [0][  3/20]\tTime  0.360 ( 0.361)\tData  0.350 ( 0.350)\tLoss 1.25e+00",
        3,
        0,
        20,
        {"time": 0.36, "data": 0.35, "loss": 1.25},
    ),
    ("Epoch(train)  [1][ 50/100]  lr: 1.0e-04  loss: 2.3", 50, 1, 100, {"lr": 1e-4, "loss": 2.3}),
    ("train/step: 8, train/loss: 0.42", 8, None, None, {"train/loss": 0.42}),
    ('{"trainer/global_step": 8, "train/loss": 0.42}', 8, None, None, {"train/loss": 0.42}),
    ("epoch 3 | step 100 | loss 2.3", 100, 3, None, {"loss": 2.3}),
    ("Epoch 3/10, Step 5/100, Loss: 0.3", 5, 3, 100, {"loss": 0.3}),
    ("epoch=0 step=3 loss=nan", 3, 0, None, {"loss": math.nan}),
    ('{"step": 3, "loss": 2.5, "lr": 0.1}', 3, None, None, {"loss": 2.5, "lr": 0.1}),
    ("{'loss': 2.3, 'grad_norm': 1.2, 'epoch': 0.5}", None, 0.5, None, {"loss": 2.3, "grad_norm": 1.2}),
    (
        "step: 10  loss:  4.12  memory: 10.1GiB(12.3%)  tps: 1,234",
        10,
        None,
        None,
        {"loss": 4.12, "memory": 10.1, "tps": 1234},
    ),
    (
        "step=0 loss=0.8 grad_norm: fc1=0.4 gate=0.0",
        0,
        None,
        None,
        {"loss": 0.8, "grad_norm.fc1": 0.4, "grad_norm.gate": 0},
    ),
    (
        " iteration    1/  500 | consumed samples:    256 | elapsed time per iteration (ms): 91.4 | lm loss: 7.1E+00 |",
        1,
        None,
        500,
        {"consumed_samples": 256, "elapsed_time_per_iteration_ms": 91.4, "lm_loss": 7.1},
    ),
    (
        "Epoch 3:  45%|####   | 45/100 [00:10<00:12,  4.3it/s, v_num=0, train_loss=0.23]",
        45,
        3,
        100,
        {"it_per_s": 4.3, "v_num": 0, "train_loss": 0.23},
    ),
    (
        "Steps: 994/15000 [1:54:02<27:13:31,  4.11s/it, step_loss=0.194]",
        994,
        None,
        15000,
        {"s_per_it": 4.11, "step_loss": 0.194},
    ),
    ("Iter 100: train loss 2.3, val loss 2.5", 100, None, None, {"train_loss": 2.3, "val_loss": 2.5}),
    ("epoch 1, batch 20: loss = 0.3412", 20, 1, None, {"loss": 0.3412}),
    ("Train: 3 [ 100/1251 (  8%)]  Loss: 6.91 (6.92)  LR: 1.0e-05", 100, 3, 1251, {"loss": 6.91, "lr": 1e-5}),
    (
        "steps: 10 loss: 0.3 iter time (s): 1.2 samples/sec: 33.1",
        10,
        None,
        None,
        {"loss": 0.3, "iter_time_s": 1.2, "samples/sec": 33.1},
    ),
    ("1|25|Loss: 2.3: 100%|#####| 25/25 [00:10<00:00,  2.40it/s]", 25, None, 25, {"loss": 2.3, "it_per_s": 2.4}),
    ("rank:3 step:4 loss:0.31", 4, None, None, {"loss": 0.31}),
    ("45/100 [====>.....] - ETA: 3s - loss: 0.21", 45, None, 100, {"eta": 3, "loss": 0.21}),
]


@pytest.mark.parametrize(("line", "step", "epoch", "total", "figures"), STEPS, ids=[s[0][:40] for s in STEPS])
def test_a_counter_and_figures_are_a_step(line, step, epoch, total, figures):
    rows = parse(line)
    assert rows.of("step_lines", "step", "epoch", "total") == [(step, epoch, total)]
    told = {name: value for name, value in rows.of("metrics", "name", "value") if value is not None}
    assert told == pytest.approx(figures, nan_ok=True)
    assert rows.classes == ["parsed"]


def test_a_value_that_is_no_number_keeps_its_text():
    rows = parse("step=0 loss=0.03 out_dtype=torch.bfloat16 sample_ids=78e096343 batch=(16, 32)")
    assert rows.of("metrics", "name", "value", "text")[1:] == [
        ("out_dtype", None, "torch.bfloat16"),
        ("sample_ids", None, "78e096343"),
        ("batch", None, "(16, 32)"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "iterator failed after 18 tries",
        "  x = model(step=3, loss=2)",
        "warning: no gradient for score.weight, skipped in all_reduce",
        "ncclCommInitRank returned 5: invalid usage (run with NCCL_DEBUG=WARN for details)",
        "    return self._call_impl(*args, **kwargs)",
        "rank 2 failed to connect to rank 3",
        "# nThread 1 nGpus 1 minBytes 8 step: 2(factor) warmup iters: 5 iters: 100",
        "Collected 18 items at step boundaries",
        "If you already have done the above, then the distributed data parallel module wasn't able to",
    ],
)
def test_prose_and_code_are_no_metrics(line):
    rows = parse(line)
    assert rows.of("step_lines", "step") == rows.of("metrics", "name") == rows.of("activities", "kind") == []


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", []),
        ("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", []),
        ("You may want to set `NCCL_P2P_DISABLE=1`", []),
        ("set NCCL_P2P_DISABLE=1 to avoid hangs", []),
        ("Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace", []),
        ("set OMP_NUM_THREADS=4", [("OMP_NUM_THREADS", "4")]),
        ("Running with OMP_NUM_THREADS=4", [("OMP_NUM_THREADS", "4")]),
        ("env: NCCL_DEBUG=INFO OMP_NUM_THREADS=1", [("NCCL_DEBUG", "INFO"), ("OMP_NUM_THREADS", "1")]),
    ],
)
def test_what_is_advised_is_not_set(line, settings):
    assert parse(line).of("env", "name", "value") == settings


ACTIVITIES = [
    ("writing ckpt/step2_rank0.pt", "save", "begin", None, None),
    ("wrote ckpt/step2_rank0.pt in 2 ms", "save", "end", None, 0.002),
    ("saving checkpoint at step 3 to out/3.pt", "save", "begin", 3, None),
    ("Finished saving the checkpoint (or staging if async is enabled) in 3.20 seconds.", "save", "end", None, 3.2),
    ("running evaluation at step 3", "eval", "begin", 3, None),
    ("eval+save finished in 3.0 s", "eval", "end", None, 3.0),
    ("iterator exhausted after 18 batches, leaving epoch loop", "exhausted", "point", None, None),
    ("epoch 0 finished, 6 batches", "exhausted", "point", None, None),
    ("End of epoch 0 (6 steps), waiting for other ranks", "exhausted", "point", None, None),
    ("rank 1: all batches consumed", "exhausted", "point", None, None),
    ("dataloader is empty", "exhausted", "point", None, None),
    ("epoch=0 step=3 entering barrier", "barrier", "begin", 3, None),
    ("batches done, waiting at the barrier", "barrier", "begin", None, None),
    ("waiting for peers", "barrier", "begin", None, None),
    ("done", "train-end", "point", None, None),
    ("Training finished.", "train-end", "point", None, None),
    ("# Avg bus bandwidth    : 31.8814 ", "train-end", "point", None, None),
    ("`Trainer.fit` stopped: `max_epochs=3` reached.", "train-end", "point", None, None),
    ("Loading model weights from /x", "load", "begin", None, None),
    ("opening 80 shards", "data", "begin", None, None),
    ("tokenizing 100 documents", "preprocess", "begin", None, None),
    ("step=0 begin", "other", "begin", 0, None),
    ("step=0 forward done in 2.71 s", "other", "end", 0, 2.71),
    (
        "Tokenizing (num_proc=64):  90%|####| 405120/450211 [29:55<12:00, 46.09 examples/s]",
        "preprocess",
        "progress",
        405120,
        None,
    ),
    ("Loading weights: 100%|####| 408/408 [00:00<00:00, 5096.77it/s]", "load", "progress", 408, None),
    ("process group ready, world size 4", "init", "point", None, None),
]


@pytest.mark.parametrize(("line", "kind", "phase", "step", "duration"), ACTIVITIES, ids=[a[0][:40] for a in ACTIVITIES])
def test_what_the_trainer_says_it_does(line, kind, phase, step, duration):
    assert parse(line).of("activities", "kind", "phase", "step", "duration_s") == [(kind, phase, step, duration)]


def test_settings_versions_and_world_size():
    rows = parse(
        "init world=2 torch=2.13.0+cpu\nconfig seed=3 lr=0.003 dtype=torch.float32\n"
        "2026-11-30 00:29:16,261 INFO rank 5: world 8, tp 2 x dp 4\n"
        "Torch version: 2.6.0+cu124\nprocess group ready, world size 4"
    )
    assert rows.of("packages", "name", "version") == [("torch", "2.13.0+cpu"), ("torch", "2.6.0+cu124")]
    assert rows.of("env", "name", "value") == [
        ("world_size", "2"),
        ("seed", "3"),
        ("lr", "0.003"),
        ("dtype", "torch.float32"),
        ("world_size", "8"),
        ("world_size", "4"),
    ]


@pytest.mark.parametrize(
    "line", ["seed: 42", "Using seed 42", "Global seed set to 42", "config seed=42 lr=0.1", "step=1 seed=42 loss=2.0"]
)
def test_seeds_are_settings_however_they_are_said(line):
    assert ("seed", "42") in parse(line).of("env", "name", "value")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("loss is nan at step 33", "loss"),
        ("Step 33: NaN detected in gradients", "grad_norm"),
        ("Step 33: loss is NaN", "loss"),
    ],
)
def test_somebody_found_that_a_figure_is_no_number(line, name):
    (found,) = parse(line).of("metrics", "name", "step", "value")
    assert found[:2] == (name, 33)
    assert math.isnan(found[2])


def test_timers_belong_to_the_step_before():
    rows = parse("step=10, loss=2.0\ntime (ms) | fwd: 12.30 | bwd_allreduce: 33.2 | step: 3.20")
    assert rows.of("metrics", "step", "name", "value")[1:] == [
        (10, "fwd_ms", 12.3),
        (10, "bwd_allreduce_ms", 33.2),
        (10, "step_ms", 3.2),
    ]


def test_torch_tells_that_an_interpreter_ends():
    rows = parse("I1129 22:51:50.515000 15856 torch/_dynamo/utils.py:925] TorchDynamo compilation metrics:")
    assert rows.of("activities", "kind", "what") == [("other", "interpreter exit")]


def test_digests_outside_steps_are_texts_to_compare():
    rows = parse("init param checksum tok_embeddings=3f1a02c9 layers.0.wq=12345678")
    assert rows.of("metrics", "step", "name", "value", "text") == [
        (None, "checksum.tok_embeddings", None, "3f1a02c9"),
        (None, "checksum.layers.0.wq", None, "12345678"),
    ]


def test_sides_of_a_comparison_keep_their_label():
    rows = parse("reference: dtype=torch.float32 training=False\ncandidate: dtype=torch.float32 training=True")
    assert rows.of("env", "name", "value") == [
        ("reference.dtype", "torch.float32"),
        ("reference.training", "False"),
        ("candidate.dtype", "torch.float32"),
        ("candidate.training", "True"),
    ]


def test_collectives_that_the_application_announces():
    rows = parse("step=0 enter all_reduce group=dp\nstep=0 leave all_reduce group=dp\nstep=1 enter all-reduce group=tp")
    assert rows.of("collectives", "source", "comm", "op", "state") == [
        ("app", "dp", "allreduce", "completed"),
        ("app", "tp", "allreduce", "issued"),
    ]
    assert rows.of("step_lines", "step") == []


def test_memory_figures_are_in_mebibytes():
    assert parse("step=0 loss=1.0 rss_mb=366 mem=2.5GB").of("memory", "kind", "used_mb") == [
        ("rss", 366),
        ("cuda-allocated", 2560),
    ]


def test_each_redrawing_of_a_bar_counts():
    rows = parse("Steps:  1%|#| 1/100 [00:01<01:00, 1.0it/s]\rSteps:  2%|#| 2/100 [00:02<01:00, 1.0it/s]\r")
    assert rows.of("step_lines", "step") == [(1,), (2,)]


def test_a_record_without_step_takes_that_of_the_bar_above():
    rows = parse("  1%|          | 10/1000 [00:10<10:00,  1.0it/s]\n{'loss': 2.3, 'epoch': 0.01}")
    assert rows.of("step_lines", "step", "epoch") == [(10, None), (10, 0.01)]


HEADERS = [
    ("2026-11-29 22:51:45,119 | INFO | rank 0 | text", 0, 1796000000),
    ("[2026-11-29 22:51:45,119][train][INFO] - text", None, 1),
    ("2026-11-29 22:51:45.119 | INFO     | __main__:main:12 - text", None, 1),
    ("2026-11-29 22:51:45.119 [trainer rank=1] text", 1, 1),
    ("2026-11-30 00:25:34,245 INFO rank 1: text", 1, 1),
    ("11/29/2026 22:51:45 - INFO - __main__ - text", None, 1),
    ("[rank 3] text", 3, None),
    ("[Rank: 3] text", 3, None),
    ("Rank3 | text", 3, None),
    ("rank=3 text", 3, None),
    ("rank 13: text", 13, None),
    ("(rank 2) text", 2, None),
    ("[RANK 0] 2026-08-17 22:10:21,301 [INFO] text", 0, 1),
    ("INFO 06-03 09:30:00 model_runner.py:146] text", None, 1),
    ("[INFO|trainer.py:460] 2026-11-29 22:51:45,119 >> text", None, 1),
    ("INFO:root:text", None, None),
    ("I1129 22:51:45.119000 123 train.py:12] text", None, 1),
]


@pytest.mark.parametrize(("line", "rank", "stamp"), HEADERS, ids=[h[0][:40] for h in HEADERS])
def test_headers_of_ordinary_loggers(line, rank, stamp):
    rows = parse(line.replace("text", "step=4 loss=0.5"))
    (table, segment, columns) = rows.rows[0]
    assert (table, columns["step"], segment.text, segment.header) == ("step_lines", 4, "step=4 loss=0.5", "app")
    assert segment.identity.rank == rank
    assert (segment.t is None) == (stamp is None)


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-29 22:51:45,119 ERROR rank 2 failed to connect",
        "rank 3 died",
        "[PG 0 Rank 7] Process group",
        "waiting for rank 3",
    ],
)
def test_a_rank_that_is_talked_about_is_no_writer(line):
    sink = parse(line)
    assert [identity.rank for identity in sink.writers] == [None]


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ('{"step": 3, "rank": 1, "loss": 2.3}', 1),
        ("step     1 | rank 1 | loss 10.19 | gnorm 1.96", 1),
        ("step=3 rank=2 loss=2.3", 2),
        ("2026-11-29 22:51:45,119 INFO step=3 rank=2 loss=2.3", 2),
    ],
)
def test_a_record_may_name_its_writer(line, rank):
    sink = parse(line)
    assert [identity.rank for identity in sink.writers] == [rank]
    assert sink.of("step_lines", "step") in ([(3,)], [(1,)])
    assert "rank" not in [name for (name,) in sink.of("metrics", "name")]


@given(st.text(max_size=300))
def test_any_text_is_read(text):
    reading = read(EXECUTOR, text)
    assert all(f.name for f in reading.figures)


@given(
    st.integers(0, 10**9),
    st.dictionaries(
        st.from_regex(r"[a-z]{2,8}_[a-z]{1,5}", fullmatch=True), st.floats(allow_nan=False, width=32), max_size=6
    ),
    st.sampled_from(["=", ": "]),
    st.sampled_from([" ", ", ", " | ", "  "]),
)
def test_figures_come_back_whatever_stands_between(step, figures, sign, between):
    figures = {k: v for k, v in figures.items() if not {"step", "batch"} & set(k.split("_"))}
    figures["loss"] = 1.5
    text = between.join([f"step{sign}{step}", *(f"{name}{sign}{value!r}" for name, value in figures.items())])
    reading = read(EXECUTOR, text)
    assert reading.step == step
    assert {f.name: f.number for f in reading.figures} == figures


def test_numbers_names_and_durations():
    assert number("1,234.5") == 1234.5
    assert number("12.3%") == 12.3
    assert number("3f1a02c9") is None
    assert number("0:10:00") is None
    assert spelled("lm loss") == "lm_loss"
    assert spelled("NCCL_ALGO") == "NCCL_ALGO"
    assert (seconds("2", "ms"), seconds("3", "min"), seconds("5", "milliseconds")) == (0.002, 180, 0.005)
