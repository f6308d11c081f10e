"""docs/schema.md out of schema.sql and views.sql.

`python -m replay.store.docs` writes it, and a test says when it is stale.
"""

from pathlib import Path

import duckdb

from replay.store import schema
from replay.store.database import STORAGE_VERSION
from replay.store.schema import Column, Table

_SECTIONS = {
    "input": "What was read: written while files are read.",
    "event": "What lines said: one row per thing that a line or a block of lines tells. All have the common columns.",
    "derived": "What follows from them: computed over ranks, and anew whenever an input changed.",
    "finding": "What the rules concluded.",
}


def render() -> str:
    """Return the Markdown text that describes every table, view and macro."""
    parts = [
        "# The run database",
        "Made from `replay/store/schema.sql` and `views.sql` by `python -m replay.store.docs`; do not edit.\n\n"
        f"Schema version {schema.SCHEMA_VERSION}, DuckDB storage version {STORAGE_VERSION} (clients since open it). "
        '`replay sql LOGS "select ..."` asks it, `replay cache path LOGS` tells where it lies.',
        "## Common columns",
        "Every event table begins with these.",
        _columns(schema.common()),
    ]
    tables = schema.tables().values()
    for section, meaning in _SECTIONS.items():
        parts += [f"## Section {section}", meaning]
        for table in tables:
            if table.section == section:
                parts += [f"### {table.name}", f"{_sentence(table.doc)}", _own_columns(table)]
    parts += ["## Views", *_views(), "## Macros", *_macros()]
    return "\n\n".join(parts) + "\n"


def _own_columns(table: Table) -> str:
    own = table.columns[len(schema.common()) :] if table.has_common else table.columns
    return ("Common columns, and:\n\n" if table.has_common else "") + _columns(own)


def _columns(columns: tuple[Column, ...]) -> str:
    rows = [f"| `{c.name}` | {c.type} | {c.doc.replace('|', chr(92) + '|')} |" for c in columns]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


def _views() -> list[str]:
    con = duckdb.connect()
    schema.create(con)
    parts = []
    for view in schema.derivations():
        if view.kind == "view":
            columns = ", ".join(f"`{row[0]}`" for row in con.execute(f"DESCRIBE {view.name}").fetchall())
            parts += [f"### {view.name}", f"{_sentence(view.doc)}\n\nColumns: {columns}"]
    return parts


def _macros() -> list[str]:
    return [
        "\n".join(f"- `{m.name}{m.arguments}`: {m.doc}" for m in schema.derivations() if m.kind == "macro"),
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


if __name__ == "__main__":
    place = Path(__file__).parent.parent.parent / "docs" / "schema.md"
    place.write_text(render())
