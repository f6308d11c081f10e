"""Stamps without a year or a day, and where they come from."""

import calendar
import os
from pathlib import Path

import pytest

from replay.parse.clock import Clock
from replay.run import open_run


def at(*when: int) -> float:
    return float(calendar.timegm((*when, 0, 0, 0)[:6]))


def test_the_hint_wins() -> None:
    assert Clock(2021, at(2026, 5, 1), at(2024, 12, 31)).month_day("1231", "00:00:00") == at(2021, 12, 31)


@pytest.mark.parametrize(
    ("digits", "near", "year"),
    [
        ("1231", (2024, 12, 30), 2024),
        ("0101", (2024, 12, 31), 2025),
        ("1231", (2025, 1, 1), 2024),
        ("615", (2025, 1, 1), 2025),
    ],
)
def test_a_stamp_with_a_year_pulls_the_others_near(digits: str, near: tuple[int, int, int], year: int) -> None:
    found = Clock(None, at(2031, 7, 1), at(*near)).month_day(digits, "00:00:00")
    assert found == at(year, int(digits[:-2]), int(digits[-2:]))


def test_a_month_after_the_files_own_is_of_the_year_before() -> None:
    clock = Clock(None, at(2026, 2, 3))
    assert clock.month_day("1231", "00:00:00") == at(2025, 12, 31)
    assert clock.month_day("0202", "00:00:00") == at(2026, 2, 2)


def test_one_file_dates_another(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "err.log").write_text("[rank0]:W1231 23:59:58.000000 7 torch/_dynamo/guards.py:1] [0/1] late\n")
    (logs / "out.log").write_text(
        "2019-12-31 23:59:57,000 [rank 0] step 1 loss 2.0\n2020-01-01 00:00:01,000 [rank 0] step 2 loss 1.9\n"
    )
    with open_run([str(logs)], db=tmp_path / "x.duckdb") as run:
        span = run.sql("SELECT span_s FROM runs").rows
    assert span == [(4.0,)]


# ---- stamps without a day


def times(folder: Path, **files: str) -> dict[str, list[tuple[float | None, float | None]]]:
    """Bounds of the lines of each file, in seconds since 2026-03-01."""
    logs = folder / "logs"
    logs.mkdir()
    for name, text in files.items():
        (logs / f"{name}.log").write_text(text)
        os.utime(logs / f"{name}.log", (at(2026, 3, 1) + 60,) * 2)
    with open_run([str(logs)], db=folder / "x.duckdb") as run:
        rows = run.sql("SELECT path, t_lo, t_hi FROM lines JOIN files USING (file_id) ORDER BY path, line_no").rows
    begin = at(2026, 3, 1)
    found: dict[str, list[tuple[float | None, float | None]]] = {name: [] for name in files}
    for path, *bounds in rows:
        low, high = (None if t is None else t - begin for t in bounds)
        found[Path(path).stem].append((low, high))
    return found


def test_midnight_is_crossed_and_the_day_is_that_of_the_file(tmp_path: Path) -> None:
    text = "23:59:58 INFO rank 0 step 1 loss 2.5\n[23:59:59.500] step 2 loss 2.4\n00:00:01 | INFO | step 3 loss 2.3\n"
    assert times(tmp_path, rank_0=text)["rank_0"] == [(-2.0, -2.0), (-0.5, -0.5), (1.0, 1.0)]


def test_a_stamp_with_a_day_in_any_file_is_nearer_than_the_time_of_the_file(tmp_path: Path) -> None:
    found = times(tmp_path, rank_0="23:59:58 - step 1\n00:00:02 - step 2\n", rank_1="2026-02-10 00:00:00,500 step 1\n")
    assert found["rank_0"] == [(-19 * 86400 - 2, -19 * 86400 - 2), (-19 * 86400 + 2, -19 * 86400 + 2)]


def test_what_may_be_of_another_day_or_a_duration_lies_between_its_neighbours(tmp_path: Path) -> None:
    text = "00:00:05 - step 1\n12:00:00 - step 2\n00:00:07 elapsed\n00:00:09,250 - step 3\nlast words\n"
    found = times(tmp_path, rank_0=text)["rank_0"]
    assert found == [(5.0, 5.0), (5.0, 9.25), (5.0, 9.25), (9.25, 9.25), (9.25, None)]


def test_without_a_day_anywhere_nothing_is_told() -> None:
    assert Clock(2026, at(2026, 3, 1)).bare("10:00:00") is None
