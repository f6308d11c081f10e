"""Takes off what launchers and collectors put before lines, layer by layer, and keeps what it tells about the writer.

The forms are productions of grammars/wrappers.lark. Those called certain come off any line; which of the voted ones
apply to a file is in its Wrapping (replay.sources.vote decides it from a sample). Only a line that still begins like a
wrapper is looked at again, so that an unwrapped line costs one failing match.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from replay.grammar.compile import load
from replay.grammar.model import Production
from replay.sources import records
from replay.sources.escapes import strip_colours, strip_escapes
from replay.sources.model import Hints, Identity, Peeled, Voted, Wrapping
from replay.sources.stamps import Stamps

MAX_LAYERS = 8
_FIELDS = ("rank", "local_rank", "task", "host", "pid", "stream", "label")
"""Fields that tell who wrote the line; all terminals called LABEL_* are labels."""
_MAX_WRITERS = 4096
Groups = Mapping[str, str | None]
"""What the groups of a form took."""
_NUMBER = re.compile("[0-9]+")
_NAMED_GROUP = re.compile(r"\(\?P<[a-z_0-9]+>")


def stem(name: str) -> str:
    """A name without its numbers: the hosts of one machine room share it."""
    return _NUMBER.sub("#", name)


def last_number(name: str) -> int | None:
    """The number that a name ends with, if it is small enough for a rank."""
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if 0 < len(digits) < 6 else None


class Form:
    """One production, compiled. `claims`: for each of _FIELDS that it has, the name of the group."""

    __slots__ = ("claims", "match", "name", "pattern", "prefix", "stamp")

    def __init__(self, production: Production) -> None:
        self.name, self.prefix, self.pattern = production.form, production.prefix, production.pattern
        compiled = re.compile(production.pattern, re.DOTALL)
        self.match = compiled.fullmatch
        groups = compiled.groupindex
        self.claims = {g.split("_")[0] if g.startswith("label") else g: g for g in groups}
        self.claims = {field: self.claims[field] for field in _FIELDS if field in self.claims}
        self.stamp = next((key for key in ("zone", "month", "time_of_day") if key in groups), "")

    def read(self, groups: Groups) -> dict[str, str]:
        """What a match says about the writer."""
        return {field: value for field, group in self.claims.items() if (value := groups[group]) is not None}


@cache
def forms(record: str) -> tuple[Form, ...]:
    """The forms of grammars/wrappers.lark that are "certain" or "voted"."""
    return tuple(Form(p) for p in load("wrappers").productions if p.record == record)


@cache
def _guard(voted: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that says whether any form may begin the line."""
    chosen = [*forms("certain"), *(f for f in forms("voted") if f.name in voted)]
    return re.compile("|".join(f"(?:{_NAMED_GROUP.sub('(?:', f.pattern)})" for f in chosen) + r"|\{", re.DOTALL)


class Layer(NamedTuple):
    """One wrapper of one line: its form, what it says of the writer, its stamp, and what it wraps (None: the line is
    no wrapper and only has a stamp).
    """

    form: str
    said: dict[str, str]
    t: float | None
    rest: str | None
    partial: bool = False


class Writer:
    """What the layers peeled so far tell; `next` leads on by what the next layer says."""

    __slots__ = ("identity", "next", "rank_said", "ranks")

    def __init__(self, identity: Identity, ranks: int, rank_said: bool) -> None:
        self.identity, self.ranks, self.rank_said = identity, ranks, rank_said
        self.next: dict[tuple[str, ...], Writer] = {}


class Peeler:
    """Peels the lines of one file. `identity` is what the file's path says of the writer."""

    def __init__(self, wrapping: Wrapping, identity: Identity, hints: Hints, mtime: float | None = None) -> None:
        self._wrapping, self.root = wrapping, Writer(identity, 0, rank_said=False)
        self._stamps = Stamps(hints.tz, hints.year, mtime)
        self.voted = {v.form: v for v in wrapping.voted}
        self.forms = [*forms("certain"), *(f for f in forms("voted") if f.name in self.voted)]
        self._by_first: dict[str, list[Form]] = {}
        self.begins = _guard(tuple(sorted(self.voted))).match
        self.has_lost_escapes = wrapping.colours
        self._writers = 0

    def peel(self, text: str, layers: list[Layer] | None = None) -> Peeled:
        """Peel one line (without its newline). What each layer says is appended to `layers`, outermost first."""
        text = self._clean(text)
        if self.begins(text) is None:
            return Peeled(text, self.root.identity, None)
        writer, t, partial = self.root, None, False
        used: list[str] = []
        for _ in range(MAX_LAYERS):
            step = self._record(text) if text[:1] == "{" else self._layer(text, used)
            if step is None:
                break
            t = t if t is not None else step.t
            if step.rest is None:
                break
            text = step.rest
            writer = self.after(writer, step.said)
            partial = partial or step.partial
            used.append(step.form)
            if layers is not None:
                layers.append(step)
            if not text or self.begins(text) is None:
                break
        return Peeled(text, writer.identity, t, partial)

    def _clean(self, text: str) -> str:
        if "\x1b" in text:
            text = strip_escapes(text)
        if self.has_lost_escapes and "[" in text:
            text = strip_colours(text)
        return text.removesuffix("\r").removeprefix("\ufeff")

    def _layer(self, text: str, used: list[str]) -> Layer | None:
        first = text[0]
        candidates = self._by_first.get(first)
        if candidates is None:
            candidates = [f for f in self.forms if not f.prefix or f.prefix[0] == first]
            self._by_first[first] = candidates
        for form in candidates:
            found = form.match(text)
            if found is None:
                continue
            groups = found.groupdict()
            said = form.read(groups)
            voted = self.voted.get(form.name)
            if voted is not None and (form.name in used or not fits(voted, groups, said)):
                continue
            return Layer(form.name, said, self.stamp(form, groups), found["text"] or "", is_partial(form, groups))
        return None

    def stamp(self, form: Form, groups: Groups) -> float | None:
        """The stamp of a form, by its groups."""
        if form.stamp == "zone":
            return self._stamps.zoned(groups["date"] or "", groups["clock"] or "", groups["zone"] or "")
        if form.stamp == "month" and groups["clock"]:
            return self._stamps.monthly(groups.get("year"), groups["month"] or "", groups["day"] or "", groups["clock"])
        if form.stamp == "time_of_day":
            return self._stamps.plain(groups["date"] or "", groups["time_of_day"] or "")
        return None

    def _record(self, text: str) -> Layer | None:
        record = records.unwrap(text)
        if record is None:
            return None
        if record.line is None:
            return Layer("json", {}, self._stamps.any(record.time), None)
        said = {
            field: str(value)
            for field in ("rank", "local_rank", "host", "pid", "stream", "label")
            if (value := getattr(record, field)) is not None
        }
        return Layer("json", said, self._stamps.any(record.time), self._clean(record.line))

    def after(self, writer: Writer, said: Mapping[str, str]) -> Writer:
        """Who a line is of when a layer says more of it."""
        if not said:
            return writer
        key = tuple(x for pair in said.items() for x in pair)
        found = writer.next.get(key)
        if found is None:
            found = self._learn(writer, said)
            if self._writers < _MAX_WRITERS:
                writer.next[key] = found
                self._writers += 1
        return found

    def _learn(self, writer: Writer, said: Mapping[str, str]) -> Writer:
        """The inner layer is nearer to the program, so it wins; but a launcher's task number yields to a rank."""
        who, ranks, rank_said = writer.identity, writer.ranks, writer.rank_said
        if "host" in said:
            who = replace(who, host=said["host"])
        if "pid" in said:
            who = replace(who, pid=_small(said["pid"]))
        if "stream" in said:
            who = replace(who, stream=said["stream"] if said["stream"] != "stddiag" else "stderr")
        if "local_rank" in said:
            who = replace(who, local_rank=_small(said["local_rank"]))
        if "label" in said:
            guess = last_number(said["label"]) if self._wrapping.label_is_rank else None
            label = said["label"] if who.label is None else f"{who.label}/{said['label']}"
            who = replace(who, label=label, rank_guess=guess if guess is not None else who.rank_guess)
        if "task" in said:
            who = self._task(who, said["task"], rank_said)
        if "rank" in said:
            if ranks == 0 and self._wrapping.outer_rank_is_local:
                who = replace(who, local_rank=_small(said["rank"]))
            else:
                who, rank_said = replace(who, rank=_small(said["rank"])), True
            ranks += 1
        return Writer(who, ranks, rank_said)

    def _task(self, who: Identity, task: str, rank_said: bool) -> Identity:
        if not self._wrapping.task_is_rank:
            return replace(who, label=task if who.label is None else f"{who.label}/{task}")
        return who if rank_said else replace(who, rank=_small(task))


def fits(voted: Voted, groups: Groups, said: Mapping[str, str]) -> bool:
    """True if a match of a voted form looks like those that the file voted for."""
    if voted.width is not None and width(groups) != voted.width:
        return False
    return not voted.stems or stem(said.get("host") or said.get("label") or "") in voted.stems


def width(groups: Groups) -> int:
    """Characters of a padded number or name: launchers pad to the widest."""
    own = groups["task"] if "task" in groups else groups["label_service"]
    return len(groups["pad"] or "") + len(own or "")


def is_partial(form: Form, groups: Groups) -> bool:
    """Whether the container engine goes on with the line in its next record."""
    return form.name == "cri" and groups["flag"] == "P"


def _small(digits: str) -> int | None:
    return int(digits) if len(digits) < 10 else None
