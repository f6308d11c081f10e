"""Lark and the compiled patterns read every grammar alike, string values included, one by one and many at once."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from columns import fields, spans
from grammar_lines import LONGEST, made, mutated
from hypothesis import given, settings
from hypothesis import strategies as st
from lark_reference import reference
from torch_lines import Rows

from replay.grammar import texts as texts_of
from replay.grammar.bulk import BulkExecutor
from replay.grammar.compile import load
from replay.grammar.executor import ReExecutor, shared
from replay.grammar.model import Match
from replay.grammar.texts import Listed, Texts
from replay.parse.pipeline import parse_file
from replay.resources import folder
from replay.sources.discover import discover
from replay.sources.model import Hints
from replay.sources.read import read_batches

FAMILIES = sorted(path.stem for path in folder("grammars").glob("*.lark") if load(path.stem).productions)
SHARED = Path(__file__).parents[2] / "shared"
PLACES = [
    *sorted(folder("corpora").glob("*/logs"))[:6],
    *sorted(SHARED.glob("cases/*/logs"))[::12],
    *sorted(SHARED.glob("nccl_real/2.2*_fk*.log"))[::6],
]
BEYOND = {"private", "private_source"}
"""Grammars that use what programs of the scanner cannot do: they are only searched for, by Python."""
MOST = 4
"""Real texts of one record."""


class Noting(ReExecutor):
    """Notes texts of each family and record, and some of those that no production takes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def one(self, family: str, text: str) -> Match | None:
        found = super().one(family, text)
        texts = self.texts[family][f"{found.form} {found.record}" if found else ""]
        if len(texts) < MOST and 0 < len(text) <= LONGEST and text not in texts:
            texts.append(text)
        return found


@cache
def real() -> dict[str, list[str]]:
    """Return texts of real logs by the family that they were tried against."""
    noting = Noting()
    for place in PLACES:
        for file in discover([str(place)], Hints()).files:
            parse_file(file, (list(batch) for batch in read_batches(file, Hints())), Rows(), Hints(), noting)
    return {family: [text for texts in records.values() for text in texts] for family, records in noting.texts.items()}


def at_once(family: str, texts: Texts) -> list[Match | None]:
    """Return what the executor for many texts makes of each."""
    found: dict[int, Match] = {}
    taken, rest = BulkExecutor([family]).take(texts)
    for piece in taken:
        columns = fields(piece)
        for n, place in enumerate(piece.where.tolist()):
            told = {name: value for name, values in columns.items() if (value := values[n]) is not None}
            found[place] = Match(piece.family, piece.production.form, piece.production.record, told)
    assert found.keys() | set(rest.tolist()) == set(range(len(texts)))
    return [found.get(place) for place in range(len(texts))]


@cache
def python() -> ReExecutor:
    """Return the executor of one text without the native scanner."""
    executor = ReExecutor()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts_of, "native", None)
        for family in FAMILIES:
            executor.one(family, " ")
    return executor


def assert_alike(family: str, texts: Sequence[str]) -> None:
    """Lark, Python's patterns and the native scanner, one by one and many at once."""
    expected = [reference(family).one(text) for text in texts]
    assert [python().one(family, text) for text in texts] == expected
    assert [shared().one(family, text) for text in texts] == expected
    assert at_once(family, Listed(texts)) == expected
    if texts_of.is_native() and family not in BEYOND:
        fit = [n for n, text in enumerate(texts) if text.isascii() and "\n" not in text]
        assert at_once(family, spans([texts[n] for n in fit])) == [expected[n] for n in fit]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_terminal_can_be_empty(family: str) -> None:
    """Lark's own lexers refuse such."""
    for alternative in reference(family).alternatives:
        assert [t.name for t in alternative.terminals.values() if t.pattern.min_width == 0] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_both_read_real_lines_alike(family: str) -> None:
    assert_alike(family, real().get(family, []))


@pytest.mark.parametrize("family", FAMILIES)
def test_both_read_made_lines_alike(family: str) -> None:
    own = made(family)
    texts = own | mutated(own)
    if real().get(family):
        texts |= mutated(st.sampled_from(real()[family]))

    @settings(max_examples=20)
    @given(st.lists(texts, min_size=1, max_size=5))
    def check(lines: list[str]) -> None:
        assert_alike(family, lines)

    check()
