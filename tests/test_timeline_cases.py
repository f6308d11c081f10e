"""The timeline on labelled runs, from their files on. Skipped where these are not at hand."""

from pathlib import Path

import pytest
from factory import make_db

from replay.grammar.executor import shared
from replay.parse.pipeline import parse_file
from replay.sources.discover import discover
from replay.sources.model import Hints
from replay.sources.read import read_batches
from replay.store.writer import TableSink
from replay.timeline.derive import derive
from replay.timeline.identify import identify

CASES = Path(__file__).parent.parent.parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the labelled runs are not here")


def ask(case, *queries):
    con, hints = make_db(), Hints()
    sink = TableSink(con)
    for file in discover([str(CASES / case / "logs")], hints).files:
        counts = parse_file(file, read_batches(file, hints), sink, hints, shared())
        sink.file(file, counts, ends_whole=True)
    sink.flush()
    identify(con, hints)
    derive(con)
    return [con.execute(query).fetchall() for query in queries]


@pytest.mark.parametrize("style", ["--kubectl", "--merged-rankprefix", "--srun-label-padded"])
def test_the_stalls_of_one_ragged_rank_whatever_collected_the_log(style):
    stalls, outcome = ask(
        f"ragged-one-rank{style}",
        "SELECT step, late_rank, waiting, late_doing, round(lost_s, 1) FROM stalls ORDER BY step",
        "SELECT outcome, ranks_expected, ranks_seen, last_step FROM runs",
    )
    assert stalls == [(4, 2, [0, 1, 3], "compiling", 9.3), (8, 2, [0, 1, 3], "compiling", 6.5)]
    assert outcome == [("completed", 4, 4, 9)]


@pytest.mark.parametrize(
    ("case", "late", "doing"),
    [
        ("slow_host_rank1", 1, "forward"),
        ("loader_slow_rank2", 2, "data"),
        ("rankwork_eval_slow", 0, "eval"),
        ("rc_dtype_rank1", 1, "compiling"),
        ("rc_requires_grad", 0, "compiling"),
        ("rc_list_length", 2, "compiling"),
    ],
)
def test_who_was_late_and_why(case, late, doing):
    (stalls,) = ask(case, "SELECT DISTINCT late_rank, late_doing FROM stalls")
    assert stalls == [(late, doing)]


@pytest.mark.parametrize(
    "case", ["rankwork_healthy", "rc_healthy_kubectl", "uneven_healthy", "healthy-tp-dp-a", "healthy-16-ranks-a"]
)
def test_healthy_runs_have_neither_stalls_nor_odd_operations(case):
    stalls, odd, outcome = ask(
        case,
        "FROM stalls",
        "FROM matched WHERE odd_aspect IS NOT NULL OR len(missing) > 0",
        "SELECT DISTINCT outcome FROM runs",
    )
    assert (stalls, odd, outcome) == ([], [], [("completed",)])


@pytest.mark.parametrize(
    ("case", "odd"),
    [
        ("collective-dtype-mismatch-a", [(1, [2], "dtype"), (2, [2], "dtype")]),
        ("collective-order-mismatch-a", [(17, [1], "op")]),
        ("collective-root-mismatch-a", [(12, [2], "root")]),
        ("collective-shape-mismatch-a", [(11, [3], "count")]),
        ("collective-skipped-a", [(22, [2], None)]),
        ("collective-sendrecv-mismatch-a", [(11, [2], "peer")]),
        ("config-algo-one-rank-a", []),
    ],
)
def test_the_odd_rank_of_an_operation(case, odd):
    (found,) = ask(
        case,
        """SELECT nth, list_distinct(odd || missing), odd_aspect FROM matched
        WHERE odd_aspect IS NOT NULL OR len(missing) > 0 ORDER BY nth""",
    )
    assert found == odd


def test_attempts_are_runs_and_the_launchers_lines_are_shared_out():
    runs, exits = ask(
        "restart_same_failure",
        "SELECT run_id, attempt FROM runs ORDER BY run_id",
        "SELECT DISTINCT run_id FROM exits ORDER BY run_id",
    )
    assert runs == [(1, 0), (2, 1), (3, 2)]
    assert exits[-1] == (3,)


@pytest.mark.parametrize(
    ("case", "query", "rows"),
    [
        ("order_hashseed_ab", "SELECT name, step FROM divergences WHERE kind = 'order'", [("sample_ids", 0)]),
        ("order_same_ab", "SELECT name FROM divergences", []),
        (
            "bf16_in_run_b",
            "SELECT name, value FROM divergences WHERE kind = 'setting' ORDER BY name",
            [("autocast", "True"), ("dtype", "torch.bfloat16")],
        ),
        (
            "init-differs",
            "SELECT count(*) > 0 FROM divergences WHERE name LIKE 'checksum.%' AND other_run IS NULL",
            [(True,)],
        ),
        ("same-seed-other-numbers", "SELECT run_id, step FROM divergences WHERE name = 'loss'", [(2, 0)]),
        (
            "compare_eval_train",
            "SELECT name FROM divergences ORDER BY name",
            [("candidate.compiled",), ("candidate.training",)],
        ),
    ],
)
def test_where_runs_and_ranks_part(case, query, rows):
    assert ask(case, query) == [rows]
