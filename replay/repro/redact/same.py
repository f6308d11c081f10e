"""Whether two reports tell the same story: what redacting must not change."""

from typing import Any

from replay.report.model import Report


def _story(report: Report) -> dict[str, Any]:
    """What is compared: causes, ranks, steps, times, certainty and lines of proof."""
    findings = sorted(
        (
            f.run,
            f.cause,
            f.kind,
            f.root,
            f.ranks,
            f.waiting,
            f.impact,
            str(f.step),
            str(f.t),
            str(f.cost_s),
            f.certainty,
            sorted((e.line or 0, -1 if e.rank is None else e.rank) for e in f.evidence),
        )
        for f in report.findings
    )
    return {
        "verdict": report.verdict,
        "runs": [
            (r.id, r.attempt, r.ranks_expected, r.ranks_seen, r.outcome, len(r.hosts), r.torch, r.nccl, r.last_step)
            for r in report.runs
        ],
        "first finding": report.findings[0].cause if report.findings else None,
        "findings": findings,
    }  # fmt: skip


def differences(before: Report, after: Report) -> list[str]:
    """Return what differs, one sentence each; nothing where the diagnosis is the same."""
    old, new = _story(before), _story(after)
    return [_told(what, old[what], new[what]) for what in old if old[what] != new[what]]


def lines_otherwise(before: Report, after: Report) -> int:
    """Return how many lines at least are understood otherwise: of two halves of a path, none is known for one."""
    old, new = ((c.lines, c.parsed, c.continuation, c.plain, c.malformed) for c in (before.coverage, after.coverage))
    return max(abs(a - b) for a, b in zip(old, new, strict=True))


def _told(what: str, old: Any, new: Any) -> str:
    if isinstance(old, list):  # only those that differ
        lost, came = [x for x in old if x not in new], [x for x in new if x not in old]
        return f"{what}: {lost or 'nothing'} became {came or 'nothing'}"
    return f"{what}: {old} became {new}"
