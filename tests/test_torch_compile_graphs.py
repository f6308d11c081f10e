"""Graph texts: calls, collectives in order, and digests that equal graphs of two ranks share."""

from hypothesis import given
from hypothesis import strategies as st
from torch_lines import Rows, parse, v22, v213

from replay.parse.graph_text import read_graph

UUID = "26d31397_8806_4650_9d8c_b6130b39d72c"
HEAD = [
    "TRACED GRAPH",
    f" ===== __compiled_fn_1_{UUID} =====",
    " /opt/venv/lib/python3.11/site-packages/torch/fx/_lazy_graph_module.py class GraphModule(torch.nn.Module):",
]
BODY = [
    '    def forward(self, L_x_: "f32[8, 16][16, 1]cuda:1"):',
    "        l_x_ = L_x_",
    "",
    "        # File: /srv/job/net.py:17 in forward, code: return dist_sum(torch.relu(x) * 2)",
    '        relu: "f32[8, 16][16, 1]cuda:1" = torch.relu(l_x_);  l_x_ = None',
    '        mul: "f32[8, 16][16, 1]cuda:1" = relu * 2;  relu = None',
    "        all_reduce: \"f32[8, 16][16, 1]cuda:1\" = torch.ops._c10d_functional.all_reduce(mul, 'sum', '0')",
    '        out: "f32[8, 16][16, 1]cuda:1" = torch.ops._c10d_functional.wait_tensor(all_reduce);  all_reduce = None',
    '        total: "f32[][]cuda:1" = out.sum();  out = None',
    "        return (total,)",
    "",
]


def graphs(lines: list[str]) -> Rows:
    return parse(lines)


def test_dynamo_graph() -> None:
    rows = graphs([*v213(HEAD + BODY, "graph_code"), *v213(["next"], "", "0/0", "I", 200)])
    (graph,) = rows["graphs"]
    assert (graph["kind"], graph["name"], graph["nth"]) == ("dynamo", "__compiled_fn_1", 0)
    assert (graph["ops"], graph["collectives"], graph["collective_list"]) == (5, 1, "all_reduce")
    assert (graph["line_no"], graph["line_end"]) == (1, len(HEAD + BODY))
    assert [(op["op"], op.get("shape"), op["is_collective"]) for op in rows["graph_ops"]] == [
        ("torch.relu", "8, 16", False),
        ("*", "8, 16", False),
        ("all_reduce", "8, 16", True),
        ("wait_tensor", "8, 16", False),
        ("Tensor.sum", None, False),
    ]
    assert {op["graph_line"] for op in rows["graph_ops"]} == {1}
    assert {op["dtype"] for op in rows["graph_ops"]} == {"f32"}
    assert rows.counts.continuation == len(HEAD + BODY) - 1


def test_a_format_without_prefixes() -> None:
    lines = [f"DEBUG:torch._dynamo.output_graph.__graph_code:{HEAD[0]}", *HEAD[1:], *BODY, "the application"]
    rows = graphs(lines)
    (graph,) = rows["graphs"]
    assert (graph["name"], graph["ops"], graph["line_end"]) == ("__compiled_fn_1", 5, len(lines) - 1)
    assert rows.kinds == ["parsed"] + ["continuation"] * (len(lines) - 2) + ["plain"]


def test_a_line_of_somebody_else_in_between_does_not_cut_a_graph() -> None:
    lines = v213(HEAD + BODY, "graph_code")
    (graph,) = graphs([*lines[:6], "the application", *lines[6:]])["graphs"]
    assert graph["ops"] == 5


def test_kinds_by_name() -> None:
    names = {
        "Forward graph 0": ("aot_graphs", "forward"),
        "Backward graph 0": ("aot_graphs", "backward"),
        "Joint graph 0": ("aot_joint_graph", "joint"),
        "BEFORE PRE GRAD": ("pre_grad_graphs", "pre_grad"),
        "AFTER POST GRAD": ("post_grad_graphs", "post_grad"),
        "Compiled autograd graph": ("compiled_autograd", "compiled_autograd"),
    }
    for name, (artifact, kind) in names.items():
        (graph,) = graphs(v213(["TRACED GRAPH", f" ===== {name} =====", HEAD[2], *BODY], artifact))["graphs"]
        assert graph["kind"] == kind


def test_graphs_in_one_message_are_told_apart() -> None:
    rows = graphs(v213([*HEAD, *BODY, "TRACED GRAPH", HEAD[1], HEAD[2], *BODY], "graph_code"))
    assert [(graph["nth"], graph["line_no"]) for graph in rows["graphs"]] == [(0, 1), (1, len(HEAD + BODY) + 1)]
    assert len({graph["digest"] for graph in rows["graphs"]}) == 1


def test_2_1_notes_without_quotes() -> None:
    body = [
        "    def forward(self, primals_1: f32[4, 8], primals_2: f32[8]):",
        "        add: f32[4, 8] = torch.ops.aten.add.Tensor(primals_1, primals_2);  primals_1 = primals_2 = None",
    ]
    rows = graphs(v22(["TRACED GRAPH", " ===== Forward graph 2 =====", HEAD[2], *body], "aot_graphs"))
    assert [(op["op"], op["dtype"], op["shape"]) for op in rows["graph_ops"]] == [("aten.add.Tensor", "f32", "4, 8")]


def test_generated_code_counts_its_collectives_only() -> None:
    code = [
        "Output code: ",
        "import torch",
        "def call(args):",
        "    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)",
        "    torch.ops._c10d_functional.all_reduce_.default(buf0, 'sum', '0')",
        "    buf1 = torch.ops._c10d_functional.all_gather_into_tensor.default(buf0, 2, '0')",
        "    torch.ops._c10d_functional.wait_tensor.default(buf1)",
        "Output code written to: /tmp/torchinductor_me/ab/cab.py",
    ]
    rows = graphs(v213(code, "output_code"))
    (graph,) = rows["graphs"]
    assert (graph["kind"], graph["collective_list"]) == ("output_code", "all_reduce;all_gather_into_tensor")
    assert "ops" not in graph


def digest(lines: list[str]) -> str:
    return read_graph(tuple(lines)).digest


def test_what_differs_between_ranks_does_not_count() -> None:
    here = [*BODY, "        x = foo(140288101545552, 0x7f2f42df5bb0, s77, '3', '/srv/a/b.py')", f"        {UUID}"]
    there = [
        *(line.replace("cuda:1", "cuda:6").replace("/srv/job", "/home/other") for line in BODY),
        "        x = foo(140288101545999, 0x7f2f42df5cc0, s12, '4', '/home/u/a/b.py')",
        f"        {UUID.replace('b6', 'aa')}",
    ]
    assert digest(here) == digest(there)


def test_what_the_graphs_do_counts() -> None:
    variants = [
        [*BODY],
        [line.replace("relu", "gelu") for line in BODY],
        [line.replace("8, 16", "7, 16") for line in BODY],
        [line.replace("f32", "bf16") for line in BODY],
        [*BODY[:6], *BODY[7:]],
        [line.replace("'sum'", "'max'") for line in BODY],
    ]
    assert len({digest(lines) for lines in variants}) == len(variants)


@given(st.permutations(["s3", "s11", "u0"]))
def test_symbols_count_by_their_order(names: list[str]) -> None:
    text = "        a = torch.empty({0}, {1}, {0}, {2})"
    assert digest([text.format(*names)]) == digest([text.format("s0", "s1", "s2")])
    assert digest([text.format(*names)]) != digest([text.format("s0", "s0", "s2")])


def test_the_buckets_that_ddp_optimizer_splits_at() -> None:
    summary = [
        "",
        "DDPOptimizer used bucket cap 26214400 and created 2 buckets. Enable debug logs for detailed bucket info.",
    ]
    table = [
        "",
        "DDPOptimizer produced the following bucket assignments:",
        "┌─────────┬────────────┬─────────────────┐",
        "│   Index │   Size (b) │ Param Names     │",
        "├─────────┼────────────┼─────────────────┤",
        "│       0 │    1050624 │ L_net_3_weight_ │",
        "├─────────┼────────────┼─────────────────┤",
        "│         │            │ L_net_3_bias_   │",
        "├─────────┼────────────┼─────────────────┤",
        "│       1 │    2101248 │ L_net_0_weight_ │",
        "└─────────┴────────────┴─────────────────┘",
    ]
    rows = parse([*v213(summary, level="I"), *v213(table), *v213(["---orig graph---", *BODY], "ddp_graphs")])
    split, first, second = rows["ddp_buckets"]
    assert (split["compile_id"], split["cap_bytes"], split["buckets"], split["line_no"]) == ("0/0", 26214400, 2, 2)
    assert (first["bucket"], first["bytes"], first["parameters"], first["cap_bytes"]) == (0, 1050624, 2, 26214400)
    assert first["names"] == "L_net_3_weight_;L_net_3_bias_"
    assert (second["bucket"], second["names"], second["line_no"]) == (1, "L_net_0_weight_", 12)
    assert len(rows["graphs"]) == 1
    assert rows.counts.continuation >= len(table) - 2


def test_a_table_of_buckets_that_is_cut_keeps_what_there_is() -> None:
    table = [
        "DDPOptimizer produced the following bucket assignments:",
        "│       0 │    1050624 │ L_net_3_weight_ │",
        "│  tor",
    ]
    (row,) = parse(v213(table))["ddp_buckets"]
    assert (row["bucket"], row["bytes"]) == (0, 1050624)
    assert "cap_bytes" not in row
