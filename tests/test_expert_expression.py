"""Expressions and sentences of rules."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.expert.expression import Expression, ExpressionError, is_word
from replay.expert.template import Template, ranks_text, seconds_text, value_text


def names(text: str) -> list[tuple[str | None, str]]:
    found = [(r.step, r.column) for r in Expression(text).references]
    return [(step, column) for step, column in found if step is not None or not is_word(column)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.x > 1 and not a.is_on", [("a", "x"), ("a", "is_on")]),
        ("lower(kind) = 'a.b'", [(None, "kind")]),
        ('"end"."at" is null', [("end", "at")]),
        ("CAST(a.n AS text)::double", [("a", "n")]),
        ("list_filter(a.ranks, lambda x: x > b.rank)", [("a", "ranks"), ("b", "rank")]),
        ("a.name.upper()", [("a", "name")]),
        ("{'k': a.v}", [("a", "v")]),
        ("1.5e3 + t_lo", [(None, "t_lo")]),
    ],
)
def test_references(text: str, found: list[tuple[str | None, str]]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("a.x in (select rank from ranks)", 8, "SELECT"),
        ("a.x; drop table lines", 3, ";"),
        ("(a.x", 4, "never closed"),
        ("a.x)", 3, "closes nothing"),
        ("a.x = 'open", 6, "'"),
        ("  ", 0, "empty"),
    ],
)
def test_what_is_no_expression(text: str, at: int, says: str) -> None:
    with pytest.raises(ExpressionError, match=says.replace("(", r"\(")) as caught:
        Expression(text).tokens  # noqa: B018
    assert caught.value.at == at


def test_rename_leaves_texts_and_functions_alone() -> None:
    spelt = Expression("rank(rank) || ' rank ' || s.rank").render(lambda s, c: f"<{s}.{c}>" if c == "rank" else None)
    assert spelt == "rank(<None.rank>) || ' rank ' || <s.rank>"


def test_conjuncts() -> None:
    text = "a between 1 and 2 and (b or c and d) and case when e and f then g end and h"
    parts = [part.text for part in Expression(text).conjuncts()]
    assert parts == ["a between 1 and 2", "(b or c and d)", "case when e and f then g end", "h"]
    assert [p.text for p in Expression("a and b or c").conjuncts()] == ["a and b or c"]


_ATOMS = st.sampled_from(["x", "y", "z", "x between y and z", "case when x and y then z else y end", "not y"])
_BOOLEAN = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join), inner.map(lambda text: f"({text})")
    ),
    max_leaves=6,
)


@given(_BOOLEAN, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_the_conjuncts_mean_the_whole(text: str, values: tuple[bool, bool, bool]) -> None:
    whole = Expression(text)
    assert "".join(token.text for token in whole.tokens) == text
    split = " AND ".join(f"({part.text})" for part in whole.conjuncts())
    bound = f"FROM (SELECT {values[0]} AS x, {values[1]} AS y, {values[2]} AS z)"
    assert duckdb.execute(f"SELECT ({text}) = ({split}) {bound}").fetchall() == [(True,)]


def test_template_fills_its_slots() -> None:
    template = Template("Rank {a.rank} waited {sum(b.s):s}, {{as is}}, {lower('}')}")
    assert [slot.expression.text for slot in template.slots] == ["a.rank", "sum(b.s)", "lower('}')"]
    assert template.fill([3, 12.5, "}"]) == "Rank 3 waited 12 s, {as is}, }"


def test_template_keeps_casts_apart_from_formats() -> None:
    (slot,) = Template("{a.x::double}").slots
    assert (slot.expression.text, slot.spec) == ("a.x::double", "")
    (slot,) = Template("{a.x::double:.2f}").slots
    assert (slot.expression.text, slot.spec) == ("a.x::double", ".2f")


@pytest.mark.parametrize(("text", "at"), [("a {b", 2), ("a } b", 2), ("x {a.b:colour}", 6), ("x {(a.b}", 7)])
def test_template_faults_say_where(text: str, at: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        Template(text).parts  # noqa: B018
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (None, "", "unknown"),
        ([0, 1, 2, 5], "", "0-2,5"),
        (["b", None, "a"], "", "b, a"),
        ([], "", "none"),
        (True, "", "yes"),
        (3.0, "", "3"),
        (3.14159, "", "3.14"),
        (20480, "mib", "20 GiB"),
        (0.5, ".0%", "50%"),
        ("a\x1b[31mb\nc", "", "a [31mb c"),
        (float("nan"), "s", "nan"),
    ],
)
def test_values_as_text(value: object, spec: str, text: str) -> None:
    assert value_text(value, spec) == text


@given(st.sets(st.integers(0, 60)))
def test_ranks_text_can_be_read_back(ranks: set[int]) -> None:
    read: set[int] = set()
    for piece in ranks_text(ranks).replace("none", "").split(","):
        if piece:
            low, _, high = piece.partition("-")
            read |= set(range(int(low), int(high or low) + 1))
    assert read == ranks


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "12.3 ms"), (3.11, "3.1 s"), (47.2, "47 s"), (720, "12 min"), (12600, "3.5 h")]
)
def test_seconds_text(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
