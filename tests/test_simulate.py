"""The recurrence against its definition, and what-if against runs that did take place."""

import duckdb
import numpy as np
import pytest
from factory import insert as insert_row
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tables import START, Delay, Made

from replay import simulate
from replay.errors import UsageError
from replay.simulate import Change, Without, costs, doings
from replay.simulate.medians import medians
from replay.simulate.model import parse_ranks
from replay.simulate.recurrence import replay, schedule
from replay.store import schema
from replay.timeline.derive import derive

# ---- the recurrence


def by_definition(programs, own, after, waits, begin):
    """Ranks take one arrival after the other; an operation takes place when all that share it stand at it."""
    at = [0] * len(programs)
    free = list(begin)
    enter, leave = {}, {}
    while any(at[r] < len(programs[r]) for r in range(len(programs))):
        heads = {r: programs[r][at[r]] for r in range(len(programs)) if at[r] < len(programs[r])}
        ready = [o for o in set(heads.values()) if all(heads.get(r) == o for r, p in enumerate(programs) if o in p)]
        assert ready
        operation = ready[0]
        members = [r for r, o in heads.items() if o == operation]
        for r in members:
            enter[r, at[r]] = free[r] + own[r][at[r]]
        start = max(enter[r, at[r]] for r in members)
        for r in members:
            from_when = start if waits[r][at[r]] else enter[r, at[r]]
            free[r] = leave[r, at[r]] = from_when + after[r][at[r]]
            at[r] += 1
    return enter, leave


@st.composite
def programs(draw):
    """Programs of a few ranks: operations in one order, each shared by some of them, so that nobody waits for good."""
    ranks = draw(st.integers(1, 5))
    members = draw(st.lists(st.sets(st.integers(0, ranks - 1), min_size=1), min_size=1, max_size=12))
    lists = [[o for o, who in enumerate(members) if r in who] for r in range(ranks)]
    return [p for p in lists if p]


@settings(max_examples=150, deadline=None)
@given(programs(), st.randoms(use_true_random=False))
def test_levels_give_what_one_operation_after_the_other_gives(lists, random):
    shape = [[random.uniform(0, 2) for _ in p] for p in lists]
    after = [[random.uniform(0, 0.5) for _ in p] for p in lists]
    waits = [[random.random() < 0.8 for _ in p] for p in lists]
    begin = [random.uniform(0, 3) for _ in lists]
    enter, leave = by_definition(lists, shape, after, waits, begin)

    def flat(values):
        return np.array([v for row in values for v in row])

    who = np.repeat(np.arange(len(lists)), [len(p) for p in lists])
    _, what = np.unique(flat(lists), return_inverse=True)
    course = replay(
        schedule(who, what, np.zeros(len(who))),
        flat(shape),
        who=who,
        what=what,
        after=flat(after),
        waits=flat(waits),
        begin=np.array(begin),
    )
    keys = [(r, n) for r, p in enumerate(lists) for n in range(len(p))]
    assert np.allclose(course.enter, [enter[k] for k in keys])
    assert np.allclose(course.leave, [leave[k] for k in keys])


def test_two_operations_that_wait_for_each_other_are_let_go_once():
    who, what = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    plan = schedule(who, what, np.array([1.0, 2.0, 1.5, 3.0]))
    assert plan.knots == 1
    assert sorted(plan.order.tolist()) == [0, 1, 2, 3]
    assert plan.order[0] == 0  # the one that came first goes on


def test_a_run_of_which_too_much_waits_for_each_other_has_no_order():
    who = np.repeat([0, 1], 400)
    what = np.concatenate([np.arange(400), np.arange(400).reshape(-1, 2)[:, ::-1].ravel()])
    assert schedule(who, what, np.arange(800.0)) is None
    few = what.reshape(2, 400)[:, :100].ravel()
    assert schedule(np.repeat([0, 1], 100), few, np.arange(200.0)).knots == 50


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-5, 5)), max_size=30))
def test_medians_of_groups(drawn):
    groups = np.array([g for g, _ in drawn], np.int64)
    values = np.array([v for _, v in drawn], np.float64)
    found = medians(values, groups, 5)
    for group in range(5):
        own = values[groups == group]
        assert np.isnan(found[group]) if not len(own) else np.isclose(found[group], np.median(own))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 39), st.integers(0, 20)), min_size=1, max_size=12))
def test_spans_lie_where_they_were_and_count_once(drawn):
    drawn = sorted(drawn)
    edges = np.array([5.0, 12.0, 30.0, 61.0])  # of both ranks
    who = np.repeat([0, 1], 4)
    gone = np.tile(edges, 2)
    before = np.tile(np.append(0.0, edges[:-1]), 2)
    rank, begin, length = (np.array([d[n] for d in drawn]) for n in range(3))
    spans = doings.Doings(
        rank, begin.astype(float), (begin + length).astype(float), rank > 9, rank.astype(object), rank, rank
    )
    found = doings.place(spans, rank, who=who, before=before, gone=gone)
    total = np.bincount(found.arrival, found.seconds, 8)
    for n in range(8):
        covered = {
            m + 0.5 for r, lo, size in drawn if r == who[n] for m in range(lo, lo + size) if before[n] <= m < gone[n]
        }
        assert total[n] == pytest.approx(len(covered))


# ---- what is asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [("recompiles", Without("recompiles")), ("saves@0,4-6", Without("saves", (0, 4, 5, 6)))],
)
def test_what_can_be_taken_out(text, expected):
    assert Without.parse(text) == expected


@pytest.mark.parametrize("text", ["", "recompile", "saves@", "saves@x", "saves@3-", "saves@0-9999999"])
def test_what_cannot_be_taken_out_is_said(text):
    with pytest.raises(UsageError, match=r"recompiles, compiles, saves|ranks are written as"):
        Without.parse(text)


def test_ranks():
    assert parse_ranks("0-2,8") == (0, 1, 2, 8)
    with pytest.raises(UsageError):
        parse_ranks("a")


# ---- runs with operations, of which the other course is known


def derived(run):
    con = run.write()
    derive(con)
    return con


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_run_replays_as_it_was(hosts):
    outcome = simulate.run(derived(Made(ranks=8, ops=60, hosts=hosts, seed=3, most_offset=0.0)), Change())
    assert outcome.basis == "operations"
    assert outcome.operations == 60
    assert outcome.replay_error < 1e-3
    assert outcome.rank_error < 1e-3
    assert outcome.cannot is None


@pytest.mark.parametrize("source", ["app", "nccl-coll"])
def test_the_run_without_a_slow_rank_is_the_run_that_had_none(source):
    delays = tuple(Delay(5, nth, 0.2) for nth in range(10, 40, 3))
    same = {"ranks": 8, "ops": 60, "seed": 4, "source": source, "has_leave": source == "app"}
    slow, fast = Made(**same, delays=delays), Made(**same)
    outcome = simulate.run(derived(slow), Change(as_median=(5,)))
    assert outcome.changed_s == pytest.approx(fast.leave[-1].max() + 0.01, rel=0.02)
    assert outcome.saved_s == pytest.approx(2.0, rel=0.05)
    (cause,) = outcome.causes
    assert cause.ranks == (5,)
    assert cause.amplification == pytest.approx(8, rel=0.1)
    mine = next(r for r in outcome.ranks if r.rank == 5)
    assert mine.waited_s < mine.waits_s
    assert all(r.waited_s > r.waits_s for r in outcome.ranks if r.rank != 5)


def test_without_being_asked_the_slow_rank_is_named():
    delays = tuple(Delay(2, nth, 0.3) for nth in range(5, 30))
    outcome = simulate.run(derived(Made(ranks=4, ops=40, seed=1, delays=delays)), Change())
    assert [(c.what, c.ranks) for c in outcome.causes] == [("slow", (2,))]
    assert outcome.saved_s == 0


def test_a_timeout_ends_the_run_where_somebody_waits_so_long():
    run = Made(ranks=4, ops=20, seed=2, delays=(Delay(1, 10, 9.0),))
    outcome = simulate.run(derived(run), Change(timeout_s=5))
    first = run.enter[10].min()
    assert outcome.changed_s == pytest.approx(first + 5, abs=0.01)
    assert "waiting for rank 1" in outcome.ends
    assert simulate.run(derived(run), Change(timeout_s=20)).ends is None


def test_a_rank_that_runs_beside_the_others_does_not_wait():
    con = derived(Made(ranks=2, ops=2, seed=0))
    con.execute("UPDATE arrivals SET t = t - 0.04, t_exit = NULL WHERE rank = 0 AND nth = 1")
    con.execute("UPDATE arrivals SET t = t + 0.1, t_exit = NULL WHERE rank = 1 AND nth = 0")
    con.execute("UPDATE arrivals SET t_exit = NULL")
    outcome = simulate.run(con, Change())
    assert any("beside" in limit.text for limit in outcome.limits)
    assert outcome.replay_error == 0


# ---- runs with steps

STEP_S = 0.1


def insert(con, table, **columns):
    """Add rows, given by columns."""
    for row in zip(*columns.values(), strict=True):
        insert_row(con, table, **dict(zip(columns, row, strict=True)))


def stepped(delays=(), *, wait_told=True, steps=10, ranks=4, only=None):
    """A run whose trainer reports steps; `delays` are (rank, step, seconds). Truth: all wait for the slowest."""
    con = duckdb.connect()
    schema.create(con)
    t = START
    rows = []
    for step in range(steps):
        own = [STEP_S + sum(s for r, k, s in delays if r == rank and k == step) for rank in range(ranks)]
        end = t + max(own)
        rows += [(rank, step, end, max(own) - own[rank], own[rank]) for rank in range(ranks)]
        t = end
    insert(con, "runs", run_id=[1], t_first=[START], t_last=[t], span_s=[t - START], ranks_seen=[ranks])
    insert(
        con,
        "ranks",
        run_id=[1] * ranks,
        rank=list(range(ranks)),
        heard=[True] * ranks,
        first_t=[START] * ranks,
        last_t=[t] * ranks,
    )
    rows = [r for r in rows if only is None or r[0] in only]
    insert(
        con,
        "steps",
        run_id=[1] * len(rows),
        rank=[r[0] for r in rows],
        step=[r[1] for r in rows],
        t_hi=[r[2] for r in rows],
        wait_s=[r[3] if wait_told else None for r in rows],
        own_s=[r[4] if wait_told else None for r in rows],
        file_id=[r[0] + 1 for r in rows],
        line_no=[r[1] + 1 for r in rows],
    )
    return con, t - START


def compiled(con, *events, ends=True):
    """Recompiles (rank, begin since the start, seconds)."""
    insert(con, "files", file_id=[1, 2, 3, 4], path=[f"rank{r}.log" for r in range(4)])
    insert(
        con,
        "compiles",
        run_id=[1] * len(events),
        rank=[e[0] for e in events],
        t_lo=[START + e[1] for e in events],
        t_hi=[START + e[1] for e in events],
        end_lo=[START + e[1] + e[2] if ends else None for e in events],
        end_hi=[START + e[1] + e[2] if ends else None for e in events],
        duration_s=[e[2] if ends else None for e in events],
        fn=["forward"] * len(events),
        fn_file=["train.py"] * len(events),
        fn_line=[7] * len(events),
        nth=[1] * len(events),
        is_recompile=[True] * len(events),
        file_id=[e[0] + 1 for e in events],
        line_no=[9] * len(events),
    )


@pytest.mark.parametrize("wait_told", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_the_run_without_a_recompile_is_the_run_that_had_none(wait_told, ends):
    con, _ = stepped([(3, 4, 2.0)], wait_told=wait_told)
    _, plain = stepped()
    compiled(con, (3, 4 * STEP_S + 0.01, 1.5), ends=ends)
    outcome = simulate.run(con, Change(without=(Without("recompiles", (3,)),)))
    assert outcome.basis == ("steps" if wait_told else "step-times")
    assert outcome.changed_s == pytest.approx(plain, rel=0.01)
    (cause,) = outcome.causes
    assert (cause.path, cause.line, cause.times) == ("rank3.log", 9, 1)
    assert cause.amplification == pytest.approx(4, rel=0.05)
    assert any("whose end is not told" in limit.text for limit in outcome.limits) is not ends


def test_a_short_recompile_is_not_blamed_for_a_long_sleep():
    con, _ = stepped([(3, 4, 2.0)])
    compiled(con, (3, 4 * STEP_S + 0.01, 0.05))
    outcome = simulate.run(con, Change(without=(Without("recompiles"),)))
    assert outcome.saved_s == pytest.approx(0.05, abs=0.001)


def test_ranks_that_tell_no_steps_are_given_those_of_the_others():
    con, _ = stepped([(3, 4, 2.0)], wait_told=False, only=(0,))
    compiled(con, (3, 4 * STEP_S + 0.01, 1.9))
    outcome = simulate.run(con, Change(without=(Without("recompiles"),)))
    assert [r.rank for r in outcome.ranks] == [0, 1, 2, 3]
    assert outcome.saved_s == pytest.approx(2.0, rel=0.05)
    assert any("tell no steps" in limit.text for limit in outcome.limits)


def test_ranks_that_compile_again_one_after_the_other_do_so_at_once():
    con, _ = stepped([(0, 2, 1.0), (1, 4, 1.0), (2, 6, 1.0)])
    compiled(con, (0, 2 * STEP_S + 0.01, 1.0), (1, 4 * STEP_S + 1.01, 1.0), (2, 6 * STEP_S + 2.01, 1.0))
    outcome = simulate.run(con, Change(guard_collectives=True))
    assert outcome.saved_s == pytest.approx(2.0, rel=0.02)


def test_a_warm_cache_leaves_what_hitting_ranks_needed():
    con, _ = stepped([(r, 0, 1.0 if r else 3.0) for r in range(4)])
    compiled(con, *((r, 0.01, 1.0 if r else 3.0) for r in range(4)))
    con.execute("UPDATE compiles SET is_recompile = FALSE, nth = 0")
    whole = simulate.run(con, Change(warm_cache=True))
    assert whole.saved_s == pytest.approx(3.0, rel=0.01)
    assert any("found all in the cache" in limit.text for limit in whole.limits)
    insert(con, "cache_events", run_id=[1] * 4, rank=[0, 1, 2, 3], event=["miss", "hit", "hit", "hit"])
    assert simulate.run(con, Change(warm_cache=True)).saved_s == pytest.approx(2.0, rel=0.01)


def test_stamps_of_whole_seconds_are_told_apart_by_how_long_steps_lasted():
    con, _ = stepped([(3, k, 0.35) for k in range(20)], steps=20)
    con.execute("UPDATE steps SET t_hi = floor(t_hi), duration_s = ?", [STEP_S + 0.35])
    outcome = simulate.run(con, Change(as_median=(3,)))
    assert outcome.saved_s == pytest.approx(19 * 0.35, rel=0.1)
    assert outcome.limits == ()


# ---- what findings cost


def found(con, rule, ranks, without, lost=9.0):
    insert_row(
        con, "findings", finding_id="F1", run_id=1, rule=rule, ranks=ranks, without=without, lost_s=lost, is_root=True
    )
    costs.fill(con)
    return con.execute("SELECT cost_s, own_s, lost_s FROM findings").fetchone()


def test_a_finding_costs_what_the_run_would_save():
    con, _ = stepped([(3, 4, 2.0), (1, 4, 1.5)])
    cost, own, lost = found(con, "straggler-host", [3], "slow")
    assert cost == pytest.approx(0.5, rel=0.01)  # rank 1 would have held them up all the same
    assert own == pytest.approx(2.0, rel=0.01)
    assert lost == pytest.approx(4 * 0.5, rel=0.01)


@pytest.mark.parametrize("without", ["recompiles", None])
def test_what_cannot_be_simulated_keeps_what_its_rule_adds_up(without):
    con, _ = stepped([(3, 4, 2.0)])
    assert found(con, "recompile-by-kind", [3], without) == (None, None, 9.0)


# ---- what cannot be said


def test_without_stamps_nothing_is_said():
    con = duckdb.connect()
    schema.create(con)
    assert "no run" in simulate.run(con, Change()).cannot
    insert(con, "runs", run_id=[1], ranks_seen=[4])
    assert "switch on stamps" in simulate.run(con, Change()).cannot
    con.execute("UPDATE runs SET t_first = 1, t_last = 9")
    outcome = simulate.run(con, Change())
    assert "neither steps nor operations" in outcome.cannot
    assert outcome.saved_s is None
    assert outcome.replay_error is None


def test_a_rank_that_is_not_there_is_an_error():
    con, _ = stepped()
    with pytest.raises(UsageError, match="rank 9: the run has no such rank"):
        simulate.run(con, Change(as_median=(9,)))


def test_what_is_not_in_the_logs_is_said():
    con, _ = stepped()
    outcome = simulate.run(con, Change(without=(Without("saves"),)))
    assert outcome.saved_s == 0
    assert any(limit.text == "no saving of checkpoints in the logs" for limit in outcome.limits)
