"""One question, one answer: first as a code, then as lines of a log, and else the nearest that is known."""

from collections.abc import Sequence
from pathlib import Path

from replay.errors import UsageError
from replay.expert.load import load_rules
from replay.explain.codes import Codes
from replay.explain.lines import read
from replay.explain.model import Explanation
from replay.explain.nearest import nearest_forms
from replay.sources.model import MAX_LINE


def explain(text: str, rules: Sequence[Path] = ()) -> Explanation:
    """Say what a pasted code, number, name or line means; several lines are read as the log that they are a part of.

    `rules` are folders of rules beside the tool's own. Raises UsageError for a text with nothing in it.
    """
    text = text.strip("\r\n")
    if not text.strip():
        raise UsageError("there is nothing to explain: paste a line, a code or a number")
    codes = Codes(load_rules(rules))
    is_short = "\n" not in text and len(text) < MAX_LINE
    found = tuple(codes.find(text.strip())) if is_short else ()
    if found:
        return Explanation(text, found, (), ())
    lines = tuple(read(text, codes))
    if any(line.is_known for line in lines):
        return Explanation(text, (), lines, ())
    near = codes.near(text.strip()) if is_short else ()
    return Explanation(text, (), lines, near or nearest_forms(text))
