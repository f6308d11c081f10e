"""What a database was made from, so that it is read again only where something changed.

The result of an ingest depends on the tool, the hints, the rules and the files. Each is noted as text; a database whose
notes equal the present ones is used as it is.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from duckdb import DuckDBPyConnection

import replay
from replay.resources import folder, rule_folders
from replay.sources.model import Hints, SourceFile


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Notes on everything that a result depends on; `files` has one note per file, by its path in the report."""

    tool: str
    hints: str
    rules: str
    files: tuple[tuple[str, str], ...]

    def same_parse(self, other: "Fingerprint") -> bool:
        """Tell whether equal files would be read to equal rows."""
        return (self.tool, self.hints) == (other.tool, other.hints)

    def same_but_rules(self, other: "Fingerprint") -> bool:
        """Tell whether only the rules may differ."""
        return self.same_parse(other) and self.files == other.files


def take(files: Sequence[SourceFile], hints: Hints, rules: Iterable[Path]) -> Fingerprint:
    """Return the fingerprint of an ingest that is about to be done; `rules` are the user's folders of rules."""
    paths = {f.file_id: f.path for f in files}
    return Fingerprint(
        tool=tool(),
        hints=json.dumps(asdict(hints), sort_keys=True),
        rules=_of_folders(rule_folders(rules)),
        files=tuple((f.path, _of_file(f, paths)) for f in files),
    )


def tool() -> str:
    """Return the version of this program and of its code and grammars, which in a checkout change without it."""
    package = Path(__file__).parent.parent
    return f"{replay.__version__}+{_of_folders([package, folder('grammars')])}"


def store(con: DuckDBPyConnection, fingerprint: Fingerprint) -> None:
    """Note the fingerprint in a database that is being built."""
    con.execute("DELETE FROM meta WHERE name IN ('tool', 'hints', 'rules', 'file')")
    rows = [("tool", fingerprint.tool), ("hints", fingerprint.hints), ("rules", fingerprint.rules)]
    rows += [("file", json.dumps(pair)) for pair in fingerprint.files]
    con.execute(
        "INSERT INTO meta SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[])",
        [[r[0] for r in rows], [r[1] for r in rows]],
    )


def stored(con: DuckDBPyConnection) -> Fingerprint:
    """Return the fingerprint that a database was made with; empty notes where it has none."""
    notes = dict(con.execute("SELECT name, value FROM meta WHERE name IN ('tool', 'hints', 'rules')").fetchall())
    files = con.execute("SELECT value FROM meta WHERE name = 'file' ORDER BY rowid").fetchall()
    return Fingerprint(
        tool=notes.get("tool", ""),
        hints=notes.get("hints", ""),
        rules=notes.get("rules", ""),
        files=tuple((path, note) for (value,) in files for path, note in [json.loads(value)]),
    )


def key(places: Sequence[str], hints: Hints) -> str:
    """Return a name for the database of these logs: short, the same each time, another for other hints."""
    text = json.dumps([list(places), asdict(hints)], sort_keys=True)
    last = Path(places[0]).name if places else ""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in last)[:40].strip("._")
    return f"{name or 'run'}-{_short(text)}"


def _of_file(file: SourceFile, paths: dict[int, str]) -> str:
    """All that discovery found out about a file, but for its number, which changes when files are added."""
    twin = None if file.duplicate_of is None else paths.get(file.duplicate_of)
    facts = asdict(file) | {"file_id": None, "duplicate_of": twin, "abspath": str(file.abspath)}
    return _short(json.dumps(facts, sort_keys=True, default=str))


def _of_folders(folders: Iterable[Path]) -> str:
    notes = [
        (str(path.relative_to(top)), path.stat().st_size, path.stat().st_mtime_ns)
        for top in folders
        for path in sorted(top.rglob("*"))
        if path.suffix in {".py", ".sql", ".lark", ".yaml", ".yml", ".csv"}
    ]
    return _short(json.dumps(notes))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
