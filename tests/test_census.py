"""Every message format of NCCL that is known is recognised, and the shapes of known text are matched whole."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import census

from replay.parse.known_text import KnownText, Shape, known_text
from replay.resources import folder

CATALOGUE = Path(__file__).parents[2] / "shared" / "formats" / "nccl_catalogue.tsv"


def test_docs_have_a_row_for_each_version_and_all_are_recognised() -> None:
    rows = [line.split("|") for line in census.DOCS.read_text().splitlines() if line.startswith("| 2.")]
    assert [row[1].strip() for row in rows] == census.VERSIONS
    for row in rows:
        total, typed, known, missing = (int(cell) for cell in row[2:6])
        assert total == typed + known + missing
        assert missing <= 0.05 * total


@pytest.mark.skipif(not CATALOGUE.exists(), reason="the catalogue is not beside this checkout")
def test_each_versions_formats_are_recognised() -> None:
    found = census.census(census.read_catalogue(CATALOGUE), known_text("nccl_known"))
    for version, (typed, known, missing) in census.by_version(found):
        assert missing <= 0.02 * (typed + known + missing), version
        assert typed >= 0.15 * (typed + known + missing), version
    production = {census.instantiate(one.format.text): one.production for one in found}
    text = "NVLS multicast support is not available on dev 3"
    assert production[text].startswith("nccl_")


def test_a_shape_takes_what_it_stands_for() -> None:
    shape = Shape.of("MemManager: rank # resumed # local entries (*)")
    assert shape.takes("MemManager: rank 3 resumed 0x1f local entries (all of them)")
    assert not shape.takes("MemManager: rank 3 resumed many local entries (all)")
    assert not shape.takes("MemManager: rank 3 resumed 4 local entries (all")
    assert not shape.takes("MemManager: rank 3 resumed 4 loc")
    assert Shape.of("Loading graphs").takes("Loading graphs")
    assert not Shape.of("Loading graphs").takes("Loading graphs.")


SHAPES = [line for line in (folder("grammars") / "nccl_known.shapes").read_text().splitlines() if line[:2] != "//"]


@given(st.sampled_from(SHAPES), st.lists(st.text("QZ", max_size=9), min_size=40, max_size=40))
def test_every_shape_is_found_by_its_words(shape: str, values: list[str]) -> None:
    filled, nth = "", 0
    for sign in shape:
        filled += {"*": values[nth % 40], "#": "12"}.get(sign, sign)
        nth += sign in "*#"
    assert Shape.of(shape).takes(filled)
    assert known_text("nccl_known").takes(filled)


@given(st.text(max_size=200))
def test_a_strange_text_is_not_known(text: str) -> None:
    assert not KnownText([Shape.of("only # this *")]).takes(text) or text.startswith("only ")


def test_a_hostile_text_is_looked_up_in_linear_time() -> None:
    text = "NET/IB : " + "a " * 500_000
    assert not known_text("nccl_known").takes(text)
