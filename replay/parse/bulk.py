"""Many lines at once: which lines of a batch can be read without looking at what is around them, and what they say.

Most lines of a large log are of two kinds. Some tell all they have to tell by themselves (an operation, a connection, a
variable of NCCL); they become rows by columns. Others tell nothing but that their writer was there (what torch traced).
Both have a header of NCCL or torch, are whole, and hold one message. The rest of torch's lines of this sort is told to
its compiler one by one (parse.told). All other lines are left to be read by themselves.
The patterns are the same, in the same order, so that it does not matter which way a line goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from replay.grammar.bulk import Taken, shared
from replay.grammar.texts import Coded, Codes, Listed, Mask, Places, Spans, Texts, computed, filled
from replay.parse.blocks import ALONE
from replay.parse.blocks.graphs import MARKS
from replay.parse.blocks.guard_trees import DEEPER, GUARD, MANAGER, GuardLines
from replay.parse.blocks.torch_compiler import SILENT
from replay.parse.clock import Clock
from replay.parse.families import BY_ARTIFACT, families, is_of_graphs, is_of_guards
from replay.parse.model import KINDS, Names, Passing, Reading
from replay.parse.rows import Rows
from replay.parse.segments import GLUED, may_be_glued, of_nccl, of_torch, world
from replay.parse.told import Told
from replay.sources.model import Batch, Identity

_NCCL = frozenset({"nccl_line", "nccl_stamped", "nccl_call", "nccl_call_stamped"})
_TORCH = "torch_glog"
_LOUD_NCCL = frozenset({"WARN", "ATTN"})
_QUIET_TORCH = frozenset("VDI")
_ANNOUNCES = ("CONVERT", "raph break")
"""Words by which torch announces a traceback that it survives: parse.blocks.tracebacks looks for them."""
_GUARDS, _GRAPHS = ("guard_tree",), ("graphs",)
_OF_TREE = frozenset({"guard_manager", "guard_pair", "guard_leaf"})
_PARSED, _CONTINUATION = KINDS.index("parsed"), KINDS.index("continuation")
_MINUTE = len("22:51:")
SLOW = -1
"""In place of a writer: the line is to be read by itself."""

Who = dict[Identity, int]
_Lines = tuple[Taken, Places, Codes, npt.NDArray[np.float64]]
"""Lines of one form of header: the match, which of its texts they are, and writers and times of all its texts."""


@dataclass(slots=True)
class Group:
    """Lines of a batch that make the rows of one record: their places, and the match of each."""

    rows: Rows
    places: Places
    taken: Taken


@dataclass(slots=True)
class Survey:
    """What can be said of a batch at once. `heads`: for each line the number of its header in `passings` (0: slow);
    `ids`: the number of its compile id where it has one that is to be noted, else below 0. The lines of trees of guards
    are told by columns of all lines, those of graphs by their texts; `told` are lines for torch's compiler. `strangers`
    counts the lines that could be read at once if their writers were known; the first stands at `first_stranger`.
    """

    reading: Reading
    heads: Codes
    passings: list[Passing | None]
    ids: Codes
    id_names: list[str]
    strangers: int = 0
    first_stranger: int = 0
    groups: list[Group] = field(default_factory=list)
    guards: GuardLines | None = None
    graphs: dict[int, str] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    def stranger(self, places: Places) -> None:
        """Note lines of writers that are not known."""
        if len(places):
            first = int(places.min())
            self.first_stranger = min(first, self.first_stranger) if self.strangers else first
            self.strangers += len(places)


class Surveyor:
    """Looks over the batches of one file. `writers` are those met so far: a line of another is slow, and so is one from
    a host that is not in `hosts`.
    """

    def __init__(self, clock: Clock, hosts: set[str], writers: Who) -> None:
        self._clock, self._hosts, self._writers = clock, hosts, writers
        self._names = Names()

    def survey(self, batch: Batch) -> Survey:
        """Return what is said by the lines that can be read at once."""
        reading = Reading.empty(len(batch), self._names)
        survey = Survey(reading, np.zeros(len(batch), np.int32), [None], np.full(len(batch), -1, np.int32), [])
        plain = np.flatnonzero(batch.is_plain)
        self._look(batch, survey, batch.texts.pick(plain), plain)
        if isinstance(batch.texts, Spans):  # what the scanner does not read
            others = np.flatnonzero(batch.whole & ~batch.is_plain)
            listed = [batch.texts[n] for n in others.tolist()]
            chosen = [n for n, text in enumerate(listed) if text and "\r" not in text and "\n" not in text]
            if chosen:
                self._look(batch, survey, Listed([listed[n] for n in chosen]), others[chosen])
        return survey

    def _look(self, batch: Batch, survey: Survey, texts: Texts, places: Places) -> None:
        taken, _ = shared(("headers",)).take(texts)
        for head in taken:
            where = places[head.where]
            if head.production.form == _TORCH:
                self._torch(batch, survey, where, head)
            elif head.production.form in _NCCL:
                self._nccl(batch, survey, where, head)

    def _nccl(self, batch: Batch, survey: Survey, where: Places, head: Taken) -> None:
        levels, bodies = head.field("nccl_level").coded(), head.field("text")
        writers = self._nccl_writers(batch, where, head)
        ts = self._stamps(head)
        if ts is None:
            ts = np.full(len(where), np.nan) if batch.wraps is None else batch.wraps.ts[where]
        survey.stranger(where[writers < 0])
        ready = (writers >= 0) & bodies.is_there(shortest=1) & ~_glued(bodies)
        reading = survey.reading
        passing = _head(survey, Passing("nccl"))
        for number, level in enumerate(levels.values):
            chosen = np.flatnonzero(ready & (levels.codes == number))
            if level in _LOUD_NCCL or not len(chosen):
                continue
            taken, _ = shared(families("nccl", level)).take(bodies.pick(chosen))
            for message in taken:
                key = message.family, message.production.record
                if key not in ALONE:
                    continue
                at = chosen[message.where]
                places = where[at]
                reading.writers[places], reading.ts[places] = writers[at], ts[at]
                reading.forms[places] = self._names.number(message.production.form)
                reading.kinds[places], survey.heads[places] = _PARSED, passing
                rows = ALONE[key]
                if rows is not None:
                    survey.groups.append(Group(rows, places, message))

    def _nccl_writers(self, batch: Batch, where: Places, head: Taken) -> Codes:
        def number(line: Identity, host: str | None, pid: str | None, device: str | None) -> int:
            if host not in self._hosts:
                return SLOW
            return self._writers.get(of_nccl(line, host or "", pid or "", device), SLOW)

        fields = [head.field(name).coded() for name in ("nccl_host", "pid", "dev")]
        return _numbers(computed(number, [batch.writers(where), *fields]))

    def _stamps(self, head: Taken) -> npt.NDArray[np.float64] | None:
        """Times of the lines' own stamps (NaN: no date), None where they have none."""
        if not (head.has("clock") and head.has("date")):
            return None

        def start(date: str | None, minute: str | None) -> float | None:
            return None if date is None or minute is None else self._clock.dated(date, minute + "00")

        return self._times(head.field("date"), head.field("clock"), start)

    def _torch(self, batch: Batch, survey: Survey, where: Places, head: Taken) -> None:
        bodies, artifacts = head.field("text"), head.field("artifact").coded()
        ids, paths = head.field("trace_id").coded(), head.field("path").coded()
        writers = self._torch_writers(batch, where, head)
        ready = _is(paths, lambda path: world("torch", path or "") == "torch" and "distributed" not in (path or ""))
        ready &= _is(head.field("rank").coded(), lambda rank: rank is None)
        ready &= _is(head.field("level").coded(), lambda level: level in _QUIET_TORCH)
        ready &= ~(bodies.holding(*_ANNOUNCES) | _glued(bodies))
        survey.stranger(where[ready & (writers < 0)])
        ready &= writers >= 0
        is_silent = ready & _is(artifacts, lambda artifact: artifact is not None and artifact not in BY_ARTIFACT)
        unmarked = np.flatnonzero(ready & _is(artifacts, lambda artifact: artifact is None))
        times = self._torch_stamps(head)
        reading = survey.reading
        reading.forms[where[is_silent]] = self._names.number("torch")
        if len(unmarked):
            taken, silent = shared(families("torch", None)).take(filled(bodies.pick(unmarked)))
            is_silent[unmarked[silent]] = True
            reading.forms[where[unmarked[silent]]] = self._names.number("torch")
            for message in taken:
                if (message.family, message.production.record) in SILENT:
                    at = unmarked[message.where]
                    is_silent[at] = True
                    reading.forms[where[at]] = self._names.number(message.production.form)
        chosen = np.flatnonzero(is_silent)
        places = where[chosen]
        reading.writers[places], reading.ts[places] = writers[chosen], times[chosen]
        reading.kinds[places] = _PARSED
        survey.heads[places] = _head(survey, Passing("torch"))
        first = len(survey.id_names)
        survey.id_names += [name or "" for name in ids.values]
        survey.ids[places] = ids.codes[chosen] + first
        of_trees = np.flatnonzero(ready & _is(artifacts, lambda artifact: is_of_guards(artifact or "")))
        if len(of_trees):
            self._guards(survey, where, (head, of_trees, writers, times))
        of_graphs = np.flatnonzero(ready & _is(artifacts, lambda artifact: is_of_graphs(artifact or "")))
        if len(of_graphs):
            self._graphs(survey, where, (head, of_graphs, writers, times))
        left = np.flatnonzero(ready & (reading.writers[where] < 0))
        if len(left):
            places = where[left]
            reading.writers[places], reading.ts[places] = writers[left], times[left]
            survey.heads[places] = _head(survey, Passing("torch"))
            survey.told.append(Told(places, head.pick(left), writers[left], times[left]))

    def _graphs(self, survey: Survey, where: Places, lines: _Lines) -> None:
        """Take the lines of graphs' texts among those of a header."""
        head, chosen, writers, times = lines
        reading = survey.reading
        numbers = _long_heads(survey, head, chosen)
        bodies = filled(head.field("text").pick(chosen))
        taken, rest = shared(_GRAPHS).take(bodies)
        forms = np.full(len(chosen), self._names.number("torch"), np.int32)
        is_text = np.zeros(len(chosen), np.bool_)
        is_text[rest] = True
        for message in taken:
            if message.production.record not in MARKS:
                is_text[message.where] = True
                forms[message.where] = self._names.number(message.production.form)
        kept = np.flatnonzero(is_text)
        at = chosen[kept]
        places = where[at]
        reading.writers[places], reading.ts[places] = writers[at], times[at]
        reading.forms[places], reading.kinds[places] = forms[kept], _CONTINUATION
        survey.heads[places] = numbers[kept]
        survey.graphs |= zip(places.tolist(), (text or "" for text in bodies.pick(kept)), strict=True)

    def _guards(self, survey: Survey, where: Places, lines: _Lines) -> None:
        """Take the lines of trees among those of a header."""
        head, chosen, writers, times = lines
        reading, count = survey.reading, len(survey.heads)
        if survey.guards is None:
            survey.guards = GuardLines(count)
        numbers = _long_heads(survey, head, chosen)
        taken, rest = shared(_GUARDS).take(filled(head.field("text").pick(chosen)))

        def note(at: Places, form: str) -> Places:
            places = where[chosen[at]]
            reading.writers[places], reading.ts[places] = writers[chosen[at]], times[chosen[at]]
            reading.forms[places], reading.kinds[places] = self._names.number(form), _CONTINUATION
            survey.heads[places] = numbers[at]
            return places

        note(rest, "torch")
        for message in taken:
            if message.production.record == "guard_detail":
                note(message.where, message.production.form)
            if message.production.record not in _OF_TREE:
                continue
            is_guard = message.production.record == "guard_leaf"
            what = message.field("guard_kind" if is_guard else "source").coded()
            texts = message.field("code" if is_guard else "accessor")
            depths = _numbers(message.field("depth").coded().map(lambda depth: len(depth or "") // len(DEEPER)))
            kept = np.flatnonzero(texts.is_there()) if is_guard else np.arange(len(message.where))
            told = texts.coded()
            places = note(message.where[kept], message.production.form)
            survey.guards.put(places, GUARD if is_guard else MANAGER, depths[kept], what.pick(kept), told.pick(kept))

    def _torch_writers(self, batch: Batch, where: Places, head: Taken) -> Codes:
        def number(line: Identity, pid: str | None) -> int:
            return self._writers.get(of_torch(line, pid or ""), SLOW)

        return _numbers(computed(number, [batch.writers(where), head.field("id").coded()]))

    def _torch_stamps(self, head: Taken) -> npt.NDArray[np.float64]:
        """Times of torch's stamps."""

        def start(day: str | None, minute: str | None) -> float | None:
            return None if day is None or minute is None else self._clock.month_day(day, minute + "00")

        return self._times(head.field("mmdd"), head.field("clock"), start)

    @staticmethod
    def _times(days: Texts, clocks: Texts, start: Callable[..., float | None]) -> npt.NDArray[np.float64]:
        """Times; what is before the seconds is computed once a minute, by the same steps as Clock does."""
        minutes = _reals(computed(start, [days.coded(), clocks.begin(_MINUTE).coded()]))
        times: npt.NDArray[np.float64] = minutes + clocks.seconds(_MINUTE)
        return times


def _head(survey: Survey, passing: Passing) -> int:
    """The number of a header."""
    if passing not in survey.passings:
        survey.passings.append(passing)
    return survey.passings.index(passing)


def _long_heads(survey: Survey, head: Taken, chosen: Places) -> Codes:
    """The numbers of the headers of lines of long messages."""
    heads = computed(
        lambda artifact, trace_id: _head(survey, Passing("torch", artifact, trace_id)),
        [head.field("artifact").pick(chosen).coded(), head.field("trace_id").pick(chosen).coded()],
    )
    return _numbers(heads)


def _is(column: Coded, test: Any) -> Mask:
    """Which values of a column pass a test."""
    passed: Mask = np.array([test(value) for value in column.values], np.bool_)[column.codes]
    return passed


def _numbers(column: Coded) -> Codes:
    values: Codes = np.array(column.values, np.int32)[column.codes]
    return values


def _reals(column: Coded) -> npt.NDArray[np.float64]:
    values: Sequence[Any] = [np.nan if value is None else value for value in column.values]
    found: npt.NDArray[np.float64] = np.array(values, np.float64)[column.codes]
    return found


def _glued(texts: Texts) -> Mask:
    """In which a second header can stand."""
    likely = texts.holding(*GLUED)
    if likely.any():
        likely = likely.copy()
        for place in np.flatnonzero(likely).tolist():
            likely[place] = may_be_glued(texts[place] or "")
    return likely
