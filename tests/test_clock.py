"""Stamps without a year, and where their year comes from."""

import calendar
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
