"""Search and filter: one short language, `rank:0-3 kind:recompile level:warning line:text where:SQL words`."""

from dataclasses import dataclass

import duckdb
import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.errors import UsageError
from replay.report.log import parse_ranks
from replay.tui.core.track import SEVERITIES, Track

HELP = "words · rank:0-3,8 · kind:recompile,step · level:warning · line:words of the raw line · where:SQL on events"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are wanted; None does not filter. Kinds may hold `*`; `where` is a condition in SQL on `events`."""

    text: str | None = None
    ranks: frozenset[int] | None = None
    kinds: tuple[str, ...] | None = None
    level: str | None = None
    line: str | None = None
    where: str | None = None


def parse(text: str) -> Wanted:
    """Return what a filter says. Raises UsageError for ranks and levels that are none."""
    before, is_sql, where = text.partition("where:")
    words: list[str] = []
    said: dict[str, str] = {}
    for word in before.split():
        name, colon, value = word.partition(":")
        if colon and value and name in {"rank", "kind", "level", "line"}:
            said[name] = value
        elif "line" in said:
            said["line"] += f" {word}"
        else:
            words.append(word)
    level = said.get("level")
    if level is not None and level not in SEVERITIES:
        raise UsageError(f"level: is one of {', '.join(SEVERITIES)}, not {level!r}")
    if is_sql and not where.strip():
        raise UsageError("where: needs a condition in SQL, like where:severity = 'error'")
    return Wanted(
        text=" ".join(words) or None,
        ranks=parse_ranks(said["rank"]) if "rank" in said else None,
        kinds=tuple(said["kind"].split(",")) if "kind" in said else None,
        level=level,
        line=said.get("line"),
        where=where.strip() or None,
    )


def marks(con: DuckDBPyConnection, track: Track, run_id: int, wanted: Wanted) -> NDArray[np.bool_] | None:
    """Return which events of a track are wanted; None: all. Raises UsageError if the condition in SQL is wrong."""
    if wanted == Wanted():
        return None
    query, values = _query(run_id, wanted)
    try:
        if len(con.extract_statements(query)) != 1:
            raise UsageError("where: takes one condition")
        found = con.execute(query, values).fetchnumpy()["seq"]
    except duckdb.Error as error:
        raise UsageError(f"where: {_one_line(error)}") from error
    return np.isin(track.seq, np.asarray(found, dtype=np.int64), assume_unique=True)


def _query(run_id: int, wanted: Wanted) -> tuple[str, dict[str, object]]:
    values: dict[str, object] = {"run": run_id}
    conditions = ["e.run_id = $run"]
    if wanted.text is not None:
        conditions.append("contains(lower(e.summary), $text)")
        values["text"] = wanted.text.lower()
    if wanted.ranks is not None:
        conditions.append("e.rank IN (SELECT unnest($ranks))")
        values["ranks"] = sorted(wanted.ranks)
    if wanted.kinds is not None:
        conditions.append("EXISTS (FROM (SELECT unnest($kinds) AS pattern) WHERE e.kind GLOB pattern)")
        values["kinds"] = list(wanted.kinds)
    if wanted.level is not None:
        conditions.append("e.severity IN (SELECT unnest($levels))")
        values["levels"] = list(SEVERITIES[SEVERITIES.index(wanted.level) :])
    if wanted.line is not None:
        conditions.append(
            "(e.file_id, e.line_no) IN (SELECT (file_id, line_no) FROM lines WHERE contains(lower(text), $line))"
        )
        values["line"] = wanted.line.lower()
    if wanted.where is not None:
        conditions.append(f"({wanted.where}\n)")  # a comment in it ends with its line
    return f"SELECT e.seq FROM events AS e WHERE {' AND '.join(conditions)}", values


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n", maxsplit=1)[0].split())
