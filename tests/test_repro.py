"""Recipes, scripts of literals, the closed loop."""

import ast
import os
import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from example_runs import recompile
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import UsageError
from replay.expert.load import load_rules
from replay.report.build import build
from replay.repro import fill, sandbox, shrink, trusted, verify
from replay.repro.check_all import check
from replay.repro.checked import checked, notes
from replay.repro.recipe import Fix, Recipe, causes, recipe_for, recipes
from replay.repro.script import Plan, Value, literal, render
from replay.resources import folder

ALL = list(causes())
ON_CPU = [(cause, recipe) for cause, recipe in ALL if recipe.needs == "cpu"]
FIRST = [(next(iter(recipe.shows)), recipe) for recipe in recipes().values() if recipe.needs == "cpu"]
"""Each recipe with the first cause that it shows: what every change runs; all causes and their fixes are `nightly`."""
HOSTILE = st.one_of(
    st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.text()),
    st.sampled_from(["'; import os; os.system('x') #", '"""\nimport os\n', "\n\rprint(1)", "\\", "\x00\x1b[2J"]),
    st.sampled_from(["8\nX = 1", "1e999", "nan"]),
)  # fmt: skip


def test_there_are_recipes_for_most_causes_and_all_are_causes() -> None:
    known = set(_taxonomy())
    shown = {cause for cause, _ in ALL}
    assert shown <= known
    assert len(shown) >= 45


def _taxonomy() -> list[str]:
    return [entry["id"] for entry in yaml.safe_load((folder("rules") / "taxonomy.yaml").read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("cause", "recipe"), ALL, ids=[f"{r.recipe}-{c}" for c, r in ALL])
def test_every_script_is_short_and_python(cause: str, recipe: object) -> None:
    plan = fill.default_plan(recipe, cause)  # type: ignore[arg-type]
    for fix in (None, *plan.recipe.fixes(cause)):
        text = render(plan, fix)
        ast.parse(text)
        assert text.isascii()
        assert len(text.splitlines()) <= 75


def test_rules_bind_recipes_and_parameters_that_exist() -> None:
    for rule in load_rules():
        if rule.repro is not None:
            recipe = recipes()[rule.repro.recipe]
            assert rule.repro.parameters.keys() <= recipe.parameters.keys(), rule.id


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ALL), st.data())
def test_nothing_of_a_log_becomes_code(pair: tuple[str, object], data: st.DataObject) -> None:
    cause, recipe = pair
    plan = fill.default_plan(recipe, cause)  # type: ignore[arg-type]
    values = dict(plan.values)
    for name, parameter in plan.recipe.parameters.items():
        accepted = parameter.accept(data.draw(HOSTILE))
        if accepted is not None:
            values[name] = Value(accepted, f": {data.draw(st.text())}:{data.draw(st.integers())}")
    values["world"] = Value(plan.world, data.draw(st.text()))
    hostile = ast.parse(render(replace(plan, values=values)))
    harmless = ast.parse(render(plan))
    constants = {name.upper() for name in plan.recipe.parameters}
    assert _without_constants(hostile, constants) == _without_constants(harmless, constants)


def _without_constants(tree: ast.Module, names: set[str]) -> str:
    """The program without the values of its constants, which must be literals."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
            ast.literal_eval(node.value)
            node.value = ast.Constant(None)
    return ast.dump(tree)


def test_only_literals_enter() -> None:
    with pytest.raises(TypeError):
        literal([1])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        literal(float("nan"))
    assert ast.literal_eval(literal("a'\n\x00\u202e")) == "a'\n\x00\u202e"


Checked = dict[str, "Future[dict[str, object]]"]


@pytest.fixture(scope="module")
def checks(request: pytest.FixtureRequest) -> Iterator[Checked]:
    """The checks of the recipes that were selected: each waits more than it computes, so several run at a time."""
    wanted: dict[str, tuple[Recipe, str, bool]] = {}
    for item in request.session.items:
        given = getattr(item, "callspec", None)
        if given is not None and "shown" in given.params and "checks" in getattr(item, "fixturenames", ()):
            cause, recipe = given.params["shown"]
            wanted[item.name] = (recipe, cause, item.get_closest_marker("nightly") is not None)
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        yield {
            name: pool.submit(check, cause, recipe, with_fix=with_fix)
            for name, (recipe, cause, with_fix) in wanted.items()
        }


@pytest.mark.parametrize("shown", FIRST, ids=lambda shown: shown[1].recipe)
def test_every_recipe_is_verified(shown: tuple[str, Recipe], checks: Checked, request: pytest.FixtureRequest) -> None:
    done = checks[request.node.name].result()
    assert done["verified"], done


@pytest.mark.nightly
@pytest.mark.parametrize("shown", ON_CPU, ids=lambda shown: f"{shown[1].recipe}-{shown[0]}")
def test_every_cause_is_verified_and_its_fix_helps(
    shown: tuple[str, Recipe], checks: Checked, request: pytest.FixtureRequest
) -> None:
    done = checks[request.node.name].result()
    assert done["verified"], done
    assert done["fix"] is not False, done


def test_the_advised_change_makes_the_cause_vanish() -> None:
    recipe = recipe_for("uneven-batches")
    assert recipe is not None
    done = check("uneven-batches", recipe)
    assert (done["verified"], done["fix"]) == (True, True), done


@pytest.mark.parametrize(
    ("bounds", "torch", "holds"),
    [("", "2.0.1", True), (">=2.6", "2.13.0+cpu", True), (">=2.6", "2.5.1", False), (">=2.1,<2.6", "2.6.0a0", False)],
)
def test_advice_goes_by_version(bounds: str, torch: str, holds: bool) -> None:
    assert Fix(says="", change=[], torch=bounds).is_for(torch) is holds


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no bound of a version"):
        Fix(says="", change=[], torch="2.6")


def test_advice_that_was_checked_with_a_stand_in_is_not_told_as_checked() -> None:
    stand_ins = {(recipe.recipe, cause) for cause, recipe in ALL if recipe.shows[cause].stand_in}
    told = checked("2.13.0+cpu")
    assert told
    assert ("rank-dies", "rank-killed") in stand_ins
    assert not stand_ins & told.keys()


def test_advice_is_told_as_checked_by_the_recipe_of_its_rule_and_the_torch_of_its_run() -> None:
    report = build(recompile())
    (run,), (root, *_) = report.runs, report.roots
    shown = replace(root, cause="precision-drift", repro={"recipe": "numbers", "with": {}})

    def told(torch: str | None, recipe: str) -> str | None:
        findings = (replace(shown, repro={"recipe": recipe, "with": {}}),)
        return notes(replace(report, runs=(replace(run, torch=torch),), findings=findings)).get(root.fingerprint)

    by_ranks, by_runs = (told("2.13.0+cpu", recipe) for recipe in ("numbers", "two-runs"))
    assert by_ranks is not None
    assert by_runs is not None
    assert by_ranks != by_runs
    assert by_ranks.startswith("checked on torch 2.13: ")
    assert [
        told(None, "numbers"),
        told("1.0.0", "numbers"),
        told("../2.13", "numbers"),
        told("2.13.0", "recompile"),
    ] == [None] * 4


def test_shrinking_ends_small_and_the_same_each_time() -> None:
    recipe = recipes()["recompile-stall"]
    plan = fill.default_plan(recipe, "recompile-barrier-stall", 4)

    def shows(p: Plan) -> bool:  # a stand-in: two steps beyond the odd one, and sizes that differ
        return p.value("actual") != p.value("expected") and int(p.value("steps")) > int(p.value("at"))

    first, again = (shrink.shrink(plan, shows, lambda _: None, seed=3) for _ in range(2))
    assert first == again
    assert (first.plan.world, first.plan.odd, first.plan.value("layers")) == (2, (1,), 1)
    assert {first.plan.value("expected"), first.plan.value("actual")} == {1, 2}
    assert len(render(replace(first.plan, tight=True)).splitlines()) < 40


def test_shrinking_that_is_stopped_gives_the_best_so_far() -> None:
    plan = fill.default_plan(recipes()["recompile-stall"], "recompile-barrier-stall", 4)
    tries = random.Random(1)

    def shows(p: Plan) -> bool:
        if tries.random() < 0.2:
            raise KeyboardInterrupt
        return p.world >= 3

    stopped = shrink.shrink(plan, shows, lambda _: None)
    assert stopped.interrupted
    assert stopped.plan.world >= 3


FAILS = """\
print("Traceback (most recent call last):")
print('  File "/usr/lib/python3/site-packages/torch/_inductor/compile_fx.py", line 1, in compile_fx')
print("torch._inductor.exc.InductorError: CppCompileError: C++ compile error")
"""
CARRIED = f"""\
import os, sys
if sys.argv[1] == "minify":
    _, _, folder = sys.argv[1:]
    os.makedirs(folder)
    for nodes, text in ((3, "print('something else failed')"), (9, {FAILS!r} + "# nine nodes")):
        with open(f"{{folder}}/{{nodes}}.py", "w") as file:
            file.write(text)
else:
    assert sys.argv[1:] == ["run"]
{"".join("    " + line + chr(10) for line in FAILS.splitlines())}
    # {"a large graph " * 20}
"""


def _planted(tmp_path: Path, text: str) -> trusted.Carried:
    planted = tmp_path / "torch_compile_debug" / "fx_graph_runnable.py"
    planted.parent.mkdir()
    planted.write_text(text)
    (found,) = trusted.carried([str(tmp_path)])
    assert found.path == planted
    return found


def test_code_of_logs_is_not_run_without_trust(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    found = _planted(tmp_path, f"open({str(mark)!r}, 'w').write('x')\nprint('done')\n")
    wanted = trusted.expected("backend-compile-failure")
    shown: list[str] = []
    with pytest.raises(UsageError, match="--trust"):
        trusted.run_carried(found, wanted, shown.append, trust=False)
    assert not mark.exists()
    assert shown == []
    ran = trusted.run_carried(found, wanted, shown.append, trust=True)
    assert (ran.ended.code, ran.verdict.verified) == (0, False)
    assert mark.exists()
    assert "done" in shown[0]


def test_what_the_minifier_leaves_is_judged_by_the_same_oracle(tmp_path: Path) -> None:
    found = _planted(tmp_path, CARRIED)
    wanted = trusted.expected("backend-compile-failure")
    ran = trusted.run_carried(found, wanted, lambda _: None, trust=True)
    assert ran.verdict.verified, ran
    smaller = trusted.minify(ran, wanted, lambda _: None)
    assert smaller.text.endswith("# nine nodes")  # the smaller one fails, of something else


GRAPH = """\
import torch
from torch import device
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"

class Repro(torch.nn.Module):
    def forward(self, x):
        a = torch.ops.aten.sin.default(x)
        b = torch.ops.aten.relu.default(a)
        c = torch.ops.aten.cos.default(b)
        return (torch.ops.aten.add.Tensor(c, a),)

def load_args(reader):
    buf0 = reader.storage(None, 64)
    reader.tensor(buf0, (4, 4), is_leaf=True)
load_args._version = 0
mod = Repro()
if __name__ == "__main__":
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(
            mod, load_args, accuracy=False, command="minify", save_dir="/nowhere/checkpoints", tracing_mode="real",
            check_str=None,
        )
"""


@pytest.mark.nightly
def test_torchs_minifier_makes_a_graph_smaller(tmp_path: Path) -> None:
    found = _planted(tmp_path, GRAPH)
    wanted = trusted.expected("backend-compile-failure")
    ran = trusted.run_carried(found, wanted, lambda _: None, trust=True)
    assert ran.verdict.verified, ran
    smaller = trusted.minify(ran, wanted, lambda _: None)
    assert "relu" in smaller.text
    assert "aten.cos" not in smaller.text


@pytest.mark.parametrize(
    ("at_fault", "total", "world", "odd"),
    [
        ((12, 14, 15), 16, 4, (3,)),
        ((0, 5, 9), 16, 5, (0, 4)),
        ((1, 2, 3), 4, 4, (1, 2, 3)),
        ((1, 2, 3), None, 4, (1, 2, 3)),
        ((6,), 8, 4, (3,)),
        ((0,), 8, 4, (0,)),
    ],
)
def test_the_odd_ranks_stand_to_the_others_as_in_the_logs(
    at_fault: tuple[int, ...], total: int | None, world: int, odd: tuple[int, ...]
) -> None:
    recipe = recipes()["crossed-groups"]
    finding = replace(build(recompile()).findings[0], ranks=at_fault)
    assert fill.odd_ranks(recipe, finding, total, world) == odd


def test_the_fewer_stay_the_fewer_where_ranks_are_left_out() -> None:
    plan = replace(fill.default_plan(recipes()["crossed-groups"], "communicator-concurrency", 8), odd=(0, 5, 7))
    assert [shrink.with_world(plan, world).odd for world in (6, 4, 3, 2)] == [(0, 5), (0,), (0,), (0,)]


def test_of_two_sides_either_may_be_called_odd() -> None:
    plan = replace(fill.default_plan(recipes()["crossed-groups"], "communicator-concurrency", 4), odd=(1, 2, 3))
    report = build(recompile())
    finding = replace(report.findings[0], cause="communicator-concurrency", kind="cause", root=True)

    def verified(ranks: tuple[int, ...]) -> bool:
        found = replace(report, findings=(replace(finding, ranks=ranks),))
        return verify.judge(found, verify.expected(plan)).verified

    assert [verified(ranks) for ranks in ((0,), (1, 2, 3), (1, 2), ())] == [True, True, False, False]


@pytest.mark.parametrize("allowed", [True, False])
def test_what_of_the_network_a_script_sees_is_told(
    allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise PermissionError

    if not allowed:
        monkeypatch.setattr(sandbox, "_loopback_only", refused)
    script = tmp_path / "interfaces.py"
    script.write_text("import socket\nprint(sorted(name for _, name in socket.if_nameindex()))\n")
    ended = sandbox.run(script, tmp_path, sandbox.Limits(seconds=60))
    assert ended.code == 0
    if ended.alone:
        assert allowed
        assert (ended.network, ended.tail) == ("loopback only", "['lo']")
    else:
        assert ended.network.startswith("the network was not taken away")
