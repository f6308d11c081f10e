r"""From lines to segments: find the header, wherever in the line it stands.

One physical line can hold several messages: a progress bar redrawn with `\r`, a log line glued behind a bar, the head
of one process's line with another's behind it. Each becomes a segment; together they are the whole line.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from replay.grammar.executor import ReExecutor
from replay.grammar.model import Match
from replay.parse.clock import Clock
from replay.parse.model import Segment
from replay.sources.model import Identity, Line

_THREAD = 12
"""Digits from which on a number is a thread id (up to torch 2.4), not a process id."""
_MOST_GLUED = 32
"""Headers inside one line that are looked for: each costs a pass over the line. After these the rest is one message."""
_GLUED = re.compile(
    r" NCCL (?:INFO|WARN|ATTN|CALL) "
    r"|[\]:]\[(?:rank[0-9]|[12][0-9]{3}-|(?:!?[0-9]+(?:/[0-9]+)*(?:_[0-9]+)?|-/-)\] \[__|__|[VDIWEFC][0-9 ])"
)
"""What a line holds that has a second header inside: " NCCL INFO ", or a bracket behind a bracket that begins as those
of headers do.
"""
GLUED = (" NCCL ", "][", ":[")
"""One of these is in each of them, and to look for them is much faster."""


def may_be_glued(text: str) -> bool:
    """Whether a second header can stand inside a text."""
    return any(mark in text for mark in GLUED) and _GLUED.search(text) is not None


class Segmenter:
    """Splits the lines of one file. Keeps the host names seen, to tell a host from the torn word before it."""

    def __init__(self, executor: ReExecutor, clock: Clock) -> None:
        self._executor, self._clock = executor, clock
        self.hosts: set[str] = set()
        """Host names seen."""

    def split(self, line: Line) -> Iterator[Segment]:
        """Give the segments of a line, in order; at least one."""
        text = line.text
        if "\r" in text:
            column = 0
            for piece in text.split("\r"):
                if piece.strip():
                    yield from self._piece(line, piece, column)
                column += len(piece) + 1
            if not text.strip():
                yield self._bare(line, "", 0)
            return
        yield from self._piece(line, text, 0)

    def _piece(self, line: Line, text: str, column: int, glued: int = 0) -> Iterator[Segment]:
        match = self._executor.one("headers", text)
        if match is None or self._is_doubled(match):
            found = self._glued(text, 0)
            if found is None:
                yield self._app(line, text, column)
                return
            start, match = self._real_start(text, *found)
            if start:
                yield self._app(line, text[:start], column, torn=True)
            text, column = text[start:], column + start
        if column == 0 and "nccl_host" in match.fields:
            self.hosts.add(match.fields["nccl_host"])
        body = match.fields.get("text", "")
        if body and glued < _MOST_GLUED and (found := self._glued(body, 1)):
            cut, _ = self._real_start(body, *found)
            at = len(text) - len(body) + cut
            yield self._headed(line, match, body[:cut], column, torn=True)
            yield from self._piece(line, text[at:], column + at, glued + 1)
            return
        yield self._headed(line, match, body, column)

    def _glued(self, text: str, start: int) -> tuple[int, Match] | None:
        if not may_be_glued(text):
            return None
        return self._executor.find("headers", text, start)

    def _is_doubled(self, match: Match) -> bool:
        """Whether a host name is that of another host behind the begin of its own: a line cut in its host name."""
        host = match.fields.get("nccl_host")
        if host is None or host in self.hosts:
            return False
        return any(host.endswith(known) and known.startswith(host[: -len(known)]) for known in self.hosts)

    def _real_start(self, text: str, start: int, match: Match) -> tuple[int, Match]:
        host = match.fields.get("nccl_host")
        if host and host not in self.hosts:
            for known in self.hosts:
                if host.endswith(known):
                    start = text.index(host, start) + len(host) - len(known)
                    again = self._executor.one("headers", text[start:])
                    return (start, again) if again else (start, match)
        return start, match

    def _bare(self, line: Line, text: str, column: int, torn: bool = False) -> Segment:
        return Segment(line, "", {}, text, line.identity, line.t, column=column, torn=torn)

    def _app(self, line: Line, text: str, column: int, torn: bool = False) -> Segment:
        match = self._executor.one("app_headers", text) if not torn else None
        if match is None and ("rank" not in text or line.identity.rank is not None):
            return self._bare(line, text, column, torn)
        head = match.fields if match else {}
        body = head.get("text", "") if match else text
        said = head if "rank" in head or line.identity.rank is not None else self._said(body)
        identity = refine(line.identity, rank=int(said["rank"]) if "rank" in said else None)
        if match is None:
            return Segment(line, "", {}, text, identity, line.t, column=column, torn=torn)
        t = self._stamp(head, line.t)
        self._clock.passed(t)
        return Segment(line, "app", head, body, identity, t, column=column)

    def _said(self, body: str) -> dict[str, str]:
        """The fields of a record that names its writer's rank among its own figures."""
        match = self._executor.one("rank_field", body)
        return match.fields if match else {}

    def _headed(self, line: Line, match: Match, body: str, column: int, torn: bool = False) -> Segment:
        head, identity = match.fields, line.identity
        if "rank" in head:  # in mid-line: another process than the one that the line began with
            identity = replace(identity, rank=int(head["rank"]))
        if match.record == "nccl":
            identity = of_nccl(identity, head["nccl_host"], head["pid"], head.get("dev"))
        elif match.form == "torch_glog":
            identity = of_torch(identity, head["id"])
        header = world(match.record, head.get("path", ""))
        return Segment(line, header, head, body, identity, self._stamp(head, line.t), column=column, torn=torn)

    def _stamp(self, head: dict[str, str], otherwise: float | None) -> float | None:
        clock = head.get("clock") or head.get("clock_whole")
        if clock is None:
            return float(head["epoch"]) if "epoch" in head else otherwise
        if "date" in head:
            return self._clock.dated(head["date"], clock)
        if "year" in head:
            return self._clock.dated(f"{head['year']}-{head['month']}-{head['day']}", clock)
        if "month" in head:
            return self._clock.month_day(f"{head['month']}{head['day']:0>2}", clock)
        digits = head.get("mmdd") or head.get("mdd")
        if digits:
            return self._clock.month_day(digits, clock)
        return otherwise if otherwise is not None else self._clock.bare(clock)


def world(record: str, path: str) -> str:
    """Which world wrote a line whose header names this source file: absl and glog print as torch does."""
    if path.endswith((".cpp", ".cc", ".hpp", ".h")):
        return "c10"
    if record == "torch" and path.endswith(".py") and "torch/" not in path:
        return "app"
    return record


def refine(
    identity: Identity,
    rank: int | None = None,
    host: str | None = None,
    pid: int | None = None,
    device: int | None = None,
) -> Identity:
    """The same identity with what the header adds; the wrapper's rank wins over the message's own."""
    return Identity(
        rank=identity.rank if identity.rank is not None else rank,
        local_rank=identity.local_rank,
        host=host or identity.host,
        pid=pid if pid is not None else identity.pid,
        device=device,
        label=identity.label,
        stream=identity.stream,
    )


def of_nccl(identity: Identity, host: str, pid: str, device: str | None) -> Identity:
    """The writer of a line with NCCL's header."""
    return refine(identity, host=host, pid=int(pid), device=None if device is None else int(device))


def of_torch(identity: Identity, number: str) -> Identity:
    """The writer of a line with torch's header: the number in it is a process id, or a thread's, which is longer."""
    return refine(identity, pid=int(number)) if len(number) < _THREAD else identity
