"""The screens, driven by keys alone: from the first finding to the line that explains it."""

import asyncio
import atexit
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from tui_driver import CASES, ROOT, SIZES, app_of, drive, screen, settle, typed

from replay.report.wording import visible
from replay.run import open_run
from replay.tui.app import ReplayApp
from replay.tui.core import goal, marks, spans, track, wanted
from replay.tui.core.window import Mark, laid
from replay.tui.keys import KEYS, SIDE_KEYS
from replay.tui.layout import DECK, stand
from replay.tui.palette import JOINT, ODD_JOINT, SEVERE, SHAPES
from replay.tui.panel import wrapped

READ = Path(tempfile.mkdtemp(prefix="replay-test-tui-"))
"""Databases of the logs that these tests open: each is made once."""
atexit.register(shutil.rmtree, READ, ignore_errors=True)


def walk(logs: Path, keys: list[str], size: tuple[int, int], tmp_path: Path) -> tuple[list[str], ReplayApp]:
    """Open logs, press keys, and return what the screen shows then."""
    app = app_of(logs, READ / f"{logs.parent.name}.duckdb")

    async def look(app: ReplayApp, pilot: object) -> list[str]:
        return screen(app)

    return drive(app, keys, size, look), app


def case(name: str) -> Path:
    path = CASES / name / "logs"
    if not path.is_dir():
        pytest.skip("the labelled runs are not here")
    return path


def corpus(name: str) -> Path:
    return ROOT / "corpora" / name / "logs"


def test_events_and_spans_read_in_parts_are_those_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run([corpus("recompile-one-rank")], db=READ / "recompile-one-rank.duckdb") as run:
        con = run.cursor()
        whole = [track.load(con, 1), spans.load(con, 1)]
        for module in (track, spans):
            monkeypatch.setattr(module, "PART", 7)
        parts = [track.load(con, 1), spans.load(con, 1)]
        con.close()
    assert len(whole[0]) > 70
    assert len(whole[1]) > 14
    for one, other in zip(whole, parts, strict=True):
        columns = [name for name, value in vars(one).items() if isinstance(value, np.ndarray)]
        assert len(columns) > 4
        for name in columns:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


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
    app = app_of(corpus("healthy"), tmp_path / "run.duckdb")
    held, let_go = threading.Event(), threading.Event()

    async def drive() -> tuple[list[str], list[str]]:
        async with app.run_test(size=(120, 40)) as pilot:
            while app.session is None and app.failed is None:
                await pilot.pause(0.01)
            assert app.session is not None

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


@pytest.mark.parametrize("deck", DECK)
@pytest.mark.parametrize(("width", "height"), [*SIZES, (100, 60), (40, 10)])
def test_panels_fill_the_body_and_do_not_overlap(width: int, height: int, deck: str) -> None:
    cells = [
        (x, y)
        for box in stand(width, height, deck, lanes=7, findings=9).values()
        for x in range(box.x, box.x + box.width)
        for y in range(box.y, box.y + box.height)
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < width and 0 < y < height - 2 for x, y in cells)


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5", "6", "tab"])
def test_the_title_tells_which_panel_has_the_keys(key: str, tmp_path: Path) -> None:
    shown, _ = walk(corpus("healthy"), [key], (80, 24), tmp_path)
    marked = [row for row in shown if row[0] == "▶" and row[1].isdecimal()]
    assert [row[:2] for row in marked] == [f"▶{4 if key == 'tab' else key}"]


def test_lanes_get_the_room_that_findings_leave() -> None:
    assert stand(80, 24, "findings", lanes=19, findings=30)["lanes"].height == 7
    assert stand(80, 24, "findings", lanes=19, findings=2)["lanes"].height == 14
    assert stand(80, 24, "events", lanes=19, findings=2)["lanes"].height == 7
    assert stand(80, 24, "findings", lanes=6, findings=2)["lanes"].height == 6


def test_a_long_message_covers_no_line_that_is_looked_at(tmp_path: Path) -> None:
    made = tmp_path / "logs"
    made.mkdir()
    said = "step 1 loss 2.5\nTraceback (most recent call last):\n  File 't.py', line 3, in <module>\nValueError: "
    (made / "rank0.log").write_text(said + "a reason that is longer than a row of the screen " * 3 + "\n")
    (made / "rank1.log").write_text("step 1 loss 2.5\nstep 2 loss 2.5\n")

    async def look(app: ReplayApp, pilot: Any) -> list[str]:
        return screen(app)

    shown = drive(app_of(made, tmp_path / "run.duckdb"), [], (80, 24), look)
    assert shown[-3].startswith(" › F1  Rank 0 ended with ValueError")
    assert any(row.startswith("▶ 4 ValueError") for row in shown[:-3])
    assert shown[1].rstrip().endswith("these logs have no stamps")
    assert "+" not in shown[2]


def test_a_finding_says_of_which_run_it_is_where_there_are_several(tmp_path: Path) -> None:
    shown, _ = walk(corpus("restarts-one-console"), [], (120, 40), tmp_path)
    assert sum("run 1, proven" in row for row in shown) == 1
    assert any("run 3, proven" in row for row in shown)
    one, _ = walk(corpus("recompile-one-rank"), [], (120, 40), tmp_path)
    assert not any("run 1," in row for row in one)


def test_a_finding_that_is_no_wait_is_looked_at_where_it_was(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> None:
        session = app.session
        assert session is not None
        assert session.story is not None
        broken = next(f for f in session.story.report.findings if not f.waiting and f.chain)
        session.tour.to(broken.id)
        await settle(app, pilot)
        place = session.walk.place
        assert place.t in {ref.t for ref in session.story.refs[broken.id]}

    held(corpus("recompile-one-rank"), [], tmp_path, look)


def test_a_finding_that_took_no_time_does_not_narrow_the_picture(tmp_path: Path) -> None:
    shown, _ = walk(corpus("jobs-appended"), [], (120, 40), tmp_path)
    assert "whole run" in shown[1]
    waited, _ = walk(corpus("recompile-one-rank"), [], (120, 40), tmp_path)
    assert "whole run" not in waited[1]


def test_a_tall_screen_shows_findings_and_gives_events_the_rest() -> None:
    boxes = stand(100, 60, "findings", lanes=7, findings=9)
    assert boxes["findings"].height == 9
    assert boxes["events"].height == 57 - 7 - 5 - 9
    assert stand(100, 60, "events", lanes=7, findings=9)["findings"].height == 9


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> list[tuple[str, bool]]:
        session = app.session
        assert session is not None
        said = []
        for keys in (["d"], ["c"], ["c"], ["n"], ["x"], ["slash", *typed("no such word"), "enter"]):
            for key in keys:
                await pilot.press(key)
                await settle(app, pilot)
            said.append((session.message, session.is_error))
        return said

    made = tmp_path / "logs"
    made.mkdir()
    (made / "rank0.log").write_text(
        "2026-01-02 03:04:05,678 step 1 loss 2.5\n2026-01-02 03:04:06,678 step 2 loss 2.4\n"
    )
    said = drive(app_of(made, tmp_path / "run.duckdb"), [], (80, 24), look)
    assert not [text for text, is_error in said if is_error]
    assert [text for text, _ in said] == [
        "no difference between ranks was found where they must agree",
        "nothing that these logs tell leads further back from here",
        "nothing that these logs tell leads further back from here",
        "there are no findings",
        "there are no findings: there is nothing to make a script of",
        "0 of 2 events (esc takes the filter away)",
    ]


def test_a_moment_that_is_not_exact_is_told_as_one(tmp_path: Path) -> None:
    logs = corpus("skipped-collective")
    shown, _ = walk(logs, ["2", "G"], (120, 40), tmp_path)
    rows = [row for row in shown if "timeout" in row and "gloo" in row]
    assert len(rows) == 3
    assert all("~01:10:54.50" in row and "then or later: gloo timeout" in row for row in rows)
    details, _ = walk(logs, ["2", "G", "5"], (80, 24), tmp_path)
    assert any("not before 01:10:54.509" in row for row in details)


def test_a_filter_and_a_goal_say_what_they_mean() -> None:
    assert wanted.parse("rank:0-2 kind:step loss").ranks == frozenset({0, 1, 2})
    assert wanted.parse("where: severity = 'error'").where == "severity = 'error'"
    assert goal.parse("+12.5", 100.0, 200.0).number == 112.5
    assert goal.parse("a/b.log:7", 0, 1) == goal.Goal(goal.What.LINE, 7.0, "a/b.log")


def held(logs: Path, keys: list[str], tmp_path: Path, then: Callable[[ReplayApp, Any], Awaitable[Any]]) -> Any:
    """What is true of the app after some keys, while it is still running."""
    return drive(app_of(logs, READ / f"{logs.parent.name}.duckdb"), keys, (120, 40), then)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPLAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("where", ["corpus", "case"])
def test_the_whole_story_from_the_first_finding_to_the_guard_and_back(where: str, tmp_path: Path) -> None:
    logs = corpus("recompile-one-rank") if where == "corpus" else case("ragged-one-rank")
    size = (80, 24)
    first, _ = walk(logs, [], size, tmp_path)
    assert any("recompiled forward while" in row for row in first)
    assert any("waiting" in row for row in first)
    late, _ = walk(logs, ["c"], size, tmp_path)
    said = " ".join(row.strip() for row in late[-4:-1])  # a long message takes more than one row
    assert "waited" in said
    assert "compiled again" in said
    why, _ = walk(logs, ["c", "c"], size, tmp_path)
    assert any("because a guard failed" in row for row in why[-4:])
    end, _ = walk(logs, ["c", "c", "5"], size, tmp_path)
    assert any("expected" in row for row in end)
    assert any("actual" in row for row in end)
    back, app = walk(logs, ["c", "c", "o", "o"], size, tmp_path)
    assert back[0] == first[0]
    assert app.failed is None


def test_the_history_of_queries_comes_back_with_the_arrow_keys(tmp_path: Path) -> None:
    logs = corpus("healthy")
    ask = ["s", "ctrl+u", *typed("SELECT 41 + 1 AS answer"), "enter"]
    shown, _ = walk(logs, ask, (100, 30), tmp_path)
    assert any("42" in row for row in shown)
    again, _ = walk(logs, ["s", "up"], (100, 30), tmp_path)
    assert "SELECT 41 + 1 AS answer" in again[0]
    assert (tmp_path / "cache" / "sql-history.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "begin"), [("a.csv", "answer\n42\n"), ("a.jsonl", '{"answer": 42}\n'), ("a.parquet", "PAR1")]
)
def test_an_answer_is_exported(name: str, begin: str, tmp_path: Path) -> None:
    keys = ["s", "ctrl+u", *typed("SELECT 42 AS answer"), "enter", "ctrl+e", "ctrl+u", *typed(name), "enter"]
    shown, _ = walk(corpus("healthy"), keys, (100, 30), tmp_path)
    assert any("wrote" in row for row in shown)
    assert (tmp_path / name).read_bytes().startswith(begin.encode())


def test_a_wrong_export_says_so(tmp_path: Path) -> None:
    keys = ["s", "enter", "ctrl+e", "ctrl+u", *typed("a.txt"), "enter"]
    shown, _ = walk(corpus("healthy"), keys, (100, 30), tmp_path)
    assert any("a file ends in .csv, .jsonl or .parquet" in row for row in shown)


def test_a_row_of_an_answer_leads_to_its_line(tmp_path: Path) -> None:
    query = "SELECT file_id, line_no FROM guard_failures WHERE line_no > 100 ORDER BY ALL LIMIT 1"
    keys = ["s", "ctrl+u", *typed(query), "enter", "ctrl+o", "enter"]
    shown, _ = walk(corpus("recompile-one-rank"), keys, (120, 40), tmp_path)
    assert any("3/stderr.log:" in row for row in shown)


def test_tab_completes_names_of_tables_and_columns(tmp_path: Path) -> None:
    keys = ["s", "ctrl+u", *typed("FROM guard_fa"), "tab", *typed(" WHERE expe"), "tab"]
    shown, _ = walk(corpus("healthy"), keys, (100, 30), tmp_path)
    assert "FROM guard_failures WHERE expected" in shown[0]
    written, _ = walk(corpus("healthy"), ["s"], (100, 30), tmp_path)
    assert not any("tab: DESC" in row for row in written)


def test_the_mouse_moves_the_cursor_unfolds_and_zooms(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> None:
        session = app.session
        assert session is not None
        await pilot.click("#lanes", offset=(40, 2))
        await settle(app, pilot)
        assert session.walk.place.rank == 0
        moment, span = session.walk.place.t, session.walk.window.span
        await pilot.click("#lanes", offset=(20, 4))
        await settle(app, pilot)
        assert session.walk.place.rank == 2
        assert session.walk.place.t < moment
        await pilot._post_mouse_events([MouseScrollUp], "#lanes", offset=(30, 3), button=0)
        await settle(app, pilot)
        assert session.walk.window.span < span
        await pilot.click("#events", offset=(30, 3))
        await settle(app, pilot)
        assert app.focused is not None
        assert app.focused.id == "events"
        event = session.walk.place.event
        await pilot._post_mouse_events([MouseScrollDown], "#events", offset=(30, 3), button=0)
        await settle(app, pilot)
        assert session.walk.place.event == event + 1

    held(corpus("recompile-one-rank"), ["0"], tmp_path, look)


def test_the_next_event_is_later_than_the_moment_in_a_wait(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> None:
        session = app.session
        assert session is not None
        moment, rank = session.walk.place.t, session.walk.place.rank
        track, event = session.book.track, session.walk.place.event
        assert event is not None
        assert track.t[event] < moment - 1  # the finding is looked at in the middle of the wait
        for move, is_later in ((session.event, True), (session.event, False), (session.recompile, False)):
            move(1 if is_later else -1)
            found = session.walk.place.event
            assert found is not None
            assert (track.t[found] > moment) == is_later
            assert abs(found - int(np.searchsorted(track.t, moment))) <= 3
            session.to_time(moment, rank)
        session.recompile(1)
        assert session.walk.place.t > moment

    held(corpus("recompile-one-rank"), [], tmp_path, look)


def test_a_span_that_cannot_be_shown_is_told(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> list[str]:
        session = app.session
        assert session is not None
        said = []
        for key in ["0", "0", "minus", "comma", "full_stop", "plus", *["full_stop"] * 4, *["plus"] * 30]:
            await pilot.press(key)
            said.append(session.message)
        return said

    said = held(corpus("recompile-one-rank"), [], tmp_path, look)
    assert said[:6] == ["", *["this is the whole run"] * 2, "the run begins here", "the run ends here", ""]
    assert said[9] == "the run ends here"
    assert said[-1] == "this is as close as times are known"


def test_play_runs_forwards_and_backwards_and_ends_at_the_rim(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> None:
        session = app.session
        assert session is not None
        session.walk.to_time(session.book.first + 20)
        began = session.walk.place.t
        session.play()
        session.tick(2.0)
        assert session.walk.place.t == pytest.approx(began + 2)
        session.walk.reverse()
        session.tick(4.0)
        assert session.walk.place.t == pytest.approx(began - 2)
        session.walk.faster(1)
        session.tick(1.0)
        assert session.walk.place.t == pytest.approx(began - 4)
        session.tick(1e6)
        assert session.walk.place.t == session.book.first
        assert not session.is_playing
        assert session.message == "the run begins here"

    held(corpus("recompile-one-rank"), [], tmp_path, look)


def test_every_key_is_in_the_help_and_in_the_palette(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> tuple[str, set[str]]:
        commands = {command.title for command in app.get_system_commands(app.screen)}
        await pilot.press("question_mark")
        await pilot.resize_terminal(240, 70)
        await settle(app, pilot)
        return "\n".join(screen(app)), commands

    shown, commands = held(corpus("healthy"), [], tmp_path, look)
    for key in KEYS:
        assert key.shown in shown
        assert any(title.startswith(key.help) for title in commands)
    assert all(key.shown in shown for key in SIDE_KEYS)


def test_a_command_of_the_palette_is_run(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> bool:
        await pilot.press("ctrl+p", *typed("play the other way round"))
        while not app.screen.query("OptionList Option, CommandList"):
            await pilot.pause(0.01)
        for _ in range(500):  # the palette searches in its own time
            await pilot.press("enter")
            await pilot.pause(0.01)
            assert app.session is not None
            if app.session.walk.speed < 0:
                return True
        return False

    assert held(corpus("healthy"), [], tmp_path, look)


def test_copy_is_markdown_and_a_picture_is_saved(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> str:
        return app.clipboard

    copied = held(corpus("recompile-one-rank"), ["y", "P"], tmp_path, look)
    assert "Rank 3 recompiled forward" in copied
    assert "stderr.log:" in copied
    pictures = list(tmp_path.glob("replay-*.svg"))
    assert len(pictures) == 1
    assert "<svg" in pictures[0].read_text()


def test_what_if_takes_out_the_cause_of_the_finding_and_puts_it_back(tmp_path: Path) -> None:
    logs = corpus("recompile-one-rank")
    without, _ = walk(logs, ["w"], (120, 40), tmp_path)
    assert any("Without recompiles on rank 3" in row and "saved" in row for row in without)
    assert any("[ ] recompiles on rank 3" in row for row in without)
    put_back, _ = walk(logs, ["w", "space"], (120, 40), tmp_path)
    assert not any("[ ]" in row for row in put_back)
    assert any("What is known to have taken time" in row for row in put_back)
    assert any("would be" in row for row in without)
    assert not any("would be" in row for row in put_back)
    no_line, _ = walk(logs, ["w", "down", "down", "down", "enter"], (120, 40), tmp_path)
    assert any("no line tells of this one" in row for row in no_line)


def test_repro_writes_only_when_it_is_told_to(tmp_path: Path) -> None:
    async def look(app: ReplayApp, pilot: Any) -> None:
        assert any("import torch" in row for row in screen(app))
        assert not (tmp_path / "repro-F1").exists()
        await pilot.press("r", "n", "o", "enter")
        await settle(app, pilot)
        assert any("not run" in row for row in screen(app))
        assert not (tmp_path / "repro-F1").exists()
        await pilot.press("w")
        while not any("REPORT.md" in row or "!" in row for row in screen(app)):
            await pilot.pause(0.05)
        assert (tmp_path / "repro-F1" / "repro.py").read_text().startswith("#")

    held(corpus("recompile-one-rank"), ["x"], tmp_path, look)


def test_a_script_is_run_to_its_end_and_judged(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    async def look(app: ReplayApp, pilot: Any) -> list[str]:
        await pilot.press("r", "y", "e", "s", "enter")
        while any("running it" in row or "making the script" in row for row in screen(app)):
            await pilot.pause(0.05)
        return screen(app)

    shown = held(corpus("recorded/recompile-dtype"), ["x"], tmp_path, look)
    assert any("verified, in repro-F1/ with REPORT.md" in row for row in shown), shown
    assert any("with the advised change the cause is gone" in row for row in shown), shown
    assert "verified" in (tmp_path / "repro-F1" / "REPORT.md").read_text()


def test_states_marks_and_folds_differ_in_shape_not_only_in_colour() -> None:
    shapes = [*SHAPES.values(), *SEVERE.values(), JOINT, ODD_JOINT]
    assert len(set(shapes)) == len(shapes)


def test_the_word_of_a_step_moves_out_of_the_way_of_the_cursor() -> None:
    found = [Mark(2, "step 4", True), Mark(20, "step 5", True)]
    assert laid(found, 30, None) == "  step 4            step 5    "
    assert laid(found, 30, 4) == "    ▼step 4         step 5    "
    assert laid(found, 30, 23) == "  step 4               ▼step 5"
    assert laid(found, 28, 25) == "  step 4           step 5▼  "
