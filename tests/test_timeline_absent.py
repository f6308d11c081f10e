"""Who did not come, what checks of torch say together, sends without receives, crossed communicators."""

import pytest
from test_timeline_derive import Ranks


def gave_up(run, rank, t, seq, enqueued=None, **columns):
    run.add(
        "timeouts",
        rank,
        t,
        **{"kind": "watchdog", "op": "allreduce", "group_name": "0", "group_rank": rank, "logged_seq": seq}
        | {"last_enqueued": enqueued or seq, "last_completed": seq and seq - 1, "ran_ms": 600000}
        | columns,
    )


def absent(run):
    return run.derive().ask("SELECT rank, waiting, how, doing FROM absentees ORDER BY rank")


def test_a_rank_whose_count_is_lower_did_not_come():
    run = Ranks(4)
    for rank in (0, 1, 3):
        gave_up(run, rank, 1000.0, 12)
    gave_up(run, 2, 1000.0, None, 11, kind="dump-signal")
    assert absent(run) == [(2, [0, 1, 3], "behind", "unknown")]


@pytest.mark.parametrize(("size", "found"), [(4, [(2, [0, 1, 3], "behind", "unknown")]), (2, [])])
def test_a_rank_that_launched_less_by_the_count_of_nccls_service_did_not_come(size, found):
    run = Ranks(4)
    for rank in (0, 1, 3):
        gave_up(run, rank, 1000.0, 12)
    for rank in run.ranks:
        run.step(rank, 1, 300.0)
    report = {"comm_hash": "1f", "comm_size": size, "aspect": "launched", "op": "allreduce"}
    run.add("ras_reports", 0, 999.0, **report, launched=6650)
    run.add("ras_reports", 0, 999.0, **report, launched=6649, comm_rank=2)
    run.add("timeouts", 2, 990.0, kind="store", text="Socket Timeout")  # it was heard
    assert absent(run) == found


def test_ranks_that_all_came_are_not_absent():
    run = Ranks(3)
    for rank in run.ranks:
        gave_up(run, rank, 1000.0, 1)
    assert absent(run) == []


def test_one_silent_rank_is_absent_and_many_are_not():
    few, many = Ranks(4), Ranks(4)
    for run, waiting in ((few, (0, 1, 2)), (many, (0, 1))):
        for rank in run.ranks:
            run.step(rank, 1, 300.0)
        for rank in waiting:
            gave_up(run, rank, 1000.0, 12)
    assert absent(few) == [(3, [0, 1, 2], "silent", "unknown")]
    assert absent(many) == []


def test_a_member_of_another_group_is_not_missed():
    run = Ranks(4)
    for rank in run.ranks:
        run.step(rank, 1, 300.0)
    for rank in (1, 3):
        gave_up(run, rank, 1000.0, 12, group_name="7", group_rank=rank // 2)
    assert absent(run) == []


@pytest.mark.parametrize(
    ("kind", "phase", "doing"),
    [
        ("save", "begin", "save"),
        ("save", "end", "unknown"),
        ("preprocess", "progress", "preprocess"),
        ("exhausted", "point", "exhausted"),
    ],
)
def test_what_the_absent_did_is_the_last_that_it_said(kind, phase, doing):
    run = Ranks(3)
    for rank in run.ranks:
        run.step(rank, 1, 300.0)
    run.add("activities", 1, 301.0, kind=kind, phase=phase)
    for rank in (0, 2):
        gave_up(run, rank, 1000.0, 12)
    assert [row[::3] for row in absent(run)] == [(1, doing)]


def test_a_save_before_the_last_step_is_over():
    run = Ranks(3)
    for rank in run.ranks:
        run.add("activities", rank, 299.0, kind="save", phase="begin")
        run.step(rank, 1, 300.0)
    for rank in (0, 2):
        gave_up(run, rank, 1000.0, 12)
    assert absent(run) == [(1, [0, 2], "silent", "unknown")]


def test_the_dead_are_dead():
    run = Ranks(3)
    for rank in run.ranks:
        run.step(rank, 1, 300.0)
    run.add("exceptions", 1, 301.0, type="ValueError", category="user", is_uncaught=True)
    for rank in (0, 2):
        gave_up(run, rank, 1000.0, 12)
    assert absent(run) == [(1, [0, 2], "silent", "dead")]


def ends_of_data(short, others, ends):
    run = Ranks(3)
    for rank in run.ranks:
        for step in range(4):
            run.step(rank, step, 300.0 + step)
    for rank in short:
        for _ in range(ends):
            run.add("activities", rank, 304.0, kind="exhausted", phase="point")
    for rank in others:
        gave_up(run, rank, 1000.0, None, kind="gloo", group_name=None, group_rank=None)
    return absent(run)


def test_the_fewer_are_out_of_data_or_have_more_of_it():
    assert ends_of_data([1], [0, 1, 2], 1) == [(1, [0, 2], "exhausted", "exhausted")]
    assert ends_of_data([0, 2], [0, 1, 2], 1) == [(1, [0, 2], "longer", "longer")]


def test_rank_0_may_be_the_only_one_that_tells_of_the_end_of_an_epoch():
    assert ends_of_data([0], [0, 1, 2], 1) == []


def test_who_ran_out_of_data_says_so_whatever_group_the_others_wait_in():
    run = Ranks(4)
    for rank in run.ranks:
        run.step(rank, 1, 300.0)
        run.step(rank, 2, 301.0)
    run.add("activities", 3, 302.0, kind="exhausted", phase="point")
    for rank in (0, 1, 2):
        gave_up(run, rank, 1000.0, 12, group_name=None, group_rank=rank // 2)
    assert absent(run) == [(3, [0, 1, 2], "exhausted", "exhausted")]


def checks(pairs, group=None):
    run = Ranks(4)
    for rank, other, mine, theirs in pairs:
        run.add(
            "mismatches",
            rank,
            5.0,
            group_rank=None if group is None else group.index(rank),
            other_rank=other,
            aspect="shape",
            mine=mine,
            theirs=theirs,
            op="allreduce",
            logged_seq=2,
        )
    return run.derive().ask("SELECT odd, agreed, odd_aspect FROM matched WHERE source = 'check'")


def test_checks_are_put_together():
    assert checks([(0, 2, "16", "12"), (1, 2, "16", "12"), (2, 0, "12", "16"), (3, 2, "16", "12")]) == [
        ([2], [0, 1, 3], "count")
    ]


def test_checks_name_ranks_inside_their_group():
    """Ranks 1 and 3 call themselves 0 and 1."""
    assert checks([(1, 1, "16", "12"), (3, 0, "12", "16")], group=[1, 3]) == [([3], [1], "count")]


def test_a_rank_of_a_group_that_says_nothing_itself_is_not_named():
    assert checks([(2, 2, "16", "12"), (3, 2, "16", "12")], group=[2, 3, 1]) == []


def test_all_that_differ_from_rank_0_make_rank_0_odd():
    assert checks([(1, 0, "16", "12"), (2, 0, "16", "12"), (3, 0, "16", "12")]) == [([0], [1, 2, 3], "count")]


def test_a_report_names_its_culprits_itself():
    assert checks([(0, 3, "16", "12"), (1, None, "12", "16")]) == [([1], [], "count")]


def pipeline(last):
    """Three steps of two sends from rank 0 to 1, which sends each on to 2; `last` is the last step of rank 1."""
    run = Ranks(3)
    for step in range(3):
        for _ in range(2):
            run.op(0, "send", peer=1)
        for op, peer in last if step == 2 else [("recv", 0), ("send", 2)] * 2 + [("recv", 2)]:
            run.op(1, op, peer=peer)
        for op, peer in [("recv", 1)] * 2 + [("send", 1)]:
            run.op(2, op, peer=peer)
    return run.derive().ask(
        "SELECT op, missing, skipped FROM matched WHERE odd_aspect = 'peer' AND op = 'send' AND ranks = [0]"
    )


def test_a_receive_is_left_out_if_its_rank_went_on():
    assert pipeline([("recv", 0), ("send", 2), ("send", 2), ("recv", 2), ("send", 2), ("recv", 2)]) == [
        ("send", [1], [1])
    ]


def test_a_log_that_ends_early_left_nothing_out():
    assert pipeline([("recv", 0), ("send", 2)]) == [("send", [1], [])]


def crossed(orders):
    run = Ranks(len(orders))
    for rank, order in enumerate(orders):
        for comm in "abab" + order:
            run.op(rank, comm=comm, comm_id=comm)
    return run.derive().ask("SELECT comm_id, other_comm, ranks, others, times FROM crossings")


def test_communicators_that_are_used_in_another_order_are_crossed():
    assert crossed(["ab", "ab", "ba"]) == [("a", "b", [2], [0, 1], 1)]
    assert crossed(["ab", "ba"]) == [("a", "b", [1], [0], 1)]


def test_the_same_order_crosses_nothing():
    assert crossed(["ab"] * 3) == []
