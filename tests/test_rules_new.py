"""Rules of one's own: a scaffold that passes the checks, the commands test and schema, rules that packages bring."""

import json
from pathlib import Path

import pytest
from expert_book import make_book, rule

from replay import resources
from replay.cli.main import main
from replay.errors import InputError, UsageError
from replay.expert.cases import run_cases
from replay.expert.check import check, mutual
from replay.expert.load import load_rules
from replay.expert.scaffold import New, scaffold
from replay.expert.yamlfile import RuleError
from replay.store import schema

TABLES = [t.name for t in schema.tables().values() if t.section in ("event", "derived")]


def faults_in(folder: Path) -> list[str]:
    """Say what is wrong with the rules of a folder."""
    book = load_rules([folder])
    own = [r for r in book if r.path is not None and r.path.is_relative_to(folder)]
    faults = [str(fault) for fault in check(book, own)]
    return faults + [f"{r.rule}, {r.case}: {r.fault}" for r in run_cases(book.only(own), own) if r.fault]


def test_a_scaffold_passes_the_checks_for_every_table_and_kind_of_cause(tmp_path: Path) -> None:
    book = load_rules()
    for table in TABLES:
        scaffold(book, New(f"of-{table.replace('_', '-')}", table, "collective-timeout"), tmp_path)
    for cause in ("straggler-host", "workaround-in-force"):
        scaffold(book, New(f"my-{cause}", "exceptions", cause), tmp_path)
    assert not (tmp_path / "taxonomy.yaml").exists()
    scaffold(book, New("my-own-cause", "exceptions", "my-own-cause", "sync"), tmp_path)
    assert faults_in(tmp_path) == []


def test_a_second_rule_adds_to_the_taxonomy_of_the_folder(tmp_path: Path) -> None:
    scaffold(load_rules(), New("one-cause", "exceptions", "one-cause"), tmp_path)
    scaffold(load_rules([tmp_path]), New("two-cause", "steps", "two-cause"), tmp_path)
    scaffold(load_rules([tmp_path]), New("two-again", "steps", "two-cause"), tmp_path)
    book = load_rules([tmp_path])
    assert {"one-cause", "two-cause"} <= book.taxonomy.keys()
    assert {"one-cause", "two-cause", "two-again"} <= book.by_id.keys()


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (New("Bad Id", "exits", "x"), "Bad Id: an id is words"),
        (New("rank-killed", "exits", "rank-killed"), "rank-killed is there already"),
        (New("mine", "exitz", "mine"), "no table exitz; is exits meant"),
        (New("mine", "findings", "mine"), "no table findings"),
        (New("mine", "exits", "rank-killed", "sync"), "belongs to the layer environment"),
    ],
)
def test_what_cannot_be_begun_is_an_error(new: New, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        scaffold(load_rules(), new, tmp_path)
    assert not list(tmp_path.iterdir())


def test_no_file_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.cases.yaml").write_text("[]")
    with pytest.raises(InputError, match=r"mine.cases.yaml: is there already"):
        scaffold(load_rules(), New("mine", "exits", "mine"), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.cases.yaml"]


def test_causes_that_explain_each_other_are_told(tmp_path: Path) -> None:
    book = make_book(
        tmp_path,
        rule("[{a: {from: compiles}}]", "{explains: [nan-loss]}", id="rank-killed", layer="environment"),
        rule("[{a: {from: metrics}}]", "{absorbs: [rank-killed]}", id="nan-loss", layer="reproducibility"),
    )
    (note,) = mutual(book, [book.by_id["nan-loss"]])
    assert note.startswith("nan-loss (rule nan-loss) and rank-killed (rule rank-killed) explain or absorb each other")
    assert mutual(book.only([book.by_id["nan-loss"]]), [book.by_id["nan-loss"]]) == []


def test_a_premise_that_no_rule_makes_is_unreachable_also_where_rows_say_the_cause(tmp_path: Path) -> None:
    said = rule("[{a: {from: guard_failures}}]", cause='"{a.cause}"')
    reads = "[{f: {from: findings, where: \"cause = '%s'\"}}]"
    fits = rule(reads % "recompile-dtype", id="recompile-limit")
    assert check(make_book(tmp_path, said, fits)) == [] or all(
        "unreachable" not in str(f) for f in check(make_book(tmp_path, said, fits))
    )
    misses = rule(reads % "graph-break-other", id="recompile-limit")
    assert any(
        "unreachable: no rule concludes graph-break-other" in str(f) for f in check(make_book(tmp_path, said, misses))
    )


def package(folder: Path, *, value: str = "theirs.rules") -> None:
    """Write an installed package that brings rules, as an installer would."""
    rules = folder / "theirs" / "rules"
    rules.mkdir(parents=True)
    (folder / "theirs" / "__init__.py").write_text("raise SystemExit('a package of rules is not run')\n")
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[replay.rules]\ntheirs = {value}\n")
    scaffold(load_rules(), New("their-cause", "exits", "their-cause"), rules)


def test_an_installed_package_brings_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, value="their_rules")
    (tmp_path / "theirs" / "rules").rename(tmp_path / "their_rules")
    monkeypatch.syspath_prepend(str(tmp_path))
    book = load_rules()
    assert book.by_id["their-cause"].path == tmp_path / "their_rules" / "their-cause.yaml"
    assert "their-cause" in book.taxonomy
    assert resources.rule_folders()[1] == tmp_path / "their_rules"


def test_an_entry_point_that_leads_nowhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, value="nowhere_at_all")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RuleError, match=r"nowhere_at_all \(entry point of replay.rules\): no such folder"):
        load_rules()


def test_the_commands_work_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["rules", "new", "loader-stuck", "mine", "--from", "activities", "--layer", "sync"]) == 0
    assert capsys.readouterr().out.split() == [
        "mine/loader-stuck.yaml",
        "mine/loader-stuck.cases.yaml",
        "mine/taxonomy.yaml",
    ]
    for command in ("check", "test"):
        assert main(["rules", command, "mine"]) == 0
        assert capsys.readouterr().out.endswith("1 rules, 2 cases, 0 faults\n")
    cases = Path("mine/loader-stuck.cases.yaml")
    cases.write_text(cases.read_text().replace("something else", "CHANGE ME"))
    assert main(["rules", "test", "mine"]) == 1
    assert "something like it that is none" in capsys.readouterr().out
    cases.write_text("- {name: one, rows: {}, silent: true}\n")
    assert main(["rules", "test", "mine"]) == 1
    assert "no case in which it fires" in capsys.readouterr().out
    Path("mine/loader-stuck.yaml").write_text(
        Path("mine/loader-stuck.yaml").read_text().replace("where: kind", "where: kindd")
    )
    assert main(["rules", "check", "mine"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("mine/loader-stuck.yaml:")
    assert "no column kindd" in said


def test_the_schema_is_one_that_editors_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "schema"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["$schema"].startswith("https://json-schema.org/")
    assert {"id", "title", "layer", "when", "conclude", "say"} == set(document["required"])
    step = document["$defs"]["Step"]
    assert {"from", "where", "same", "absent", "optional", "across"} <= step["properties"].keys()
    assert step["additionalProperties"] is False
