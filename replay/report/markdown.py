"""The report as Markdown, to paste into an issue. Log text is fenced or escaped: it must not become markup."""

from collections.abc import Iterable, Mapping

from replay.report.model import Evidence, Finding, Report, Rival
from replay.report.wording import certainty, count, duration, lost, ranks_phrase, visible

_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~!&@$"})


def render(report: Report, checked: Mapping[str, str] = {}) -> str:
    """Return the report as Markdown that ends in a newline; `checked`: how advice was checked, by fingerprint."""
    parts = [f"# {_title(report)}"]
    parts += [_runs(report)] if report.runs else []
    for finding in report.findings:
        if finding in report.roots:
            parts += _finding(finding, checked.get(finding.fingerprint))
    others = [f for f in report.findings if f not in report.roots]
    if others:
        parts += ["## Not causes", _list(_other(f) for f in others)]
    if silent := dict.fromkeys(_silent(rival) for rival in report.rivals if rival.finding is None):
        parts += ["## Considered", _list(silent)] if report.verdict != "healthy" else []
    if report.ruled_out and not report.roots:
        parts += ["## Ruled out", _list(map(escaped, report.ruled_out))]
    if report.collect_now:
        parts += ["## Collect before it is killed", fenced(report.collect_now)]
    if report.next_time:
        parts += ["## To know more next time", _list(map(escaped, report.next_time))]
    c = report.coverage
    parts.append(
        f"Read {count(c.files, 'file')}: {c.parsed + c.continuation:,} lines of PyTorch and NCCL, {c.plain:,} of the "
        f"application, {c.malformed:,} unreadable. replay {report.version}."
    )
    return "\n\n".join(parts) + "\n"


def render_finding(finding: Finding) -> str:
    """Return one finding as Markdown that ends in a newline."""
    return "\n\n".join(_finding(finding)) + "\n"


def _title(report: Report) -> str:
    if report.roots:
        return escaped(report.roots[0].summary)
    return "Healthy: nothing found" if report.verdict == "healthy" else "Cause not known"


def _runs(report: Report) -> str:
    rows = ["| run | ranks | outcome | time | torch | NCCL |", "|---|---|---|---|---|---|"]
    for run in report.runs:
        expected = f" of {run.ranks_expected}" if run.ranks_expected not in (None, run.ranks_seen) else ""
        span = "" if run.span_s is None else duration(run.span_s)
        rows.append(
            f"| {run.id} | {run.ranks_seen}{expected} | {run.outcome} | {span} | {escaped(run.torch or '')} "
            f"| {escaped(run.nccl or '')} |"
        )
    return "\n".join(rows)


def _finding(finding: Finding, checked: str | None = None) -> list[str]:
    facts = [finding.cause, certainty(finding.certainty), ranks_phrase(finding.ranks)]
    facts += [lost(finding.cost_s, finding.lost_s)]
    if finding.amplification is not None:
        facts.append(f"{finding.lost_s:,.3g} rank-seconds of all, {finding.amplification:.1f} times its own")
    parts = [f"## {finding.id}: {escaped(finding.summary)}", " · ".join(escaped(f) for f in facts if f)]
    steps = []
    for number, link in enumerate(finding.chain, 1):
        who = f" ({ranks_phrase(link.ranks)})" if link.ranks else ""
        steps.append(f"{number}. **{escaped(link.label)}**{who}: {escaped(link.text)}")
    parts += ["\n".join(steps)] if steps else []
    if finding.evidence:
        parts.append(fenced(line for e in finding.evidence for line in (f"{place(e)}", f"    {e.text}")))
    if finding.advice:
        parts.append(advice(finding, checked))
    return parts


def advice(finding: Finding, checked: str | None) -> str:
    """Return the advice of a finding: a fix where it was checked, else something to try."""
    how = f" ({checked})" if checked else ""
    return f"**{'Fix' if checked else 'Try'}:** {escaped(finding.advice + how)}"


def _other(finding: Finding) -> str:
    why = f", explained by {', '.join(finding.explained_by)}" if finding.explained_by else ""
    where = f" (`{visible(place(finding.evidence[0])).replace('`', chr(39))}`)" if finding.evidence else ""
    return f"{finding.kind}{why}: {escaped(finding.summary)}{where}"


def _silent(rival: Rival) -> str:
    return f"{escaped(rival.summary)} ({escaped(rival.cause)}), but {escaped(rival.why)}"


def place(evidence: Evidence) -> str:
    """Return the file and line of evidence, or the entry of a binary file."""
    return f"{evidence.file}:{evidence.line}" if evidence.line is not None else f"{evidence.file} {evidence.at or ''}"


def escaped(text: str) -> str:
    """Return text of a log in one line in which nothing is markup."""
    return " ".join(visible(line) for line in text.splitlines()).translate(_SPECIAL)


def fenced(lines: Iterable[str], language: str = "text") -> str:
    """Return a code block whose fence is longer than any run of backticks in it."""
    body = [visible(line) for line in lines]
    fence = "```"
    while any(fence in line for line in body):
        fence += "`"
    return "\n".join([f"{fence}{language}", *body, fence])


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
