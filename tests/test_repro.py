"""Recipes, scripts of literals, the closed loop."""

import ast
import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.errors import UsageError
from replay.expert.load import load_rules
from replay.repro import fill, loop, shrink, trusted, verify
from replay.repro.recipe import causes, recipe_for, recipes
from replay.repro.script import Plan, Value, literal, render
from replay.resources import folder

ALL = list(causes())
QUICK = [
    "recompile-dtype", "graph-break-data-dependent", "backend-compile-failure", "recompile-barrier-stall",
    "collective-shape-mismatch", "rank-exception", "rank-killed", "straggler-dataloader", "uneven-batches",
    "seed-not-synchronised", "batch-order-divergence", "model-mismatch", "process-group-misuse", "address-in-use",
]  # fmt: skip
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
    for fix in (None, plan.recipe.fix_of(cause)):
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


@pytest.mark.parametrize("cause", QUICK)
def test_quick_recipes_are_verified(cause: str) -> None:
    recipe = recipe_for(cause)
    assert recipe is not None
    plan = fill.default_plan(recipe, cause)
    trial = loop.try_plan(plan, verify.expected(plan))
    assert trial.verdict.verified, (trial.verdict, trial.ended)


def test_the_advised_change_makes_the_cause_vanish() -> None:
    recipe = recipe_for("uneven-batches")
    assert recipe is not None
    plan = fill.default_plan(recipe, "uneven-batches")
    fix = recipe.fix_of("uneven-batches")
    assert fix is not None
    assert loop.try_fix(plan, fix, verify.expected(plan)).verdict.verified


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


def test_code_of_logs_is_not_run_without_trust(tmp_path: Path) -> None:
    planted = tmp_path / "torch_compile_debug" / "fx_graph_runnable.py"
    planted.parent.mkdir()
    mark = tmp_path / "ran"
    planted.write_text(f"open({str(mark)!r}, 'w').write('x')\nprint('done')\n")
    found = list(trusted.carried([str(tmp_path)]))
    assert [c.path for c in found] == [planted]
    shown: list[str] = []
    with pytest.raises(UsageError, match="--trust"):
        trusted.run_carried(found[0], shown.append, trust=False)
    assert not mark.exists()
    assert shown == []
    assert trusted.run_carried(found[0], shown.append, trust=True).code == 0
    assert mark.exists()
    assert "done" in shown[0]
