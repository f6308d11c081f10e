"""Queries with a name: SQL files that come with the tool, for `replay sql LOGS @name`."""

from dataclasses import dataclass
from pathlib import Path

from replay.errors import UsageError


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One query; the first line of its file says in a comment what it answers."""

    name: str
    doc: str
    sql: str


def named_queries() -> dict[str, NamedQuery]:
    """Return all named queries by name."""
    found = {}
    for path in sorted((Path(__file__).parent / "queries").glob("*.sql")):
        first, _, rest = path.read_text().partition("\n")
        found[path.stem] = NamedQuery(path.stem, first.removeprefix("-- "), rest)
    return found


def named_query(name: str) -> NamedQuery:
    """Return one query. Raises UsageError, naming all, if there is none of this name."""
    queries = named_queries()
    if name not in queries:
        raise UsageError(f"no query @{name}; there are {', '.join('@' + n for n in queries)}")
    return queries[name]
