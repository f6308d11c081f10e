"""Grammar files as somebody reads them: where a form stands, what its comments say, and how its texts look.

Matching needs none of this. It is for explaining a line and for naming the known form that comes nearest to an unknown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Token, Tree

from replay.grammar.compile import Alternative, Source, read_text
from replay.grammar.model import Match
from replay.resources import folder

_RULE = re.compile(r"[a-z_][a-z0-9_]*(?=:)")
_IMPORT = re.compile(r"%import ([a-z_0-9]+)(?:\.([a-z_0-9]+)(?: -> ([a-z_0-9]+))?| \(([a-z_0-9, ]+)\))")


@dataclass(frozen=True, slots=True)
class Form:
    """One alternative of a form. `line` is its place in the file, `looks` a text of it with `<field>` for each field
    and `...` for what has no name, `remarks` what comments say of it and of the parts that it is made of.
    """

    family: str
    form: str
    record: str
    line: int
    looks: str
    remarks: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it is written, relative to the top of the project."""
        return f"grammars/{self.family}.lark:{self.line}"


@cache
def purpose(family: str) -> str:
    """Return the comment at the head of a grammar file: who writes these texts."""
    lines = _text(family).splitlines()
    head = []
    for line in lines:
        if not line.startswith("//"):
            break
        head.append(line.removeprefix("//").strip())
    return " ".join(head)


@cache
def forms(family: str) -> tuple[Form, ...]:
    """Return all forms of a family in the order of the file. Raises FileNotFoundError if there is none."""
    return tuple(form for form, _ in _forms(family))


def form_of(match: Match, text: str) -> Form:
    """Return the form that took a text."""
    candidates = [
        (form, alternative)
        for form, alternative in _forms(match.family)
        if form.form == match.form and form.record == match.record
    ]
    for form, alternative in candidates:
        if any(re.fullmatch(production.pattern, text) for production in alternative.productions):
            return form
    return candidates[0][0]


@cache
def _forms(family: str) -> tuple[tuple[Form, Alternative], ...]:
    text = _text(family)
    source = read_text(family, text, [folder("grammars")])
    remarks = _remarks(text)
    lines = {name: number for number, (name, _) in remarks.items() if name}
    origins = _origins(text)
    found = []
    for alternative in source.alternatives:
        record = alternative.productions[0].record
        if alternative.form not in lines and alternative.form in origins:
            found.append((_origin(*origins[alternative.form], alternative), alternative))
            continue
        line = min(
            (t.line or 0 for t in alternative.tree.scan_values(lambda v: isinstance(v, Token)) if t.line in remarks),
            default=lines[alternative.form],
        )
        said = [remarks[lines[alternative.form]][1], remarks[line][1]]
        said += [remarks[lines[part]][1] for part in _parts(alternative.tree, source) if part in lines]
        looks = " ".join(_looks(alternative.tree, source).split())
        kept = tuple(dict.fromkeys(remark for remark in said if remark))
        found.append((Form(family, alternative.form, record, line, looks, kept), alternative))
    return tuple(found)


def _origins(text: str) -> dict[str, tuple[str, str]]:
    """Grammar and form that the forms of other files come from, by the name that they have here."""
    found: dict[str, tuple[str, str]] = {}
    for name, form, alias, several in _IMPORT.findall(text):
        found |= {alias or form: (name, form)} if form else {f.strip(): (name, f.strip()) for f in several.split(",")}
    return found


def _origin(family: str, form: str, alternative: Alternative) -> Form:
    """The form that an imported alternative is, where it is written."""
    patterns = {production.pattern for production in alternative.productions}
    same = [(f, a) for f, a in _forms(family) if f.form == form]
    return next((f for f, a in same if patterns & {p.pattern for p in a.productions}), same[0][0])


def _text(family: str) -> str:
    return (folder("grammars") / f"{family}.lark").read_text(encoding="utf8")


def _remarks(text: str) -> dict[int, tuple[str, str]]:
    """By line of an alternative: the rule that begins there ("" for a further one), and the comment above it."""
    found: dict[int, tuple[str, str]] = {}
    pending: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("//"):
            pending.append(stripped.removeprefix("//").strip(" -"))
        elif stripped:
            rule = _RULE.match(line)
            if rule or stripped.startswith("|"):
                found[number] = rule[0] if rule else "", " ".join(pending)
            pending = []
        else:
            pending = []
    return found


def _parts(node: Any, source: Source, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The rules that an alternative is made of, over all depths."""
    if isinstance(node, Tree):
        for child in node.children[:1] if node.data == "alias" else node.children:
            yield from _parts(child, source, seen)
    elif not isinstance(node, Token) and (name := str(getattr(node, "name", ""))) in source.parts and name not in seen:
        yield name
        yield from _parts(source.parts[name], source, seen | {name})


def _looks(node: Any, source: Source) -> str:
    if isinstance(node, Token):
        text = str(node)
        if not text.startswith('"'):
            return "..."
        return text[1 : text.rindex('"')].encode().decode("unicode_escape").encode("latin1").decode("utf8", "replace")
    if not isinstance(node, Tree):
        name = str(node.name)
        if name in source.parts:
            return _looks(source.parts[name], source)
        return "..." if name.startswith("_") else f"<{name.rsplit('__', maxsplit=1)[-1].lower()}>"
    if node.data in ("expansions", "expr", "alias"):  # the first way to say it; an option is there
        return _looks(node.children[0], source)
    return "".join(_looks(child, source) for child in _without_ends(node))


def _without_ends(node: Tree[Any]) -> list[Any]:
    """The parts of an alternative but options at its begin and end: who speaks, and what may follow."""
    parts = list(node.children)
    while len(parts) > 1 and _is_option(parts[0]):
        parts.pop(0)
    while len(parts) > 1 and _is_option(parts[-1]):
        parts.pop()
    return parts


def _is_option(node: Any) -> bool:
    return isinstance(node, Tree) and node.data == "expr" and str(node.children[1]) in "?*"
