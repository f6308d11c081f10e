"""The report as data: frozen dataclasses whose fields are the keys of the JSON document (schema version 1).

Everything that a front end shows is in here, so text, Markdown and JSON cannot tell different stories.
"""

from dataclasses import dataclass, field
from typing import Any

REPORT_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run. `span_s` is in seconds; None means that the logs do not tell."""

    id: int
    attempt: int
    ranks_expected: int | None
    ranks_seen: int
    outcome: str
    hosts: tuple[str, ...]
    torch: str | None
    nccl: str | None
    span_s: float | None
    last_step: int | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the lines of all files were classed; the last four add up to `lines`."""

    files: int
    lines: int
    parsed: int
    continuation: int
    plain: int
    malformed: int


@dataclass(frozen=True, slots=True)
class Where:
    """The place of one rank at fault."""

    rank: int
    host: str | None
    local_rank: int | None
    device: int | None
    bus_id: str | None
    pid: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One raw line that proves a finding; an entry of a binary file has no line but `at`."""

    file: str
    line: int | None
    rank: int | None
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a finding's story; `t` is in seconds since the run's first stamp, `evidence` are positions."""

    label: str
    ranks: tuple[int, ...]
    t: float | None
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule concluded. `t` is in seconds since the run's first stamp.

    `cost_s` is what the run would save without it, `own_s` what it took on the ranks at fault, `lost_s` what all ranks
    together lost (rank-seconds); None where the logs do not tell. `without` is what to take out to undo it; `premises`
    are the findings that it builds on.
    """

    id: str
    run: int
    rule: str
    cause: str
    layer: str
    kind: str
    root: bool
    ranks: tuple[int, ...]
    where: tuple[Where, ...]
    waiting: tuple[int, ...]
    impact: str
    step: int | None
    t: float | None
    certainty: float
    cost_s: float | None
    own_s: float | None
    lost_s: float | None
    without: str | None
    fingerprint: str
    summary: str
    advice: str
    chain: tuple[Link, ...]
    evidence: tuple[Evidence, ...]
    explains: tuple[str, ...]
    explained_by: tuple[str, ...]
    premises: tuple[str, ...]
    repro: dict[str, Any] | None

    @property
    def amplification(self) -> float | None:
        """Rank-seconds that all lost per second that it took on the ranks at fault; None where either is not known."""
        return self.lost_s / self.own_s if self.lost_s is not None and self.own_s else None


@dataclass(frozen=True, slots=True)
class Rival:
    """What else it might have been in a run: the cause and its rule, its finding if it made one, and why it lost."""

    run: int
    cause: str
    rule: str
    finding: str | None
    summary: str
    why: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that was not logged on some ranks, and what switches it on."""

    what: str
    ranks: str
    enable: str


@dataclass(frozen=True, slots=True)
class LastWords:
    """Ranks that were last heard saying the same; `silent_s` is the longest time to the end of the run."""

    ranks: tuple[int, ...]
    text: str
    silent_s: float | None
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """The answer. `ruled_out` and `last_words` are for people; the JSON document does not have them.

    `is_foreign`: no line and no record was PyTorch's, NCCL's or a launcher's.
    """

    version: str
    verdict: str
    runs: tuple[RunInfo, ...]
    coverage: Coverage
    findings: tuple[Finding, ...]
    rivals: tuple[Rival, ...]
    unseen: tuple[Unseen, ...]
    next_time: tuple[str, ...]
    collect_now: tuple[str, ...]
    ruled_out: tuple[str, ...] = ()
    last_words: tuple[LastWords, ...] = field(default=())
    is_foreign: bool = False

    @property
    def roots(self) -> tuple[Finding, ...]:
        """The root causes, or where none is known the symptoms that nothing explains."""
        return tuple(f for f in self.findings if f.root and f.kind in {"cause", "symptom"})
