"""The screens, driven by keys alone: from the first finding to the line that explains it."""

import asyncio
import threading
from pathlib import Path

import pytest

from replay.report.wording import visible
from replay.run import open_run
from replay.tui.app import ReplayApp
from replay.tui.core import goal, marks, wanted
from replay.tui.layout import stand
from replay.tui.panel import wrapped

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"
SIZES = [(80, 24), (120, 40), (240, 70)]


def screen(app: ReplayApp) -> list[str]:
    return [strip.text for strip in app.screen._compositor.render_strips()]


def walk(logs: Path, keys: list[str], size: tuple[int, int], tmp_path: Path) -> tuple[list[str], ReplayApp]:
    """Open logs, press keys, and return what the screen shows then."""
    app = ReplayApp(lambda progress: open_run([logs], db=tmp_path / "run.duckdb", progress=progress), [str(logs)])

    async def drive() -> list[str]:
        async with app.run_test(size=size) as pilot:
            while app.session is None and app.failed is None:
                await pilot.pause(0.01)
            for key in [None, *keys]:
                if key is not None:
                    await pilot.press(key)
                while app.session is not None:
                    await asyncio.get_running_loop().run_in_executor(None, app.session.wait)
                    await pilot.pause()
                    if not app.session.is_busy:
                        break
            await pilot.pause()
            return screen(app)

    return asyncio.run(drive()), app


def case(name: str) -> Path:
    path = CASES / name / "logs"
    if not path.is_dir():
        pytest.skip("the labelled runs are not here")
    return path


def corpus(name: str) -> Path:
    return ROOT / "corpora" / name / "logs"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("where", ["corpus", "case"])
def test_the_chain_leads_from_the_wait_to_the_failed_guard_by_keys(
    where: str, size: tuple[int, int], tmp_path: Path
) -> None:
    logs = corpus("recompile-one-rank") if where == "corpus" else case("ragged-one-rank")
    shown, _ = walk(logs, ["c", "c", "c"], size, tmp_path)
    text = "\n".join(shown)
    assert len(shown) == size[1]
    assert "the chain begins here" in text
    assert "size mismatch" in text
    assert ":134 " in text if where == "corpus" else ":270 " in text


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_hang_leads_to_the_rank_that_did_not_come(size: tuple[int, int], tmp_path: Path) -> None:
    shown, _ = walk(case("skipped-allreduce"), ["c", "c"], size, tmp_path)
    text = "\n".join(shown)
    assert "2/stdout.log:7" in text
    assert "the chain begins here" in text


def test_a_shipped_hang_is_walked(tmp_path: Path) -> None:
    shown, _ = walk(corpus("skipped-collective"), ["n", "c"], (120, 40), tmp_path)
    assert any("Rank 1 left out step 7" in line for line in shown)


@pytest.mark.parametrize("desk", ["desk", "slow"])
def test_a_query_that_takes_long_holds_up_nobody(desk: str, tmp_path: Path) -> None:
    app = ReplayApp(lambda progress: open_run([corpus("healthy")], db=tmp_path / "run.duckdb", progress=progress), [])
    held, let_go = threading.Event(), threading.Event()

    async def drive() -> tuple[list[str], list[str]]:
        async with app.run_test(size=(120, 40)) as pilot:
            while app.session is None:
                await pilot.pause(0.01)

            def hold(con: object) -> None:
                held.set()
                let_go.wait(60)

            getattr(app.session, desk).ask("hold", hold, lambda answer: None)
            await asyncio.get_running_loop().run_in_executor(None, held.wait)
            before = app.session.walk.place
            await pilot.press("0", "right", "right", "right")
            await pilot.pause()
            shown = screen(app)
            assert app.session.walk.place != before
            position = app.session.walk.place.event
            let_go.set()
            return shown, [f"{position + 1:,} of", "ranks × time"]

    shown, wanted_texts = asyncio.run(drive())
    for text in wanted_texts:
        assert any(text in line for line in shown)


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    shown, app = walk(tmp_path / "logs", [], (80, 24), tmp_path)
    assert app.failed is not None
    assert any("replay ls LOGS" in line for line in shown)


@pytest.mark.parametrize(
    "key", ["question_mark", "s", "slash", "colon", "z", "a", "t", "r", "space", "minus", "0", "d"]
)
def test_every_key_leaves_a_screen(key: str, tmp_path: Path) -> None:
    shown, app = walk(corpus("recompile-one-rank"), [key], (100, 30), tmp_path)
    assert any(line.strip() for line in shown)
    assert app.return_code in {None, 0}


@pytest.mark.parametrize(
    "text",
    ["\x1b[31mred\x1b[0m", "a\x00b\x07c", "[bold]not markup[/bold]", "x" * 100_000, "日本語" * 200, "\u202eturned"],
)
def test_untrusted_text_is_shown_harmlessly(text: str) -> None:
    made = "".join(piece.text for piece in marks.pieces(text))
    assert made.isprintable()
    assert len(made) < 20_000
    assert all(row for row in wrapped(visible(text), 20, 3))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_panels_fill_the_body_and_do_not_overlap(width: int, height: int) -> None:
    cells = [
        (x, y)
        for box in stand(width, height, 7, "findings").values()
        for x in range(box.x, box.x + box.width)
        for y in range(box.y, box.y + box.height)
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < width and 0 < y < height - 2 for x, y in cells)


def test_a_filter_and_a_goal_say_what_they_mean() -> None:
    assert wanted.parse("rank:0-2 kind:step loss").ranks == frozenset({0, 1, 2})
    assert wanted.parse("where: severity = 'error'").where == "severity = 'error'"
    assert goal.parse("+12.5", 100.0, 200.0).number == 112.5
    assert goal.parse("a/b.log:7", 0, 1) == goal.Goal(goal.What.LINE, 7.0, "a/b.log")
