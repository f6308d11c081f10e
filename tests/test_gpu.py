"""What needs a GPU (`pytest -m gpu`), and what can be said of it without one."""

import ast
import subprocess
import sys
from dataclasses import replace

import pytest

from replay.repro import fill, loop, sandbox, verify
from replay.repro.recipe import Recipe, causes
from replay.repro.script import render
from replay.resources import folder

ON_GPU = [(cause, recipe) for cause, recipe in causes() if recipe.needs == "cuda"]
RECORD = folder("corpora") / "gpu" / "record.py"


@pytest.mark.gpu
@pytest.mark.parametrize("shown", ON_GPU, ids=lambda shown: f"{shown[1].recipe}-{shown[0]}")
def test_recipes_for_the_gpu_are_verified(shown: tuple[str, Recipe]) -> None:
    cause, recipe = shown
    plan = fill.default_plan(recipe, cause, recipe.world[0])
    trial = loop.try_plan(plan, verify.expected(plan))
    assert trial.verdict.verified, (trial.verdict, trial.ended)


def _record(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, RECORD, *arguments], capture_output=True, text=True, check=False)


def test_the_recorder_lists_every_recipe_and_those_for_the_gpu_first() -> None:
    done = _record("--list")
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(names) == sorted(f"{recipe.recipe}-{cause}" for cause, recipe in causes())
    assert set(names[: len(ON_GPU)]) == {f"{recipe.recipe}-{cause}" for cause, recipe in ON_GPU}
    assert len(ON_GPU) >= 8


@pytest.mark.skipif(sandbox.has_cuda(), reason="there is a GPU")
def test_the_recorder_says_that_there_is_no_gpu() -> None:
    done = _record("device-oom")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no GPU here" in done.stderr


def test_a_script_for_the_cpu_can_be_put_on_the_gpu() -> None:
    recipe = next(recipe for cause, recipe in causes() if cause == "recompile-dtype")
    text = render(replace(fill.default_plan(recipe, "recompile-dtype"), device="cuda"))
    ast.parse(text)
    assert 'torch.set_default_device("cuda")' in text
    assert "GLOO" not in text
