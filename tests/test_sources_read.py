"""Lines come out of any bytes whole, counted and placed; archives may be cut, lines may be huge."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.sources import encoding, model, peeling, read
from replay.sources.encoding import Chunks, EncodingMissing, encoding_of, read_bytes
from replay.sources.model import MAX_LINE, Hints, Identity, Line, Problem, SourceFile, Wrapping
from replay.sources.read import read_batches, read_line, read_lines


def source(path: Path, wrapping: Wrapping | None = None) -> SourceFile:
    head = path.read_bytes()[:16]
    size = path.stat().st_size
    return SourceFile(1, path.name, path, "text", encoding_of(head), size, "", wrapping=wrapping or Wrapping())


def lines_of(file: SourceFile, problems: list[Problem] | None = None) -> list[Line]:
    return [
        line
        for batch in read_batches(file, Hints(), (problems if problems is not None else []).append)
        for line in batch
    ]


def expected(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    return parts[:-1] if parts[-1] == b"" else parts


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\xff", b"\xe2\x96", b"abc", b"[rank1]: ", b"\x00", b"\x85", b"x" * 40]),
        max_size=60,
    )
)
def test_any_bytes_give_exact_lines(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    content = b"".join(parts)
    path = tmp_path_factory.mktemp("read") / "a.log"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", 7)
        for module in (read, model, peeling):
            patch.setattr(module, "MAX_LINE", 20)
        patch.setattr(read, "_KEEP", 30)
        patch.setattr(read, "BATCH", 3)
        file = source(path)
        got = lines_of(file)
        wanted = expected(content)
        assert [line.line_no for line in got] == list(range(1, len(wanted) + 1))
        offset = 0
        for line, raw in zip(got, wanted, strict=True):
            assert line.byte_offset == offset
            assert content[offset : offset + len(raw)] == raw
            whole_text = raw.decode("utf-8", "replace")
            assert line.raw == whole_text if len(whole_text) < 20 else whole_text.startswith(line.raw)
            assert read_line(file, line.line_no) == line.raw
            assert read_line(file, line.line_no, line.byte_offset) == line.raw
            offset += len(raw) + 1
        assert read_lines(file, 1, 1000) == [line.raw for line in got]
        if got and len(wanted[-1]) < 20:
            assert got[-1].whole == content.endswith(b"\n")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(["gz", "bz2", "xz", "zst"]), st.integers(1, 3))
def test_archives_give_back_what_was_put_in(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, kind: str, members: int
) -> None:
    path = tmp_path_factory.mktemp("read") / "a"
    path.write_bytes(compressed(content, kind) * members)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", 100)
        patch.setattr(encoding, "_IN", 50)
        chunks = Chunks(path, kind)
        assert b"".join(chunks) == content * members
        assert chunks.cut is None


def compressed(content: bytes, kind: str) -> bytes:
    if kind == "zst":
        return pytest.importorskip("zstandard").ZstdCompressor().compress(content)  # type: ignore[no-any-return]
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](content)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_cut_archive_is_read_as_far_as_it_goes(tmp_path: Path, kind: str) -> None:
    text = "".join(f"{n} {random.Random(n).random()}\n" for n in range(60000)).encode()
    whole = compressed(text, kind)
    path = tmp_path / "cut"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    problems: list[Problem] = []
    got = lines_of(source(path), problems)
    assert [p.kind for p in problems] == ["truncated"]
    assert len(got) > 100
    assert all(line.whole for line in got[:-1])
    assert not got[-1].whole
    assert "\n".join(line.raw for line in got[:-1]).encode() == b"\n".join(text.split(b"\n")[: len(got) - 1])


def test_a_damaged_archive_says_so(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(b"".join(b"%d line\n" % n for n in range(100000))))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "damaged"
    path.write_bytes(whole)
    problems: list[Problem] = []
    assert lines_of(source(path), problems)
    assert problems[0].kind == "truncated"
    assert "damaged" in problems[0].text


def test_bytes_behind_an_archive_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + b"plain text behind it")
    problems: list[Problem] = []
    assert [line.raw for line in lines_of(source(path), problems)] == ["one"]
    assert [p.kind for p in problems] == ["truncated"]


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_BOMB_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(20 << 20)))
    chunks = Chunks(path, "gz")
    assert sum(map(len, chunks)) < 8 << 20
    assert chunks.cut is not None


def test_zstd_without_its_package_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding.importlib.util, "find_spec", lambda name: None)
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(EncodingMissing, match=r"torchreplay\[zstd\]"):
        Chunks(path, "zst")
    problems: list[Problem] = []
    assert lines_of(source(path), problems) == []
    assert problems[0].kind == "unreadable"


def test_a_huge_line_is_cut_but_counted(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as out:
        for _ in range(20):
            out.write(b"x" * (1 << 20))
        out.write(b"\nshort\n" + b"y" * MAX_LINE * 5)
    first, second, third = lines_of(source(path))
    assert (len(first.raw), first.whole) == (MAX_LINE, False)
    assert (second.raw, second.line_no, second.byte_offset, second.whole) == ("short", 2, (20 << 20) + 1, True)
    assert (len(third.raw), third.whole) == (MAX_LINE, False)
    assert read_line(source(path), 2) == "short"
    assert read_bytes(path, "plain", 3) == b"xxx"


def test_line_ends_of_other_systems_and_bars(tmp_path: Path) -> None:
    path = tmp_path / "crlf.log"
    path.write_bytes(b"\xef\xbb\xbf[rank0]: one\r\n\r50%\r100%\r\ntwo")
    got = lines_of(source(path))
    assert [line.text for line in got] == ["one", "\r50%\r100%", "two"]
    assert got[0].identity == Identity(rank=0)
    assert [line.whole for line in got] == [True, True, False]


def test_a_file_that_vanishes_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    path.write_bytes(b"a\n")
    file = source(path)
    path.unlink()
    problems: list[Problem] = []
    assert lines_of(file, problems) == []
    assert problems[0].kind == "unreadable"
    assert read_line(SourceFile(1, "x", None, "text", "plain", 0, ""), 1) is None


def test_a_binary_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"PK\x03\x04\n\n")
    file = source(path)
    file.kind = "binary"
    assert lines_of(file) == []


def test_lines_before_the_first_and_behind_the_last_do_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a\nb\n")
    assert read_line(source(path), 0) is None
    assert read_line(source(path), 3) is None
    assert read_lines(source(path), 2, 5) == ["b"]
