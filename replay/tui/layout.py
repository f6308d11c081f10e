"""Where the panels stand, for a size: a plain computation, so that it can be tested without a terminal."""

from dataclasses import dataclass

NARROW = 110
"""From so many columns on panels stand beside each other."""
DECK = ("events", "findings", "state", "details")
"""Panels that share one place on a narrow screen."""
_RIGHT_LEAST, _RIGHT_MOST = 42, 92
_BARS = 3
"""Header, message and keys."""


@dataclass(frozen=True, slots=True)
class Box:
    """Columns and rows from the upper left corner."""

    x: int
    y: int
    width: int
    height: int


def stand(width: int, height: int, deck: str, full: str | None = None, *, lanes: int, findings: int) -> dict[str, Box]:
    """Return the place of each panel that is shown. `deck` is the panel that a narrow screen shows of those that share
    a place, `full` one that has the screen to itself; `lanes` and `findings` are the rows that all of them would take.
    """
    body = max(height - _BARS, 3)
    if full is not None:
        return {full: Box(0, 1, width, body)}
    if width < NARROW:
        return _narrow(width, body, lanes, deck, findings)
    right = min(max(int(width * 0.36), _RIGHT_LEAST), _RIGHT_MOST)
    left = width - right - 1
    high = min(max(lanes, 4), max(body // 2, 4))
    source = max(body // 5, 5)
    state = min(max(body // 4, 6), 14)
    details = max(body // 4, 6)
    x = left + 1
    return {
        "lanes": Box(0, 1, left, high),
        "events": Box(0, 1 + high, left, max(body - high - source, 1)),
        "source": Box(0, 1 + body - source, left, source),
        "findings": Box(x, 1, right, max(body - state - details, 1)),
        "state": Box(x, 1 + body - state - details, right, state),
        "details": Box(x, 1 + body - details, right, details),
    }


def _narrow(width: int, body: int, lanes: int, deck: str, findings: int) -> dict[str, Box]:
    source = 5 if body >= 18 else 3
    unused = body - source - max(findings, 2) if deck == "findings" else 0
    high = min(max(lanes, 4), max(int(body * 0.38), unused, 3))
    rest = max(body - high - source, 1)
    shown = [deck if deck in DECK else "findings"]
    if rest >= 24:  # a tall narrow screen has room for two
        shown.append("events" if shown[0] != "events" else "findings")
    boxes = {"lanes": Box(0, 1, width, high), "source": Box(0, 1 + body - source, width, source)}
    if len(shown) == 1:
        return boxes | {shown[0]: Box(0, 1 + high, width, rest)}
    upper = rest // 2
    if "findings" in shown:
        needed = min(max(findings, 4), upper)
        upper = needed if shown[0] == "findings" else rest - needed
    return boxes | {shown[0]: Box(0, 1 + high, width, upper), shown[1]: Box(0, 1 + high + upper, width, rest - upper)}
