"""What came of showing a finding by a script: the record that repro.json, the command and the bug report tell."""

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["written", "verified", "not verified", "needs CUDA", "no script"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `fix`: gone, not gone, not checked, none (the recipe has none), or None where not asked for."""

    finding: str
    cause: str
    recipe: str
    status: Status
    why: str
    script: str
    lines: int
    world: int
    odd: tuple[int, ...]
    ranks_in_logs: tuple[int, ...]
    values: dict[str, Any]
    found: tuple[tuple[str, tuple[int, ...]], ...] = ()
    seconds: float | None = None
    torch: str | None = None
    network: str = ""
    """What of the network the script could reach."""
    runs: int = 0
    """Scripts that were tried; of those that shrinking accepts each was run twice."""
    interrupted: bool = False
    shrunk: tuple[str, ...] = ()
    """What shrinking took away."""
    fix: str | None = None
    fix_says: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether what was asked for did not come out as it should."""
        return self.status == "not verified" or self.fix not in {None, "gone"}
