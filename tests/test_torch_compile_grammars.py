"""The grammars of torch.compile: Lark takes the same lines as the patterns made of them."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from replay.grammar.executor import shared
from replay.resources import folder

LINES = {
    "recompiles": [
        "Recompiling function step in /srv/a job/net.py:12",
        "('Recompiling function step in /a.py:12', \"triggered by the following guard failure: L['x'] == 3\")",
        "    triggered by the following guard failure(s):",
        "    guard 3 failures:",
        "    - 0/3: tensor 'x' rank mismatch. expected 2, actual 3",
        "    - !0/4/1: x is y",
        "    - 0/0: ",
        "    - User stack trace:",
        '    -   File "/srv/a job/net.py", line 69, in <lambda>',
        "    -     return x",
        "Stack (most recent call last):",
        "",
    ],
    "limit": [
        "torch._dynamo hit config.accumulated_recompile_limit (256)",
        "   function: 'forward' (/srv/net.py:440)",
        "   last reason: 0/7: n == 3",
        "   reasons:  tensor 'x' rank mismatch. expected 2, actual 3",
        'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
        "to diagnose recompilation issues, see https://x.",
    ],
    "compile": [
        "Step 1: torchdynamo start tracing forward",
        "Step 1: torchdynamo start tracing forward /srv/net.py:12",
        "torchdynamo start compiling inner /srv/net.py:67, stack (elided 5 frames):",
        '  File "/srv/main.py", line 3, in <module>',
        "Step 1: torchdynamo done tracing forward (RETURN_VALUE)",
        "Restarting analysis due to torch/x.py:3 in f",
        "Step 2: calling compiler function inductor",
        "Step 2: done compiler function inductor",
        "Step 3: torchinductor compiling FORWARDS graph 0",
        "Step 3: torchinductor done compiling BACKWARDS graph 11",
        "put_code_state: no cache key, skipping",
        "WON'T CONVERT step /srv/net.py line 12 ",
        "Skipping frame because there is a graph break in a for/while loop",
        "torch._dynamo.exc.BackendCompilerFailed: backend='x' raised:",
        "torch._inductor.exc.InductorError:",
        "nothing of the kind",
    ],
    "graph_breaks": [
        "Graph break in user code at /srv/net.py:12",
        "Graph break (user stack suppressed due to duplicate graph break) in user code at /srv/net.py:12",
        "Graph break (details suppressed) in user code at /srv/net.py:12",
        "Graph break: from user code at:",
        "Graph break: skip: from user code at:",
        "Graph break: Tensor.item from user code at:",
        "Graph break: a reason that goes on",
        "in the next line from user code at:",
        "torch._dynamo.exc.Unsupported: generic_jump",
        "Graph Break Reason: Data-dependent branching",
        "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):",
        "Reason: Unsupported: builtin: print",
        "  Explanation: Dynamo does not know",
        "  Hint: Avoid it.",
        "  Developer debug context:",
        " For more details about this graph break, please visit: https://x.y/z/gb/gb0170.html",
        "User code traceback:",
        '   File "/srv/net.py", line 12, in forward',
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
        "",
    ],
    "cache": [
        "fx graph cache hit for key fab",
        "Bypassing FX Graph Cache because 'it's so'",
        "fx graph cache unable to load compiled graph",
        "_pickle.UnpicklingError: invalid load key, 'x'.",
        "AOTAutograd cache miss for key aab",
        "Bypassing autograd cache due to: x",
        "[esstihe2nyydk5mhzpvox] inductor_config[triton.cudagraphs]: False",
        "  LocalFxGraphCache: {hit: 1, miss: 2, put: 2, exception: 0}",
        "FX cache hit with key: fab",
    ],
    "cudagraphs": [
        "skipping cudagraphs due to mutated inputs (1 instances). Found from : ",
        '   File "/srv/net.py", line 3, in f',
        "skipping cudagraph due to function 2 exceeding max re-recording limit (=128) on cudagraph node 5 due to x.",
        "[0/0] Recording function=f_1, mode=FORWARD, cuda_graph_id=3, inputs: []",
        "Recording function 3 of graph recording id 7",
        "[] Running warmup function=f, mode=FORWARD",
        "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. x",
    ],
    "autotune": [
        "AUTOTUNE mm(512x512, 512x512)",
        "strides: [512, 1], [512, 1]",
        "  triton_mm_3 0.0130 ms 94.3% ACC_TYPE='tl.float32'",
        "  mm 0.0000 ms <DIVIDED BY ZERO ERROR>",
        "  mm 0.0130s 94.3%",
        "SingleProcess AUTOTUNE takes 3.2 seconds",
        "Autotune Choices Stats:",
    ],
    "guard_tree": [
        "GUARDS:",
        "TREE_GUARD_MANAGER:",
        "+- RootGuardManager",
        "| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0), type=x",
        "| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor)",
        "| | +- NO_TENSOR_ALIASING",
        "| | +- KeyValueManager pair at index=0",
        "| | | +- KeyManager: GuardManager: source=list(dict.keys(L['d']))[0]",
        "Guard eval latency = 87.94 us",
    ],
    "dynamic": [
        "set_replacement s0 = 8 (solve) VR[8, 8]",
        "constrain_symbol_range s0 [2, 10]",
        "create_unbacked_symint u0 [-int_oo, int_oo] (x.py:3 in f)",
        "runtime_assert u0 >= 0 [guard added] (_ops.py:875 in g)",
        "produce_guards",
        "lru_cache_stats f: x",
        "produced_guards",
    ],
    "schedule": [
        "BEFORE FUSION",
        "===== attempting fusion (1/10): 5 nodes =====",
        "completed fusion round (1/10): fused 5 nodes into 4 nodes",
        "op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)",
        "op0.writes = [x]",
        "fusing op1 with op4",
        "op0 and op1",
    ],
    "compile_times": ["Function, Runtimes (s)", "----  ----", "_compile, 3.25", "_compile     3.25", "step loss"],
    "graphs": [
        "TRACED GRAPH",
        " ===== __compiled_fn_1_26d31397_8806_4650_9d8c_b6130b39d72c =====",
        " ===== Forward graph 0 =====",
        " ===== AFTER POST GRAD =====",
        "---submod_0 graph---",
        '        h: "f32[16, 64][64, 1]cpu" = torch.relu(linear);  linear = None',
        "        torch.ops._c10d_functional.all_reduce_.default(buf0, 'sum', '0')",
        "        add: f32[10] = torch.ops.aten.add.Tensor(x, 1)",
        '        mul: "f32[4, 16][16, 1]cpu" = a * 2;  a = None',
        '        s: "f32[][]cpu" = res_1.sum();  res_1 = None',
        "        m = self.submod_0(x)",
        "        # File: /srv/net.py:3 in f, code: x",
        "        return (x,)",
        "Output code written to: /tmp/x.py",
    ],
}
CASES = [(family, line) for family, lines in LINES.items() for line in lines]


@cache
def larks(family: str) -> tuple[Lark, list[str]]:
    """Lark on the grammar, and its forms. A lazy pattern is made greedy: Lark's lexer tries all that is shorter."""
    text = (folder("grammars") / f"{family}.lark").read_text(encoding="utf8")
    forms = re.findall(r"^([a-z]\w*):", text, re.MULTILINE)
    paths = [str(folder("grammars"))]
    greedy = re.sub(r"([+*}])\?(?=[^/\n]*/)", r"\1", text)
    return Lark(greedy, start=forms, parser="earley", lexer="dynamic_complete", import_paths=paths), forms


def lark_takes(family: str, line: str) -> bool:
    lark, forms = larks(family)
    for form in forms:
        try:
            lark.parse(line, start=form)
        except LarkError:
            continue
        return True
    return False


@pytest.mark.parametrize(("family", "line"), CASES)
def test_lark_takes_the_same_lines(family: str, line: str) -> None:
    assert lark_takes(family, line) == (shared().one(family, line) is not None)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CASES), st.integers(0, 80), st.text(" :/'[(),=0-", max_size=2))
def test_lark_takes_the_same_damaged_lines(case: tuple[str, str], at: int, new: str) -> None:
    family, line = case
    at %= len(line) + 1
    damaged = line[:at] + new + line[at + 1 :]
    assert lark_takes(family, damaged) == (shared().one(family, damaged) is not None)
