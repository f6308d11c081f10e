"""`replay why` and `replay why-not`: the proof of a finding, and how near a rule came."""

from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen
from replay.cli.rules import rule_named
from replay.cli.source import Source, reads_logs

if TYPE_CHECKING:
    from replay.expert.why import Line, Lost, Proof


@reads_logs
def why(
    source: Source,
    finding: Annotated[str, typer.Argument(metavar="FINDING", help="Id of the finding, as F1.")],
) -> None:
    """Show the proof of a finding: its lines, what it builds on, what follows, and why it was nothing else."""
    from replay.expert.why import rivals
    from replay.expert.why import why as proof_of

    with source.open() as run:
        lines = _proof(proof_of(run.con, finding), "")
        lines += _rivals(rivals(run.con, finding))
    screen.write("\n".join(lines) + "\n")


@reads_logs
def why_not(
    source: Source,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule that made no finding.")],
) -> None:
    """Say why a rule made no finding: the first step that found nothing, and how near it came."""
    from replay.expert.load import load_rules
    from replay.expert.why import why_not as reason

    book = load_rules(source.rules)
    chosen = rule_named(book, rule)
    with source.open() as run:
        answer = reason(run.con, chosen, book)
    rows = [["step", "table", "rows", "pass", "fit"]]
    rows += [
        [s.name, s.table, *("" if n < 0 else f"{n:,}" for n in (s.rows, s.passing, s.fitting))] for s in answer.steps
    ]
    screen.write(f"{answer.rule}: {answer.text}\n\n{screen.table(rows, frozenset({2, 3, 4}))}")


def _rivals(others: "list[Lost]") -> list[str]:
    from replay.report.wording import visible

    lines = ["", "Rivals, and why they lost (replay why-not LOGS RULE says more):"] if others else []
    for other in others:
        lines.append(visible(f"    {other.finding_id or other.rule}  {other.summary}  ({other.cause})"))
        lines.append(visible(f"        {other.why}"))
    return lines


def _proof(proof: "Proof", indent: str) -> list[str]:
    from replay.report.wording import certainty, visible

    head = f"{proof.finding_id}  {proof.summary}  ({proof.cause}, {certainty(proof.certainty)} {proof.certainty:.2f})"
    lines = [indent + visible(head), f"{indent}    rule {proof.rule}"]
    lines += [f"{indent}    explained by {', '.join(proof.causes)}"] if proof.causes else []
    step = None
    for line in proof.lines:
        if line.step != step:
            step = line.step
            lines.append(f"{indent}    {step}")
        lines += [f"{indent}        {part}" for part in _line(line)]
    for premise in proof.premises:
        lines += [f"{indent}    builds on", *_proof(premise, indent + "        ")]
    for how, effect in proof.effects:
        lines += [f"{indent}    {how}", *_proof(effect, indent + "        ")]
    return lines


def _line(line: "Line") -> list[str]:
    from replay.report.wording import visible

    place = f"{line.path}:{line.line_no}" if line.line_no is not None else f"{line.path} {line.at or ''}"
    who = "" if line.rank is None else f"rank {line.rank}, "
    return [visible(f"{line.label} ({who}{place})"), visible(f"    {line.text or ''}")]
