"""Rule files: what they may hold, and that every fault says where it stands."""

from pathlib import Path

import pytest
from expert_book import make_book, rule

from replay.expert.check import check
from replay.expert.knowledge import read_knowledge
from replay.expert.load import load_rules, rule_schema
from replay.expert.yamlfile import RuleError, YamlFile

GOOD = rule("[{a: {from: compiles, where: 'a.nth > 0'}}]")


def place(error: RuleError) -> str:
    """Return line:column: message."""
    return str(error).split(".yaml:", 1)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id: x\nid: y\n", "2:1: id is given twice"),
        ("- a\n", "1:1: a rule is a map"),
        ("a: [1\n", "2:1: "),
        (GOOD + "colour: red\n", "7:1: unknown field colour"),
        (rule("[{a: {from: compiles, wher: x}}]"), "5:29: unknown field wher"),
        (rule("[{a: {where: x}}]"), "5:12: field from is missing"),
        (rule("[{a: {from: compiles, exists: true, absent: true}}]"), "5:12: a: a step is one of"),
        (rule("[{a: {from: compiles, min_share: 0.5}}]"), "min_share needs across"),
        (rule("[{a: {from: compiles}}, {a: {from: stalls}}]"), "when: the step a is there twice"),
        (rule("[{a: {from: compiles}, b: {from: stalls}}]"), "when: each step is one name"),
        (rule("[{a: {from: compiles}}]", "{certainty: 1.5}"), "6:23: certainty: "),
        (GOOD + "unless: [{from: findings}]\n", "7:9: unless: unless reads tables, never findings"),
        (rule("[{a: {from: compiles}}]", layer="colour"), "3:8: layer: "),
    ],
)
def test_a_fault_of_form_says_where(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(RuleError) as caught:
        make_book(tmp_path, text)
    assert expected in place(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rule("[{a: {from: compilse}}]"), "5:19: there is no table compilse; is compiles meant?"),
        (rule("[{a: {from: compiles, where: nthh > 0}}]"), "5:36: compiles has no column nthh; is nth meant?"),
        (rule("[{a: {from: compiles, where: 'nth > 0 and b.x'}}]"), "5:49: there is no step b here"),
        (rule("[{a: {from: compiles}}, {b: {from: stalls, same: [colour]}}]"), "stalls has no column colour"),
        (rule("[{a: {from: compiles}}, {b: {from: stalls, same: [step]}}]"), "no earlier step with a column step"),
        (rule("[{a: {from: compiles}}, {b: {from: stalls, after: c}}]"), "c is no earlier step"),
        (rule("[{a: {from: compiles}}, {b: {from: observed, after: a}}]"), "the table observed has no times"),
        (rule("[{a: {from: compiles}}]", "{ranks: a.rnk}"), "6:19: compiles has no column rnk; is rank meant?"),
        (rule("[{a: {from: compiles}}]", "{cost: 'sum(a.nth + b.x)'}"), "there is no step b here"),
        (rule("[{a: {from: compiles}}]", say="'of {a.fnn}'"), "4:11: compiles has no column fnn"),
        (rule("[{a: {from: compiles}}]", say="'{count(b)}'"), "b is no step.column"),
        (rule("[{a: {from: compiles, where: fn + 1}}]"), "1:1: DuckDB does not take its SQL"),
        (rule("[{a: {from: compiles}}]", "{explains: [barier-stall]}"), "6:23: barier-stall is no cause of the "),
        (rule("[{a: {from: compiles}}]", id="no-such-cause"), "1:5: no-such-cause is no cause"),
        (rule("[{a: {from: compiles}}]", layer="sync"), "3:8: recompile-other belongs to the layer compile"),
        (rule("[{a: {from: compiles}}]", requires="[recompile]"), "5:12: recompile is nothing that is observed"),
        (rule("[{a: {from: compiles}}]", advice="[{if: torch is new, then: x}]"), "5:15: torch is new is no condition"),
        (rule("[{a: {from: findings, where: \"cause = 'nan-loss'\"}}]"), "unreachable: no rule concludes nan-loss"),
        (rule("[{a: {from: findings, absent: true}}]"), "the absence of a finding proves nothing"),
        (rule("[{a: {from: findings}}]"), "builds on findings that build on it"),
        (rule("[{a: {from: compiles}}]", "{explains: [barrier-stall]}", kind="note"), "a hazard or note explains"),
        (rule("[{a: {from: compiles, line: {file: late_file, no: late_line}}}]"), "compiles has no column late_file"),
    ],
)  # fmt: skip
def test_check_says_where(tmp_path: Path, text: str, expected: str) -> None:
    faults = [place(error) for error in check(make_book(tmp_path, text))]
    assert any(expected in fault for fault in faults), faults


def test_the_position_counts_into_a_text(tmp_path: Path) -> None:
    text = GOOD.replace("a.nth > 0", "a.nth > 0 and a.colour")
    faults = [place(error) for error in check(make_book(tmp_path, text)) if "colour" in str(error)]
    column = text.splitlines()[4].index("a.colour") + 1
    assert faults == [f"5:{column}: compiles has no column colour"]


def test_the_rules_of_the_package_are_without_fault() -> None:
    assert [str(error) for error in check(load_rules())] == []


def test_a_rule_twice(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="the rule recompile-other is there twice"):
        make_book(tmp_path, GOOD, GOOD)


def test_words_of_yaml_1_1_are_words(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("{no: on, yes: off, a: 0/1, b: 1e3, c: true, d: ~, e: '1', f: -2, g: 12:30}")
    assert YamlFile.read(tmp_path / "x.yaml").value == {
        "no": "on", "yes": "off", "a": "0/1", "b": 1000.0, "c": True, "d": None, "e": "1", "f": -2, "g": "12:30",
    }  # fmt: skip


def test_the_schema_names_the_fields_as_they_are_written() -> None:
    schema = rule_schema()
    assert {"id", "when", "unless", "conclude", "say", "advice", "repro"} <= schema["properties"].keys()
    assert "from" in schema["$defs"]["Step"]["properties"]


def test_knowledge_from_yaml_and_csv(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- {code: 1, text: one}\n- {code: 2, text: two, more: true}\n")
    (tmp_path / "b.csv").write_text("code,text\n1,one\n2,\n")
    one = read_knowledge("know_a", tmp_path / "a.yaml")
    assert (one.columns, one.types) == (("code", "text", "more"), ("BIGINT", "VARCHAR", "BOOLEAN"))
    assert one.rows == ((1, "one", None), (2, "two", True))
    two = read_knowledge("know_b", tmp_path / "b.csv")
    assert (two.types, two.rows) == (("BIGINT", "VARCHAR"), ((1, "one"), (2, None)))


def test_knowledge_of_two_types(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- {code: 1}\n- {code: one}\n")
    with pytest.raises(RuleError, match=r"a.yaml:2:10: code holds BIGINT in the rows above"):
        read_knowledge("know_a", tmp_path / "a.yaml")
