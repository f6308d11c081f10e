"""Guards, symbols, kernels and compile times: nested texts end as typed columns, in every format of torch's lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_lines import parse, v22, v213

from replay.parse.guard_expressions import parse_expression
from replay.parse.nested import parse_nested

PLACE = "  # return F.linear(input, self.weight)  # train/net.py:24 in forward (HINT: type Linear)"
TREE = [
    "GUARDS:",
    "",
    "TREE_GUARD_MANAGER:",
    "+- RootGuardManager",
    "| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None        # _dynamo/output_graph.py:1122 in init_ambient",
    "| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=1), "
    "type=<class 'torch.Tensor'>, tag_safe=(False, False)",
    "| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU, AutogradCPU), torch.bfloat16, device=None, "
    "requires_grad=True, size=[None, 8], stride=[8, 1])" + PLACE,
    "| | +- NO_TENSOR_ALIASING",
    "| +- GuardManager: source=L['self'], accessed_by=FrameLocalsGuardAccessor(key='self', framelocals_idx=0)",
    "| | +- DictGuardManager: source=L['self'].d, accessed_by=GetGenericDictGuardAccessor",
    "| | | +- KeyValueManager pair at index=0",
    "| | | | +- ValueManager: GuardManager: source=L['self'].d['p']",
    "| | | | | +- EQUALS_MATCH: L['self'].d['p'] == 2" + PLACE,
    "+- LAMBDA_GUARD: L['x'].size()[0] == L['y'].size()[0] and ((s0*s1)//2) >= 4" + PLACE,
    "",
    "Guard eval latency = 87.94 us",
]


def bare(texts: list[str]) -> list[str]:
    """TORCH_LOGS_FORMAT=short: continuation lines have no header."""
    return ["DEBUG:torch._dynamo.guards.__guards:" + texts[0], *texts[1:]]


@pytest.mark.parametrize("lines", [v213(TREE, "guards", "3/1"), bare(TREE)], ids=["glog", "short"])
def test_a_leaf_of_the_tree_is_a_row(lines: list[str]) -> None:
    rows = parse(lines)
    assert rows.counts.plain == 0
    default, tensor, equals, shape = rows["guards"]
    assert (default["guard_type"], default["kind"], default["depth"]) == ("DEFAULT_DEVICE", "global-state", 1)
    assert "user_file" not in default
    named = {k: v for k, v in tensor.items() if k not in {"line_no", "t_lo", "compile_id", "expression"}}
    assert named == {
        "nth": 1,
        "depth": 2,
        "guard_type": "TENSOR_MATCH",
        "source": "L['x']",
        "accessor": "FrameLocalsGuardAccessor(key='x', framelocals_idx=1)",
        "kind": "tensor",
        "dtype": "bfloat16",
        "shape": "[None, 8]",
        "stride": "[8, 1]",
        "requires_grad": True,
        "dispatch_keys": "CPU, AutogradCPU",
        "user_file": "train/net.py",
        "user_line": 24,
        "user_fn": "forward",
    }
    assert tensor["expression"].endswith("stride=[8, 1])")
    assert (equals["source"], equals["expected"], equals["depth"]) == ("L['self'].d['p']", "2", 5)
    assert shape["symbols"] == "L['x'].size()[0];L['y'].size()[0];s0;s1"
    assert shape["kind"] == "shape-env"


def test_a_list_of_guards_up_to_2_3() -> None:
    texts = ["GUARDS:", "hasattr(L['x'], '_dynamo_dynamic_indices') == False", "___check_type_id(L['n'], 9412)" + PLACE]
    rows = parse(v22(texts, "guards", "0/0"))
    first, second = rows["guards"]
    assert (first["kind"], first["source"], first["expected"]) == ("hasattr", "L['x']", "False")
    assert (second["kind"], second["source"], second["user_line"]) == ("type-id", "L['n']", 24)
    assert rows.kinds == ["parsed", "continuation", "continuation"]


def test_verbose_guards_are_blocks() -> None:
    block = [
        """Name: "L['x']\"""",
        "    Source: local",
        "    Create Function: TENSOR_MATCH",
        "    Guard Types: ['TENSOR_MATCH']",
        "    Code List: [\"hasattr(L['x'], '_dynamo_dynamic_indices') == False\"]",
        "    Object Weakref: <weakref at 0x7f; to 'Tensor' at 0x7f>",
        "    Guarded Class Weakref: <weakref at 0x7f; to 'type' at 0x5>",
    ]
    rows = parse(v22(["GUARDS:", *block, *block], "guards", "0/0"))
    assert [(g["guard_type"], g["source"], g["kind"]) for g in rows["guards"]] == [
        ("TENSOR_MATCH", "L['x']", "tensor")
    ] * 2
    old = ["GUARDS:", " local 'x' TENSOR_MATCH", " {", "  'guard_types': ['TENSOR_MATCH'],", "  'code': None", " }"]
    rows = parse(bare(old))
    assert [(g["guard_type"], g["source"]) for g in rows["guards"]] == [("TENSOR_MATCH", "x")]
    assert rows.counts.plain == 0


DYNAMIC = [
    (
        "create_symbol s77 = 6 for L['x'].size()[0] [2, int_oo] return x  # tmp/net.py:25 in f (b.py:4 in <lambda>),"
        ' for more info run with TORCHDYNAMO_EXTENDED_DEBUG_CREATE_SYMBOL="s77"',
        {
            "event": "create",
            "symbol": "s77",
            "value": "6",
            "source": "L['x'].size()[0]",
            "low": "2",
            "high": "int_oo",
            "user_file": "tmp/net.py",
            "user_line": 25,
            "user_fn": "f",
        },
    ),
    (
        "create_symbol s0 = 4 for L['x'].size()[0] [2, 9223372036854775806] at net.py:5 in f (b.py:4 in g)",
        {
            "event": "create",
            "symbol": "s0",
            "value": "4",
            "source": "L['x'].size()[0]",
            "low": "2",
            "high": "9223372036854775806",
            "user_file": "net.py",
            "user_line": 5,
            "user_fn": "f",
        },
    ),
    (
        "eval Eq(Mod(s77, s27//2), 0) [guard added] (_inductor/p.py:8 in g), for more info run with X",
        {"event": "guard", "expression": "Eq(Mod(s77, s27//2), 0)", "symbols": "s77;s27"},
    ),
    (
        "set_replacement s0 = 8 (solve) VR[8, 8]",
        {"event": "replace", "symbol": "s0", "value": "8", "low": "8", "high": "8"},
    ),
    (
        "runtime_assert u0 >= 0 [guard added] (_ops.py:875 in __call__)",
        {"event": "assert", "expression": "u0 >= 0", "symbols": "u0"},
    ),
    (
        "create_unbacked_symint u0 [-int_oo, int_oo] (_subclasses/fake_impls.py:1233 in local_scalar_dense)",
        {"event": "unbacked", "symbol": "u0", "low": "-int_oo", "high": "int_oo"},
    ),
    ("constrain_symbol_range s0 [2, 10]", {"event": "range", "symbol": "s0", "low": "2", "high": "10"}),
    (
        "eval s0 >= 2 == True [statically known]",
        {"event": "static", "expression": "s0 >= 2", "value": "True", "symbols": "s0"},
    ),
]


@pytest.mark.parametrize(("text", "expected"), DYNAMIC)
def test_what_is_said_of_symbols(text: str, expected: dict[str, object]) -> None:
    (row,) = parse(v213([text], level="I"))["symbols"]
    assert {k: v for k, v in row.items() if k not in {"line_no", "t_lo", "compile_id"}} == expected


def test_the_scheduler_before_and_after_fusing() -> None:
    pre = [
        "BEFORE FUSION",
        "op0: SchedulerNode(ComputedBuffer)",
        "op0.writes = [MemoryDep('buf0', c0)]",
        "    buf0.x = 1",
    ]
    rounds = [
        "===== attempting fusion (1/10): 5 nodes =====",
        "completed fusion round (1/10): fused 5 nodes into 4 nodes",
    ]
    post = ["AFTER FUSION", "op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)"]
    rows = parse(v213(pre, "ir_pre_fusion") + v213(rounds, "fusion", ms=101) + v213(post, "ir_post_fusion", ms=102))
    assert [(k["name"], k["language"], k["type"], k["fused"]) for k in rows["kernels"]] == [
        ("op0", "pre-fusion", "SchedulerNode", 1),
        ("op0_op1", "post-fusion", "FusedSchedulerNode", 2),
    ]
    (fused,) = rows["fusion_rounds"]
    assert (fused["round"], fused["nodes_before"], fused["nodes_after"]) == (1, 5, 4)


CODE = [
    "Output code: ",
    "# AOT ID: ['0_forward']",
    "import torch",
    "aten = torch.ops.aten",
    "",
    "# Topologically Sorted Source Nodes: [y, z], Original ATen: [aten.relu, aten.add]",
    "triton_poi_fused_relu_0 = async_compile.triton('triton_poi_fused_relu_0', '''",
    "import triton",
    "@triton.jit",
    "''', device_str='cuda')",
    "cpp_fused_sum_1 = async_compile.cpp_pybinding(['float*'], r'''",
    "#include <torch/csrc/inductor/cpp_prefix.h>",
    "''')",
    "def call(args):",
    "    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]",
    "    extern_kernels.addmm(primals_2, primals_3, out=buf0)",
    "    # Topologically Sorted Source Nodes: [s], Original ATen: [aten.sum]",
    "    cpp_fused_sum_1(buf0)",
    "    return (buf0, )",
]


@pytest.mark.parametrize(
    "lines",
    [v213(CODE, "output_code"), ["DEBUG:torch._inductor.graph.__output_code:" + CODE[0], *CODE[1:]]],
    ids=["glog", "short"],
)
def test_kernels_of_generated_code(lines: list[str]) -> None:
    rows = parse([*lines, "step 3 loss 1.0"])
    assert [(k["name"], k["language"], k.get("sources"), k.get("ops")) for k in rows["kernels"]] == [
        ("triton_poi_fused_relu_0", "triton", "y, z", "aten.relu, aten.add"),
        ("cpp_fused_sum_1", "cpp_pybinding", "s", "aten.sum"),
        ("extern_kernels.addmm", "extern", "linear", "aten.t, aten.addmm"),
    ]
    assert rows["graphs"][0]["line_end"] == len(CODE)
    assert rows.kinds == ["parsed", *["continuation"] * (len(CODE) - 1), "parsed"]


@pytest.mark.parametrize(
    "table",
    [
        ["TorchDynamo compilation metrics:", "Function, Runtimes (s)", "_compile, 3.25", "inductor_compile, 1.5"],
        [
            "TorchDynamo compilation metrics:",
            "Function            Runtimes (s)",
            "----------------  --------------",
            "_compile                    3.25",
            "inductor_compile             1.5",
        ],
    ],
    ids=["plain", "tabulate"],
)
def test_the_table_of_compile_times(table: list[str]) -> None:
    rows = parse(v213(table, trace_id="", level="I"))
    assert [(t["name"], t["seconds"]) for t in rows["compile_times"]] == [("_compile", 3.25), ("inductor_compile", 1.5)]


def test_perf_hints_are_messages() -> None:
    rows = parse(v213(["Reduction over non-contiguous dims.", "Consider setting config.x"], "perf_hints", level="I"))
    assert rows["log_messages"][0]["text"] == "Reduction over non-contiguous dims. Consider setting config.x"


@given(st.text("()[]{}sx0123 ,.*/+-'\"=<>", max_size=60))
def test_any_text_is_an_expression_or_none(text: str) -> None:
    found = parse_expression(text)
    assert found is None or isinstance(found.symbols, tuple)


def test_deep_and_long_texts_are_not_parsed() -> None:
    assert parse_nested("expression", "(" * 5000 + "x" + ")" * 5000) is None
    assert parse_nested("expression", "x + " * 10_000 + "x") is None
    assert parse_expression("(" * 90 + "s0" + ")" * 90 + " == 3") is not None


IR = [
    "op0: SchedulerNode(ComputedBuffer)",
    "op0.writes = [MemoryDep('buf0', c0, {c0: 4})]",
    "",
    "",
    "op1_op2: FusedSchedulerNode(SchedulerNode,SchedulerNode)",
    "op1_op2.writes = []",
]


@pytest.mark.parametrize(
    ("name", "stage"), [("ir_pre_fusion.txt", "pre-fusion"), ("ir_post_fusion.txt", "post-fusion")]
)
def test_files_of_the_scheduler(name: str, stage: str) -> None:
    path = f"run_2026_11_30_04_45_25_368321-pid_1866/torchinductor/model__1_forward_5.2/{name}"
    rows = parse(IR, kind="compile-debug", path=path)
    assert [(k["name"], k["fused"], k["language"]) for k in rows["kernels"]] == [
        ("op0", 1, stage),
        ("op1_op2", 2, stage),
    ]
    assert rows.counts.lines == len(IR) == rows.counts.parsed + rows.counts.continuation


def test_guards_of_a_trace() -> None:
    record = (
        'V1130 10:20:30.100000 4321 torch/_dynamo/guards.py:77] {"dynamo_cpp_guards_str": {}, "rank": 1, '
        '"frame_id": 0, "frame_compile_id": 1, "attempt": 0, "has_payload": "0"}'
    )
    rows = parse([record, *("\t" + text for text in TREE)], kind="trace")
    assert [g["guard_type"] for g in rows["guards"]][:2] == ["DEFAULT_DEVICE", "TENSOR_MATCH"]
    assert {g["compile_id"] for g in rows["guards"]} == {"0/1"}
