"""Expressions over the rows of one finding: what `say`, `ranks`, `cost` and their like mean once rows are grouped.

Each step is a column of structs there. `step.column` is the value of the step's first row; aggregates run over the
*distinct rows* of their step, never over the join, so another step's rows cannot multiply a sum.
"""

from collections.abc import Sequence

from replay.expert.expression import Expression, ExpressionError, Reference, Token, closing, quoted, render

SUMS = {"sum": "sum", "avg": "avg", "median": "median", "product": "product"}
"""Aggregates that a row must enter once."""
ANY_ORDER = frozenset({"min", "max", "bool_or", "bool_and"})
"""Aggregates that do not mind a row twice."""
ROW = frozenset({"first", "last"})
LISTS = frozenset({"list"})
WORDS = frozenset({"ranks_text", "ranks_phrase"})
"""Macros of the database that put a list of ranks into words."""
AGGREGATES = frozenset({*SUMS, *ANY_ORDER, *ROW, *LISTS, *WORDS, "count"})


def grouped(
    expression: Expression, list_columns: frozenset[tuple[str, str]], steps: frozenset[str], fans_out: bool
) -> str:
    """Return the SQL of the expression over the rows of a group.

    `list_columns` are the (step, column) that hold lists, `steps` the names of steps, `fans_out` whether the join can
    give a row of a step more than once. Raises ExpressionError for an aggregate over several steps.
    """
    return _Group(list_columns, steps, fans_out).text(expression.tokens, expression.references)


def row_of(step: str, column: str, end: str = "min") -> str:
    """Return the SQL of a column of a step's first (`min`) or last (`max`) row."""
    return f"({end}({quoted(step)})).{quoted(column)}"


def distinct_rows(step: str) -> str:
    """Return the SQL of the number of distinct rows of a step.

    Lists are cheaper to plan than DISTINCT aggregates, of which each gets a hash table of its own.
    """
    return f'list_unique(list({quoted(step)}."_i"))'


class _Group:
    def __init__(self, list_columns: frozenset[tuple[str, str]], steps: frozenset[str], fans_out: bool) -> None:
        self._list_columns = list_columns
        self._steps = steps
        self._fans_out = fans_out

    def text(self, tokens: Sequence[Token], references: Sequence[Reference]) -> str:
        """Return the SQL of a run of tokens; `references` are those in it."""
        pieces: list[str] = []
        by_begin = {r.begin: r for r in references}
        index = 0
        while index < len(tokens):
            token = tokens[index]
            reference = by_begin.get(index)
            opening = _opening(tokens, index)
            if token.word in AGGREGATES and opening is not None:
                end = closing(tokens, opening)
                inner = tokens[opening + 1 : end]
                within = [_moved(r, opening + 1) for r in references if opening < r.begin < end]
                pieces.append(self._aggregate(token, inner, within))
                index = end + 1
            elif reference is not None and reference.step is not None:
                pieces.append(row_of(reference.step, reference.column))
                index = reference.end
            else:
                pieces.append(token.text)
                index += 1
        return "".join(pieces)

    def _aggregate(self, name: Token, tokens: Sequence[Token], references: Sequence[Reference]) -> str:
        kind = name.word
        argument = render(tokens, references, lambda s, c: f"{quoted(s)}.{quoted(c)}" if s is not None else None)
        named = {r.step for r in references if r.step is not None}
        plain = "".join(token.text for token in tokens).strip()
        if kind == "count":
            if plain in self._steps:
                return distinct_rows(plain)
            return f"count(DISTINCT {argument})"
        if not named:
            raise ExpressionError(f"{kind}() needs a step.column", name.at)
        if kind in LISTS:
            return self._list(argument, plain, references)
        if kind in WORDS:
            return f"{kind}({self._list(argument, plain, references)})"
        if kind in ROW:
            ends = "min" if kind == "first" else "max"
            return render(tokens, references, lambda s, c: row_of(s, c, ends) if s is not None else None)
        if kind in ANY_ORDER:
            return f"{kind}({argument})"
        if len(named) != 1:
            raise ExpressionError(
                f"{kind}() runs over the rows of one step, not of {' and '.join(sorted(named))}", name.at
            )
        if not self._fans_out:
            return f"{SUMS[kind]}({argument})"
        rows = f"list({{'i': {quoted(named.pop())}.\"_i\", 'v': {argument}}})"
        return f"list_aggregate(list_transform(list_distinct({rows}), lambda _r: _r.v), '{SUMS[kind]}')"

    def _list(self, argument: str, plain: str, references: Sequence[Reference]) -> str:
        first = references[0]
        is_list = plain.startswith("[") or (len(references) == 1 and (first.step, first.column) in self._list_columns)
        rows = f"list({argument})"
        return f"list_sort(list_distinct({f'flatten({rows})' if is_list else rows}))"


def ranks_of(expressions: Sequence[str], is_list: Sequence[bool]) -> str:
    """Return the SQL of the sorted ranks that several spelt expressions name over a group."""
    parts = [
        f"flatten(list({text}))" if many else f"list({text})" for text, many in zip(expressions, is_list, strict=True)
    ]
    return f"list_sort(list_distinct({' || '.join(parts)}))::INTEGER[]"


def _opening(tokens: Sequence[Token], index: int) -> int | None:
    following = index + 1
    while following < len(tokens) and tokens[following].kind == "space":
        following += 1
    return following if following < len(tokens) and tokens[following].text == "(" else None


def _moved(reference: Reference, by: int) -> Reference:
    return Reference(reference.step, reference.column, reference.at, reference.begin - by, reference.end - by)
