"""The grammar compiler and its executor, against Lark itself on the same grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from replay.grammar.compile import GrammarError, compile_text
from replay.grammar.executor import ReExecutor, _Candidate
from replay.resources import folder

GRAMMAR = """
%import terminals (INT, PTR, REST)
start: comm | ring | pair
comm: "comm " COMM " rank " RANK (" nvmlDev " DEV)? " - Init START" -> init
ring: "Ring " CH " : " PREV " -> " ME " -> " NEXT
pair: A "," B | "pair" (" " _FIRST)? -> lone
A: INT
B: INT
_FIRST: INT
COMM: PTR
RANK: INT
DEV: INT
CH: INT
PREV: INT
ME: INT
NEXT: INT
"""


def family(text: str = GRAMMAR):
    return compile_text("x", text, [folder("grammars")])


def match(text: str):
    for production in family().productions:
        if production.form != "start" and (found := _Candidate("x", production).match(text)):
            return found
    return None


def test_fields_are_terminals_in_lower_case_and_absent_ones_are_not_there():
    found = match("comm 0x1f rank 3 nvmlDev 2 - Init START")
    assert (found.form, found.record) == ("comm", "init")
    assert found.fields == {"comm": "0x1f", "rank": "3", "dev": "2"}
    assert match("comm (nil) rank 3 - Init START").fields == {"comm": "(nil)", "rank": "3"}


def test_each_alternative_has_its_own_alias():
    assert match("pair").record == "lone"
    assert match("1,2").record == "pair"
    assert match("pair 7").fields == {}


def test_prefix_and_needle_are_literals_of_every_match():
    for production in family().productions:
        if production.form == "comm":
            assert production.prefix == "comm "
            assert production.needle == " - Init START"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: B\nB: /(x)y/", "capture group"),
        ("a: B\nB: /x*/", "can be empty"),
        ('a: "x" a?', "recursive"),
    ],
)
def test_what_is_not_for_line_grammars_is_an_error(text, word):
    with pytest.raises(GrammarError, match=word):
        family(text)


numbers = st.integers(-1000, 100000).map(str)
lines = st.one_of(
    st.builds(
        "comm 0x{} rank {}{} - Init START".format,
        st.text("0123456789abcdef", min_size=1),
        numbers,
        st.one_of(st.just(""), numbers.map(" nvmlDev {}".format)),
    ),
    st.builds("Ring {} : {} -> {} -> {}".format, numbers, numbers, numbers, numbers),
    st.builds("{},{}".format, numbers, numbers),
)
mutated = st.builds(
    lambda line, at, new: line[: at % len(line)] + new + line[at % len(line) + 1 :],
    lines,
    st.integers(0, 50),
    st.text(" ->:x0,", max_size=2),
)


@given(st.one_of(lines, mutated))
def test_patterns_take_what_lark_takes(line):
    lark = Lark(GRAMMAR, parser="earley", lexer="dynamic", import_paths=[str(folder("grammars"))])
    try:
        lark.parse(line)
        accepted = True
    except LarkError:
        accepted = False
    assert (match(line) is not None) == accepted


def test_every_shipped_grammar_compiles():
    for path in sorted(folder("grammars").glob("*.lark")):
        compile_text(path.stem, path.read_text(encoding="utf8"), [path.parent])


def test_find_gives_the_leftmost_header():
    executor = ReExecutor()
    text = "Epoch 3: 45%|xx| [rank1]:[E606 09:09:08.164985364 ProcessGroupNCCL.cpp:607] text"
    start, found = executor.find("headers", text)
    assert text[start:].startswith("[rank1]:[E606")
    assert found.fields["text"] == "text"
