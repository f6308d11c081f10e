"""What torch's own checks say about ranks that must agree."""

import pytest
from failure_lines import parse

TENSOR = (
    "TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false "
    "(default), pinned_memory=false (default), memory_format=(nullopt))"
)


def print_of(op: str, shape: str | None, seq: int | None = 7, dtype: str = "Float") -> str:
    comma = ", " if shape is not None else ""  # torch has none there, either
    head = f"SequenceNumber={seq}{comma}" if seq is not None else ""
    tail = f", TensorShape=[{shape}], TensorDtypes={dtype}, TensorDeviceTypes={TENSOR}" if shape is not None else ""
    return f"CollectiveFingerPrint({head}OpType={op}{tail})"


def raised(mine: str, theirs: str, aspects: str = "") -> str:
    text = (
        f"Detected mismatch between collectives on ranks. Rank 0 is running collective: {mine}, but Rank 2 is "
        f"running collective: {theirs}.{aspects}"
    )
    return (
        f'[rank4]: Traceback (most recent call last):\n[rank4]:   File "/srv/t.py", line 4, in f\n[rank4]: '
        f"RuntimeError: {text}"
    )


CASES = [
    (("ALLREDUCE", "16"), ("ALLREDUCE", "12"), [("shape", "16", "12")]),
    (("ALLREDUCE", "4, 5"), ("BROADCAST", "4, 5"), [("op", "ALLREDUCE", "BROADCAST")]),
    (("ALLREDUCE", "16"), ("ALLREDUCE", "16", 8), [("sequence", "7", "8")]),
    (("ALLREDUCE", "16"), ("ALLREDUCE", "16", 7, "BFloat16"), [("dtype", "Float", "BFloat16")]),
    (("BARRIER", None), ("ALLREDUCE", "1"), [("op", "BARRIER", "ALLREDUCE")]),
    (("ALLREDUCE", "16", None), ("ALLREDUCE", "12", None), [("shape", "16", "12")]),
]


@pytest.mark.parametrize(("mine", "theirs", "expected"), CASES)
def test_each_differing_aspect_of_two_fingerprints_is_a_row(mine, theirs, expected):
    rows = parse(
        raised(print_of(*mine), print_of(*theirs), "Collectives differ in the following aspects: \t Op type: Avs B")
    )
    assert rows.of("mismatches", "aspect", "mine", "theirs") == expected
    row = rows.tables["mismatches"][0]
    assert (row["rank"], row["other_rank"], row["logged_seq"]) == (4, 2, mine[2] if len(mine) > 2 else 7)
    assert rows.one("exceptions")["category"] == "mismatch"


def test_a_fingerprint_is_an_issued_collective():
    rows = parse(raised(print_of("_REDUCE_SCATTER_BASE", "4, 5", dtype="BFloat16"), print_of("ALLREDUCE", "3")))
    row = rows.one("collectives")
    assert (row["source"], row["op"], row["dtype"], row["count"], row["bytes"]) == (
        "fingerprint",
        "reducescatter",
        "bfloat16",
        20,
        40,
    )
    assert (row["rank"], row["comm_rank"], row["state"], row["logged_seq"]) == (4, 0, "issued", 7)


def test_up_to_1_12_only_one_side_is_told():
    text = (
        f"Detected mismatch between collectives on ranks. Rank 3 is running inconsistent collective: "
        f"{print_of('ALLREDUCE', '16', None)}"
    )
    row = parse(f"RuntimeError: {text}").one("mismatches")
    assert (row["aspect"], row["op"], row["rank"]) == ("order", "allreduce", 3)


PARAMS = [
    (
        "[1]: params[3] in this process with sizes [24, 16] appears not to match sizes of the same param in process 0.",
        "params[3] sizes [24, 16]",
        None,
        0,
    ),
    (
        "[1]: params[3] in this process with strides [16, 1] appears not to match strides of the same param in "
        "process 0.",
        "params[3] strides [16, 1]",
        None,
        0,
    ),
    (
        "replicas[0][3] in this process with sizes [24] appears not to match sizes of the same param in process 0.",
        "params[3] sizes [24]",
        None,
        0,
    ),
    (
        "DDP expects same model across all ranks, but Rank 1 has 51 params, while rank 2 has inconsistent 50 params.",
        "51 params",
        "50 params",
        2,
    ),
]


@pytest.mark.parametrize(("text", "mine", "theirs", "other"), PARAMS)
def test_parameters_that_differ(text, mine, theirs, other):
    rows = parse(f"[rank1]: RuntimeError: {text}")
    assert rows.of("mismatches", "aspect", "mine", "theirs", "other_rank", "rank") == [
        ("params", mine, theirs, other, 1)
    ]
    assert rows.one("exceptions")["category"] == "ddp-params"


def test_sizes_that_gloo_finds_different():
    text = (
        "[enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 8 vs 4"
    )
    for tail in (
        "",
        ". Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?",
    ):
        rows = parse(f"terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  {text}{tail}")
        assert rows.of("mismatches", "aspect", "mine", "theirs") == [("shape", "4 bytes", "8 bytes")]


def test_the_analysers_report_names_culprits():
    rows = parse(
        "Collective 57 at entry 56 errors\ngroup info: 3:mesh_tp\ncollective: nccl:all_gather_into_tensor\n"
        "missing ranks: {5, 6}\n"
        "error msg: Culprit rank 2; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected input sizes: '[[2, 3]]' does "
        "not match "
        "found input sizes: '[[9]]', Culprit rank 4; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: "
        "'all_gather' does not match found collective type: 'all_reduce', Culprit rank 7; Error type: UNDECIDED\n"
    )
    assert rows.of("mismatches", "rank", "aspect", "mine", "theirs", "op", "logged_seq") == [
        (None, "missing", "5, 6", None, "allgather", 57),
        (2, "shape", "[[9]]", "[[2, 3]]", "allgather", 57),
        (4, "op", "all_reduce", "all_gather", "allgather", 57),
        (7, "order", None, None, "allgather", 57),
    ]


@pytest.mark.parametrize(
    "head",
    [
        "Not all ranks joining collective 57 at entry 56",
        "Not all ranks joining collective, sequence number: 57",
        "Collective sequence number: 57 has errors",
        "Input/output mismatch in the collective sequence number: 57",
    ],
)
def test_the_analysers_heads_by_version(head):
    rows = parse(f"{head}\ngroup info: 0:default_pg\ncollective: nccl:all_reduce\nmissing ranks: {{3}}")
    assert rows.of("mismatches", "aspect", "mine", "logged_seq", "op") == [("missing", "3", 57, "allreduce")]
