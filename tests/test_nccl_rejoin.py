"""Lines that several processes tore from each other find their halves again."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_lines import parse

BLOCK = 4096


def process(pid: int, count: int, comm: str) -> list[str]:
    """The lines of one process: operations whose numbers tell which line of which process it was."""
    return [
        f"node-1:{pid}:{pid} [0] NCCL INFO AllReduce: opCount {n:x} sendbuff 0x{pid:x} recvbuff 0x{pid:x} "
        f"count {pid * 10_000 + n} datatype 7 op 0 root 0 comm 0x{comm} [nranks=4] stream 0x{pid:x}"
        for n in range(count)
    ]


def torn(outputs: list[str], seed: int) -> bytes:
    """What a pipe holds when each process writes blocks of 4096 bytes, and the rest at its end."""
    chance = random.Random(seed)
    left = [text.encode() for text in outputs]
    written = b""
    while any(left):
        turn = chance.choice([n for n, rest in enumerate(left) if rest])
        written, left[turn] = written + left[turn][:BLOCK], left[turn][BLOCK:]
    return written


@settings(deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.integers(0, 1000))
def test_every_operation_comes_back_whole(counts, seed):
    """But for those at the end of a process: several ends of equal lines in a row do not tell whose they are."""
    pids = [1000 + 7 * n for n in range(len(counts))]
    outputs = ["".join(f"{line}\n" for line in process(p, c, "5f")) for p, c in zip(pids, counts, strict=True)]
    rows, _ = parse(torn(outputs, seed))
    for pid, count in zip(pids, counts, strict=True):
        mine = [r["count"] for r in rows.tables["collectives"] if r["pid"] == pid and r["complete"]]
        expected = [pid * 10_000 + n for n in range(count)]
        assert set(mine[:-1]) <= set(expected)
        assert len(mine) >= count - 2


def test_the_row_of_a_torn_line_stands_where_the_line_began():
    first, second = process(1000, 21, "5f"), process(2000, 21, "5f")
    data = [("".join(f"{line}\n" for line in lines)).encode() for lines in (first, second)]
    rows, _ = parse(data[0][:BLOCK] + data[1][:BLOCK] + data[0][BLOCK:] + data[1][BLOCK:])
    assert sorted(r["count"] for r in rows.tables["collectives"]) == [
        pid * 10_000 + n for pid in (1000, 2000) for n in range(21)
    ]
    assert rows.lines == sorted(rows.lines)


def test_lines_that_interleave_whole_stay_as_they_are():
    first, second = process(1000, 60, "5f"), process(2000, 60, "5f")
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    rows, counts = parse(mixed)
    assert (counts.parsed, len(rows.tables["collectives"])) == (120, 120)
    assert all(r["complete"] for r in rows.tables["collectives"])


def test_a_head_whose_rest_is_lost_is_not_complete():
    rows, counts = parse(
        ["node-1:7:7 [0] NCCL INFO Ring 00 : 1 -> 2 -> 3node-1:8:8 [1] NCCL INFO Ring 00 : 2 -> 3 -> 0"]
    )
    assert counts.parsed == 1
    assert [(r["pid"], r["next"], r["complete"]) for r in rows.tables["rings"]] == [(8, 0, True), (7, 3, False)]


def test_a_progress_bar_before_a_header_is_the_applications():
    rows, counts = parse(["Epoch 3:  45%|####   | 9/20node-1:8:8 [1] NCCL INFO Ring 00 : 2 -> 3 -> 0"])
    assert counts.parsed == 1
    assert [r["pid"] for r in rows.tables["rings"]] == [8]


def test_application_lines_between_blocks_do_not_count_as_bytes_of_the_process():
    first, second = process(1000, 60, "5f"), process(2000, 60, "5f")
    one, two = (("".join(f"{line}\n" for line in lines)).encode() for lines in (first, second))
    step = b"step 7 loss 2.5\n"
    cut = one.rindex(b"\n", 0, BLOCK) + 1
    data = one[:cut] + step + one[cut:BLOCK] + two[:BLOCK] + one[BLOCK:] + two[BLOCK:]
    rows, _ = parse(data)
    whole = [r for r in rows.tables["collectives"] if r["complete"]]
    assert sorted(r["count"] for r in whole) == [pid * 10_000 + n for pid in (1000, 2000) for n in range(60)]
