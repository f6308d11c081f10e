"""What explains what: edges, roots, cycles, order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay import resources
from replay.expert.finding import Finding
from replay.expert.roots import settle
from replay.expert.rule import Rule
from replay.expert.taxonomy import load_taxonomy

TAXONOMY = load_taxonomy([resources.folder("rules")])


def make(cause: str, number: int = 0, **fields: Any) -> Finding:
    t = fields.pop("t", None)
    given: dict[str, Any] = {
        "key": (fields.pop("rule", cause), fields.pop("run", 1), cause, (str(number),)),
        "layer": TAXONOMY[cause].layer, "kind": TAXONOMY[cause].kind, "ranks": (), "waiting": (), "impact": "none",
        "step": None, "t_lo": t, "t_hi": t, "certainty": 0.9, "lost_s": None, "summary": cause, "advice": "",
        "repro": None, "evidence": (), "places": frozenset(), "only_library_code": False,
    }  # fmt: skip
    return Finding(**(given | fields))


def rules(findings: list[Finding], conclude: dict[str, dict[str, Any]]) -> dict[str, Rule]:
    return {
        name: Rule.model_validate(
            {"id": name, "title": name, "layer": "sync", "say": "x", "when": [{"a": {"from": "compiles"}}],
             "conclude": conclude.get(name, {})}
        )
        for name in {f.rule for f in findings}
    }  # fmt: skip


def roots(findings: list[Finding], conclude: dict[str, dict[str, Any]], span: float | None = None) -> list[str]:
    return [f.cause for f in settle(findings, rules(findings, conclude), TAXONOMY, {1: span}) if f.is_root]


def test_a_symptom_is_a_root_only_where_no_cause_is_known() -> None:
    assert roots([make("collective-timeout")], {}) == ["collective-timeout"]
    assert roots([make("collective-timeout"), make("rank-killed")], {}) == ["rank-killed"]
    assert roots([make("collective-timeout"), make("rank-killed", run=2)], {}) == ["rank-killed", "collective-timeout"]


def test_hazards_and_notes_are_no_roots() -> None:
    assert roots([make("workaround-in-force"), make("rank-killed", kind="note")], {}) == []


def test_what_is_explained_is_no_root() -> None:
    found = [make("rank-killed", t=5.0), make("rank-exception", t=6.0), make("collective-timeout", t=7.0)]
    conclude = {"rank-killed": {"explains": ["rank-exception", "symptoms"]}}
    assert roots(found, conclude) == ["rank-killed"]
    assert [f.cause for f in found[0].explains] == ["rank-exception", "collective-timeout"]


@pytest.mark.parametrize(("effect_t", "explained"), [(5.0, True), (4.5, True), (3.5, False), (None, True)])
def test_an_effect_is_not_definitely_earlier(effect_t: float | None, explained: bool) -> None:
    found = [make("rank-killed", t=5.0), make("rank-exception", t=effect_t)]
    assert (roots(found, {"rank-killed": {"explains": ["rank-exception"]}}) == ["rank-killed"]) == explained


@pytest.mark.parametrize(("ranks", "explained"), [("same", [1]), ("other", [2]), ("waiting", [2]), ("any", [1, 2])])
def test_explains_may_depend_on_ranks(ranks: str, explained: list[int]) -> None:
    cause = make("rank-killed", ranks=(1,), waiting=(2,))
    found = [cause, make("rank-exception", 1, ranks=(1,)), make("rank-exception", 2, ranks=(2,))]
    roots(found, {"rank-killed": {"explains": [{"cause": "rank-exception", "ranks": ranks}]}})
    assert [f.ranks[0] for f in cause.explains] == explained


def test_explains_within_a_time() -> None:
    cause = make("rank-killed", t=10.0)
    found = [cause, make("rank-exception", 1, t=15.0), make("rank-exception", 2, t=16.0)]
    roots(found, {"rank-killed": {"explains": [{"cause": "rank-exception", "within": 5}]}})
    assert [f.t for f in cause.explains] == [15.0]


def test_absorbing_needs_a_shared_row_or_shared_ranks() -> None:
    def parts() -> list[Finding]:
        return [
            make("recompile-barrier-stall", places=frozenset({1, 2}), ranks=(2, 3)),
            make("recompile-dtype", 1, places=frozenset({2}), ranks=(7,)),
            make("recompile-dtype", 2, places=frozenset({3}), ranks=(3,)),
        ]

    by_row = parts()
    roots(by_row, {"recompile-barrier-stall": {"absorbs": ["recompile-dtype"]}})
    assert [f.key[3] for f in by_row[0].absorbs] == [("1",)]
    by_ranks = parts()
    roots(by_ranks, {"recompile-barrier-stall": {"absorbs": [{"cause": "recompile-dtype", "sharing": "ranks"}]}})
    assert [f.key[3] for f in by_ranks[0].absorbs] == [("2",)]


def test_two_rules_with_one_cause_on_the_same_ranks_are_one_root() -> None:
    found = [make("rank-killed", rule="a", ranks=(3,), certainty=0.7), make("rank-killed", rule="b", ranks=(3,))]
    assert roots(found, {}) == ["rank-killed"]
    assert found[1].is_root


def test_a_cycle_is_cut_at_the_edge_into_its_earliest_member() -> None:
    found = [make("rank-exception", 1, t=10.5, ranks=(1,)), make("rank-exception", 2, t=10.0, ranks=(2,))]
    conclude = {"rank-exception": {"explains": [{"cause": "rank-exception", "ranks": "other"}]}}
    settled = settle(found, rules(found, conclude), TAXONOMY, {})
    assert [(f.ranks, f.is_root, len(f.explains)) for f in settled] == [((2,), True, 1), ((1,), False, 0)]


def test_what_is_less_than_likely_is_no_root_and_hides_none() -> None:
    found = [make("rank-killed", certainty=0.4), make("rank-exception")]
    assert roots(found, {"rank-killed": {"explains": ["rank-exception"]}}) == ["rank-exception"]


def test_library_code_without_effect_is_a_note() -> None:
    conclude = {"recompile-dtype": {"explains": ["barrier-stall"]}}
    for fields, kind in (
        ({}, "note"),
        ({"lost_s": 0.5, "impact": "slow"}, "note"),
        ({"lost_s": 5.0, "impact": "slow"}, "cause"),
        ({"impact": "failed"}, "cause"),
        ({"only_library_code": False}, "cause"),
    ):
        found = [make("recompile-dtype", **({"only_library_code": True} | fields))]
        settle(found, rules(found, conclude), TAXONOMY, {1: 100.0})
        assert found[0].kind == kind, fields
    found = [make("recompile-dtype", only_library_code=True), make("barrier-stall")]
    settle(found, rules(found, conclude), TAXONOMY, {1: 100.0})
    assert found[0].kind == "cause"


def test_the_order_is_by_effect_then_time() -> None:
    found = [
        make("gdr-disabled", t=0.0),
        make("nan-loss", kind="cause", t=1.0, impact="wrong-numbers"),
        make("straggler-host", 1, t=2.0, impact="slow", lost_s=2.0),
        make("straggler-host", 2, t=3.0, impact="slow", lost_s=200.0, ranks=(1,)),
        make("rank-killed", 2, t=9.0, impact="failed"),
        make("rank-exception", 1, t=8.0, impact="failed"),
        make("workaround-in-force", t=0.0),
    ]
    assert [f.finding_id for f in settle(found, rules(found, {}), TAXONOMY, {})] == [f"F{n}" for n in range(1, 8)]
    assert [f.cause for f in settle(found, rules(found, {}), TAXONOMY, {})] == [
        "rank-exception", "rank-killed", "straggler-host", "straggler-host", "nan-loss", "gdr-disabled",
        "workaround-in-force",
    ]  # fmt: skip


def test_a_cause_is_as_bad_as_what_it_explains() -> None:
    found = [
        make("straggler-host", impact="slow", lost_s=3.0),
        make("barrier-stall"),
        make("collective-timeout", impact="hung"),
    ]
    conclude = {
        "straggler-host": {"explains": ["barrier-stall"]},
        "barrier-stall": {"explains": ["collective-timeout"]},
    }
    settle(found, rules(found, conclude), TAXONOMY, {})
    assert [f.impact for f in found] == ["hung", "hung", "hung"]


CAUSES = ("rank-killed", "rank-exception", "device-oom", "collective-timeout", "straggler-host")
GRAPH = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(CAUSES), st.sampled_from([None, 1.0, 1.5, 2.0, 5.0]), st.sampled_from([0.4, 0.9])),
        min_size=1, max_size=12,
    ),
    st.dictionaries(st.sampled_from(CAUSES), st.lists(st.sampled_from(CAUSES), max_size=4)),
    st.randoms(use_true_random=False),
)  # fmt: skip


@given(GRAPH)
def test_there_are_no_circles_and_some_root(graph: tuple[Any, Any, Any]) -> None:
    items, explains, random = graph

    def run(shuffled: bool) -> list[tuple[Any, ...]]:
        found = [make(c, n, t=t, certainty=p, ranks=(n,)) for n, (c, t, p) in enumerate(items)]
        if shuffled:
            random.shuffle(found)
        settled = settle(found, rules(found, {c: {"explains": e} for c, e in explains.items()}), TAXONOMY, {})
        left = list(settled)
        while left:
            free = [f for f in left if not any(f is effect for other in left for effect in other.explains)]
            assert free, "a circle is left"
            left = [f for f in left if not any(f is x for x in free)]
        if any(f.certainty >= 0.5 for f in settled):
            assert any(f.is_root for f in settled)
        assert not {f.kind for f in settled if f.is_root} >= {"cause", "symptom"}
        return [(f.finding_id, f.key, f.is_root, [e.finding_id for e in f.explains]) for f in settled]

    assert run(False) == run(True)
