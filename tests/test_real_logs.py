"""Every real log at hand is diagnosed, and each of its lines is counted once. Skipped where the logs are not there."""

from pathlib import Path

import pytest

from replay.run import open_run

SHARED = Path(__file__).parents[2] / "shared"
LOGS = sorted([*SHARED.glob("wild/*.log"), *SHARED.glob("nccl_real/*.log")])

pytestmark = pytest.mark.skipif(not LOGS, reason="the shared logs are not here")


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_real_log_is_diagnosed_and_its_lines_add_up(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    if not content:
        pytest.skip("empty: an input error, which has tests of its own")
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    with open_run([str(path)], db=tmp_path / "run.duckdb") as run:
        report = run.report()
        kept = run.sql("SELECT class, count(*) FROM lines GROUP BY class").rows
        unproven = [e for f in report.findings for e in f.evidence if e.line and not 1 <= e.line <= lines]
    coverage = report.coverage
    counts = {
        "parsed": coverage.parsed,
        "continuation": coverage.continuation,
        "plain": coverage.plain,
        "malformed": coverage.malformed,
    }
    assert sum(counts.values()) == coverage.lines == lines
    assert dict(kept) == {name: count for name, count in counts.items() if count}
    assert coverage.malformed <= max(1, lines // 100)
    assert not unproven


READINGS = {
    "09_mpirun_efa_p5_16r": (set(), None),
    "11_srun_label_ib_error_timelimit": ({"ib-transport-error"}, [10]),
    "27_torchtitan_oom_8r": ({"device-oom"}, [0, 1, 3]),
    "34_torchtrace_comp_failure": ({"backend-compile-failure"}, None),
    "46_watchdog_garbage_completed": (set(), None),
    "49_recompiles": ({"recompile-dtype", "recompile-dynamic-shape"}, None),
    "51_interleaved_py311_tb": ({"rank-exception"}, [1]),
    "52_watchdog27_ddp_shape_check": (set(), None),
}
"""Causes that may stand as roots, and their ranks; no cause: healthy, or honestly not known."""


@pytest.mark.parametrize("name", READINGS)
def test_a_strangers_run_is_read_as_people_read_it(name: str, tmp_path: Path) -> None:
    causes, ranks = READINGS[name]
    with open_run([str(SHARED / "wild" / f"{name}.log")], db=tmp_path / "run.duckdb") as run:
        roots = [f for f in run.findings() if f.root and f.kind == "cause"]
    assert bool(roots) == bool(causes)
    assert {f.cause for f in roots} <= causes
    if ranks is not None:
        assert [list(f.ranks) for f in roots] == [ranks]
