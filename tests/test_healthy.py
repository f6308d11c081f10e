"""A run in which nothing is wrong has no root: real ones, our own, and runs that never ran, of many forms.

`python bench/synth_accuracy.py --kind healthy --seeds 30` asks the same of more and larger runs.
"""

import random
from pathlib import Path

import pytest

from replay.corpus.collect import Source, scored, sources
from replay.corpus.labelled import read_case
from replay.resources import folder
from replay.synth import Scenario, write

CORPORA = folder("corpora")
SHARED = Path(__file__).parents[2] / "shared" / "cases"


def healthy(place: Path) -> list[Source]:
    """Return the recorded runs of a folder whose label names no cause, none where the folder is not there."""
    found = sources(place) if place.is_dir() else []
    return [one for one in found if one.path.is_dir() and not read_case(one.path).truth.cause]


OWN = healthy(CORPORA)
FORMS = [
    Scenario(torch=torch, nccl=nccl, launcher=launcher, trainer=trainer, logs=logs, compiled=compiled)
    for torch, nccl, launcher, trainer, logs, compiled in [
        ("2.1.2", "2.18.1", "plain", "bracket", {"nccl": "warn"}, False),
        ("2.3.1", "2.20.5", "srun", "words", {"nccl": "info"}, False),
        ("2.5.1", "2.21.5", "kubectl", "json", {"nccl": "coll"}, False),
        ("2.6.0", "2.23.4", "torchrun-tee", "megatron", {"nccl": "off"}, False),
        ("2.8.0", "2.27.7", "torchrun-dirs", "hf", {"nccl": "info", "torch": ["recompiles", "dynamo"]}, True),
        ("2.11.0", "2.31.2", "plain", "torchtitan", {"nccl": "info", "stdout_buffered": True}, False),
    ]
]


@pytest.mark.parametrize("source", healthy(SHARED), ids=lambda one: one.name)
def test_real_runs(source: Source) -> None:
    (one,) = scored([source])
    assert one.roots == ()


@pytest.mark.parametrize("source", random.Random(5).sample(OWN, min(8, len(OWN))), ids=lambda one: one.name)
def test_our_own(source: Source) -> None:
    (one,) = scored([source])
    assert one.roots == ()


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_runs_that_never_ran(number: int, tmp_path: Path) -> None:
    write(FORMS[number], tmp_path / "run", number)
    (one,) = scored([Source("made", tmp_path / "run")])
    assert one.truth == ()
    assert one.roots == ()
