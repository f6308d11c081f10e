"""Guard reasons: each kind of every version, fields back from a text made of them, the same texts as Lark."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from replay.grammar.executor import shared
from replay.parse.guard_reasons import Reason, parse_reason, split_reasons
from replay.resources import folder

CPU = "DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)"
KINDS = [
    ("___check_obj_id(L['scale'], 140449878929152)                ", "object-id", "object-identity"),
    ("___check_obj_id(G['model'].training, 140373406281472)       ", "object-id", "training-mode"),
    ("tensor 'x' size mismatch at index 1. expected 48, actual 64", "size", "dynamic-shape"),
    ("tensor 'L['x'][0]' size mismatch at index 0. expected 4, actual 5", "size", "dynamic-shape"),
    (
        "tensor 'w' size mismatch at index 0. expected 4, actual 5. Guard failed on a parameter, consider using x",
        "size",
        "dynamic-shape",
    ),
    ("tensor 'x' stride mismatch at index 0. expected 32, actual 1", "stride", "stride"),
    ("tensor 'x' dtype mismatch. expected Float, actual BFloat16", "dtype", "dtype"),
    ("tensor 'x' rank mismatch. expected 2, actual 3", "ndim", "rank-ndim"),
    ("tensor 'x' requires_grad mismatch. expected requires_grad=1", "requires-grad", "requires-grad"),
    ("Tensor device index mismatch. Expected device index to be 0, actual 1", "device-index", "device"),
    ("tensor 'x' Tensor device index mismatch. Expected device index to be 0, actual 1", "device-index", "device"),
    (
        f"tensor 'x' dispatch key set mismatch. expected {CPU}, actual {CPU.replace('CPU', 'CUDA')}",
        "dispatch-key",
        "device",
    ),
    (
        f"tensor 'x' dispatch key set mismatch. expected {CPU}, actual {CPU[:-1]}, AutocastCPU)",
        "dispatch-key",
        "autocast",
    ),
    (
        f"tensor 'x' dispatch key set mismatch. expected {CPU}, actual DispatchKeySet(CPU, BackendSelect)",
        "dispatch-key",
        "grad-mode",
    ),
    ("expected type of 'x' to be a tensor type, ' but found <class 'mine.Tagged'>", "tensor-type", "tensor-type"),
    ("GLOBAL_STATE changed: grad_mode ", "global-state", "grad-mode"),
    ("GLOBAL_STATE changed: autocast(cuda)_dtype ", "global-state", "autocast"),
    ("GLOBAL_STATE changed: num_threads default_dtype ", "global-state", "global-state"),
    ("___check_global_state()", "global-state", "global-state"),
    ("not ___is_grad_enabled()", "global-state", "grad-mode"),
    ("___check_torch_function_mode_stack()", "global-state", "global-state"),
    ("utils_device.CURRENT_DEVICE == None", "global-state", "global-state"),
    ('Duplicate tensors found: ["x", "y"]', "aliasing", "aliasing"),
    (
        "Duplicate tensor found where not expected! L['y']should not alias to anything, but is aliased",
        "aliasing",
        "aliasing",
    ),
    ("L['x'] is L['y']", "aliasing", "aliasing"),
    ("___check_type_id(act, 94113608519984), type=<class '__main__.Act'>", "type-id", "object-identity"),
    ("___check_type_id(L['y'], 94113608519984)", "type-id", "object-identity"),
    (
        "___check_type_id(x, 1), type=<class 'torch.distributed._functional_collectives.AsyncCollectiveTensor'>",
        "type-id",
        "tensor-type",
    ),
    ("___check_obj_id(self._modules['attn'].processor, 139811204118272)", "object-id", "object-identity"),
    ("___check_obj_id(L['fn']._modules['1'].training, 7)", "object-id", "training-mode"),
    ("Cache line invalidated because L['self'] got deallocated", "weakref", "object-identity"),
    ("fn._modules['1'].training == True", "bool", "training-mode"),
    ("s.flag == True", "bool", "python-value"),
    ("not L['s'].flag", "bool", "python-value"),
    ("mode == 'a == b'", "equals", "python-value"),
    ("d['a == b'] == 3", "equals", "python-value"),
    ("x is None", "none", "python-value"),
    ("len(feats) == 2", "length", "container"),
    ("not lst", "length", "container"),
    ("list(dict.keys(d)) == ['a', 'b']", "keys", "container"),
    ("set(L['d'].keys()) == {'a'}", "keys", "container"),
    ("___dict_contains('k', L['d'])", "keys", "container"),
    ("hasattr(x, '_dynamo_dynamic_indices') == False", "hasattr", "dynamic-shape"),
    ("not hasattr(L['m'], 'scale')", "hasattr", "other"),
    ("2 <= x.size()[0]", "zero-one", "dynamic-shape"),
    ("7 <= x.size()[0] <= 128", "shape-env", "dynamic-shape"),
    ("(x.size()[0] % 2) == 0", "shape-env", "dynamic-shape"),
    ("Eq(Mod(L['x'].size()[0], 2), 0)", "shape-env", "dynamic-shape"),
    ("O.size()[1]*k.size()[1] <= 2147483647", "shape-env", "dynamic-shape"),
    ("y.size()[0] == x.size()[0]", "duck", "dynamic-shape"),
    ("3 <= n", "shape-env", "dynamic-shape"),
    (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: a.",
        "backend",
        "other",
    ),
    (
        "(___skip_backend_check() or ___current_backend() == ___lookup_backend(140321))",
        "backend",
        "other",
    ),
    ("something that no version prints", "other", "other"),
    ("", "other", "other"),
]


@pytest.mark.parametrize(("text", "kind", "cause"), KINDS)
def test_kinds(text: str, kind: str, cause: str) -> None:
    reason = parse_reason(text)
    assert (reason.kind, reason.cause) == (kind, f"recompile-{cause}")


def test_a_comment_names_the_users_place() -> None:
    reason = parse_reason(
        "s.k == 2            # def f(s, x): return x*s.k # 'k'  # train/net.py:24 in f (HINT: make it a tensor)"
    )
    assert reason == Reason(
        kind="equals",
        cause="recompile-python-value",
        source="s.k",
        expected="2",
        detail="HINT: make it a tensor",
        user_file="train/net.py",
        user_line=24,
        user_fn="f",
        place=True,
    )


def test_zero_one_is_known_by_its_comment() -> None:
    text = "4 <= x.size()[0]  # f(x)  # a.py:3 in f (user code shown is first use; due to 0/1 specialization)"
    assert parse_reason(text).kind == "zero-one"


def test_reasons_of_one_line_are_split_where_a_comment_ends() -> None:
    first = "s.k == 2     # y = x; return y*s.k  # a.py:3 in f"
    second = "tensor 'x' dtype mismatch. expected Float, actual Half"
    assert split_reasons(f"{first}; {second}") == [first, second]
    assert split_reasons(second) == [second]


names = st.from_regex(r"[a-z_][a-z_0-9]{0,8}", fullmatch=True)
sources = st.one_of(
    names,
    st.builds("L['{}']".format, names),
    st.builds("self._modules['{}'].{}".format, names, names),
    st.builds("L['{}'][{}]".format, names, st.integers(0, 99)),
)
numbers = st.integers(0, 2**40)
dims = st.integers(0, 9)
dtypes = st.sampled_from(["Float", "Double", "Half", "BFloat16", "Long", "Int", "Bool"])
made = st.one_of(
    st.builds(
        lambda source, kind, dim, want, got: (
            f"tensor '{source}' {kind} mismatch at index {dim}. expected {want}, actual {got}",
            {"source": source, "dim": dim, "expected": str(want), "actual": str(got), "kind": kind},
        ),
        sources,
        st.sampled_from(["size", "stride"]),
        dims,
        numbers,
        numbers,
    ),
    st.builds(
        lambda source, want, got: (
            f"tensor '{source}' dtype mismatch. expected {want}, actual {got}",
            {"source": source, "expected": want, "actual": got, "kind": "dtype"},
        ),
        sources,
        dtypes,
        dtypes,
    ),
    st.builds(
        lambda source, n: (f"len({source}) == {n}", {"source": source, "expected": str(n), "kind": "length"}),
        sources,
        numbers,
    ),
    st.builds(
        lambda source, text: (
            f"{source} == {text!r}",
            {"source": source, "expected": repr(text), "kind": "equals"},
        ),
        sources,
        st.text("abc =#/.", min_size=1, max_size=12),
    ),
    st.builds(
        lambda source, n, cls: (
            f"___check_obj_id({source}, {n}), type=<class '{cls}'>",
            {"source": source, "detail": f"<class '{cls}'>", "kind": "object-id"},
        ),
        sources,
        numbers,
        names.filter(lambda name: name not in {"bool", "training"}),
    ),
)


@given(made, st.one_of(st.none(), st.tuples(names, st.integers(1, 99999), names)))
def test_a_text_made_of_fields_gives_the_fields(
    told: tuple[str, dict[str, object]], place: tuple[str, int, str] | None
) -> None:
    text, fields = told
    if place is not None and not text.startswith("tensor"):
        text = f"{text.ljust(60)}  # y = f(x)  # {place[0]}.py:{place[1]} in {place[2]}"
        fields = fields | {"user_file": f"{place[0]}.py", "user_line": place[1]}
    if str(fields["source"]).endswith((".training", ".requires_grad", ".__name__")):
        return
    reason = parse_reason(text)
    assert {name: getattr(reason, name) for name in fields} == fields


GRAMMAR = (folder("grammars") / "guard_reason.lark").read_text(encoding="utf8")
FORMS = re.findall(r"^([a-z]\w*):", GRAMMAR, re.MULTILINE)
# Lark's lexer tries what a pattern matches and all that is shorter; a lazy pattern made greedy accepts the same texts.
LARK = Lark(
    GRAMMAR.replace("+?/", "+/") + "\nstart: " + " | ".join(FORMS),
    parser="earley",
    lexer="dynamic_complete",
    import_paths=[str(folder("grammars"))],
)


def lark_takes(text: str) -> bool:
    try:
        LARK.parse(text)
    except LarkError:
        return False
    return True


@pytest.mark.parametrize("text", [text for text, _, _ in KINDS if text])
def test_lark_takes_the_same_texts(text: str) -> None:
    assert lark_takes(text) == (shared().one("guard_reason", text) is not None)


@settings(max_examples=25, deadline=None)
@given(made, st.integers(0, 40), st.text(" ='[]()#,", max_size=2))
def test_lark_takes_the_same_damaged_texts(told: tuple[str, object], at: int, new: str) -> None:
    text = told[0][: at % len(told[0])] + new + told[0][at % len(told[0]) + 1 :]
    assert lark_takes(text) == (shared().one("guard_reason", text) is not None)
