"""The bug report of a finding: the sections of PyTorch's issue form, one screen, below GitHub's bound on an issue.

It says what fails, how to see it, what was expected, the lines that prove it, and the versions. Every text that comes
from a log goes through `Masks` first and is cut then, so that no half of a private name is left.
"""

import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import replay
from replay.report.markdown import escaped, fenced, place
from replay.report.model import Evidence, Finding
from replay.report.wording import certainty, count, lost, ranks_phrase, visible
from replay.repro.checked import notes
from replay.repro.outcome import Outcome
from replay.repro.script import Plan, Value, render
from replay.run import Run

MOST_CHARACTERS = 65_536
"""GitHub takes no longer issue."""
_SENTENCE, _PROOF, _RANKS = 400, 160, 100
_MOST_LINES, _MOST_LINKS, _MOST_SETTINGS = 12, 8, 12
_EXPECTED = {
    "failed": "all ranks end without an error",
    "hung": "every operation that one rank enters is entered by all of its group, and ends",
    "slow": "no rank makes the others wait",
    "wrong-numbers": "the numbers agree",
    "none": "it does not occur",
}
_SETTINGS = """
    SELECT name, value, list(DISTINCT rank ORDER BY rank) FILTER (rank IS NOT NULL)
    FROM env
    WHERE run_id = $run AND value IS NOT NULL
        AND (origin = 'nccl' OR regexp_matches(name, '^(NCCL|TORCH|PYTORCH|CUDA|GLOO|OMP)[A-Z]*_[A-Z0-9_]+$'))
    GROUP BY name, value ORDER BY name, value LIMIT $most
"""
_PACKAGES = """
    SELECT name, string_agg(DISTINCT version, ', ' ORDER BY version) FROM packages
    WHERE run_id = $run AND version IS NOT NULL GROUP BY name ORDER BY name LIMIT $most
"""


class Masks(Protocol):
    """How texts of logs are shown."""

    def text(self, text: str) -> str:
        """Return a text as it may be shown."""

    def file(self, path: str) -> str:
        """Return the path of a log as it may be shown."""

    def evidence(self, one: Evidence) -> str:
        """Return the text of a line as it may be shown."""


class Unmasked:
    """Shows everything as it is."""

    def text(self, text: str) -> str:
        """Return the text."""
        return text

    def file(self, path: str) -> str:
        """Return the path."""
        return path

    def evidence(self, one: Evidence) -> str:
        """Return the line's text."""
        return one.text


@dataclass(frozen=True, slots=True)
class Bug:
    """A finding, and what came of its script; `plan` made it, None where no script can show the finding."""

    run: Run
    finding: Finding
    outcome: Outcome
    plan: Plan | None

    def texts(self) -> Iterator[str]:
        """Give the texts of logs that the report shows, without the lines that prove it."""
        yield from (self.finding.summary, self.finding.advice)
        yield from (text for link in self.finding.chain for text in (link.label, link.text))
        if self.plan is not None:
            yield from (v.value for v in self.plan.values.values() if isinstance(v.value, str))

    def proof(self) -> tuple[Evidence, ...]:
        """Return the lines that the report shows."""
        return self.finding.evidence[:_MOST_LINES]


def render_report(bug: Bug, masks: Masks) -> str:
    """Return the report as Markdown that ends in a newline, without the list of what was replaced."""
    finding = bug.finding
    ranks = _cut(ranks_phrase(finding.ranks), _RANKS) or "the run as a whole"
    facts = [finding.cause, certainty(finding.certainty), ranks]
    facts += [cost] if (cost := lost(finding.cost_s, finding.lost_s)) else []
    facts += [f"step {finding.step}"] if finding.step is not None else []
    parts = [f"# {_line(masks.text(finding.summary))}", "### 🐛 Describe the bug", escaped(" · ".join(facts))]
    parts += ["\n".join(_story(finding, masks))] if finding.chain else []
    parts += list(_shown_by(bug, masks))
    parts.append("\n".join(_expectation(bug, masks)))
    parts += ["### Error logs", _proof(bug, masks), "### Versions", "\n".join(_versions(bug, masks))]
    return "\n\n".join(parts) + "\n"


def redacted_note(replaced: Iterable[tuple[str, str, str]]) -> str:
    """Return what the report says of the names that were replaced in it; not what they were."""
    kinds: dict[str, list[str]] = {}
    for kind, _, new in replaced:
        if new not in kinds.setdefault(kind, []):
            kinds[kind].append(new)
    told = "; ".join(f"{count(len(new), kind)} ({_several(new)})" for kind, new in sorted(kinds.items()))
    return (
        f"\nReplaced, each name by the same word everywhere: {told or 'nothing'}. "
        "What the program printed in its own words stays.\n"
    )


def _several(names: list[str]) -> str:
    shown = ", ".join(f"`{visible(n)[:40].replace('`', chr(39))}`" for n in names[:3])
    return shown + (", ..." if len(names) > 3 else "")


def _line(text: str, most: int = _SENTENCE) -> str:
    """One line of a text, cut, in which nothing is markup."""
    return escaped(_cut(text, most))


def _cut(text: str, most: int) -> str:
    shown = " ".join(visible(line) for line in text[:most].splitlines())
    return shown if len(shown) <= most and len(text) <= most else shown[: most - 4] + " ..."


def _story(finding: Finding, masks: Masks) -> Iterator[str]:
    for number, link in enumerate(finding.chain[:_MOST_LINKS], 1):
        who = _cut(f" ({ranks_phrase(link.ranks)})", _RANKS) if link.ranks else ""
        yield f"{number}. **{_line(masks.text(link.label), _PROOF)}**{who}: {_line(masks.text(link.text))}"


def _shown_by(bug: Bug, masks: Masks) -> Iterator[str]:
    outcome, plan = bug.outcome, bug.plan
    if plan is None:
        yield f"**No script** can show this cause: {escaped(outcome.why)}."
        return
    yield f"**To see it:** `python {outcome.script}`: {_stamp(bug)}"
    if outcome.shrunk:
        yield f"**Shrunk away**, in {count(outcome.runs, 'run')}: {escaped(', '.join(outcome.shrunk))}."
    text = render(_masked(plan, masks))
    yield "\n".join([
        f"<details><summary>{outcome.script}: {count(len(text.splitlines()), 'line')}, needs torch only</summary>",
        "",
        fenced(text.splitlines(), "python"),
        "",
        "</details>",
    ])  # fmt: skip


def _masked(plan: Plan, masks: Masks) -> Plan:
    """The plan with what its constants say of their places, and its texts, as they may be shown."""

    def shown(value: Value) -> Value:
        head, colon, told = value.source.partition(": ")
        file, at, line = told.rpartition(":")
        source = f"{masks.text(head)}{colon}{masks.file(file)}{at}{line}" if colon else masks.text(head)
        return Value(masks.text(value.value) if isinstance(value.value, str) else value.value, source)

    return replace(plan, values={name: shown(value) for name, value in plan.values.items()})


def _stamp(bug: Bug) -> str:
    """Whether the script shows the cause, and how that is known."""
    outcome = bug.outcome
    here = f"torch {escaped(outcome.torch or '')}, {count(outcome.world, 'rank')}, {outcome.seconds} s"
    match outcome.status:
        case "verified":
            return (
                f"**verified** ({here}): the script's own logs, read by replay {replay.__version__}, show the same "
                "cause on the same ranks."
            )
        case "not verified":
            return f"**not verified** ({here}): {_line(outcome.why)}."
        case "needs CUDA":
            return "**needs CUDA**; it was written where there is none, and not run."
    return "written, and **not run**."


def _expectation(bug: Bug, masks: Masks) -> Iterator[str]:
    finding, outcome = bug.finding, bug.outcome
    yield f"**Expected:** {_EXPECTED.get(finding.impact, _EXPECTED['none'])}.  "
    waiting = f"; {ranks_phrase(finding.waiting)} waited" if finding.waiting else ""
    yield f"**Actual:** {finding.impact if finding.impact != 'none' else finding.kind}{_cut(waiting, _RANKS)}.  "
    if outcome.fix in {"gone", "not gone"}:
        verdict = "it is gone" if outcome.fix == "gone" else "it is NOT gone"
        yield f"**With the advised change:** {verdict} ({_line(outcome.fix_says)})."
    elif finding.advice:
        how = notes(bug.run.report()).get(finding.fingerprint)
        yield f"**Advice, {how or 'not checked'}:** {_line(masks.text(finding.advice))}"


def _proof(bug: Bug, masks: Masks) -> str:
    lines = []
    for one in bug.proof():
        shown = replace(one, file=masks.file(one.file))
        rank = "" if one.rank is None else f"  rank {one.rank}"
        lines += [_cut(place(shown), _PROOF) + rank, "    " + _cut(masks.evidence(one).strip(), _PROOF)]
    more = len(bug.finding.evidence) - _MOST_LINES
    lines += [f"and {count(more, 'more line')}"] if more > 0 else []
    return fenced(lines) if lines else "The logs hold no single line that proves it."


def _versions(bug: Bug, masks: Masks) -> Iterator[str]:
    run = next((r for r in bug.run.report().runs if r.id == bug.finding.run), None)
    asked = {"run": bug.finding.run, "most": _MOST_SETTINGS}
    rows = []
    if run is not None:
        hosts = count(len(run.hosts), "host") if run.hosts else "hosts not told"
        ranks = run.ranks_expected or run.ranks_seen
        rows.append(("run", f"{count(ranks, 'rank')}, {hosts}, {run.outcome}"))
        rows += [("torch", run.torch)] if run.torch else []
        rows += [("NCCL", run.nccl)] if run.nccl else []
    known = {name.lower() for name, _ in rows}
    rows += [(n, v) for n, v in bug.run.con.execute(_PACKAGES, asked).fetchall() if n.lower() not in known]
    for name, value, ranks in bug.run.con.execute(_SETTINGS, asked).fetchall():
        where = f" ({_cut(ranks_phrase(ranks), _RANKS)})" if ranks and run and len(ranks) < run.ranks_seen else ""
        rows.append(("setting", f"{masks.text(f'{name}={value}')}{where}"))
    if bug.outcome.torch:
        rows.append(("script run with", f"torch {bug.outcome.torch}, Python {platform.python_version()}, {_system()}"))
    rows.append(("read by", f"replay {replay.__version__}"))
    yield from ("| | |", "|---|---|")
    yield from (f"| {escaped(name)} | {_line(str(value), _PROOF)} |" for name, value in rows)


def _system() -> str:
    return f"{platform.system()} {platform.machine()}"
