"""What is handed over: kinds by content, runs and writers by paths, bad input named in one line."""

import gzip
import io
import json
import os
import pickle
import sys
from pathlib import Path

import pytest

from replay.errors import InputError, UsageError
from replay.sources.discover import discover
from replay.sources.model import Hints, Inventory, SourceFile
from replay.sources.read import read_batches

CASES = Path(__file__).parent.parent.parent / "shared" / "cases"
STAMP = "2026-11-29 22:51:25"


def tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def look(root: Path, hints: Hints | None = None) -> dict[str, SourceFile]:
    return {f.path: f for f in discover([str(root)], hints or Hints()).files}


def keys(root: Path) -> dict[str, str]:
    return {path: f.run_key for path, f in look(root).items()}


def log(*ranks: int) -> str:
    return "".join(f"[rank{r}]: I1129 22:51:29.204000 1585{r} torch/a.py:1] text {r}\n" for r in ranks)


# ---- bad input


@pytest.mark.parametrize(
    ("files", "named", "says"),
    [
        ({}, [], "no logs were named"),
        ({}, ["nowhere"], "nowhere: no such file or folder"),
        ({}, ["*.log"], r"\*.log: no file matches this pattern"),
        ({}, ["."], "there is no file in it"),
        ({"a.log": ""}, ["a.log"], "a.log: it is empty"),
        ({"a.log": "", "b.log": ""}, ["."], "all its files are empty"),
        ({"a.bin": b"\x7fELF" + bytes(range(200)) * 9}, ["a.bin"], "is a program"),
        ({"a.log": b"\xff\xfeT\x00e\x00x\x00t\x00"}, ["a.log"], "UTF-16"),
        ({"x/train.py": "import torch\nfrom a import b\n", "x/c.yaml": "lr: 1\n"}, ["x"], "only code and settings"),
    ],
)
def test_bad_input_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str | bytes], named: list[str], says: str
) -> None:
    monkeypatch.chdir(tree(tmp_path, files))
    with pytest.raises(InputError, match=says) as caught:
        discover(named, Hints())
    assert "\n" not in str(caught.value)


def test_links_are_not_followed_out_and_not_twice(tmp_path: Path) -> None:
    tree(tmp_path, {"out/secret.log": "x\n", "logs/a/r.log": "x\n"})
    logs = tmp_path / "logs"
    (logs / "loop").symlink_to(logs)
    (logs / "away").symlink_to(tmp_path / "out")
    (logs / "away.log").symlink_to(tmp_path / "out" / "secret.log")
    (logs / "again").symlink_to(logs / "a")
    (logs / "broken.log").symlink_to(logs / "none")
    os.link(logs / "a" / "r.log", logs / "hard.log")
    found = discover([str(logs)], Hints())
    assert [f.path for f in found.files] == ["hard.log"]
    assert sorted((p.kind, p.text.split(":")[0]) for p in found.problems) == [
        ("loop", "loop"),
        ("unreadable", "away"),
        ("unreadable", "away.log"),
        ("unreadable", "broken.log"),
    ]
    assert [f.path for f in discover([str(logs / "loop")], Hints()).files] == ["hard.log"]


def test_a_file_without_permission_is_a_problem_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, {"a.log": "x\n", "b.log": "y\n"})
    opened = Path.open

    def refuse(self: Path, *args: object, **kwargs: object) -> object:
        if self.name == "a.log":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **kwargs)  # type: ignore[call-overload]  # passes on whatever it was given

    monkeypatch.setattr(Path, "open", refuse)
    found = discover([str(tmp_path)], Hints())
    assert [(f.path, f.kind) for f in found.files] == [("a.log", "unreadable"), ("b.log", "text")]
    assert [p.kind for p in found.problems] == ["permission"]


def test_a_pipe_in_a_folder_is_not_opened(tmp_path: Path) -> None:
    tree(tmp_path, {"a.log": "x\n"})
    os.mkfifo(tmp_path / "pipe")
    found = discover([str(tmp_path)], Hints())
    assert [f.path for f in found.files] == ["a.log"]
    assert found.problems[0].kind == "unreadable"


def test_standard_input_is_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log(0, 1).encode())))
    found = discover(["-"], Hints())
    (file,) = found.files
    assert (found.root, file.path, file.kind) == (None, "<stdin>", "text")
    assert file.abspath is not None
    assert file.abspath.stat().st_mode & 0o077 == 0
    assert [line.text[:5] for batch in read_batches(file, Hints()) for line in batch] == ["I1129", "I1129"]


# ---- order and names


def test_paths_are_relative_to_what_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree(tmp_path, {"logs/b.log": "x\n", "logs/a.log": "y\n", "other/c.log": "z\n"}))

    def paths(found: Inventory) -> list[str]:
        return [f.path for f in found.files]

    assert paths(discover(["logs"], Hints())) == ["a.log", "b.log"]
    assert paths(discover(["logs/a.log"], Hints())) == ["a.log"]
    assert paths(discover(["other", "logs/*.log"], Hints())) == ["logs/a.log", "logs/b.log", "other/c.log"]
    assert [f.file_id for f in discover(["logs", "logs/a.log"], Hints()).files] == [1, 2]


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    tree(tmp_path, {"a.log": "one\n", "b.log": "one\n", "c.log": "two\n"})
    files = look(tmp_path)
    assert files["a.log"].digest == files["b.log"].digest != files["c.log"].digest


# ---- kinds


def test_kinds_come_from_the_content(tmp_path: Path) -> None:
    record = b"\x80\x02" + pickle.dumps({"version": "2.1", "pg_config": {}, "entries": []}, protocol=2)[2:]
    trace = 'V1129 22:52:20.963000 17330 torch/_dynamo/utils.py:2350] {"chromium_event": {}, "rank": 0}\n\t{\n\t}\n'
    tree(
        tmp_path,
        {
            "dump.bin": record,
            "dump_json.txt": '{"entries":[],"pg_config":{},"version":"2.1"}',
            "repr.json": "b'" + '{"entries":[],"pg_config":{},"version":"2.1"}' + "'",
            "trace.txt": trace * 3,
            "trace.gz": gzip.compress(trace.encode() * 3),
            "err.json": json.dumps({"message": {"message": "x", "extraInfo": {"timestamp": "1"}}}),
            "settings.json": '{"lr": 1,\n "steps": 2}',
            "metrics.jsonl": '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n',
            "docker.json": '{"log":"x\\n","stream":"stdout","time":"2026-11-29T22:51:25Z"}\n' * 2,
            "graph.txt": "class GraphModule(torch.nn.Module):\n    def forward(self):\n        return ()\n",
            "ir.txt": "op0: ExternKernelSchedulerNode(ExternKernelOut)\nop0.writes = []\n",
            "train.py": "import torch\nimport os\ndef main():\n    pass\n",
            "script": "#!/bin/sh\n#SBATCH -N 2\nsrun x\n",
            "log.py": log(0, 1),
            "zeros.log": bytes(5000) + b"text behind zeros of a rotated file\n",
            "image.log": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 30,
            "empty.log": "",
            "torch_compile_debug/run_2026_11_29_22_50_24_38-pid_77/torchdynamo/debug.log": "anything\n",
        },
    )
    kinds = {path: f.kind for path, f in look(tmp_path).items()}
    assert kinds == {
        "dump.bin": "flight-recorder",
        "dump_json.txt": "flight-recorder",
        "repr.json": "flight-recorder",
        "trace.txt": "trace",
        "trace.gz": "trace",
        "err.json": "error-json",
        "settings.json": "source",
        "metrics.jsonl": "text",
        "docker.json": "text",
        "graph.txt": "compile-debug",
        "ir.txt": "compile-debug",
        "train.py": "source",
        "script": "source",
        "log.py": "text",
        "zeros.log": "text",
        "image.log": "binary",
        "empty.log": "empty",
        "torch_compile_debug/run_2026_11_29_22_50_24_38-pid_77/torchdynamo/debug.log": "compile-debug",
    }


def test_a_cut_archive_in_a_folder_is_still_text(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{n} line\n" for n in range(9000)).encode())
    tree(tmp_path, {"a.log.gz": whole[:5000], "b.log.gz": whole[:12]})
    files = look(tmp_path)
    assert (files["a.log.gz"].kind, files["a.log.gz"].encoding) == ("text", "gz")
    assert files["b.log.gz"].kind == "unreadable"


# ---- writers


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("none_ab12cd_4/attempt_1/3/stderr.log", {"local_rank": 3, "stream": "stderr", "rank": None}),
        ("rank0.log", {"rank": 0}),
        ("rank_3.err", {"rank": 3, "stream": "stderr"}),
        ("stdout_rank-12.txt.gz", {"rank": 12, "stream": "stdout"}),
        ("rank0of8.log", {"rank": 0}),
        ("dedicated_log_torch_trace_rank_3_a1b2c3d4.log", {"rank": 3}),
        ("dedicated_log_torch_trace_a1b2c3d4.log", {"rank": None}),
        ("fr_trace_rank_11", {"rank": 11}),
        ("rank_5/stderr", {"rank": 5, "stream": "stderr"}),
        ("local_rank_2.log", {"local_rank": 2, "rank": None}),
        ("node_rank_1.log", {"rank": None, "label": "1"}),
        ("tp_rank3.log", {"rank": None, "label": "3"}),
        ("gpu-node-03/rank1.log", {"host": "gpu-node-03", "rank": 1}),
        ("node7.log", {"host": "node7", "rank": None}),
        ("node1_local_rank_2.log", {"host": "node1", "local_rank": 2}),
        ("nccl_debug.gpu-a.4242.log", {"host": "gpu-a", "pid": 4242}),
        ("nccl.x1000c0s0b0n0.77", {"host": "x1000c0s0b0n0", "pid": 77}),
        ("slurm-123_4.out", {"rank": None, "stream": None}),
        ("slurm-88412.out", {"rank": None, "label": None}),
        ("trainer-0.log", {"rank": None, "rank_guess": None, "label": "trainer-0"}),
        ("logs/run_2026_11_29_22_50_24_38-pid_77/a.log", {"pid": 77}),
        ("default_trainer-0_0a1b2c3d-1111-2222-3333-444455556666/main/0.log", {"label": "trainer-0"}),
        ("train.log.1", {"rank": None, "rank_guess": None}),
    ],
)
def test_names_tell_the_writer(tmp_path: Path, path: str, fields: dict[str, object]) -> None:
    content = f"{STAMP} hello\n".encode()
    tree(tmp_path, {path: gzip.compress(content) if path.endswith(".gz") else content})
    who = look(tmp_path)[path].identity
    assert {key: getattr(who, key) for key in fields} == fields


def test_the_attempt_is_kept_even_if_only_its_folder_was_named(tmp_path: Path) -> None:
    tree(tmp_path, {"none_ab12cd_4/attempt_2/1/stdout.log": f"{STAMP} hello\n"})
    for named in ("", "none_ab12cd_4/attempt_2", "none_ab12cd_4/attempt_2/1"):
        (file,) = discover([str(tmp_path / named)], Hints()).files
        assert (file.attempt, file.identity.local_rank) == (2, 1)


def test_numbers_of_names_are_ranks_only_if_the_contents_agree(tmp_path: Path) -> None:
    for name, content in {
        "guess": {"trainer-0.log": "x\n", "trainer-1.log": "x\n"},
        "sure": {"trainer-0.log": log(0), "trainer-1.log": log(1)},
        "nodes": {"trainer-0.log": log(0, 1), "trainer-1.log": log(2, 3)},
        "gap": {"trainer-1.log": "x\n", "trainer-2.log": "x\n"},
        "err": {"err.0": log(0), "err.1": log(1), "out.0": "x\n", "out.1": "x\n"},
        "operator": {"j-master-0.log": "x\n", "j-worker-0.log": "x\n", "j-worker-1.log": "x\n"},
    }.items():
        tree(tmp_path / name, dict(content))
    said = {
        name: [(f.identity.rank, f.identity.rank_guess) for f in look(tmp_path / name).values()]
        for name in ("guess", "sure", "nodes", "gap", "err", "operator")
    }
    assert said == {
        "guess": [(None, 0), (None, 1)],
        "sure": [(0, None), (1, None)],
        "nodes": [(None, None), (None, None)],
        "gap": [(None, None), (None, None)],
        "err": [(0, None), (1, None), (0, None), (1, None)],
        "operator": [(None, 0), (None, 1), (None, 2)],
    }


def test_ranks_that_repeat_over_nodes_are_local(tmp_path: Path) -> None:
    tree(tmp_path, {f"node{n}/rank{r}.log": "x\n" for n in (0, 1) for r in (0, 1)})
    who = [f.identity for f in look(tmp_path).values()]
    assert [(w.host, w.rank, w.local_rank) for w in who] == [
        ("node0", None, 0),
        ("node0", None, 1),
        ("node1", None, 0),
        ("node1", None, 1),
    ]


def test_a_host_named_by_the_lines_beats_the_alias_of_the_folder(tmp_path: Path) -> None:
    tree(tmp_path, {"node0/a.log": "gpu-a:1:1 [0] NCCL INFO x\n", "node1/a.log": "gpu-b:1:1 [0] NCCL INFO x\n"})
    assert [f.identity.host for f in look(tmp_path).values()] == ["gpu-a", "gpu-b"]


def test_the_user_knows_best(tmp_path: Path) -> None:
    tree(tmp_path, {"rank0-w7.log": "x\n", "other.log": "x\n"})
    files = look(tmp_path, Hints(rank_from=r"w(\d+)"))
    assert [f.identity.rank for f in files.values()] == [None, 7]
    for pattern, says in {"w(": "not a regular expression", "w": "needs a group", "(ran)k": "no rank"}.items():
        with pytest.raises(UsageError, match=says):
            look(tmp_path, Hints(rank_from=pattern))


# ---- runs


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a/rank0.log", "b/rank0.log"], ["a", "b"]),
        (["run1/none_ab12cd_4/attempt_0/0/stderr.log", "run2/none_zz12cd_4/attempt_0/0/stderr.log"], ["run1", "run2"]),
        (["eager/rank0.log", "compile/rank0.log"], ["compile", "eager"]),
        (["cold-start/rank0.log", "warm-start/rank0.log"], ["cold-start", "warm-start"]),
        (["good_run/x.log", "bad_run/x.log"], ["bad_run", "good_run"]),
        (["lr1e-3/x.log", "lr1e-4/x.log"], ["", ""]),
        (["seed1/x.log", "seed2/x.log"], ["seed1", "seed2"]),
        (["2026-11-29_10-00/x.log", "2026-11-30_10-00/x.log"], ["2026-11-29_10-00", "2026-11-30_10-00"]),
        (["1234567/x.log", "1234568/x.log"], ["1234567", "1234568"]),
        (["1/rank0.log", "2/rank0.log"], ["1", "2"]),
        (["logs/a/rank0.log", "logs/b/rank0.log", "trace/a/rank0.log", "trace/b/rank0.log"], ["a", "b", "a", "b"]),
        (["node0/x.log", "node1/x.log"], ["", ""]),
        (["gpu-node-03/x.log", "gpu-node-04/x.log"], ["", ""]),
        (["dgx01/x.log", "dgx02/x.log"], ["", ""]),
        (["0/stderr.log", "1/stderr.log"], ["", ""]),
        (["0/rank0.log", "1/rank1.log"], ["", ""]),
        (["rank0/x.log", "rank1/x.log"], ["", ""]),
        (["stdout/rank0.log", "stderr/rank0.log"], ["", ""]),
        (["nccl/rank0.log", "train_logs/rank0.log"], ["", ""]),
        (["none_ab12cd_4/attempt_0/0/stderr.log", "none_ab12cd_4/attempt_1/0/stderr.log"], ["", ""]),
        (["55_ab12cd_4/attempt_0/0/stderr.log", "55_zz12cd_4/attempt_0/0/stderr.log"], ["", ""]),
        (
            ["none_ab12cd_4/attempt_0/0/stderr.log", "none_zz12cd_4/attempt_0/0/stderr.log"],
            ["none_ab12cd_4", "none_zz12cd_4"],
        ),
        (["run1.log", "run2.log"], ["run1", "run2"]),
        (["eager_rank0.log", "compile_rank0.log"], ["compile", "eager"]),
        (["slurm-100.out", "slurm-101.out"], ["100", "101"]),
        (["slurm-100_0.out", "slurm-100_1.out"], ["100_0", "100_1"]),
        (["train.log", "nccl.log"], ["", ""]),
        (["rank0.log", "rank1.log", "console.log"], ["", "", ""]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and value else None,
)
def test_runs_of_one_folder_are_told_apart(tmp_path: Path, files: list[str], expected: list[str]) -> None:
    found = keys(tree(tmp_path, {f: f"{STAMP} hello {n}\n" for n, f in enumerate(files)}))
    assert [found[f] for f in sorted(files)] == expected


def test_who_says_how_paths_name_ranks_speaks_of_one_run(tmp_path: Path) -> None:
    named = ["run1/job7.machine0.part", "run2/job8.machine1.part", "run2/job8.machine2.part"]
    tree(tmp_path, dict.fromkeys(named, "step 1 loss 2.0\n"))
    assert len(set(keys(tmp_path).values())) == 3
    told = look(tmp_path, Hints(rank_from=r"machine(\d)"))
    assert {(f.run_key, f.identity.rank) for f in told.values()} == {("", 0), ("", 1), ("", 2)}
    overlapping = look(tree(tmp_path, {"run1/job7.machine1.part": "step 1\n"}), Hints(rank_from=r"machine(\d)"))
    assert {f.run_key.split("/")[0] for f in overlapping.values()} == {"run1", "run2"}


def test_contents_decide_where_names_do_not(tmp_path: Path) -> None:
    tree(tmp_path / "nodes", {"alice/x.log": log(0, 1), "bob/x.log": log(2, 3)})
    tree(tmp_path / "runs", {"alice/x.log": log(0, 1), "bob/y.log": log(0, 1)})
    tree(tmp_path / "hosts", {"alice/x.log": "alice:1:1 [0] NCCL INFO x\n", "bob/x.log": "bob:1:1 [0] NCCL INFO x\n"})
    tree(tmp_path / "array", {"slurm-1_0.out": log(0, 1), "slurm-1_1.out": log(2, 3)})
    assert set(keys(tmp_path / "nodes").values()) == {""}
    assert set(keys(tmp_path / "runs").values()) == {"alice", "bob"}
    assert set(keys(tmp_path / "hosts").values()) == {""}
    assert set(keys(tmp_path / "array").values()) == {""}
    assert [f.identity.host for f in look(tmp_path / "nodes").values()] == ["alice", "bob"]


# ---- copies


def stamped(n: int, rank: int) -> str:
    return f"2026-11-29 22:51:{n:02}.{rank}64 step {n}\n"


def test_a_console_that_tees_the_ranks_makes_their_files_copies(tmp_path: Path) -> None:
    ranks = {f"none_ab12cd_4/attempt_0/{r}/stdout.log": "".join(stamped(n, r) for n in range(9)) for r in (0, 1)}
    console = "".join(f"[default{r}]:{stamped(n, r)}" for n in range(9) for r in (0, 1)) + "torchrun: done\n"
    files = look(tree(tmp_path, {**ranks, "console.log": console}))
    assert {p: f.duplicate_of for p, f in files.items()} == {
        "console.log": None,
        **dict.fromkeys(ranks, files["console.log"].file_id),
    }


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("".join(stamped(n, 0) for n in range(8)), id="a line is missing"),
        pytest.param("".join(stamped(n, 0) for n in range(9)), id="the console does not say who wrote it"),
    ],
)
def test_what_the_other_file_does_not_hold_as_well_is_no_copy(tmp_path: Path, other: str) -> None:
    own = "".join(stamped(n, 0) for n in range(9)) + "rank 0 says more\n"
    files = look(tree(tmp_path, {"rank0.log": own, "console.log": other + "end\n"}))
    assert {f.duplicate_of for f in files.values()} == {None}


def test_a_console_without_labels_is_the_copy_of_the_files_of_the_ranks(tmp_path: Path) -> None:
    ranks = {f"rank{r}.log": "".join(stamped(n, r) for n in range(9)) for r in (0, 1)}
    console = "".join(stamped(n, r) for n in range(9) for r in (0, 1))
    files = look(tree(tmp_path, {**ranks, "console.log": console}))
    assert {p: f.duplicate_of for p, f in files.items()} == {
        **dict.fromkeys(ranks),
        "console.log": files["rank0.log"].file_id,
    }


@pytest.mark.parametrize("name", ["rank{r}.log", "none_ab12cd_4/attempt_0/{r}/stderr.log"])
def test_three_ranks_that_print_the_same_are_no_copies(tmp_path: Path, name: str) -> None:
    text = "".join(stamped(n, 0) for n in range(9))
    files = look(tree(tmp_path, {name.format(r=r): text for r in range(4)}))
    assert {f.duplicate_of for f in files.values()} == {None}


def test_equal_lines_of_two_ranks_are_no_copies(tmp_path: Path) -> None:
    files = look(
        tree(tmp_path, {"rank0.log": stamped(1, 1) * 5, "rank1.log": stamped(1, 1) * 5, "a.log": "x\n", "b.log": "x\n"})
    )
    assert {f.duplicate_of for f in files.values()} == {None}


def test_saved_twice_is_one_file(tmp_path: Path) -> None:
    text = "".join(stamped(n, 0) for n in range(9))
    files = look(tree(tmp_path / "copy", {"console.log": text, "saved.log": text}))
    assert files["saved.log"].duplicate_of == files["console.log"].file_id
    files = look(tree(tmp_path / "runs", {"run1.log": text, "run2.log": text}))
    assert {f.duplicate_of for f in files.values()} == {None}


def test_the_json_twin_of_a_flight_record_is_a_copy(tmp_path: Path) -> None:
    record = pickle.dumps({"version": "2.1", "pg_config": {}, "entries": []}, protocol=2)
    files = look(
        tree(tmp_path, {"fr_rank_0": record, "fr_rank_0.json": '{"entries":[],"pg_config":{}}', "nccl_trace_3": record})
    )
    assert files["fr_rank_0.json"].duplicate_of == files["fr_rank_0"].file_id
    assert files["nccl_trace_3"].identity.rank == 3


# ---- labelled runs


@pytest.mark.skipif(not CASES.is_dir(), reason="the labelled runs are not here")
def test_every_labelled_run_is_read_to_its_end() -> None:
    for case in sorted(p for p in CASES.iterdir() if p.is_dir()):
        found = discover([str(case / "logs")], Hints())
        assert found.problems == [], case.name
        for file in found.files:
            if file.kind in {"text", "trace"} and file.encoding == "plain":
                lines = [line for batch in read_batches(file, Hints()) for line in batch]
                assert len(lines) == (case / "logs" / file.path).read_bytes().count(b"\n") + (not lines[-1].whole)
