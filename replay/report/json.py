"""The JSON document (schema version 1) of a report: stable keys, plain values, the same bytes for the same run."""

import json
import math
from dataclasses import asdict
from typing import Any

from replay.report.model import REPORT_SCHEMA, Evidence, Report


def document(report: Report) -> dict[str, Any]:
    """Return the report as the JSON document's dicts and lists."""
    body = {
        "schema": REPORT_SCHEMA,
        "tool": {"version": report.version},
        "verdict": report.verdict,
        "runs": [asdict(run) for run in report.runs],
        "coverage": asdict(report.coverage),
        "findings": [
            asdict(finding)
            | {"amplification": _ratio(finding.amplification), "evidence": [_evidence(e) for e in finding.evidence]}
            for finding in report.findings
        ],
        "rivals": [asdict(rival) for rival in report.rivals],
        "unseen": [asdict(u) for u in report.unseen],
        "next_time": list(report.next_time),
        "collect_now": list(report.collect_now),
    }
    plain: dict[str, Any] = _plain(body)
    return plain


def render(report: Report) -> str:
    """Return the JSON text, with a newline at its end. What could act on a terminal is written as an escape."""
    text = json.dumps(document(report), indent=1, ensure_ascii=False, allow_nan=False)
    if not text.isascii():
        text = "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return text + "\n"


def _evidence(evidence: Evidence) -> dict[str, Any]:
    facts = asdict(evidence)
    if evidence.at is None:
        del facts["at"]
    return facts


def _plain(value: Any) -> Any:
    """JSON has no tuples, and no number for what is none."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _ratio(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
