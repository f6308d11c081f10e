"""Lines read many at once give the rows that they give one by one."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from columns import fields, spans
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.grammar import texts
from replay.grammar.bulk import BulkExecutor
from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.grammar.texts import Listed, Spans
from replay.parse.families import BY_HEADER
from replay.parse.pipeline import parse_file
from replay.resources import folder
from replay.sources import read
from replay.sources.discover import discover
from replay.sources.model import Hints, Line, SourceFile
from replay.store import schema
from replay.store.writer import TableSink

SHARED = Path(__file__).parents[2] / "shared"
CORPORA = sorted(p.parent for p in folder("corpora").glob("*/truth.json"))
REAL = sorted((SHARED / "nccl_real").glob("*.log")) + sorted((SHARED / "wild").glob("*.log"))

POOL = [
    "n1:100:101 [0] NCCL INFO comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x1234 - Init START",
    "n1:100:101 [0] NCCL INFO comm 0x55aa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x77 - Init START",
    "n1:100:101 [0] NCCL INFO comm 0x55aa rank 0 nranks 2 cudaDev 0 busId 1a000 - Destroy COMPLETE",
    "n1:100:101 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7e count 12 datatype 7 op 0 root 0 "
    "comm 0x55aa [nranks=2] stream 0x1",
    "n1:200:201 [1] NCCL INFO Broadcast: opCount 2 sendbuff 0x7f recvbuff 0x7e count 99999999999999999999999 "
    "datatype 7 op 0 root 1 comm 0x55aa [nranks=2] stream 0x1",
    "n1:100:101 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
    "n1:100:101 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA",
    "n1:100:101 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1",
    "n1:100:101 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "n1:100:101 [0] NCCL INFO NCCL_ALGO set by environment to Ring",
    "n1:100:101 [0] NCCL INFO Connected all rings",
    "n1:100:101 [0] NCCL INFO something that nobody knows",
    "n1:100:101 [0] transport/net.cc:12 NCCL WARN Call to connect returned Connection refused",
    "n1:100:101 [0] NCCL INFO Ring 00 : 1 -n1:200:201 [1] NCCL INFO Ring 01 : 0 -> 1 -> 0",
    "[2026-11-29 23:59:59] n1:100:101 [0] NCCL INFO Ring 01 : 1 -> 0 -> 1",
    "V1129 22:51:29.204000 100 torch/_dynamo/symbolic_convert.py:1584] [0/0] [__trace_bytecode] TRACE LOAD_FAST x []",
    "V1129 22:51:30.204000 100 torch/_dynamo/symbolic_convert.py:1554] [0/1] [__trace_source] TRACE starts_line t.py:3",
    "V1129 22:51:31.004000 100 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] TRACED GRAPH",
    "V1129 22:51:31.104000 100 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]     l_x_ = L_x_",
    "I1129 22:51:31.204000 100 torch/_dynamo/convert_frame.py:1000] [0/1] step 1: torchdynamo start tracing f t.py:3",
    "W1129 22:51:32.204000 100 torch/_dynamo/convert_frame.py:1000] [0/1] a warning",
    "W1129 22:51:32.204000 100 torch/_dynamo/convert_frame.py:1000] [0/1]   that goes on",
    "V1129 22:51:33.204000 100 torch/_dynamo/guards.py:4786] [0/0] [__guards] GUARDS:",
    "V1129 22:51:33.204000 100 torch/_dynamo/guards.py:4483] [0/0] [__guards] +- RootGuardManager",
    "[rank1]: Traceback (most recent call last):",
    "Traceback (most recent call last):",
    '  File "t.py", line 3, in f',
    "ValueError: no",
    "Fatal Python error: Segmentation fault",
    "step 3 loss 1.25",
    "\x1b[32mn1:100:101 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1\x1b[0m",
    "n1:100:101 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1\rn1:100:101 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1",
    "",
]


def tables(logs: Path, *, at_once: bool, natively: bool = True) -> dict[str, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        if not natively:
            patch.setattr(texts, "native", None)
        return _tables(logs, at_once=at_once)


def _tables(logs: Path, *, at_once: bool) -> dict[str, list[str]]:
    con = duckdb.connect()
    schema.create(con)
    sink = TableSink(con)

    def batches(file: SourceFile) -> Iterable[Sequence[Line]]:
        for batch in read.read_batches(file, Hints(), sink.problem):
            yield batch if at_once else list(batch)

    for file in discover([str(logs)], Hints()).files:
        counts = parse_file(file, batches(file), sink, Hints(), shared())
        assert counts.lines == counts.parsed + counts.continuation + counts.plain + counts.malformed
        sink.file(file, counts, ends_whole=True)
    sink.flush()
    found = {t.name: sorted(map(repr, con.execute(f"FROM {t.name}").fetchall())) for t in schema.base_tables()}
    numbers = con.execute("SELECT file_id, line_no FROM lines").fetchall()
    assert len(numbers) == len(set(numbers))
    con.close()
    return found


def assert_equal_ways(logs: Path) -> None:
    """One by one in Python, at once in Python, and at once by the native scanner where it was built."""
    expected = tables(logs, at_once=False, natively=False)
    assert tables(logs, at_once=True, natively=False) == expected
    if texts.is_native():
        assert tables(logs, at_once=True) == expected


@pytest.mark.parametrize("case", CORPORA, ids=lambda p: p.name)
def test_own_corpus(case: Path) -> None:
    assert_equal_ways(case / "logs")


@pytest.mark.skipif(not REAL, reason="the real logs are not here")
def test_real_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for file in REAL[::5]:
        (logs / file.name).write_bytes(file.read_bytes())
    assert_equal_ways(logs)


@settings(max_examples=60)
@given(
    picks=st.lists(st.sampled_from(POOL), min_size=1, max_size=60),
    batch=st.integers(1, 40),
    cuts=st.lists(st.tuples(st.integers(0, 59), st.integers(0, 200)), max_size=3),
    ending=st.sampled_from(["\n", ""]),
)
def test_any_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory,
    picks: list[str],
    batch: int,
    cuts: list[tuple[int, int]],
    ending: str,
) -> None:
    for which, length in cuts:
        if which < len(picks):
            picks[which] = picks[which][:length]
    logs = tmp_path_factory.mktemp("logs")
    (logs / "console.log").write_text("\n".join(["begin", *picks]) + ending)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "BATCH", batch)
        assert_equal_ways(logs)


@pytest.mark.parametrize("families", [("headers",), *(tuple(names) for names in BY_HEADER.values())])
@given(strings=st.lists(st.sampled_from([t.partition("INFO ")[2] or t for t in POOL] + POOL), max_size=30))
def test_the_executors_take_the_same(families: tuple[str, ...], strings: list[str]) -> None:
    for column in (Listed(strings), spans(strings)) if texts.is_native() else (Listed(strings),):
        taken, rest = BulkExecutor(families).take(column)
        found: dict[int, Match] = {}
        for piece in taken:
            columns = fields(piece)
            for n, place in enumerate(piece.where.tolist()):
                told = {name: value for name, values in columns.items() if (value := values[n]) is not None}
                found[place] = Match(piece.family, piece.production.form, piece.production.record, told)
        for place, text in enumerate(strings):
            expected = next((m for family in families if (m := shared().one(family, text)) is not None), None)
            assert found.get(place) == expected
            assert (place in rest) == (expected is None)


TREE = [
    "GUARDS:",
    "",
    "TREE_GUARD_MANAGER:",
    "+- RootGuardManager",
    "| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0), type=None",
    "| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.half, size=[4], stride=[1])",
    "| | +- GuardManager: source=L['x'].a, accessed_by=GetAttrGuardAccessor(a), type=<class 'int'>",
    "| | | +- EQUALS_MATCH: L['x'].a == 2  # return x * a  # t.py:3 in f",
    "| | | +- KeyManager: GuardManager: source=list(dict.keys(L['x'].a))[0], type=<class 'str'>",
    "| +- GLOBAL_STATE: ___check_global_state()",
    "| +- NO_CODE",
    "Python shape guard function:",
    "    def guard(L):",
    "        __guard_hit = True",
    "Guard eval latency = 1.50 us",
    "a line that is none of a tree",
]


@settings(max_examples=80)
@given(
    picks=st.lists(
        st.tuples(st.sampled_from(TREE), st.sampled_from([(100, "0/0"), (100, "0/1"), (200, "0/0")])), max_size=50
    ),
    batch=st.integers(1, 40),
)
def test_trees_of_guards_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, picks: list[tuple[str, tuple[int, str]]], batch: int
) -> None:
    """Trees that begin in one batch and go on in the next, lines of two writers and compiles in between."""
    logs = tmp_path_factory.mktemp("logs")
    whole = [(text, (100, "0/0")) for text in TREE] + [("GUARDS:", (200, "0/0")), *picks]
    stamp = "V1129 22:51:33.204000 %d torch/_dynamo/guards.py:4483] [%s] [__guards] %s"
    (logs / "console.log").write_text("".join(stamp % (*of, text) + "\n" for text, of in whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "BATCH", batch)
        assert_equal_ways(logs)


@given(
    cells=st.lists(
        st.tuples(*[st.one_of(st.none(), st.sampled_from([b"", b"a", b"a\xff", "\u00e9".encode(), b"b" * 300]))] * 3)
    )
)
def test_rows_are_handed_out_natively_as_by_python(cells: list[tuple[bytes | None, ...]]) -> None:
    data, columns = b"", []
    for column in range(3):
        starts, ends = [], []
        for row in cells:
            cell = row[column]
            starts.append(-1 if cell is None else len(data))
            data += cell or b""
            ends.append(len(data))
        columns.append((np.array(starts, np.int32), np.array(ends, np.int32)))
    pieces = [Spans(data, starts, ends) for starts, ends in columns]
    listed = [Listed(list(texts)) for texts in pieces]
    expected = texts.rows_of("xyz", listed, len(cells))
    assert len(expected) == len(cells)
    if texts.is_native():
        assert texts.rows_of("xyz", pieces, len(cells)) == expected
