"""One file through the stages: lines -> segments -> matches -> assemblers -> rows, and every line counted once."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from replay.grammar.executor import ReExecutor
from replay.grammar.model import Match
from replay.grammar.texts import Mask, numbered
from replay.parse.blocks import FACTORIES
from replay.parse.blocks.nccl import NcclLines
from replay.parse.blocks.nccl_collectives import OPERATIONS, memberships
from replay.parse.blocks.nccl_comms import Communicators
from replay.parse.blocks.torch_compiler import TorchCompiler
from replay.parse.bulk import SLOW, Group, Survey, Surveyor
from replay.parse.clock import Clock
from replay.parse.families import families
from replay.parse.model import KINDS, Assembler, Column, Counts, LineSink, Reading, Segment
from replay.parse.readers import READERS
from replay.parse.rejoin import Process, Rejoiner
from replay.parse.segments import Segmenter
from replay.sources.model import BATCH, Batch, Hints, Identity, Line, SourceFile

_RANK = {"parsed": 3, "continuation": 2, "malformed": 1, "plain": 0}
_NARROW, _STEP = 64, 4
"""Lines that are looked at in one go where writers are new, and how fast they become more."""
_FEW = 16
"""Lines of new writers that are read one by one."""


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
        self._window = _NARROW
        self._batch: Batch | None = None
        self._reading: Reading | None = None
        self.counts = Counts()

    def feed(self, lines: Iterable[Line]) -> None:
        """Take the next lines of the file, in order, one by one."""
        for line in lines:
            for whole, segments in self._rejoiner.push(line):
                self._line(whole, segments)

    def feed_batch(self, batch: Batch) -> None:
        """Take the next lines of the file; those that can be are read at once.

        A writer's first line is read by itself, and until then all of its lines: where a writer is new, what comes
        behind its first line is looked at again.
        """
        begin = 0
        while begin < len(batch):
            end = min(begin + self._window, len(batch))
            part = batch if end - begin == len(batch) else batch.part(begin, end)
            survey = self._surveyor.survey(part)
            is_strange = survey.strangers > _FEW
            if is_strange and survey.first_stranger + 1 < len(part):
                part = part.part(0, survey.first_stranger + 1)
                survey = self._surveyor.survey(part)
            self._window = max(self._window // _STEP, _NARROW) if is_strange else min(self._window * _STEP, BATCH)
            self._take(part, survey)
            begin += len(part)

    def _take(self, batch: Batch, survey: Survey) -> None:
        self._batch, self._reading = batch, survey.reading
        streams = _Streams(batch, survey, self._telling(batch, survey))
        one_by_one: list[int] = []
        begin = 0
        for place in (*np.flatnonzero(survey.reading.writers < 0).tolist(), len(batch)):
            if begin < place:
                one_by_one += self._pass(batch, survey, streams, begin, place)
            if place < len(batch):
                self.feed([batch.line(place)])
            begin = place + 1
        self._batch = self._reading = None
        self._sink.lines(batch, survey.reading)
        is_passed = survey.heads > 0
        is_passed[one_by_one] = False
        self._count(survey.reading, is_passed)
        first_no, ts = batch.first_no, survey.reading.ts
        count, columns = survey.guards.columns(first_no, ts) if survey.guards is not None else (0, {})
        if count:
            common: dict[str, Column] = {"complete": True, "file_id": batch.file_id}
            self._sink.rows("guards", count, columns | common)
        for group in survey.groups:
            self._rows(batch, survey.reading, group, is_passed)

    def _telling(self, batch: Batch, survey: Survey) -> dict[int, Segment]:
        """The lines that torch's compiler is told. Those that others want as well are left to be read by themselves."""
        told: dict[int, Segment] = {}
        for lines in survey.told:
            for place, segment in lines.segments(batch):
                if segment is None:
                    survey.reading.writers[place], survey.heads[place] = SLOW, 0
                else:
                    told[place] = segment
        return told

    def _pass(self, batch: Batch, survey: Survey, streams: _Streams, begin: int, end: int) -> list[int]:
        """Take lines that can be read at once; one that an open block may want is read by itself all the same. Return
        the places of those.
        """
        one_by_one: list[int] = []
        for stop in (*streams.stops(begin, end), end):
            while begin < stop:
                at = begin
                if not (self._rejoiner.is_holding or self._is_minded(survey, streams, streams.keys.values[begin])):
                    at = self._next_minded(survey, streams, begin, stop)
                    self._passed(batch, survey, streams, begin, at)
                if at < stop:
                    one_by_one.append(at)
                    survey.reading.kinds[at] = 0
                    self.feed([batch.line(at)])
                begin = at + 1 if at < stop else stop
            if stop < end:
                if not self._tell(batch, survey, streams.told[stop], stop):
                    one_by_one.append(stop)
                    self.feed([batch.line(stop)])
                begin = stop + 1
        return one_by_one

    def _tell(self, batch: Batch, survey: Survey, segment: Segment, at: int) -> bool:
        """Tell torch's compiler a line; False where another part may want it, or a line before it is waited for."""
        reading, writer = survey.reading, segment.writer_id
        passing = survey.passings[survey.heads[at]]
        others = (a for a in self._of(writer) if not isinstance(a, TorchCompiler))
        if self._rejoiner.is_holding or (passing is not None and any(a.minds(passing) for a in others)):
            return False
        self._pass_by(batch, None, at, at + 1)
        kind = self._compiler(writer).feed(segment) or "parsed"
        reading.kinds[at] = KINDS.index(kind)
        reading.forms[at] = reading.names.number(segment.match.form if segment.match else segment.header)
        self._last_headed = writer
        return True

    def _next_minded(self, survey: Survey, streams: _Streams, begin: int, end: int) -> int:
        """The next line that an open block may want, `end` where there is none."""
        known: dict[int, bool] = {}
        for at, _, key in streams.keys.within(begin, end):
            is_minded = known.get(key)
            if is_minded is None:
                is_minded = known[key] = self._is_minded(survey, streams, key)
            if is_minded:
                return at
        return end

    def _is_minded(self, survey: Survey, streams: _Streams, key: int) -> bool:
        """Whether an open block of its writer may want a line like this."""
        place = streams.firsts[key]
        passing = survey.passings[survey.heads[place]]
        return passing is not None and any(a.minds(passing) for a in self._of(int(survey.reading.writers[place])))

    def _passed(self, batch: Batch, survey: Survey, streams: _Streams, begin: int, end: int) -> None:
        """Tell those who follow the stream that these lines went by."""
        reading = survey.reading
        for at, after, _ in streams.sources.within(begin, end):
            head = survey.passings[survey.heads[at]]
            process = self._processes[int(reading.writers[at])] if head is not None and head.header == "nccl" else None
            self._pass_by(batch, process, at, after)
        for at, after, key in streams.messages.within(begin, end):
            if key < 0:
                self._touch(batch, survey, streams, at, after)
            else:
                self._long(batch, survey, at, after)
        self._last_headed = int(reading.writers[end - 1])

    def _pass_by(self, batch: Batch, process: Process | None, begin: int, end: int) -> None:
        """Tell the rejoiner of lines of one process of NCCL (None: not of NCCL) that went by."""
        offset, size = int(batch.offsets[begin]), int(batch.offsets[end] - batch.offsets[begin])
        is_wrapped = batch.wraps is not None and bool(batch.wraps.is_wrapped[begin])
        self._rejoiner.pass_by(process, offset, 0 if process else size, is_wrapped=is_wrapped)

    def _count(self, reading: Reading, is_passed: Mask) -> None:
        """Count the lines that were read at once."""
        counts = self.counts
        counts.lines += int(is_passed.sum())
        for number, times in enumerate(np.bincount(reading.kinds[is_passed]).tolist()):
            if times and (kind := KINDS[number]):
                setattr(counts, kind, getattr(counts, kind) + times)
        for number, times in enumerate(np.bincount(reading.forms[is_passed]).tolist()):
            if times and (form := reading.names.names[number]):
                counts.forms[form] = counts.forms.get(form, 0) + times

    def _long(self, batch: Batch, survey: Survey, begin: int, end: int) -> None:
        """Hand over lines of one long message: a tree of guards, or the text of a graph."""
        passing = survey.passings[survey.heads[begin]]
        head = {} if passing is None else {"artifact": passing.artifact, "trace_id": passing.trace_id}
        first, last = (_noted(batch, survey, place, head) for place in (begin, end - 1))
        compiler = self._compiler(first.writer_id)
        if begin in survey.graphs:
            compiler.graph(first, last, [survey.graphs[place] for place in range(begin, end)])
            return
        if survey.guards is not None:
            compiler.guards(first, last, survey.guards, begin, end)

    def _touch(self, batch: Batch, survey: Survey, streams: _Streams, begin: int, end: int) -> None:
        """Note the first and the last line of each compile and writer: between them nothing changes."""
        firsts: dict[int, int] = {}
        lasts: dict[int, int] = {}
        for at, after, key in streams.compiles.within(begin, end):
            if key >= 0:
                firsts.setdefault(key, at)
                lasts[key] = after - 1
        for place in sorted({*firsts.values(), *lasts.values()}):
            segment = _noted(batch, survey, place, {"trace_id": survey.id_names[survey.ids[place]] or None})
            self._compiler(segment.writer_id).touch(segment)

    def _compiler(self, writer: int) -> TorchCompiler:
        return next(a for a in self._of(writer) if isinstance(a, TorchCompiler))

    def _rows(self, batch: Batch, reading: Reading, group: Group, is_passed: Mask) -> None:
        """Write the rows of the lines that one record took."""
        places, taken = group.places, group.taken
        kept = np.flatnonzero(is_passed[places])
        if not len(kept):
            return
        if len(kept) < len(places):
            places, taken = places[kept], taken.pick(kept)
        columns = group.rows.many(taken)
        writers = reading.writers[places]
        numbers = places.astype(np.int64) + batch.first_no
        if taken.production.record in OPERATIONS and group.rows.table == "collectives":
            columns |= memberships(
                self._comms, batch.first_no, (writers, numbers), taken.field("comm"), taken.field("nranks").integers()
            )
        ts = reading.ts[places]
        common: dict[str, Column] = {"writer_id": writers, "t_lo": ts, "t_hi": ts, "line_no": numbers}
        common |= {"file_id": batch.file_id, "complete": True}
        self._sink.rows(group.rows.table, len(places), common | columns)

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
        reading.writers[place], reading.ts[place] = writer, math.nan if t is None else t
        reading.kinds[place], reading.forms[place] = KINDS.index(kind), reading.names.number(form)

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


def _noted(batch: Batch, survey: Survey, place: int, head: dict[str, str | None]) -> Segment:
    """A line of torch of which only writer, time and these fields of its header matter."""
    line, t = batch.line(place), float(survey.reading.ts[place])
    known = {name: value for name, value in head.items() if value is not None}
    writer = int(survey.reading.writers[place])
    return Segment(line, "torch", known, "", line.identity, None if math.isnan(t) else t, writer_id=writer)


class _Runs:
    """A column of numbers by its runs of equal ones."""

    def __init__(self, column: npt.NDArray[Any]) -> None:
        self.values: list[int] = column.tolist()
        self._changes: list[int] = (np.flatnonzero(np.diff(column)) + 1).tolist()

    def within(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Give where runs begin and end, and their number."""
        at, nth = begin, bisect_right(self._changes, begin)
        while at < end:
            after = self._changes[nth] if nth < len(self._changes) else end
            yield at, min(after, end), self.values[at]
            at, nth = after, nth + 1


class _Streams:
    """The lines of a batch by whom they are of. `keys`: by writer and header, with the first place of each; `sources`:
    also by whether a launcher wrapped them, all headers of one library alike; `messages`: the key where the line is one
    of a tree of guards or of a graph, else below 0; `compiles`: by writer and compile id, below 0 where none is noted;
    `told`: the lines that torch's compiler is told, by place.
    """

    def __init__(self, batch: Batch, survey: Survey, told: dict[int, Segment]) -> None:
        self.told = told
        self._places = sorted(told)
        writers, heads, ids = survey.reading.writers.astype(np.int64), survey.heads, survey.ids
        keys, self.firsts = numbered((writers + 1) * len(survey.passings) + heads)
        self.keys = _Runs(keys)
        libraries = np.array([0 if p is None or p.header != "nccl" else 1 for p in survey.passings], np.int64)[heads]
        wrapped = np.zeros(len(batch), np.int64) if batch.wraps is None else batch.wraps.is_wrapped.astype(np.int64)
        self.sources = _Runs((writers * 2 + libraries) * 2 + wrapped)
        is_long = np.array([p is not None and p.artifact is not None for p in survey.passings], np.bool_)[heads]
        self.messages = _Runs(np.where(is_long, keys, -1))
        self.compiles = _Runs(np.where(ids >= 0, writers * (len(survey.id_names) + 1) + ids, -1))

    def stops(self, begin: int, end: int) -> list[int]:
        """The places from `begin` to `end` of lines that are told."""
        return self._places[bisect_left(self._places, begin) : bisect_left(self._places, end)]


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
        if isinstance(batch, Batch):
            parser.feed_batch(batch)
        else:
            parser.feed(batch)
    parser.close()
    return parser.counts
