"""Many lines at once: which lines of a batch can be read without looking at what is around them, and what they say.

Most lines of a large log are of two kinds. Some tell all they have to tell by themselves (an operation, a connection, a
variable of NCCL); they become rows by columns. Others tell nothing but that their writer was there (what torch traced).
Both have a header of NCCL or torch, are whole, and hold one message. All other lines are left to be read one by one.
The patterns are the same, in the same order, so that it does not matter which way a line goes.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from replay.grammar.bulk import Columns, Taken, shared
from replay.parse.blocks import ALONE
from replay.parse.blocks.guard_trees import GuardLine
from replay.parse.clock import Clock
from replay.parse.families import BY_ARTIFACT, families
from replay.parse.model import Passing, Reading
from replay.parse.rows import Rows
from replay.parse.segments import may_be_glued, of_nccl, of_torch, world
from replay.sources.model import Batch, Identity

_NCCL = frozenset({"nccl_line", "nccl_stamped", "nccl_call", "nccl_call_stamped"})
_TORCH = "torch_glog"
_LOUD_NCCL = frozenset({"WARN", "ATTN"})
_QUIET_TORCH = frozenset("VDI")
_ANNOUNCES = re.compile("CONVERT|raph break")
"""Words by which torch announces a traceback that it survives: parse.blocks.tracebacks looks for them."""
_MOST_MINUTES = 10_000
_GUARDS = ("guard_tree",)
_OF_TREE = frozenset({"guard_manager", "guard_pair", "guard_leaf"})
_OF_NCCL, _OF_TORCH = Passing("nccl"), Passing("torch")
SLOW = -1
"""In place of a writer: the line is to be read by itself."""

Who = dict[Identity, int]


@dataclass(slots=True)
class Group:
    """Lines of a batch that make the rows of one record: their places, and their fields in the same order."""

    record: str
    rows: Rows
    places: list[int]
    fields: Columns


@dataclass(slots=True)
class Survey:
    """What can be said of a batch at once. `heads` is the header of each line that is not slow; `ids` the compile id of
    those of torch, "" where they have none; `guards` the lines of trees of guards.
    """

    reading: Reading
    heads: list[Passing | None]
    ids: dict[int, str]
    guards: dict[int, GuardLine] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)


class Surveyor:
    """Looks over the batches of one file. `writers` are those met so far: a line of another is slow, and so is one from
    a host that is not in `hosts`.
    """

    def __init__(self, clock: Clock, hosts: set[str], writers: Who) -> None:
        self._clock, self._hosts, self._writers = clock, hosts, writers
        self._minutes: dict[tuple[str, str], float | None] = {}

    def survey(self, batch: Batch) -> Survey | None:
        """Return what is said by the lines that can be read at once, None where there are none."""
        texts = batch.texts
        places = self._eligible(batch)
        taken, _ = shared(("headers",)).take(texts if places is None else [texts[p] for p in places])
        count = len(texts)
        survey: Survey | None = None
        for head in taken:
            form = head.production.form
            if form != _TORCH and form not in _NCCL:
                continue
            if survey is None:
                reading = Reading([None] * count, [None] * count, [SLOW] * count, [None] * count)
                survey = Survey(reading, [None] * count, {})
            where = head.where if places is None else [places[w] for w in head.where]
            if form == _TORCH:
                self._torch(batch, survey, where, head)
            else:
                self._nccl(batch, survey, where, head)
        return survey

    def _eligible(self, batch: Batch) -> list[int] | None:
        """Places of the lines that are whole and hold one message; None: all."""
        texts, whole = batch.texts, batch.whole
        if whole is None and not any("\r" in text for text in texts):
            return None
        return [p for p, text in enumerate(texts) if "\r" not in text and (whole is None or whole[p])]

    def _nccl(self, batch: Batch, survey: Survey, where: list[int], head: Taken) -> None:
        columns, size = head.columns(), len(where)
        absent: Sequence[str | None] = (None,) * size
        levels, bodies = columns["nccl_level"], columns.get("text", absent)
        writers = self._nccl_writers(batch, where, columns)
        ts = self._stamps(columns, size) or _wrapped(batch, where)
        by_level: defaultdict[str | None, list[int]] = defaultdict(list)
        for n, (writer, level, body) in enumerate(zip(writers, levels, bodies, strict=True)):
            if writer >= 0 and body and level not in _LOUD_NCCL and not may_be_glued(body):
                by_level[level].append(n)
        reading, heads = survey.reading, survey.heads
        for level, chosen in by_level.items():
            taken, _ = shared(families("nccl", level)).take([bodies[n] or "" for n in chosen])
            for message in taken:
                key = message.family, message.production.record
                if key not in ALONE:
                    continue
                places: list[int] = []
                for n in message.where:
                    at = chosen[n]
                    place = where[at]
                    places.append(place)
                    reading.writers[place], reading.ts[place] = writers[at], ts[at]
                    reading.forms[place], reading.kinds[place] = message.production.form, "parsed"
                    heads[place] = _OF_NCCL
                rows = ALONE[key]
                if rows is not None:
                    survey.groups.append(Group(key[1], rows, places, message.columns()))

    def _nccl_writers(self, batch: Batch, where: list[int], columns: Columns) -> list[int]:
        hosts, pids = columns["nccl_host"], columns["pid"]
        devices = columns.get("dev", (None,) * len(where))
        keys = list(zip(hosts, pids, devices, _identities(batch, where), strict=True))
        known: dict[tuple[str | None, str | None, str | None, Identity], int] = {}
        for key in set(keys):
            host, pid, device, line = key
            if host in self._hosts:
                known[key] = self._writers.get(of_nccl(line, host or "", pid or "", device), SLOW)
            else:
                known[key] = SLOW
        return [known[key] for key in keys]

    def _stamps(self, columns: Columns, size: int) -> list[float | None] | None:
        """Times of the lines' own stamps, None where they have none."""
        clocks, dates = columns.get("clock"), columns.get("date")
        if clocks is None or dates is None:
            return None
        known: dict[tuple[str | None, str | None], float | None] = {}
        for key in set(zip(dates, clocks, strict=True)):
            date, clock = key
            known[key] = None if date is None or clock is None else self._clock.dated(date, clock)
        return [known[key] for key in zip(dates, clocks, strict=True)]

    def _torch(self, batch: Batch, survey: Survey, where: list[int], head: Taken) -> None:
        columns, size = head.columns(), len(where)
        absent: Sequence[str | None] = (None,) * size
        bodies, artifacts = columns.get("text", absent), columns.get("artifact", absent)
        ids, levels = columns.get("trace_id", absent), columns["level"]
        ranks = columns.get("rank", absent)
        writers = self._torch_writers(batch, where, columns)
        worlds = {path: world("torch", path or "") for path in set(columns["path"])}
        is_torch = [worlds[path] == "torch" and "distributed" not in (path or "") for path in columns["path"]]
        chosen: list[int] = []
        unmarked: list[int] = []
        guards: list[int] = []
        for n, body in enumerate(bodies):
            if writers[n] < 0 or not is_torch[n] or ranks[n] is not None or levels[n] not in _QUIET_TORCH:
                continue
            if body and (_ANNOUNCES.search(body) or may_be_glued(body)):
                continue
            artifact = artifacts[n]
            if artifact is None:
                unmarked.append(n)
            elif artifact not in BY_ARTIFACT:
                chosen.append(n)
            elif BY_ARTIFACT[artifact] == _GUARDS:
                guards.append(n)
        _, silent = shared(families("torch", None)).take([bodies[n] or "" for n in unmarked])
        chosen += [unmarked[n] for n in silent]
        times = self._torch_stamps(columns["mmdd"], columns["clock"])
        reading, heads = survey.reading, survey.heads
        for n in chosen:
            place = where[n]
            reading.writers[place], reading.ts[place] = writers[n], times[n]
            reading.forms[place], reading.kinds[place] = "torch", "parsed"
            heads[place] = _OF_TORCH
            survey.ids[place] = ids[n] or ""
        taken, _ = shared(_GUARDS).take([bodies[n] or "" for n in guards])
        for message in taken:
            if message.production.record not in _OF_TREE:
                continue
            fields = message.columns()
            is_guard = message.production.record == "guard_leaf"
            missing: Sequence[str | None] = (None,) * len(message.where)
            depths = fields.get("depth", missing)
            whats = fields.get("guard_kind" if is_guard else "source", missing)
            others = fields.get("code" if is_guard else "accessor", missing)
            for at, depth, what, text in zip(message.where, depths, whats, others, strict=True):
                if is_guard and text is None:
                    continue
                n = guards[at]
                place = where[n]
                reading.writers[place], reading.ts[place] = writers[n], times[n]
                reading.forms[place], reading.kinds[place] = message.production.form, "continuation"
                heads[place] = Passing("torch", artifacts[n], ids[n])
                survey.guards[place] = GuardLine(batch.first_no + place, times[n], is_guard, depth, what, text)

    def _torch_writers(self, batch: Batch, where: list[int], columns: Columns) -> list[int]:
        keys = list(zip(columns["id"], _identities(batch, where), strict=True))
        known: dict[tuple[str | None, Identity], int] = {}
        for key in set(keys):
            pid, line = key
            known[key] = self._writers.get(of_torch(line, pid or ""), SLOW)
        return [known[key] for key in keys]

    def _torch_stamps(self, days: Sequence[str | None], clocks: Sequence[str | None]) -> list[float | None]:
        """Times; what is before the seconds is computed once a minute, by the same steps as Clock does."""
        minutes = self._minutes
        times: list[float | None] = []
        for day, clock in zip(days, clocks, strict=True):
            if day is None or clock is None:
                times.append(None)
                continue
            key = day, clock[:6]
            if key not in minutes:
                if len(minutes) > _MOST_MINUTES:
                    minutes.clear()
                minutes[key] = self._clock.month_day(day, clock[:6] + "00")
            start = minutes[key]
            times.append(None if start is None else start + float(clock[6:].replace(",", ".")))
        return times


def _identities(batch: Batch, where: list[int]) -> list[Identity]:
    if batch.identities is None:
        return [batch.identity] * len(where)
    return [batch.identities[place] for place in where]


def _wrapped(batch: Batch, where: list[int]) -> Sequence[float | None]:
    if batch.ts is None:
        return (None,) * len(where)
    return [batch.ts[place] for place in where]
