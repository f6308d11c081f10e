"""The causes that findings name: one vocabulary for rules, reports and tests, kept in rules/taxonomy.yaml."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from replay.expert.yamlfile import YamlFile

Layer = Literal["compile", "sync", "interplay", "reproducibility", "environment"]
Kind = Literal["cause", "symptom", "hazard", "note"]


class Cause(BaseModel):
    """One cause: `kind` says whether it can be a root, `signal` what shows it in logs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: str
    layer: Layer
    kind: Kind
    signal: str


Taxonomy = Mapping[str, Cause]


def load_taxonomy(folders: Sequence[Path]) -> dict[str, Cause]:
    """Return the causes of all `taxonomy.yaml` in the folders, by id; a later folder adds to an earlier one.

    Raises RuleError where a file cannot be read, or a cause is defined twice.
    """
    found: dict[str, Cause] = {}
    for folder in folders:
        path = folder / "taxonomy.yaml"
        if not path.is_file():
            continue
        file = YamlFile.read(path)
        for index, item in enumerate(file.items()):
            cause = file.model(Cause, item, (index,))
            if cause.id in found:
                raise file.error((index, "id"), f"cause {cause.id} is defined twice")
            found[cause.id] = cause
    return found
