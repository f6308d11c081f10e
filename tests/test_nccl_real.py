"""Logs of unmodified NCCL libraries, where they lie beside the checkout."""

from collections import defaultdict
from pathlib import Path

import pytest
from nccl_lines import parse

REAL = sorted((Path(__file__).parents[2] / "shared" / "nccl_real").glob("*.log"))
pytestmark = pytest.mark.skipif(not REAL, reason="no real logs beside this checkout")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_line_has_a_meaning(path):
    rows, counts = parse(path.read_bytes())
    assert counts.lines == counts.parsed + counts.continuation + counts.plain + counts.malformed
    assert counts.malformed <= 0.01 * counts.lines
    odd = [text for kind, _, text in rows.kinds if kind in {"plain", "malformed"} and text]
    assert len(odd) <= max(1, 0.003 * counts.lines)
    unknown = [text for _, form, text in rows.kinds if form == "nccl_text"]
    assert len(unknown) <= max(3, 0.04 * counts.lines)


@pytest.mark.parametrize("path", [p for p in REAL if "_fk4_" in p.stem], ids=lambda path: path.stem)
def test_ranks_agree_on_their_operations(path):
    rows, _ = parse(path.read_bytes())
    orders = defaultdict(list)
    for found in rows.tables["collectives"]:
        assert found["complete"]
        if found["op"] not in {"send", "recv"}:
            orders[found["pid"]].append((found["op"], found["count"], found["dtype"], found.get("root")))
    assert len(orders) == 4
    assert len({tuple(order) for order in orders.values()}) == 1
