"""One file through the stages: lines -> segments -> matches -> assemblers -> rows, and every line counted once."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from replay.grammar.executor import ReExecutor
from replay.grammar.model import Match
from replay.parse.blocks import FACTORIES
from replay.parse.blocks.nccl import NcclLines
from replay.parse.blocks.nccl_collectives import OPERATIONS, memberships
from replay.parse.blocks.nccl_comms import Communicators
from replay.parse.blocks.torch_compiler import TorchCompiler
from replay.parse.bulk import Group, Survey, Surveyor
from replay.parse.clock import Clock
from replay.parse.families import families
from replay.parse.model import Assembler, Counts, LineSink, Passing, Reading, Segment, Value
from replay.parse.readers import READERS
from replay.parse.rejoin import Process, Rejoiner
from replay.parse.segments import Segmenter
from replay.sources.model import Batch, Hints, Identity, Line, SourceFile

_RANK = {"parsed": 3, "continuation": 2, "malformed": 1, "plain": 0}
_OBJECTS = 200_000
"""New objects after which Python looks for garbage in cycles."""


class FileParser:
    """Parses the lines of one file. Rows go to the sink as blocks end."""

    def __init__(self, file: SourceFile, sink: LineSink, hints: Hints, executor: ReExecutor) -> None:
        self._file, self._sink, self._executor = file, sink, executor
        clock = Clock(hints.year, file.mtime, file.near)
        self._segmenter = Segmenter(executor, clock)
        self._rejoiner = Rejoiner(lambda line: list(self._segmenter.split(line)), self._is_known)
        self._assemblers: dict[int, list[Assembler]] = {}
        self._writers: dict[Identity, int] = {}
        self._surveyor = Surveyor(clock, self._segmenter.hosts, self._writers)
        self._processes: dict[int, Process] = {}
        self._last_headed: int | None = None
        self._batch: Batch | None = None
        self._reading: Reading | None = None
        self.counts = Counts()

    def feed(self, lines: Iterable[Line]) -> None:
        """Take the next lines of the file, in order, one by one."""
        for line in lines:
            for whole, segments in self._rejoiner.push(line):
                self._line(whole, segments)

    def feed_batch(self, batch: Batch) -> None:
        """Take the next lines of the file; those that can be are read at once."""
        survey = self._surveyor.survey(batch)
        if survey is None:
            self.feed(batch)
            return
        self._batch, self._reading = batch, survey.reading
        one_by_one: set[int] = set()
        begin = 0
        for place in (*(p for p, writer in enumerate(survey.reading.writers) if writer < 0), len(batch)):
            if begin < place:
                self._pass(batch, survey, begin, place, one_by_one)
            if place < len(batch):
                self.feed([batch.line(place)])
            begin = place + 1
        self._batch = self._reading = None
        self._sink.lines(batch, survey.reading)
        for group in survey.groups:
            self._rows(batch, survey.reading, group, one_by_one)

    def _pass(self, batch: Batch, survey: Survey, begin: int, end: int, one_by_one: set[int]) -> None:
        """Take lines that can be read at once; one that an open block may want is read by itself all the same."""
        reading = survey.reading
        while begin < end:
            if self._rejoiner.is_holding:
                at = begin
            else:
                span = list(zip(reading.writers[begin:end], survey.heads[begin:end], strict=True))
                minded = {key for key in set(span) if key[1] and any(a.minds(key[1]) for a in self._of(key[0]))}
                at = next((n for n, key in enumerate(span, begin) if key in minded), end) if minded else end
                if begin < at:
                    self._passed(batch, survey, begin, at)
            if at < end:
                one_by_one.add(at)
                reading.kinds[at] = None
                self.feed([batch.line(at)])
            begin = at + 1

    def _passed(self, batch: Batch, survey: Survey, begin: int, end: int) -> None:
        """Tell those who follow the stream that these lines went by."""
        reading, counts = survey.reading, self.counts
        counts.lines += end - begin
        for kind, times in Counter(reading.kinds[begin:end]).items():
            if kind:
                setattr(counts, kind, getattr(counts, kind) + times)
        for form, times in Counter(reading.forms[begin:end]).items():
            if form:
                counts.forms[form] = counts.forms.get(form, 0) + times
        at = begin
        for (writer, head, is_wrapped), run in groupby(range(begin, end), lambda n: _stream(batch, survey, n)):
            size = sum(1 for _ in run)
            process = self._processes[writer] if head == "nccl" else None
            length = 0 if process else sum(len(raw.encode()) + 1 for raw in batch.raws[at : at + size])
            self._rejoiner.pass_by(process, batch.offsets[at], length, is_wrapped=is_wrapped)
            at += size
        if not survey.guards:
            self._touch(batch, survey, begin, end)
        else:
            at = begin
            for tree, run in groupby(range(begin, end), lambda n: _tree(survey, n)):
                size = sum(1 for _ in run)
                if tree is None:
                    self._touch(batch, survey, at, at + size)
                else:
                    self._guards(batch, survey, at, at + size)
                at += size
        self._last_headed = reading.writers[end - 1]

    def _guards(self, batch: Batch, survey: Survey, begin: int, end: int) -> None:
        """Hand over lines of one tree of guards."""
        writer = survey.reading.writers[begin]
        first, last = (next(self._segmenter.split(batch.line(place))) for place in (begin, end - 1))
        first.writer_id = last.writer_id = writer
        compiler = next(a for a in self._of(writer) if isinstance(a, TorchCompiler))
        columns = compiler.guards(first, last, [survey.guards[place] for place in range(begin, end)])
        if columns:
            size = len(columns["line_no"])
            common: dict[str, Sequence[Value]] = {"writer_id": (writer,) * size, "complete": (True,) * size}
            self._sink.rows("guards", {**columns, **common, "file_id": (batch.file_id,) * size})

    def _touch(self, batch: Batch, survey: Survey, begin: int, end: int) -> None:
        """Read the first and the last line of each compile and writer: between them nothing changes."""
        firsts: dict[tuple[int, str], int] = {}
        lasts: dict[tuple[int, str], int] = {}
        ids, writers = survey.ids, survey.reading.writers
        if not ids:
            return
        for place in range(begin, end):
            if (trace_id := ids.get(place)) is not None:
                key = writers[place], trace_id
                firsts.setdefault(key, place)
                lasts[key] = place
        for place in sorted({*firsts.values(), *lasts.values()}):
            for segment in self._segmenter.split(batch.line(place)):
                self._segment(segment)

    def _rows(self, batch: Batch, reading: Reading, group: Group, one_by_one: set[int]) -> None:
        """Write the rows of the lines that one record took."""
        places, fields = group.places, group.fields
        if not one_by_one.isdisjoint(places):
            kept = [n for n, place in enumerate(places) if place not in one_by_one]
            places = [places[n] for n in kept]
            fields = {name: [values[n] for n in kept] for name, values in fields.items()}
        size = len(places)
        if not size:
            return
        columns = group.rows.many(fields, size)
        writers = [reading.writers[place] for place in places]
        numbers = [batch.first_no + place for place in places]
        if group.record in OPERATIONS:
            columns |= memberships(self._comms, batch.first_no, writers, numbers, columns)
        ts = [reading.ts[place] for place in places]
        common: dict[str, Sequence[Value]] = {"writer_id": writers, "t_lo": ts, "t_hi": ts, "line_no": numbers}
        common |= {"file_id": (batch.file_id,) * size, "complete": (True,) * size}
        self._sink.rows(group.rows.table, common | columns)

    def _comms(self, writer: int) -> Communicators:
        return next(a.comms for a in self._of(writer) if isinstance(a, NcclLines))

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
        writer = first.writer_id if first else self._writer(line.identity)
        self._keep(line, writer, best, form if best != "plain" else None, first.t if first else line.t)

    def _keep(self, line: Line, writer: int, kind: str, form: str | None, t: float | None) -> None:
        """Keep a line in its place among those of the batch; one that was held back since an earlier batch, alone."""
        batch, reading = self._batch, self._reading
        place = line.line_no - batch.first_no if batch is not None else -1
        if reading is None or place < 0:
            self._sink.line(line, writer, kind, form, t)
            return
        reading.writers[place], reading.kinds[place], reading.forms[place], reading.ts[place] = writer, kind, form, t

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
        segment.writer_id = self._writer(segment.identity)
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

    def _writer(self, identity: Identity) -> int:
        writer = self._writers.get(identity)
        if writer is None:
            writer = self._writers[identity] = self._sink.writer(self._file, identity)
            self._processes[writer] = identity.host, identity.pid
        return writer

    def _of(self, writer_id: int) -> list[Assembler]:
        found = self._assemblers.get(writer_id)
        if found is None:
            found = self._assemblers[writer_id] = [make(self._sink) for make in FACTORIES]
        return found


def _stream(batch: Batch, survey: Survey, place: int) -> tuple[int, str, bool]:
    """Whose line it is, of which library, and whether a launcher wrapped it."""
    is_wrapped = batch.texts is not batch.raws and batch.texts[place] != batch.raws[place]
    head = survey.heads[place]
    return survey.reading.writers[place], head.header if head else "", is_wrapped


def _tree(survey: Survey, place: int) -> tuple[int, Passing] | None:
    """The tree of guards that a line belongs to: by its writer and header."""
    head = survey.heads[place]
    return (survey.reading.writers[place], head) if head is not None and head.artifact is not None else None


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
    with _seldom_collected():
        for batch in batches:
            if isinstance(batch, Batch):
                parser.feed_batch(batch)
            else:
                parser.feed(batch)
        parser.close()
    return parser.counts


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for garbage in cycles seldom: a batch makes many objects, and none that refer to each other."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
