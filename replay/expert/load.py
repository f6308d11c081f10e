"""The rule book: every rule, cause and knowledge table of the package and of the user's own folders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replay import resources
from replay.expert.knowledge import load_knowledge, read_knowledge
from replay.expert.rule import Rule
from replay.expert.taxonomy import Taxonomy, load_taxonomy
from replay.expert.yamlfile import RuleError, YamlFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class RuleBook:
    """Rules in the order of their ids, the causes that they may name, and the knowledge tables that they may read."""

    rules: tuple[Rule, ...]
    taxonomy: Taxonomy
    knowledge: dict[str, Path]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def by_id(self) -> dict[str, Rule]:
        """The rules by id."""
        return {rule.id: rule for rule in self.rules}

    def only(self, rules: Sequence[Rule]) -> "RuleBook":
        """Return a book of these rules alone."""
        return RuleBook(tuple(sorted(rules, key=lambda rule: rule.id)), self.taxonomy, self.knowledge)

    def prepare(self, con: "DuckDBPyConnection") -> None:
        """Make the knowledge tables that the rules read, as temporary tables."""
        used = {step.table for rule in self.rules for _, step in _all_steps(rule)}
        for name in sorted(used & self.knowledge.keys()):
            read_knowledge(name, self.knowledge[name]).create(con)


def _all_steps(rule: Rule) -> Iterator[tuple[str, Any]]:
    yield from rule.steps
    for chain in rule.vetoes:
        yield from chain


def load_rules(extra: Sequence[Path] = ()) -> RuleBook:
    """Load the rules of the package, of packages that bring some, and of the user's folders.

    Raises RuleError, with file, line and column, where a file is no rule, or an id is there twice.
    """
    return read_book(resources.rule_folders(extra))


def read_book(folders: Sequence[Path]) -> RuleBook:
    """Load the rules of these folders alone; the first must hold the taxonomy. Raises RuleError as load_rules."""
    rules: dict[str, Rule] = {}
    for folder in folders:
        if not folder.is_dir():
            raise RuleError(f"{folder}: no such folder of rules")
        for path in rule_files(folder):
            file = YamlFile.read(path)
            rule = Rule.from_file(file)
            if rule.id in rules:
                raise file.error(("id",), f"the rule {rule.id} is there twice")
            rules[rule.id] = rule
    ordered = tuple(rules[key] for key in sorted(rules))
    return RuleBook(ordered, load_taxonomy(folders), load_knowledge(folders))


def rule_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold rules: its YAML, one level deep, but taxonomy, knowledge and cases."""
    return sorted(
        path
        for pattern in ("*.yaml", "*/*.yaml")
        for path in folder.glob(pattern)
        if path.parent.name != "knowledge" and path.name != "taxonomy.yaml" and not path.name.endswith(".cases.yaml")
    )


def rule_schema() -> dict[str, Any]:
    """Return the JSON Schema of a rule file, for editors."""
    return Rule.model_json_schema(by_alias=True) | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
