"""Claims, the scripts that decide them, and the page that tells the verdicts."""

import ast
import json
from pathlib import Path

import pytest

from replay.cli.main import main
from replay.errors import UsageError
from replay.repro.claims import Claim, chosen, claims, decide, script

PAGE = Path(__file__).parent.parent / "docs" / "claims.md"
QUICK = [claim.id for claim in claims().values() if claim.quick]


def test_each_claim_has_a_script_that_is_python_and_ends_with_a_verdict() -> None:
    for claim in claims().values():
        ast.parse(script(claim))
        assert claim.script.rstrip().splitlines()[-1].startswith("verdict("), claim.id


def test_the_page_has_every_claim_with_the_verdict_that_was_measured() -> None:
    cells = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    told = {row[0].removeprefix("| "): row[2] for row in cells if row[0] != "| id"}
    assert told == {claim.id: claim.measured for claim in claims().values()}


@pytest.mark.parametrize("name", QUICK)
def test_quick_claims_are_as_measured(name: str) -> None:
    decided = decide(claims()[name])
    assert decided.verdict == claims()[name].measured, decided


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in claims() if name not in QUICK])
def test_all_other_claims_are_as_measured(name: str) -> None:
    decided = decide(claims()[name])
    assert decided.verdict == claims()[name].measured, decided


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise OSError('no such thing')", "ended with exit code 1: OSError: no such thing"),
        ('print(\'VERDICT ["true", ""]\')', "ended with exit code 0"),
        ("print('VERDICT [')", "ended with exit code 0"),
    ],
)
def test_a_script_that_says_nothing_decides_nothing(text: str, told: str) -> None:
    decided = decide(Claim(id="broken", claim="", measured="refuted", script=text))
    assert decided.verdict == "cannot tell"
    assert told in decided.detail


def test_an_unknown_claim_is_refused() -> None:
    with pytest.raises(UsageError, match="no-such-thing: no such claim; there are"):
        chosen(["no-such-thing"])


def test_the_command_tells_verdicts_in_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "verbose-2", "--list"]) == 0
    assert capsys.readouterr().out.split()[0] == "verbose-2"
    assert main(["claims", "verbose-2", "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["id"], one["verdict"]) == ("verbose-2", "refuted")
    assert one["torch"]
