"""What a run would have been, for people and as a JSON document (schema version 1)."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from replay.report.text import Style
from replay.report.wording import count, duration, ranks_phrase, ranks_text, visible
from replay.simulate import Change, Outcome, RankOutcome

WHATIF_SCHEMA = 1

_RANKS_SHOWN = 16
_LEAST_SAVED = 0.0005
"""Share of a run that is as good as nothing."""
_BASES = {
    "operations": "operations whose begin and end are logged",
    "steps": "steps whose own time and waiting are logged",
    "enqueued operations": "operations that were logged when they were enqueued",
    "step-times": "steps of which only the end is logged",
}


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as the JSON document's dicts and lists."""
    body = asdict(outcome)
    body["ranks"] = [asdict(r) | {"saved_s": r.saved_s} for r in outcome.ranks]
    body["causes"] = [asdict(c) | {"amplification": c.amplification} for c in outcome.causes]
    shares = {"saved_s": outcome.saved_s, "replay_error": outcome.replay_error}
    rounded: dict[str, Any] = _rounded({"schema": WHATIF_SCHEMA, **body, **shares})
    return rounded


def as_json(outcome: Outcome) -> str:
    """Return the JSON text, with a newline at its end."""
    return json.dumps(document(outcome), indent=1, allow_nan=False) + "\n"


def as_text(outcome: Outcome, style: Style) -> str:
    """Return the outcome as text that ends in a newline; of one that cannot be told, why."""
    if outcome.cannot is not None:
        return "\n".join(_wrap(f"Cannot say, because {outcome.cannot}.", style)) + "\n"
    lines = [style.paint(line, "bold") for line in _wrap(headline(outcome), style)]
    lines += _wrap(replayed(outcome), style)
    lines += ["", *_causes(outcome, style)] if outcome.causes else []
    lines += ["", *_ranks(outcome)]
    if outcome.limits:
        lines += ["", "Where the model does not hold:"]
        for limit in outcome.limits:
            share = f" ({100 * limit.share:.0f} %)" if limit.share is not None else ""
            enable = f"; to know: {limit.enable}" if limit.enable else ""
            lines += _wrap(f"{limit.text}{share}{enable}", style, "  - ", "    ")
    return "\n".join(lines) + "\n"


def change_text(change: Change) -> str:
    """Return a change in words: `without recompiles on rank 3`; nothing where nothing changes."""
    parts = [f"without {w.what}" + (f" on {ranks_phrase(w.ranks)}" if w.ranks else "") for w in change.without]
    if change.as_median:
        parts.append(f"with {ranks_phrase(change.as_median)} as fast as the others")
    parts += ["with a warm compile cache"] if change.warm_cache else []
    parts += ["with guards agreed on by all ranks"] if change.guard_collectives else []
    parts += [f"with a timeout of {change.timeout_s:g} s"] if change.timeout_s is not None else []
    return ", ".join(parts)


def headline(outcome: Outcome) -> str:
    """Return the answer in one sentence."""
    asked = change_text(outcome.change)
    changed, replayed, saved = outcome.changed_s or 0.0, outcome.replayed_s or 0.0, outcome.saved_s or 0.0
    if not asked:
        return f"What is known to have taken time, of {duration(outcome.logged_s or 0.0)} in all."
    if outcome.ends:
        answer = f"over after {duration(changed)} instead of {duration(replayed)}; {outcome.ends}"
    elif abs(saved) < _LEAST_SAVED * replayed:
        answer = f"{duration(changed)}, as it was"
    else:
        share = 100 * abs(saved) / replayed
        how = "saved" if saved > 0 else "lost"
        answer = f"{duration(changed)} instead of {duration(replayed)}, {duration(abs(saved))} ({share:.1f} %) {how}"
    return f"{asked[:1].upper()}{asked[1:]}: {answer}."


def replayed(outcome: Outcome) -> str:
    """Return what the model stands on and how well it replays the run as it was."""
    basis = _BASES.get(outcome.basis or "", outcome.basis or "")
    return (
        f"The model: {count(len(outcome.ranks), 'rank')}, {outcome.operations:,} {basis}. Replayed as it was, the run "
        f"takes {duration(outcome.replayed_s or 0.0)}; logged {duration(outcome.logged_s or 0.0)}, error "
        f"{_percent(outcome.replay_error)} (of a rank at most {_percent(outcome.rank_error)}; of arrivals "
        f"{duration(outcome.operation_error_s or 0.0)} in the median)."
    )


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.1f} %"


def _causes(outcome: Outcome, style: Style) -> list[str]:
    rows = [["cause", "ranks", "times", "took itself", "saved", "lost by all", "factor"]]
    for cause in outcome.causes:
        seconds = (duration(v) for v in (cause.own_s, cause.saved_s, cause.lost_s))
        factor = "" if cause.amplification is None else f"{cause.amplification:.1f}"
        rows.append([cause.what, ranks_text(cause.ranks), f"{cause.times:,}", *seconds, factor])
    head, *table = _table(rows, left={0, 1})
    lines = [head]
    for line, cause in zip(table, outcome.causes, strict=True):
        lines.append(line)
        if cause.path is not None:
            lines.append("    " + style.paint(visible(f"{cause.path}:{cause.line}"), "dim"))
    return lines


def _ranks(outcome: Outcome) -> list[str]:
    shown = sorted(outcome.ranks, key=_weight)[:_RANKS_SHOWN]
    rows = [["rank", "logged", "replayed", "would be", "own less", "waited", "would wait"]]
    for r in sorted(shown, key=lambda r: r.rank):
        seconds = (r.logged_s, r.replayed_s, r.changed_s, r.own_s, r.waited_s, r.waits_s)
        rows.append([str(r.rank), *map(duration, seconds)])
    lines = _table(rows, left=set())
    if len(outcome.ranks) > len(shown):
        lines.append(f"and {len(outcome.ranks) - len(shown):,} more ranks (--format json lists all)")
    return lines


def _weight(rank: RankOutcome) -> tuple[float, float, int]:
    return -abs(rank.own_s), -abs(rank.waited_s - rank.waits_s), rank.rank


def _table(rows: Sequence[Sequence[str]], left: set[int]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    cells = ([c.ljust(w) if n in left else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True))]
             for row in rows)  # fmt: skip
    return ["  ".join(row).rstrip() for row in cells]


def _wrap(text: str, style: Style, first: str = "", rest: str = "    ") -> list[str]:
    return textwrap.wrap(
        visible(text), style.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return round(value, 6) if isinstance(value, float) else value
