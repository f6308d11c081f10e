"""What the writer writes parses back: every production that it uses, and the operations and steps of whole runs."""

import importlib
import pkgutil
from collections import Counter
from typing import Any

import pytest

import replay.synth
from replay.grammar.executor import shared
from replay.resources import folder
from replay.run import open_run
from replay.synth import Scenario, read_scenario, write
from replay.synth.inverse import line

VERSIONS = (("2.0.1", "2.14.3"), ("2.1.2", "2.18.1"), ("2.2.2", "2.18.6"), ("2.3.1", "2.20.5"), ("2.4.1", "2.21.5"))
VERSIONS += (("2.5.1", "2.23.4"), ("2.6.0", "2.25.1"), ("2.8.0", "2.27.7"), ("2.9.1", "2.29.7"), ("2.13.0", "2.31.2"))
LIBRARY = sorted((folder("corpora") / "scenarios").glob("*.yaml"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[Any, tuple[str, str, str, dict[str, str]]]:
    """One text for each production, set of fields and decision that the writer used: family, record, text, fields."""
    found: dict[Any, tuple[str, str, str, dict[str, str]]] = {}

    def recorded(family: str, record: str, fields: Any = None, /, **more: Any) -> str:
        text = line(family, record, fields, **more)
        decided = {k: more.pop(k) for k in ("keep", "runs", "inline", "saying") if k in more}
        filled = {k: v for k, v in {**(fields or {}), **more}.items() if v is not None}
        key = family, record, frozenset(filled), tuple(decided.items())
        found[key] = family, record, text, {k: str(v) for k, v in filled.items() if not k.startswith("_")}
        return text

    for module in pkgutil.iter_modules(replay.synth.__path__, "replay.synth."):
        loaded = importlib.import_module(module.name)
        if getattr(loaded, "line", None) is line:
            monkeypatch.setattr(loaded, "line", recorded)
    return found


@pytest.mark.parametrize("nth", range(len(VERSIONS)), ids=["-".join(v) for v in VERSIONS])
def test_every_production_that_is_written_parses_back(nth: int, written: Any, tmp_path: Any) -> None:
    """Each version writes its share of the library, so that all faults and all versions are there."""
    torch, nccl = VERSIONS[nth]
    for path in LIBRARY[nth :: len(VERSIONS)]:
        scenario = read_scenario(path)
        write(scenario, tmp_path / path.stem / "own")
        write(scenario.model_copy(update={"torch": torch, "nccl": nccl}), tmp_path / path.stem / "other")
    assert written
    for family, record, text, fields in written.values():
        found = shared().one(family, text)
        assert found is not None, (family, record, text)
        assert record in (found.record, found.form), (family, record, text)
        assert {name: found.fields.get(name) for name in fields} == fields, (family, record, text)


@pytest.mark.parametrize("launcher", ["torchrun-dirs", "torchrun-tee", "srun", "kubectl", "plain"])
def test_a_whole_run_parses_back_to_what_ran(launcher: str, tmp_path: Any) -> None:
    """Steps and operations of each rank are those of the program; no line that looks like ours is left."""
    scenario = Scenario.model_validate(
        {
            "launcher": launcher,
            "nccl": "2.23.4",
            "trainer": "json",
            "topology": {"nodes": 2, "gpus": 2},
            "steps": {"count": 5},
            "parallel": {"buckets": 2, "elements": 100000},
            "logs": {"nccl": "coll"},
        }
    )
    ours = [("allgather", 2), ("broadcast", 400000), *[("allreduce", n) for n in (100000, 34452)] * 5, ("allreduce", 1)]
    with open_run([write(scenario, tmp_path)], db=tmp_path / "run.duckdb") as run:
        told = run.sql("SELECT rank, op, count FROM collectives ORDER BY rank, file_id, line_no").rows
        steps = run.sql("SELECT rank, step FROM step_lines").rows
        malformed = run.sql("SELECT sum(malformed) FROM files").rows
        ends = run.sql("SELECT outcome, ranks_expected FROM runs").rows
    assert Counter(steps) == Counter((rank, step) for rank in range(4) for step in range(5))
    assert [(rank, op, n) for rank, op, n in told] == [(rank, op, n) for rank in range(4) for op, n in ours]
    assert (malformed, ends) == ([(0,)], [("completed", 4)])
