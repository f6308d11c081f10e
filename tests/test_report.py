"""The report says the same in all formats, fits its width, and lets nothing out of a log act on a terminal."""

import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from example_runs import healthy, hung, recompile
from factory import insert
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.report import json as report_json
from replay.report import markdown, outlook, text
from replay.report.build import build
from replay.report.model import Evidence, Finding, Link, Report
from replay.report.wording import count, duration, ranks_phrase, ranks_text, size, visible

PLAIN = text.Style(80)
TOP = "schema tool verdict runs coverage findings rivals unseen next_time collect_now"
RUN = "id attempt ranks_expected ranks_seen outcome hosts torch nccl span_s last_step"
FINDING = (
    "id run rule cause layer kind root ranks where waiting impact step t certainty cost_s own_s lost_s without "
    "fingerprint summary advice chain evidence explains explained_by premises repro amplification"
)


@pytest.fixture(scope="module")
def slow() -> Report:
    return build(recompile())


def test_the_document_has_the_keys_of_the_contract(slow: Report) -> None:
    document = report_json.document(slow)
    assert list(document) == TOP.split()
    assert list(document["runs"][0]) == RUN.split()
    assert list(document["findings"][0]) == FINDING.split()
    assert document["findings"][0]["where"] == [
        {"rank": 2, "host": "node-1", "local_rank": 2, "device": 2, "bus_id": "0000:c1", "pid": 1002}
    ]
    assert document["coverage"] == {
        "files": 4, "lines": 400, "parsed": 160, "continuation": 80, "plain": 160, "malformed": 0}  # fmt: skip
    assert (document["schema"], document["verdict"]) == (1, "cause")


def test_a_chain_has_one_link_per_step_with_its_evidence(slow: Report) -> None:
    chain = slow.findings[0].chain
    assert [(link.label, link.ranks, link.evidence) for link in chain] == [
        ("guard failed", (2,), (0,)),
        ("recompiled [4/1]", (2,), (1,)),
        ("others waited", (0, 1, 3), (2, 3, 4)),
    ]
    assert chain[0].text == "tensor 'x' size mismatch at index 0. expected 8, actual 7", (
        "the event's words, not the raw line"
    )
    assert chain[0].t == 10.5
    assert slow.findings[0].explains == ("F2",)
    assert slow.findings[1].explained_by == ("F1",)


def test_what_a_finding_builds_on_and_what_was_considered() -> None:
    con = recompile()
    insert(con, "premises", finding_id="F2", premise_id="F10")
    insert(con, "premises", finding_id="F2", premise_id="F3")
    rival = {"cause": "node-lost", "rule": "node-lost", "summary": "A host fell silent", "why": "a rank was heard on"}
    for run_id in (1, 1, 2):
        insert(con, "rivals", run_id=run_id, **rival)
    insert(con, "rivals", run_id=1, cause="x", rule="x", finding_id="F3", summary="told above", why="F1 explains it")
    report = build(con)
    assert report.findings[1].premises == ("F3", "F10")
    assert report_json.document(report)["rivals"][0] == {"run": 1, **rival, "finding": None}
    shown = text.render(report, PLAIN)
    assert shown.count("Considered: A host fell silent (node-lost), but a rank was heard on.") == 1
    assert "told above" not in shown
    assert "A host fell silent \\(node-lost" not in markdown.render(report)
    assert "- A host fell silent (node-lost), but a rank was heard on" in markdown.render(report)
    assert "Considered" not in text.render(replace(report, verdict="healthy"), PLAIN)


def test_what_to_do_about_hazards_is_said_once() -> None:
    con = recompile()
    con.execute("UPDATE findings SET kind = 'hazard', is_root = FALSE, advice = 'Unset it,\n  and measure.'")
    con.execute("DELETE FROM explains")
    shown = text.render(build(con), PLAIN)
    assert shown.count("Hazard, has not failed: ") > 1
    assert shown.count("    try Unset it,\n        and measure.\n") == 1


def test_an_entry_of_a_binary_file_has_no_line() -> None:
    con = recompile()
    insert(con, "evidence", finding_id="F3", nth=0, label="dump", path="trace_0", at="entries[57]", text="allreduce")
    document = report_json.document(build(con))
    assert document["findings"][2]["evidence"] == [
        {"file": "trace_0", "line": None, "rank": None, "text": "allreduce", "at": "entries[57]"}
    ]
    assert "at" not in document["findings"][0]["evidence"][0]


def test_json_keeps_what_it_escapes() -> None:
    bad = poisoned(SLOW, HOSTILE + "\U0001f600é")
    assert json.loads(report_json.render(bad)) == report_json.document(bad)


def test_json_knows_no_nan() -> None:
    con = recompile()
    con.execute("UPDATE findings SET cost_s = 'nan', t = 'inf'")
    finding = json.loads(report_json.render(build(con)))["findings"][0]
    assert finding["cost_s"] is None
    assert finding["t"] is None


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("SELECT 1", "healthy"),
        ("UPDATE runs SET outcome = 'unknown'", "insufficient"),
        ("DELETE FROM runs", "insufficient"),
        ("INSERT INTO findings (finding_id, kind, is_root, summary) VALUES ('F1', 'symptom', TRUE, 's')", "symptom"),
        ("INSERT INTO findings (finding_id, kind, is_root, summary) VALUES ('F1', 'hazard', FALSE, 'h')", "healthy"),
        ("INSERT INTO findings (finding_id, kind, is_root, summary) VALUES ('F1', 'cause', TRUE, 'c')", "cause"),
    ],
)
def test_the_verdict(change: str, verdict: str) -> None:
    con = healthy()
    con.execute(change)
    report = build(con)
    assert report.verdict == verdict
    assert text.render(report, PLAIN)
    assert markdown.render(report)


def test_a_healthy_run_is_one_line() -> None:
    shown = text.render(build(healthy()), PLAIN)
    assert shown == "Healthy: 2 ranks · torch 2.13.0 · completed in 30.0 s. Nothing found.\n"


def test_the_verdict_stands_first_and_its_proof_below(slow: Report) -> None:
    shown = text.render(slow, PLAIN, "./logs")
    assert shown.startswith("F1  Rank 2 recompiled forward (train.py:16)")
    for part in (
        "5.3 s lost · proven",
        "none_x/attempt_0/2/stderr.log:270\n",
        "ranks 0-1,3\n",
        "    try       Mark the dimension dynamic",
        "    proof     replay why ./logs F1",
        "    repro     replay repro ./logs F1",
        "Explained: Ranks 0-1,3 waited 3.1 s for rank 2 at step 4. (by F1)",
        "Not a cause: 3 graph breaks in torch's own DDP code",
        "240 lines\n    understood, 160 others",
    ):
        assert part in shown, part


def test_advice_is_a_fix_only_where_it_was_checked(slow: Report) -> None:
    shown = text.render(slow, PLAIN, "logs", {"0123456789ab": "checked on torch 2.13"})
    assert "    fix       Mark the dimension dynamic" in shown
    assert "(checked on torch 2.13)" in " ".join(shown.split())
    assert "    try " not in shown


def test_the_same_cause_in_another_attempt_is_one_line() -> None:
    con = recompile()
    con.execute("INSERT INTO runs (run_id, attempt, outcome) VALUES (2, 1, 'failed')")
    insert(
        con, "findings", finding_id="F4", run_id=2, kind="cause", is_root=True, fingerprint="0123456789ab", summary="s"
    )
    assert "F4  The same as F1, again in run 2 (attempt 1).\n" in text.render(build(con), PLAIN)


def test_not_known_says_what_was_heard_and_what_to_collect() -> None:
    shown = text.render(build(hung()), PLAIN)
    assert shown.startswith("The run hangs, and these logs do not show why.\n")
    assert "last heard  rank 5: saving checkpoint step_41.pt, then silent for 60 min" in shown
    assert "ranks 0-4,6-7: step 41" in shown
    assert "no NCCL\n                warning" in shown
    assert "py-spy dump --pid 1000  # rank 0 on node-1" in shown
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE=2000" in shown


def test_nothing_is_collected_from_a_run_that_ended() -> None:
    con = hung()
    assert build(con).collect_now
    insert(con, "exceptions", run_id=1, rank=5, is_uncaught=True)
    assert build(con).collect_now == ()


def test_ruled_out_needs_every_rank() -> None:
    con = hung()
    assert "no NCCL warning" in outlook.ruled_out(con)
    con.execute("DELETE FROM observed WHERE rank = 3")
    assert "no NCCL warning" not in outlook.ruled_out(con)
    assert {u.what: u.ranks for u in outlook.unseen(con)}["nccl-warn"] == "3"


def test_a_gloo_run_is_not_told_about_nccl() -> None:
    con = hung()
    con.execute("DELETE FROM comms; INSERT INTO packages (name) VALUES ('gloo')")
    report = build(con)
    assert not [u for u in report.unseen if "nccl" in u.what]
    assert not [line for line in report.collect_now if "nccl" in line.lower()]


def test_settings_of_one_variable_are_joined() -> None:
    con = healthy()
    insert(con, "findings", finding_id="F1", run_id=1, kind="symptom", is_root=True, impact="slow", summary="s")
    settings_told = [line.split(":")[0] for line in build(con).next_time]
    assert "TORCH_LOGS=recompiles_verbose,graph_breaks" in settings_told
    assert len(settings_told) == len({s.split("=")[0] for s in settings_told})


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("make", [recompile, hung])
def test_text_fits_its_width_and_colour_changes_only_colour(make: object, width: int) -> None:
    report = build(make())  # type: ignore[operator]
    plain, colored = (text.render(report, text.Style(width, color)) for color in (False, True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    commands = set(report.collect_now)
    assert [line for line in plain.splitlines() if len(line) > width and line.strip() not in commands] == []
    assert [line for line in plain.splitlines() if line != line.rstrip()] == []


HOSTILE = "\x1b[2J\x1b]0;owned\x07 \r\n\x9b31m\u202ereversed\u200b <script>`id`</script> | *x*"


def poisoned(report: Report, poison: str) -> Report:
    """The report as a hostile log would have it: the poison wherever log text can come from."""

    def finding(f: Finding) -> Finding:
        return replace(
            f,
            summary=poison,
            advice=poison,
            where=tuple(replace(w, host=poison, bus_id=poison) for w in f.where),
            chain=tuple(Link(poison, link.ranks, link.t, poison, link.evidence) for link in f.chain),
            evidence=tuple(Evidence(poison, e.line, e.rank, poison) for e in f.evidence),
        )

    return replace(
        report,
        runs=tuple(replace(r, torch=poison, nccl=poison) for r in report.runs),
        findings=tuple(finding(f) for f in report.findings),
        last_words=tuple(replace(w, text=poison, file=poison) for w in report.last_words),
        collect_now=tuple(f"py-spy  # {poison}" for _ in report.collect_now),
    )


@settings(max_examples=40, deadline=None)
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=60)))
def test_no_control_character_gets_through(poison: str) -> None:
    for report in (SLOW, HUNG):
        bad = poisoned(report, poison)
        for shown in (
            text.render(bad, PLAIN), text.render(bad, text.Style(60)), markdown.render(bad), report_json.render(bad)
        ):  # fmt: skip
            unprintable = {c for c in shown if not c.isprintable() and unicodedata.category(c) != "Zs"}
            assert unprintable <= {"\n"}


SLOW, HUNG = build(recompile()), build(hung())


def test_markdown_does_not_become_markup() -> None:
    shown = markdown.render(poisoned(SLOW, "<script>`id`</script> ```"))
    outside = "".join(re.split(r"^(`{3,})text\n.*?^\1$", shown, flags=re.MULTILINE | re.DOTALL)[::2])
    assert "<script>" not in outside.replace("\\<", "")
    assert "````text" in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0123, "12 ms"), (5.31, "5.3 s"), (99.96, "100 s"), (720, "12 min"), (12600, "3.5 h"), (172800, "2.0 d")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_words() -> None:
    assert ranks_text([8, 0, 1, 2, 3, 4, 5, 6]) == "0-6,8"
    assert [ranks_phrase(r) for r in ([], [3], [3, 4])] == ["", "rank 3", "ranks 3-4"]
    assert [count(1, "rank"), count(2104, "rank")] == ["1 rank", "2,104 ranks"]
    assert [size(512), size(1536), size(3 * 2**30)] == ["512 B", "1.5 KiB", "3.0 GiB"]
    assert visible("a\x1b[31m\u202e\tz\xa0é") == "a\\x1b[31m\\u202e    z\xa0é"


def test_json_md_names_every_key() -> None:
    page = (Path(markdown.__file__).parent.parent.parent / "docs" / "json.md").read_text()
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", page))))
    assert {key for keys in (TOP, RUN, FINDING) for key in keys.split()} <= named


def test_markdown_calls_advice_a_fix_only_where_it_was_checked(slow: Report) -> None:
    root = slow.roots[0]
    assert "**Try:**" in markdown.render(slow)
    shown = markdown.render(slow, {root.fingerprint: "checked on torch 2.13: it was padded"})
    assert "**Fix:**" in shown
    assert "(checked on torch 2.13: it was padded)" in shown
