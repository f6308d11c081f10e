"""What could be seen of a run: the ground that absence, shares and certainty stand on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replay.expert.catalog import HEARD, WHATS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BLIND = 0.8
"""Factor of certainty where nobody is known to have logged what a rule requires; it rises to 1 with their share."""

# A row for every run and kind of thing: `heard` ranks are the whole that a share is taken of. They are those of whom
# the thing could be seen where anything tells, else all that wrote a line.
_HEARD = f"""
CREATE OR REPLACE TEMP TABLE {HEARD} AS
WITH told AS (
    SELECT run_id, what, count(DISTINCT rank) FILTER (is_on) AS ranks_on, count(*) FILTER (is_on) AS seen,
        count(*) FILTER (NOT is_on) AS unseen, coalesce(bool_or(is_on AND rank IS NULL), FALSE) AS whole
    FROM observed GROUP BY run_id, what
), crowd AS (
    SELECT run_id, count(DISTINCT rank) AS ranks, count(DISTINCT host) AS hosts
    FROM ranks WHERE coalesce(heard, TRUE) GROUP BY run_id
), asked AS (
    SELECT run_id, unnest($whats) AS what FROM (SELECT run_id FROM runs UNION SELECT run_id FROM crowd)
)
SELECT a.run_id, a.what,
    CASE WHEN a.what = 'host' THEN c.hosts
        WHEN a.what = 'rank' OR t.whole OR coalesce(t.ranks_on, 0) = 0 THEN c.ranks
        ELSE t.ranks_on END AS heard,
    coalesce(t.seen, 0) AS seen, coalesce(t.unseen, 0) AS unseen,
    CASE WHEN t.whole THEN 1.0 WHEN t.seen IS NULL OR coalesce(c.ranks, 0) = 0 THEN NULL
        ELSE least(1.0, t.ranks_on / c.ranks) END AS share
FROM asked AS a
LEFT JOIN told AS t ON t.run_id = a.run_id AND t.what = a.what
LEFT JOIN crowd AS c ON c.run_id = a.run_id
"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """By run and kind of thing: the share of ranks of whom it could be seen; None where nothing tells."""

    shares: Mapping[tuple[int, str], float | None]
    off: frozenset[tuple[int, str]]

    @classmethod
    def measure(cls, con: "DuckDBPyConnection") -> "Coverage":
        """Ask `observed`, and leave the table of shares that queries read (catalog.HEARD)."""
        con.execute(_HEARD, {"whats": [*sorted(WHATS), "rank", "host"]})
        rows = con.execute(f"SELECT run_id, what, share, seen, unseen FROM {HEARD}").fetchall()
        return cls(
            {(run, what): share for run, what, share, _, _ in rows},
            frozenset((run, what) for run, what, _, seen, unseen in rows if unseen and not seen),
        )

    def missing(self, run_id: int, requires: Sequence[str]) -> list[str]:
        """Return what the run is known not to have logged of what a rule requires: it cannot tell, then."""
        return [what for what in requires if (run_id, what) in self.off]

    def factor(self, run_id: int, requires: Sequence[str]) -> float:
        """Return the factor of certainty: 1 where all ranks logged all that is required."""
        known = [self.shares.get((run_id, what)) for what in requires]
        return min((BLIND + (1 - BLIND) * share for share in known if share is not None), default=1.0)
