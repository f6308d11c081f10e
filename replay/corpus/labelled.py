"""Labelled runs: a folder with `logs/`, what a person would hand over, and `truth.json`, what was wrong."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from replay.errors import InputError
from replay.report.model import Finding


class Fault(BaseModel):
    """One thing that was wrong: causes of which any is right, and the ranks at fault (None: not asked)."""

    model_config = ConfigDict(frozen=True)

    cause: tuple[str, ...]
    ranks: tuple[int, ...] | None = None

    @field_validator("cause", mode="before")
    @classmethod
    def _some(cls, value: Any) -> Any:
        return [] if value is None else [value] if isinstance(value, str) else value

    def is_told_by(self, finding: Finding) -> bool:
        """Tell whether the finding names this fault."""
        return finding.cause in self.cause and (self.ranks is None or sorted(finding.ranks) == sorted(self.ranks))


class Truth(Fault):
    """What `truth.json` says; corpora/README.md lists its fields. Others are for people."""

    also: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    kind: Literal["cause", "hazard"] = "cause"
    why: str = ""

    @property
    def wrong(self) -> tuple[Fault, ...]:
        """The faults, none for a healthy run."""
        return self.faults or ((Fault(cause=self.cause, ranks=self.ranks),) if self.cause else ())

    @property
    def allowed(self) -> frozenset[str]:
        """The causes that may stand as roots."""
        return frozenset([*self.cause, *self.also, *(cause for fault in self.faults for cause in fault.cause)])

    def is_right(self, finding: Finding) -> bool:
        """Tell whether the finding names one of the faults."""
        return any(fault.is_told_by(finding) for fault in self.wrong)


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled run."""

    name: str
    logs: Path
    truth: Truth


def read_case(folder: Path, name: str | None = None) -> Case:
    """Return the labelled run of a folder.

    Raises InputError where it is none.
    """
    path, logs = folder / "truth.json", folder / "logs"
    if not logs.is_dir():
        raise InputError(f"{folder}: has no folder logs/")
    try:
        truth = Truth.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{path}: {where + ': ' if where else ''}{fault['msg']}") from None
    return Case(name or folder.name, logs, truth)


def read_cases(folder: Path) -> list[Case]:
    """Return the labelled runs in the folder and below it, by name.

    Raises InputError where there are none, or one of them is wrong.
    """
    folders = sorted(path.parent for path in folder.rglob("truth.json") if "logs" not in path.relative_to(folder).parts)
    if not folders:
        raise InputError(f"{folder}: no labelled runs in there (NAME/logs/ with NAME/truth.json)")
    return [read_case(one, one.relative_to(folder).as_posix()) for one in folders]
