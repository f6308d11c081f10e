"""What checks count, and what shows that it would have been logged."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is counted for each rank. `rows` are all that count; its columns are run_id, rank, fn, file, line,
    what (in words), file_id, line_no, and key, where several rows are one thing. `what` must have been observed.
    """

    name: str
    doc: str
    what: str | None
    rows: str


_NO_PLACE = "NULL::VARCHAR AS fn, NULL::VARCHAR AS file, NULL::INTEGER AS line"
MEASURES = {
    measure.name: measure
    for measure in (
        Measure("recompiles", "functions of your code that were compiled again", "recompiles",
            """SELECT run_id, rank, fn, coalesce(user_file, fn_file) AS file, coalesce(user_line, fn_line) AS line,
                coalesce(reason, 'recompiled') AS what, file_id, line_no, NULL AS key FROM recompiles"""),
        Measure("graph_breaks", "places of your code where graphs broke", "graph_breaks",
            """SELECT run_id, rank, user_fn AS fn, coalesce(user_file, file) AS file, coalesce(user_line, line) AS line,
                reason AS what, file_id, line_no, coalesce(user_file, file) || ':' || coalesce(user_line, line) AS key
            FROM graph_breaks WHERE NOT coalesce(is_framework, FALSE)"""),
        Measure("graphs", "graphs that Dynamo made of your code", "graphs",
            """SELECT g.run_id, g.rank, c.fn, c.fn_file AS file, c.fn_line AS line, g.name AS what, g.file_id,
                g.line_no, coalesce(g.compile_id, g.file_id || ':' || g.line_no) AS key
            FROM graphs AS g LEFT JOIN compiles AS c ON c.run_id = g.run_id AND c.compile_id = g.compile_id
                AND c.writer_id = g.writer_id
            WHERE g.kind = 'dynamo' AND NOT coalesce(c.is_framework, FALSE)"""),
        Measure("compiles", "compiles of functions of your code", "compiles",
            """SELECT run_id, rank, fn, fn_file AS file, fn_line AS line, 'compiled' AS what, file_id, line_no,
                compile_id AS key FROM compiles WHERE NOT coalesce(is_framework, FALSE)"""),
        Measure("cache_misses", "lookups of compile caches that found nothing", "cache",
            f"""SELECT run_id, rank, {_NO_PLACE}, cache || ' cache missed' AS what, file_id, line_no, NULL AS key
            FROM cache_events WHERE event = 'miss'"""),
        Measure("exceptions", "uncaught exceptions", None,
            """SELECT run_id, rank, user_fn AS fn, user_file AS file, user_line AS line,
                type || ': ' || message AS what, file_id, line_no, NULL AS key FROM exceptions WHERE is_uncaught"""),
        Measure("nccl_warnings", "warnings of NCCL", "nccl-warn",
            f"""SELECT run_id, rank, {_NO_PLACE}, text AS what, file_id, line_no, NULL AS key
            FROM nccl_warnings WHERE level IN ('warn', 'attn')"""),
    )
}  # fmt: skip

# Ranks of whom a thing would have been logged. Lines of one compile show that a rank compiled; that *every* compile
# would be there, only those lines that each compile brings.
WITNESSES = {
    "recompiles": """SELECT run_id, rank FROM guard_failures
        UNION SELECT run_id, rank FROM compiles
            WHERE evidence IN ('recompile-block', 'trace', 'metrics') OR backend IS NOT NULL
        UNION SELECT run_id, rank FROM guards
        UNION SELECT run_id, rank FROM env
            WHERE name = 'TORCH_LOGS' AND regexp_matches(value, '(^|,)(recompiles(_verbose)?|[+]dynamo)(,|$)')""",
    "compiles": """SELECT run_id, rank FROM compiles WHERE evidence IN ('trace', 'metrics') OR backend IS NOT NULL
        UNION SELECT run_id, rank FROM guards""",
    "graph_breaks": """SELECT run_id, rank FROM graph_breaks WHERE NOT coalesce(is_fatal, FALSE)
        UNION SELECT run_id, rank FROM compiles WHERE evidence IN ('trace', 'metrics')
        UNION SELECT run_id, rank FROM env
            WHERE name = 'TORCH_LOGS' AND regexp_matches(value, '(^|,)(graph_breaks|[+]dynamo)(,|$)')""",
    "graphs": "SELECT run_id, rank FROM graphs WHERE kind = 'dynamo'",
}  # fmt: skip
ENDINGS = frozenset({"watchdog", "exit", "flight-recorder"})
"""What is only logged of a run that ends badly: of one that ended well nothing is missing."""
