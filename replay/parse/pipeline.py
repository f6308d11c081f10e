"""One file through the stages: lines -> segments -> matches -> assemblers -> rows, and every line counted once."""

from collections.abc import Iterable, Sequence

from replay.grammar.executor import ReExecutor
from replay.grammar.model import Match
from replay.parse.blocks import FACTORIES
from replay.parse.clock import Clock
from replay.parse.families import families
from replay.parse.model import Assembler, Counts, LineSink, Segment
from replay.parse.readers import READERS
from replay.parse.rejoin import Rejoiner
from replay.parse.segments import Segmenter
from replay.sources.model import Hints, Line, SourceFile

_RANK = {"parsed": 3, "continuation": 2, "malformed": 1, "plain": 0}
_TEXT_CUT = 400


class FileParser:
    """Parses the lines of one file. Rows go to the sink as blocks end."""

    def __init__(self, file: SourceFile, sink: LineSink, hints: Hints, executor: ReExecutor) -> None:
        self._file, self._sink, self._executor = file, sink, executor
        segmenter = Segmenter(executor, Clock(hints.year, file.mtime, file.near))
        self._rejoiner = Rejoiner(lambda line: list(segmenter.split(line)), self._is_known)
        self._assemblers: dict[int, list[Assembler]] = {}
        self._last_headed: int | None = None
        self.counts = Counts()

    def feed(self, lines: Iterable[Line]) -> None:
        """Take the next lines of the file, in order."""
        for line in lines:
            for whole, segments in self._rejoiner.push(line):
                self._line(whole, segments)

    def close(self) -> None:
        """The file is over: end all open blocks."""
        for line, segments in self._rejoiner.flush():
            self._line(line, segments)
        for segment in self._rejoiner.leftovers():
            self._segment(segment)
        for assemblers in self._assemblers.values():
            for assembler in assemblers:
                assembler.close()

    def _line(self, line: Line, segments: list[Segment]) -> None:
        best, form, first = "plain", None, None
        for segment in segments:
            kind = self._segment(segment)
            first = first or segment
            if _RANK[kind] > _RANK[best] or (form is None and kind == best):
                best, form = kind, segment.match.form if segment.match else (segment.header or None)
        self.counts.lines += 1
        setattr(self.counts, best, getattr(self.counts, best) + 1)
        if form:
            self.counts.forms[form] = self.counts.forms.get(form, 0) + 1
        writer = first.writer_id if first else self._sink.writer(self._file, line.identity)
        self._sink.line(line, writer, best, form if best != "plain" else None, first.t if first else line.t)

    def _match(self, segment: Segment) -> Match | None:
        head = segment.head
        for family in families(segment.header, head.get("artifact") or head.get("nccl_level")):
            match = self._executor.one(family, segment.text)
            if match:
                return match
        return None

    def _is_known(self, segment: Segment) -> bool:
        """Whether a production that knows the message takes it, not only one that takes any text."""
        match = self._match(segment)
        return match is not None and match.family != "nccl_text"

    def _segment(self, segment: Segment) -> str:
        segment.match = self._match(segment)
        segment.writer_id = self._writer(segment)
        verdict = self._ask(segment)
        if segment.header not in {"", "app"}:
            self._last_headed = segment.writer_id
        elif verdict is None and segment.match is None and self._last_headed is not None:
            verdict = self._adopt(segment, self._last_headed)
        if segment.header not in {"", "app"} or segment.match:
            return verdict or "parsed"
        if verdict:
            return verdict
        if segment.header == "" and self._executor.one("torn", segment.text):
            return "malformed"
        return "plain"

    def _ask(self, segment: Segment) -> str | None:
        verdict = None
        for assembler in self._of(segment.writer_id):
            answer = assembler.feed(segment)
            verdict = verdict or answer
        return verdict

    def _adopt(self, segment: Segment, writer_id: int) -> str | None:
        """A line without any header may go on with the message of the writer before it."""
        own, segment.writer_id = segment.writer_id, writer_id
        verdict = self._ask(segment)
        if verdict is None:
            segment.writer_id = own
        return verdict

    def _writer(self, segment: Segment) -> int:
        return self._sink.writer(self._file, segment.identity)

    def _of(self, writer_id: int) -> list[Assembler]:
        found = self._assemblers.get(writer_id)
        if found is None:
            found = self._assemblers[writer_id] = [make(self._sink) for make in FACTORIES]
        return found


def parse_file(
    file: SourceFile,
    batches: Iterable[Sequence[Line]],
    sink: LineSink,
    hints: Hints,
    executor: ReExecutor | None = None,
) -> Counts:
    """Parse one file into the sink and return how its lines were classed.

    Files that are not logs of lines (binary, empty, source) give no rows; their lines are counted as plain.
    """
    reader = READERS.get(file.kind)
    if reader is not None:
        return reader(file, batches, sink, hints)
    parser = FileParser(file, sink, hints, executor or ReExecutor())
    for batch in batches:
        parser.feed(batch)
    parser.close()
    return parser.counts
