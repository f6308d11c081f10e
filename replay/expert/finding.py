"""What a rule concluded, before and after it is known what explains what."""

from dataclasses import dataclass, field

from replay.expert.rule import Impact

Key = tuple[str, int, str, tuple[str, ...]]
"""Identity of a finding: rule, run, cause, and the values of `per`."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One row that proves a finding, and the place of its line."""

    step: str
    label: str
    t: float | None
    rank: int | None
    file_id: int
    line_no: int | None
    at: str | None


@dataclass(slots=True, eq=False)
class Finding:
    """One finding. `t_lo..t_hi` bounds its first event; `places` are the lines that its rows stand at; `lost_s` are the
    rank-seconds that its rule counts as lost, `without` is what a simulation would take out to undo it.
    """

    key: Key
    layer: str
    kind: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    impact: Impact
    step: int | None
    t_lo: float | None
    t_hi: float | None
    certainty: float
    lost_s: float | None
    summary: str
    advice: str
    repro: str | None
    evidence: tuple[Picked, ...]
    places: frozenset[int]
    only_library_code: bool
    without: str | None = None
    premises: tuple[Key, ...] = ()
    finding_id: str = ""
    is_root: bool = False
    fingerprint: str = ""
    explains: list["Finding"] = field(default_factory=list, repr=False)
    absorbs: list["Finding"] = field(default_factory=list, repr=False)

    @property
    def rule(self) -> str:
        """The rule that made it."""
        return self.key[0]

    @property
    def run_id(self) -> int:
        """The run that it is about."""
        return self.key[1]

    @property
    def cause(self) -> str:
        """Its id in the taxonomy."""
        return self.key[2]

    @property
    def t(self) -> float | None:
        """Its time as a report shows it."""
        return self.t_lo if self.t_lo is not None else self.t_hi
