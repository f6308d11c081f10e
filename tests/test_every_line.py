"""Every line of the labelled and real runs has a class, the counts add up, and no line that is ours counts as plain."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch_lines import Rows

from replay.grammar.executor import shared
from replay.parse.pipeline import parse_file
from replay.sources.discover import discover
from replay.sources.model import Hints, Line, SourceFile
from replay.sources.read import read_batches

SHARED = Path(__file__).parents[2] / "shared"
CASES = sorted(path / "logs" for path in SHARED.glob("cases/*") if (path / "logs").is_dir())
NCCL = sorted(path for path in SHARED.glob("nccl_real/*.log") if path.stat().st_size)
OURS = (
    " NCCL ",
    "NCCL INFO",
    "+- ",
    "GUARDS:",
    "torch._dynamo.",
    "TRACED GRAPH",
    "[__",
    "async_compile.",
    "Recompiling ",
)
BEGINS = ("[rank", "| +-", '  File "', "    triggered by", "Graph break", "Traceback", "frame #", "    %", "#include")
QUOTED = ("torch._dynamo.utils.warn_once(", "This call originates", "f_lru", "please report this issue to the NCCL")
"""A warning's source line, the stack that torch puts inside a warning's text, a result in a program's own words."""


class Kept(Rows):
    """Keeps the lines of each class as well."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[str, str]] = []

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        super().line(line, writer_id, kind, form, t)
        self.texts.append((kind, line.text))


def files(place: Path) -> Iterator[tuple[SourceFile, Kept]]:
    """Read a case line by line."""
    for file in discover([str(place)], Hints()).files:
        kept = Kept()
        kept.counts = parse_file(file, (list(b) for b in read_batches(file, Hints())), kept, Hints(), shared())
        yield file, kept


def content(file: SourceFile) -> bytes:
    assert file.abspath is not None
    data = Path(file.abspath).read_bytes()
    return gzip.decompress(data) if file.encoding == "gz" else data


@pytest.mark.skipif(not CASES, reason="no labelled runs beside this checkout")
@pytest.mark.parametrize("place", CASES, ids=lambda place: place.parent.name)
def test_no_line_of_ours_is_plain(place: Path) -> None:
    for file, kept in files(place):
        counts = kept.counts
        assert counts.lines == counts.parsed + counts.continuation + counts.plain + counts.malformed, file.path
        if file.kind != "text":
            continue
        strange = [
            text
            for kind, text in kept.texts
            if kind == "plain"
            and (text.startswith(BEGINS) or any(word in text for word in OURS))
            and not any(word in text for word in QUOTED)
        ]
        assert strange == [], file.path


@pytest.mark.skipif(not NCCL, reason="no real logs beside this checkout")
def test_nccls_lines_are_all_read() -> None:
    lines = malformed = plain = 0
    for path in NCCL:
        for file, kept in files(path):
            counts, data = kept.counts, content(file)
            assert counts.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
            assert counts.lines == counts.parsed + counts.continuation + counts.plain + counts.malformed
            lines += counts.lines
            malformed += counts.malformed
            plain += sum(kind == "plain" and bool(text.strip()) for kind, text in kept.texts)
    assert malformed < 0.01 * lines
    assert plain < 0.001 * lines
