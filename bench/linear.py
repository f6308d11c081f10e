"""Whether every production takes linear time: texts made to hurt each pattern, at two sizes.

    python bench/linear.py [FAMILY ...]

For each place of a pattern that may repeat without bound, a text is made that reaches it, repeats there what the place
and what follows it both take, and fails at its end: that is where a pattern of quadratic or worse time shows. Printed
are the productions whose time grows by three or more where the text doubles, with what a line of 64 KiB costs (5 s
stands for five or more). Exit code 1 if there is one that costs more than a fifth of a second.
"""

import argparse
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from re import _constants as sre  # the only way to see what a pattern is made of
from re import _parser
from typing import Any

from replay.grammar.compile import load
from replay.grammar.model import Production
from replay.resources import folder

LINE = 1 << 16
NAMES = {"filenames", "folders"}
NAME = 255
"""Characters of a file's name, where a system bounds them."""
PATIENCE = 5
NOTHING, MUCH = 0.002, 0.2
"""Seconds below which a clock does not tell, and those that one line may cost."""
FILL = "a0 .:-_/,=([\"'|x1A]){}"
ENDS = ("", "\x01")

Node = tuple[Any, Any]


def shortest(nodes: Sequence[Node]) -> str:
    """Return a short text that the nodes take."""
    return "".join(_shortest(node) for node in nodes)


def _shortest(node: Node) -> str:
    kind, value = node
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return next(c for c in FILL if ord(c) != value)
    if kind is sre.ANY:
        return "a"
    if kind is sre.IN:
        return next(iter(taken(node)), "")
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return shortest(list(value[2])) * value[0]
    if kind is sre.SUBPATTERN:
        return shortest(list(value[3]))
    if kind is sre.BRANCH:
        return min((shortest(list(branch)) for branch in value[1]), key=len)
    return ""


def taken(node: Node) -> list[str]:
    """Return the characters of FILL, or else any, that a set takes."""
    pattern = re.compile(_set(node))
    found = [c for c in FILL if pattern.fullmatch(c)]
    return found or [c for c in map(chr, range(1, 0x2600)) if pattern.fullmatch(c)][:1]


def _set(node: Node) -> str:
    parts = []
    for kind, value in node[1]:
        if kind is sre.NEGATE:
            parts.append("^")
        elif kind is sre.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is sre.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
    return f"[{''.join(parts)}]" if parts else "."


def attacks(nodes: Sequence[Node], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (text before, what is repeated) for each place without bound."""
    for number, node in enumerate(nodes):
        kind, value = node
        rest = list(nodes[number + 1 :])
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            low, high, inner = value
            if high is sre.MAXREPEAT:
                body = list(inner)
                once = shortest(body) or "a"
                units = {once}
                if len(body) == 1 and body[0][0] is sre.IN:
                    units.update(taken(body[0])[:8])
                elif len(body) == 1 and body[0][0] is sre.ANY:
                    units.update(FILL)
                for length in (1, 2, 3, 5):
                    units.add(shortest(rest[:length]) + once)
                    units.add(once + shortest(rest[:length]))
                yield from ((before, unit) for unit in units if unit)
            yield from attacks(list(inner), before)
            before += shortest(list(inner)) * low
            continue
        if kind is sre.SUBPATTERN:
            yield from attacks(list(value[3]), before)
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from attacks(list(branch), before)
        before += _shortest(node)


def seconds(match: Callable[[str], object], text: str) -> float:
    """Return CPU seconds of a match; PATIENCE if it takes longer."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    began = time.process_time()
    try:
        match(text)
    except TimeoutError:
        return float(PATIENCE)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.process_time() - began


def worst(production: Production, line: int) -> tuple[float, str]:
    """Return seconds for a line of that length and the text, of the worst attack that grows faster than its text."""
    match = re.compile(production.pattern).fullmatch
    found = (0.0, "")
    for before, unit in set(attacks(list(_parser.parse(production.pattern)))):
        for end in ENDS:
            small, double, whole = (before + unit * (n // len(unit)) + end for n in (line // 16, line // 8, line))
            spent = seconds(match, double)
            if spent < NOTHING or spent < 3 * min(seconds(match, small) for _ in range(2)):
                continue
            found = max(found, (seconds(match, whole), f"{before!r} {unit!r} * {line // len(unit)} {end!r}"))
    return found


def _too_long(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Measure and print what is not linear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_long)
    bad = count = 0
    for name in arguments.families or sorted(p.stem for p in folder("grammars").glob("*.lark")):
        for production in load(name).productions:
            count += 1
            cost, text = worst(production, NAME if name in NAMES else LINE)
            if cost > MUCH:
                bad += 1
                print(f"{name:16}{production.form:28}{cost:7.1f} s  {text[:160]}", flush=True)
    print(f"{count} productions, {bad} of more than linear time")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
