"""What divergences are about, figures of ranks against their peers, and who is late: on databases made by hand."""

import pytest
from factory import insert, make_db
from test_timeline_derive import Ranks, train

from replay.timeline.statements import Runner

ABOUT = [
    ("torch_initial_seed", "setting", "1", "2", "seed"),
    ("autocast", "setting", "True", "False", "precision"),
    ("out_dtype", "metric", "torch.bfloat16", "torch.float32", "precision"),
    ("candidate.training", "setting", "True", "False", "mode"),
    ("compiled_mask.grad", "setting", "6/8", "8/8", "gradient"),
    ("mode", "metric", "inductor", "eager", "compile"),
    ("torch_compile", "setting", "True", "False", "compile"),
    ("model.dropout", "setting", "0.1", "0.0", "random"),
    ("sample_ids", "order", "a", "b", "order"),
    ("batch_hash", "metric", "a", "b", "order"),
    ("batch", "metric", "(13, 32)", "(16, 32)", "shape"),
    ("weight_decay", "setting", "0.1", "0.0", "hyper"),
    ("sum(head.weight)", "metric", "1", "2", "parameter"),
    ("train_loss", "metric", "1", "2", "loss"),
    ("user", "setting", "a", "b", "other"),
]


@pytest.mark.parametrize(("name", "kind", "value", "other", "about"), ABOUT)
def test_a_name_is_about_something(name: str, kind: str, value: str, other: str, about: str) -> None:
    con = make_db()
    insert(con, "divergences", run_id=1, name=name, kind=kind, value=value, other_value=other, ranks=[])
    Runner(con).run("about")
    assert con.execute("SELECT about FROM divergences").fetchall() == [(about,)]


def parted(differs):
    run = Ranks(3)
    for step in range(8):
        for rank in run.ranks:
            run.step(rank, step, param_sum=1.0 + step + (0.5 if rank == 1 and step in differs else 0))
    return run.derive().ask("SELECT step, ranks, share_apart FROM divergences")


def test_what_parts_for_good_and_for_one_step() -> None:
    assert parted(range(4, 8)) == [(4, [1], 1.0)]
    assert parted([4]) == [(4, [1], 0.25)]


def test_of_two_sides_the_one_without_the_lowest_rank_is_odd() -> None:
    run = Ranks(2)
    for rank in run.ranks:
        run.add("env", rank, name="amp", value=str(rank == 1), origin="app")
    assert run.derive().ask("SELECT ranks, value FROM divergences") == [([1], "True")]


def test_three_sides_have_no_odd_one() -> None:
    run = Ranks(3)
    for rank in run.ranks:
        run.add("env", rank, name="seed", value=str(rank), origin="app")
    assert run.derive().ask("SELECT ranks FROM divergences") == [([],)]


def test_a_slow_rank_leads_its_peers_and_is_late() -> None:
    run = train(Ranks(4), late=range(8), ms=300.0).derive()
    found = run.ask(
        "SELECT rank, role, round(lead_s, 3), share_slow FROM rank_stats WHERE name = 'fwd_ms' AND rank = 2"
    )
    assert found == [(2, "own", 0.3, 1.0)]
    late = run.ask("SELECT rank, doing, stalls, steps, waiting, share_stalls FROM lateness")
    assert late == [(2, "forward", 7, 8, [0, 1, 3], 1.0)]


def test_growth_is_told_by_the_share_of_rises() -> None:
    run = Ranks(2)
    for step in range(5):
        for rank in run.ranks:
            run.step(rank, step, rss_mb=100.0 + (50.0 * step if rank else 0.0))
    found = run.derive().ask(
        "SELECT rank, role, warmup, rising, last FROM rank_stats WHERE name = 'rss_mb' ORDER BY rank"
    )
    assert found == [(0, "memory", 100.0, 0.0, 100.0), (1, "memory", 100.0, 1.0, 300.0)]
