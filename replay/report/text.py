"""The report for people at a terminal: the verdict first, then what proves it, what it cost, and what to do.

Written line by line, without a drawing library: it must look the same in a terminal, in a file and in a ticket, and
nothing that stands in a log may act on the terminal.
"""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replay.report.model import Evidence, Finding, Link, Report, RunInfo
from replay.report.wording import certainty, count, duration, lost, ranks_phrase, visible, what_if

_PLACES_SHOWN = 2
_OTHERS_SHOWN = 6
_RIVALS_SHOWN = 3
_UNSEEN_SHOWN = 8
_LONGEST_LABEL = 28
_SGR = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}

_UNKNOWN = {
    "failed": "The run failed, and these logs do not show why.",
    "hung": "The run hangs, and these logs do not show why.",
    "stopped": "The run was stopped from outside; these logs show no fault before that.",
    "running": "The run is still going; nothing wrong is to be seen so far.",
    "completed": "No cause was found.",
    "unknown": "Not known: the logs show neither how the run ended nor a fault.",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How wide a line may be, and whether colours are wanted."""

    width: int = 80
    color: bool = False

    def paint(self, text: str, how: str) -> str:
        """Return the text in a colour or weight, if there are any."""
        return f"\x1b[{_SGR[how]}m{text}\x1b[0m" if self.color and text else text


def render(report: Report, style: Style, logs: str = "LOGS", checked: Mapping[str, str] | None = None) -> str:
    """Return the report as text that ends in a newline.

    `logs` is what the user called the logs, for commands that can be pasted; `checked` maps the fingerprint of a
    finding to how its advice was verified.
    """
    if report.verdict == "healthy" and not report.findings:
        return style.paint("Healthy: ", "green") + _run_line(report.runs) + " Nothing found.\n"
    lines: list[str] = []
    if report.verdict == "healthy":
        lines += [style.paint("Healthy: ", "green") + _run_line(report.runs) + " No cause of trouble found.", ""]
    elif not report.roots:
        lines += _not_known(report, style)
    told: dict[str, Finding] = {}
    for finding in report.roots:
        first = told.setdefault(finding.fingerprint or finding.id, finding)
        if first is finding:
            lines += _root(finding, style, logs, checked or {})
        else:
            lines += _again(finding, first, report, style)
    lines += _collect_now(report, style)
    lines += _others(report, style)
    if not report.roots and report.verdict != "healthy":
        lines += _facts(report, style)
    lines += _footer(report, style)
    return "\n".join(lines).rstrip("\n") + "\n"


def _root(finding: Finding, style: Style, logs: str, checked: Mapping[str, str]) -> list[str]:
    tail = " · ".join(
        filter(None, [lost(finding.cost_s, finding.lost_s), certainty(finding.certainty)])
        if finding.kind == "cause"
        else ["a symptom; its cause is not in these logs"]
    )
    body = _wrap(finding.summary, style.width, first=f"{finding.id}  ", rest="    ")
    lines = [style.paint(line, "bold") for line in body]
    if len(body[-1]) + 3 + len(tail) <= style.width:
        lines[-1] += "   " + style.paint(tail, "yellow")
    else:
        lines.append("    " + style.paint(tail, "yellow"))
    lines.append("")
    labels = [len(visible(link.label)) for link in finding.chain]
    column = 8 + max((length for length in labels if length <= _LONGEST_LABEL), default=0)
    for number, link in enumerate(finding.chain, 1):
        lines += _link(number, link, finding, style, column)
    if finding.chain:
        lines.append("")
    lines += _fields(finding, style, logs, checked)
    return [*lines, ""]


def _again(finding: Finding, first: Finding, report: Report, style: Style) -> list[str]:
    """The same cause in another attempt is worth a line, not a story."""
    run = next((r for r in report.runs if r.id == finding.run), None)
    where = f"run {finding.run}" + (f" (attempt {run.attempt})" if run and run.attempt else "")
    lines = _wrap(f"The same as {first.id}, again in {where}.", style.width, first=f"{finding.id}  ", rest="    ")
    if finding.evidence:
        lines.append("    " + style.paint(visible(_place(finding.evidence[0])), "dim"))
    return [style.paint(lines[0], "bold"), *lines[1:], ""]


def _link(number: int, link: Link, finding: Finding, style: Style, column: int) -> list[str]:
    """A step of the story: number, label, what the line says (from `column` on), whose it is; below, the place."""
    who = ranks_phrase(link.ranks)
    label = _one_line(link.label)
    room = max(style.width - column - (len(who) + 2 if who else 0), 20)
    words = textwrap.wrap(_one_line(link.text), room, max_lines=3, placeholder=" …") or [""]
    heads = _wrap(label, style.width - len(who) - 2, first=f"{number:>4}  ", rest="      ")
    rows = heads if len(heads[-1]) + 2 > column else [*heads[:-1], heads[-1].ljust(column) + words.pop(0)]
    rows += [" " * column + w for w in words]
    if who:
        rows[0] = rows[0].ljust(style.width - len(who)) + style.paint(who, "cyan")
    places = [finding.evidence[i] for i in link.evidence]
    for place in places[:_PLACES_SHOWN]:
        rows.append("      " + style.paint(visible(_place(place)), "dim"))
    if len(places) > _PLACES_SHOWN:
        rows[-1] += style.paint(f"   and {len(places) - _PLACES_SHOWN} more", "dim")
    return rows


def _fields(finding: Finding, style: Style, logs: str, checked: Mapping[str, str]) -> list[str]:
    rows: list[tuple[str, str]] = []
    if places := _where(finding):
        rows.append(("where", "; ".join(places)))
    if finding.cost_s or finding.lost_s:
        rows.append(("cost", _cost(finding)))
    if built := [name for name in finding.premises if name not in finding.explains]:
        rows.append(("builds on", ", ".join(built)))
    if finding.explains:
        rows.append(("explains", ", ".join(finding.explains)))
    if finding.advice:
        how = checked.get(finding.fingerprint)
        rows.append(("fix" if how else "try", finding.advice + (f" ({how})" if how else "")))
    lines: list[str] = []
    for name, text in rows:
        color = "green" if name == "fix" else "bold"
        wrapped = _paragraphs(text, style.width, first=f"    {name:<10}", rest=" " * 14)
        wrapped[0] = "    " + style.paint(f"{name:<10}", color) + wrapped[0][14:]
        lines += wrapped
    # a command is not wrapped: it is there to be pasted
    lines.append("    " + style.paint(f"{'proof':<10}", "bold") + f"replay why {visible(logs)} {finding.id}")
    if finding.cost_s and (change := what_if(finding.without, finding.ranks)):
        lines.append("    " + style.paint(f"{'what if':<10}", "bold") + f"replay what-if {visible(logs)} {change}")
    if finding.repro is not None:
        lines.append("    " + style.paint(f"{'repro':<10}", "bold") + f"replay repro {visible(logs)} {finding.id}")
    return lines


def _where(finding: Finding) -> list[str]:
    """The places of the ranks at fault, of those where more than the rank is known."""
    places = []
    for where in finding.where:
        facts = [f"host {where.host}" if where.host else "", f"pid {where.pid}" if where.pid is not None else ""]
        facts += [f"device {where.device}" if where.device is not None else "", where.bus_id or ""]
        if any(facts):
            places.append(f"rank {where.rank}: " + ", ".join(f for f in facts if f))
    if len(places) > _OTHERS_SHOWN:
        places[_OTHERS_SHOWN:] = [f"and {len(places) - _OTHERS_SHOWN} more"]
    return places


def _cost(finding: Finding) -> str:
    """`14.8 s of the run; 14.8 s on rank 3 cost all ranks 59 rank-seconds (4.0 times); waited: ranks 0-2`."""
    parts = [f"{duration(finding.cost_s)} of the run"] if finding.cost_s is not None else []
    if finding.lost_s and finding.own_s:
        whose = f" on {ranks_phrase(finding.ranks)}" if finding.ranks else ""
        parts.append(
            f"{duration(finding.own_s)}{whose} cost all ranks {finding.lost_s:,.3g} rank-seconds "
            f"({finding.amplification or 0:.1f} times as much)"
        )
    elif finding.lost_s:
        parts.append(f"{finding.lost_s:,.3g} rank-seconds")
    parts += [f"waited: {ranks_phrase(finding.waiting)}"] if finding.waiting else []
    return "; ".join(parts)


def _not_known(report: Report, style: Style) -> list[str]:
    outcomes = [r.outcome for r in report.runs]
    outcome = next((o for o in ("failed", "hung", "stopped", "running", "unknown") if o in outcomes), "completed")
    if report.is_foreign:
        sentence = "Not known: nothing in these files was written by PyTorch, NCCL or a launcher."
    else:
        sentence = _UNKNOWN.get(outcome, _UNKNOWN["unknown"])
    return [style.paint(line, "bold") for line in _wrap(sentence, style.width)] + [""]


def _facts(report: Report, style: Style) -> list[str]:
    """Where nothing is known: what was last heard, and what it was not."""
    lines: list[str] = []
    for words in report.last_words:
        silent = f", then silent for {duration(words.silent_s)}" if words.silent_s and words.silent_s >= 1 else ""
        text = f"{ranks_phrase(words.ranks)}: {_one_line(words.text)}{silent}"
        lines += _wrap(text, style.width, first="    last heard  ", rest=" " * 16)
        if words.file:
            place = words.file if words.line is None else f"{words.file}:{words.line}"
            lines.append(" " * 16 + style.paint(visible(place), "dim"))
    if report.ruled_out:
        lines += _wrap("; ".join(report.ruled_out), style.width, first="    ruled out   ", rest=" " * 16)
    return [*lines, ""] if lines else []


def _others(report: Report, style: Style) -> list[str]:
    """What a tired person will ask about: symptoms with their cause, hazards, notes."""
    shown = {f.id for f in report.roots}
    others = [f for f in report.findings if f.id not in shown]
    groups = {
        "Explained": [f for f in others if f.explained_by],
        "Hazard, has not failed": [f for f in others if not f.explained_by and f.kind == "hazard"],
        "Not a cause": [f for f in others if not f.explained_by and f.kind == "note"],
        "Also seen": [f for f in others if not f.explained_by and f.kind in {"cause", "symptom"}],
    }
    lines: list[str] = []
    said: set[str] = set()
    for name, members in groups.items():
        for finding in members[:_OTHERS_SHOWN]:
            by = f" (by {', '.join(finding.explained_by)})" if finding.explained_by else _unsure(finding)
            lines += _wrap(f"{name}: {finding.summary}{by}", style.width, rest="    ")
            if finding.evidence:
                lines.append("    " + style.paint(visible(_place(finding.evidence[0])), "dim"))
            if finding.kind == "hazard" and finding.advice not in said:
                said.add(finding.advice)
                lines += _paragraphs(finding.advice, style.width, first="    try ", rest=" " * 8)
        if len(members) > _OTHERS_SHOWN:
            lines.append(f"{name}: {len(members) - _OTHERS_SHOWN} more (--format json lists all)")
    if report.verdict != "healthy":
        lines += _silent(report, style)
    return [*lines, ""] if lines else []


def _silent(report: Report, style: Style) -> list[str]:
    """Causes whose signs are all there, and what speaks against them; those that were found stand above."""
    silent = list(dict.fromkeys((r.cause, r.summary, r.why) for r in report.rivals if r.finding is None))
    lines: list[str] = []
    for cause, summary, why in silent[:_RIVALS_SHOWN]:
        lines += _wrap(f"Considered: {summary} ({cause}), but {why}.", style.width, rest="    ")
    if len(silent) > _RIVALS_SHOWN:
        lines.append(f"Considered: {len(silent) - _RIVALS_SHOWN} more (--format json lists all)")
    return lines


def _unsure(finding: Finding) -> str:
    """Say why a cause that nothing explains is no root."""
    return f" ({certainty(finding.certainty)}, too unsure for a root)" if finding.kind == "cause" else ""


def _collect_now(report: Report, style: Style) -> list[str]:
    if report.is_foreign or not report.collect_now:
        return []
    head = style.paint("Before you kill it, collect:", "yellow")
    return [head, *(f"    {visible(line)}" for line in report.collect_now), ""]


def _footer(report: Report, style: Style) -> list[str]:
    lines: list[str] = []
    if report.next_time:
        lines.append("To know more next time:")
        for setting in report.next_time:
            lines += _wrap(setting, style.width, first="    ", rest="      ")
        lines.append("")
    dim: list[str] = []
    for run in report.runs if len(report.runs) > 1 else ():
        dim += _wrap(f"Run {run.id}: {_run_line([run])}", style.width, rest="    ")
    head = "" if len(report.runs) != 1 else _run_line(report.runs) + " "
    dim += _wrap(head + _coverage(report), style.width, rest="    ")
    if report.unseen:
        dim += _wrap("Not seen: " + ", ".join(_unseen(report)) + ".", style.width, rest="    ")
    return lines + [style.paint(line, "dim") for line in dim]


def _unseen(report: Report) -> Iterable[str]:
    """What was not logged; the ranks only where they differ from most."""
    usual = max((u.ranks for u in report.unseen), key=[u.ranks for u in report.unseen].count)
    for unseen in report.unseen[:_UNSEEN_SHOWN]:
        yield unseen.what if unseen.ranks == usual else f"{unseen.what} ({_ranks(unseen.ranks)})"
    if len(report.unseen) > _UNSEEN_SHOWN:
        yield f"and {len(report.unseen) - _UNSEEN_SHOWN} more (replay ls)"


def _ranks(text: str) -> str:
    return f"rank {text}" if text.isdigit() else f"ranks {text}" if text else "no rank known"


def _run_line(runs: Iterable[RunInfo]) -> str:
    """`4 ranks · torch 2.13 · completed in 26.4 s.`"""
    sentences = []
    for run in runs:
        ranks = count(run.ranks_seen, "rank")
        if run.ranks_expected and run.ranks_expected != run.ranks_seen:
            ranks = f"{run.ranks_seen:,} of {count(run.ranks_expected, 'rank')} heard"
        span = f"{run.outcome if run.outcome != 'unknown' else 'end not seen'}"
        if run.span_s:
            span += f" {'in' if run.outcome == 'completed' else 'after'} {duration(run.span_s)}"
        facts = [
            ranks,
            f"torch {run.torch}" if run.torch else "",
            f"NCCL {run.nccl}" if run.nccl else "",
            f"attempt {run.attempt}" if run.attempt else "",
            span,
        ]
        sentences.append(" · ".join(visible(f) for f in facts if f) + ".")
    return " ".join(sentences)


def _coverage(report: Report) -> str:
    c = report.coverage
    return (
        f"Read {count(c.files, 'file')}: {c.parsed + c.continuation:,} lines understood, {c.plain:,} others, "
        f"{c.malformed:,} unreadable."
    )


def _place(evidence: Evidence) -> str:
    if evidence.line is not None:
        return f"{evidence.file}:{evidence.line}"
    return f"{evidence.file} {evidence.at}" if evidence.at else evidence.file


def _one_line(text: str) -> str:
    return " ".join(visible(line) for line in text.splitlines()).strip()


def _paragraphs(text: str, width: int, first: str, rest: str) -> list[str]:
    """Wrap each line of a text by itself."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines += _wrap(paragraph, width, first=rest if lines else first, rest=rest)
    return lines


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    lines = textwrap.wrap(_one_line(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return lines or [first.rstrip()]
