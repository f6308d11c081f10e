"""What a rule is: the models that a rule file is checked against. docs/rules.md says what each field means.

A model holds what was written, nothing derived from the schema: whether the columns that it names exist is asked by
`check` and, of the rules that matter to a run, by `query`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, PrivateAttr, Tag, field_validator
from pydantic import model_validator as whole_validator

from replay.expert.expression import Expression
from replay.expert.taxonomy import Kind, Layer
from replay.expert.template import Template
from replay.expert.yamlfile import Place, RuleError, YamlFile

NAME = r"^[a-z][a-z0-9_]*$"
ID = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"

Impact = Literal["failed", "hung", "slow", "wrong-numbers", "none"]
IMPACTS: tuple[Impact, ...] = ("failed", "hung", "slow", "wrong-numbers", "none")
"""Effects, the worst first."""

OneOrMore = str | list[str]


def as_list(value: OneOrMore | None) -> list[str]:
    """Return the field as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Count(Model):
    """How many rows (with `across`: distinct values) a step needs."""

    min: int = Field(default=1, ge=1)
    max: int | None = None


class Line(Model):
    """The columns of a step's table that say which line proves it."""

    file: str = "file_id"
    no: str = "line_no"


class Step(Model):
    """One condition of a rule: rows of a table that stand in some relation to the rows of earlier steps."""

    table: str = Field(alias="from", pattern=NAME)
    where: str | None = None
    same: list[str] | dict[str, str] | None = None
    after: OneOrMore | None = None
    before: OneOrMore | None = None
    overlaps: OneOrMore | None = None
    within: dict[str, Annotated[float, Field(ge=0)]] | None = None
    exists: bool = False
    absent: bool = False
    optional: bool = False
    count: Count | None = None
    across: Literal["rank", "host"] | None = None
    min_share: Annotated[float, Field(gt=0, le=1)] | None = None
    observed: str | None = None
    label: str | None = None
    because: str | None = None
    evidence: bool = True
    line: Line = Line()

    @whole_validator(mode="after")
    def _consistent(self) -> "Step":
        if sum([self.exists, self.absent, self.optional, self.is_counted]) > 1:
            raise ValueError("a step is one of exists, absent, optional, and counted (count, across)")
        if self.min_share is not None and self.across is None:
            raise ValueError("min_share needs across")
        if self.across is not None and self.min_share is None and self.count is None:
            raise ValueError("across needs min_share or count")
        return self

    @property
    def is_joined(self) -> bool:
        """Its rows are part of the proof and later steps may name them."""
        return not (self.exists or self.absent)

    @property
    def is_counted(self) -> bool:
        """It needs a number or a share of rows."""
        return self.count is not None or self.across is not None

    def times(self) -> Iterator[tuple[str, str, float]]:
        """Yield its conditions of time: relation, step (or step.end) and seconds."""
        for relation in ("after", "before", "overlaps"):
            for other in as_list(getattr(self, relation)):
                yield relation, other, 0.0
        for other, seconds in (self.within or {}).items():
            yield "within", other, seconds

    def equalities(self) -> Iterator[tuple[str, str | None]]:
        """Yield its `same` conditions: own column, and the step (or step.column) if it names one."""
        if isinstance(self.same, dict):
            yield from self.same.items()
        else:
            yield from ((column, None) for column in self.same or [])


class Effect(Model):
    """What a finding explains or absorbs, with conditions."""

    cause: OneOrMore
    ranks: Literal["any", "same", "other", "waiting"] = "any"
    within: Annotated[float, Field(ge=0)] | None = None
    sharing: Literal["row", "ranks"] = "row"


class Conclude(Model):
    """The finding that a rule makes."""

    per: OneOrMore = Field(default_factory=list)
    ranks: OneOrMore = Field(default_factory=list)
    waiting: OneOrMore = Field(default_factory=list)
    cost: str | None = None
    without: Literal["recompiles", "compiles", "saves", "loads", "evals", "slow"] | None = None
    certainty: float | str = 0.9
    impact: str | None = None
    step: str | None = None
    t: OneOrMore | None = None
    explains: str | list[str | Effect] = Field(default_factory=list)
    absorbs: str | list[str | Effect] = Field(default_factory=list)

    @field_validator("certainty")
    @classmethod
    def _possible(cls, value: float | str) -> float | str:
        if isinstance(value, int | float) and not 0 < value <= 1:
            raise ValueError("a certainty lies over 0 and up to 1")
        return value

    @field_validator("t")
    @classmethod
    def _bounds(cls, value: OneOrMore | None) -> OneOrMore | None:
        if isinstance(value, list) and len(value) != 2:
            raise ValueError("a time is one expression, or its lower and its upper bound")
        return value

    @staticmethod
    def _effects(field: str | list[str | Effect]) -> list[Effect]:
        items = [field] if isinstance(field, str) else field
        return [Effect(cause=item) if isinstance(item, str) else item for item in items]

    @property
    def explained(self) -> list[Effect]:
        """`explains` in full."""
        return self._effects(self.explains)

    @property
    def absorbed(self) -> list[Effect]:
        """`absorbs` in full."""
        return self._effects(self.absorbs)


class Advice(Model):
    """Advice for a version: `condition` is like `torch >= 2.6 and nccl < 2.20`; none: always."""

    condition: str | None = Field(default=None, alias="if")
    then: str


class Repro(Model):
    """The recipe that shows the cause in a script, and expressions that fill it from the finding's rows."""

    recipe: str
    parameters: dict[str, str | int | float | bool | None] = Field(default_factory=dict, alias="with")


def _veto_shape(value: Any) -> str:
    if isinstance(value, list):
        return "chain"
    return "step" if isinstance(value, Step) or (isinstance(value, dict) and "from" in value) else "named"


NamedStep = dict[Annotated[str, Field(pattern=NAME)], Step]
Veto = Annotated[
    Annotated[Step, Tag("step")] | Annotated[NamedStep, Tag("named")] | Annotated[list[NamedStep], Tag("chain")],
    Discriminator(_veto_shape),
]


class Rule(Model):
    """One rule: a short story over tables."""

    id: str = Field(pattern=ID)
    title: str
    layer: Layer
    when: list[NamedStep] = Field(min_length=1)
    conclude: Conclude
    say: str
    cause: str | None = None
    kind: Kind | None = None
    requires: list[str] = Field(default_factory=list)
    unless: list[Veto] = Field(default_factory=list)
    advice: str | list[Advice] = Field(default="", validation_alias=AliasChoices("advice", "advise"))
    safety: str = ""
    falsepositives: str = ""
    repro: Repro | None = None
    references: list[str] = Field(default_factory=list)
    _file: YamlFile | None = PrivateAttr(default=None)

    @field_validator("when")
    @classmethod
    def _single(cls, steps: list[NamedStep]) -> list[NamedStep]:
        names = [name for step in steps for name in step]
        if any(len(step) != 1 for step in steps):
            raise ValueError("each step is one name with its conditions")
        if any(step.because for item in steps for step in item.values()):
            raise ValueError("because is for a step of unless: it says why it was something else")
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"the step {min(twice)} is there twice")
        return steps

    @field_validator("unless")
    @classmethod
    def _tables_only(cls, vetoes: list[Any]) -> list[Any]:
        if any(step.table == "findings" for veto in vetoes for _, step in veto_steps(veto)):
            raise ValueError("unless reads tables, never findings: what was found is never taken back")
        return vetoes

    @property
    def path(self) -> Path | None:
        """The file that it was read from."""
        return self._file.path if self._file is not None else None

    @property
    def steps(self) -> list[tuple[str, Step]]:
        """The steps of `when` with their names."""
        return [(name, step) for item in self.when for name, step in item.items()]

    @property
    def vetoes(self) -> list[list[tuple[str, Step]]]:
        """The entries of `unless`, each a chain of steps."""
        return [veto_steps(veto) for veto in self.unless]

    @property
    def is_chained(self) -> bool:
        """It has findings among its steps."""
        return any(step.table == "findings" for _, step in self.steps)

    @property
    def advices(self) -> list[Advice]:
        """`advice` in full."""
        if isinstance(self.advice, str):
            return [Advice(then=self.advice)] if self.advice else []
        return self.advice

    def error(self, place: Place, message: str, offset: int = 0) -> RuleError:
        """Return the error at a place of the rule's file."""
        if self._file is None:
            return RuleError(f"rule {self.id}: {'.'.join(map(str, place))}: {message}")
        return self._file.error(place, message, offset)

    def expressions(self) -> Iterator[tuple[Place, Expression, int]]:
        """Yield the expressions of conclude, say, advice and repro: place, expression, offset in its text."""
        for field in ("per", "ranks", "waiting", "cost", "impact", "step", "t", "certainty"):
            value = getattr(self.conclude, field)
            if isinstance(value, str) and not (field == "impact" and value in IMPACTS):
                yield ("conclude", field), Expression(value), 0
            elif isinstance(value, list):
                yield from ((("conclude", field, index), Expression(item), 0) for index, item in enumerate(value))
        for place, template in self.templates():
            yield from ((place, slot.expression, slot.at) for slot in template.slots)
        for key, value in (self.repro.parameters if self.repro else {}).items():
            if isinstance(value, str):
                yield ("repro", "with", key), Expression(value), 0

    def templates(self) -> Iterator[tuple[Place, Template]]:
        """Yield the templates of the finding: cause where it is one, say, advice."""
        if self.cause and "{" in self.cause:
            yield ("cause",), Template(self.cause)
        yield ("say",), Template(self.say)
        key = "advise" if self._file is not None and "advise" in self._file.value else "advice"
        if isinstance(self.advice, str):
            yield (key,), Template(self.advice)
        else:
            yield from (((key, index, "then"), Template(item.then)) for index, item in enumerate(self.advice))

    @classmethod
    def from_file(cls, file: YamlFile) -> "Rule":
        """Return the rule that the file holds.

        Raises RuleError, with line and column, if it holds none.
        """
        if not isinstance(file.value, dict):
            raise file.error((), "a rule is a map: id, title, layer, when, conclude, say")
        rule = file.model(cls, file.value)
        rule._file = file
        return rule


def veto_steps(veto: Any) -> list[tuple[str, Step]]:
    """Return an entry of `unless` as a chain of named steps; one without a name is called `other`."""
    if isinstance(veto, Step):
        return [("other", veto)]
    chain = [veto] if isinstance(veto, dict) else veto
    return [(name, step) for item in chain for name, step in item.items()]
