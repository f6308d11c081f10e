"""Parameters that a trainer lists: what grammars/parameters.lark makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_trainer import parse

LISTED = [
    ("param emb.weight Tensor global=(64, 32) local=(64, 32)", ("emb.weight", "Tensor", False)),
    ("param blocks.0.o.bias DTensor global=(32,) local=(16,)", ("blocks.0.o.bias", "DTensor", True)),
    ("layers.1.wq.weight: DTensor(placements=(Shard(dim=0),))", ("layers.1.wq.weight", "DTensor", True)),
    ("head.weight <class 'torch.nn.parameter.Parameter'> torch.Size([64, 32])", ("head.weight", "Parameter", False)),
    ("parameter fc1.weight is a Tensor", ("fc1.weight", "Tensor", False)),
]


@pytest.mark.parametrize(("text", "row"), LISTED)
def test_a_listed_parameter_is_a_row(text: str, row: tuple[str, str, bool]) -> None:
    assert parse(f"2026-11-30 00:15:09.165 [trainer rank=0] {text}").of(
        "parameters", "name", "class", "is_sharded"
    ) == [row]


@pytest.mark.parametrize(
    "text",
    [
        "step=3 loss=0.1",
        "loading model.safetensors",
        "Tensor parallel size 4",
        "a.b TensorBoard writer",
        "v1.2 Tensors",
    ],
)
def test_other_lines_are_none(text: str) -> None:
    assert parse(text).of("parameters", "name") == []


@given(st.from_regex(r"[a-z]{1,9}(\.[a-z0-9]{1,9}){1,4}", fullmatch=True), st.booleans())
def test_any_dotted_name_is_kept(name: str, is_sharded: bool) -> None:
    text = f"param {name} {'DTensor' if is_sharded else 'Tensor'} local=(1,)"
    assert parse(text).of("parameters", "name", "is_sharded") == [(name, is_sharded)]
