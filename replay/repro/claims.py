"""What is said of torch.compile with distributed training, decided by running a script of a few lines for each claim.

Advice and rules follow what was measured; what was measured holds for one version of torch, so it can be measured anew.
"""

import functools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from replay.errors import UsageError
from replay.repro import sandbox
from replay.repro.sandbox import Limits

FOLDER = Path(__file__).parent / "claims"
Answer = Literal["confirmed", "refuted", "cannot tell"]
_ANSWERS = frozenset({"confirmed", "refuted", "cannot tell"})
_VERDICT = "VERDICT "
_MOST_DETAIL = 300


class Claim(BaseModel):
    """A claim and the script that decides it; `measured` is what the script said when it was written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    claim: str
    measured: Answer
    script: str
    settings: dict[str, str] = Field(default_factory=dict)
    """Environment that has to be there before torch is imported."""
    seconds: float = 400.0
    """After so many seconds it is ended."""
    quick: bool = False
    """Whether each change runs it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What a claim's script said on one torch; `seconds` is how long it took."""

    id: str
    claim: str
    verdict: Answer
    detail: str
    torch: str
    seconds: float


@functools.cache
def claims() -> dict[str, Claim]:
    """Return all claims by id, in the order of their file.

    Raises UsageError if the file is not as it should be.
    """
    file = FOLDER / "claims.yaml"
    try:
        data: Any = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        read = [Claim.model_validate(entry) for entry in data]
    except (yaml.YAMLError, ValidationError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())}") from error
    return {claim.id: claim for claim in read}


def chosen(names: Sequence[str]) -> list[Claim]:
    """Return the claims of these ids, all for none.

    Raises UsageError for an id that no claim has.
    """
    known = claims()
    for name in names:
        if name not in known:
            raise UsageError(f"{name}: no such claim; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def script(claim: Claim) -> str:
    """Return the whole text of a claim's script."""
    head = (FOLDER / "head.txt").read_text(encoding="utf-8")
    return f"{head}\n\n# {claim.claim}\n{claim.script}"


def decide(claim: Claim) -> Decided:
    """Run a claim's script on the installed torch.

    Raises CannotTell if torch is not installed.
    """
    torch = sandbox.needs_torch()
    with tempfile.TemporaryDirectory(prefix="replay-claim-") as folder:
        file = Path(folder) / "claim.py"
        file.write_text(script(claim), encoding="utf-8")
        ended = sandbox.run(file, Path(folder), Limits(seconds=claim.seconds), claim.settings)
    said = [line for line in ended.tail.splitlines() if line.startswith(_VERDICT)]
    verdict, detail = _said(said[-1]) if said else (None, "")
    if verdict is None:
        last = ended.tail.splitlines()[-1:] or ["nothing"]
        how = "did not end" if ended.code is None else f"ended with exit code {ended.code}"
        return Decided(claim.id, claim.claim, "cannot tell", f"the script {how}: {last[0]}"[:_MOST_DETAIL], torch,
                       round(ended.seconds, 1))  # fmt: skip
    return Decided(claim.id, claim.claim, verdict, detail, torch, round(ended.seconds, 1))


def _said(line: str) -> tuple[Answer | None, str]:
    try:
        word, detail = json.loads(line.removeprefix(_VERDICT))
    except ValueError:  # cut, or not ours
        return None, ""
    return (word if word in _ANSWERS else None), str(detail)[:_MOST_DETAIL]
