"""What a pasted line or code means: by the knowledge tables, by grammar, tables and rules, else what comes nearest."""

import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.cli.main import main
from replay.errors import UsageError
from replay.expert.load import load_rules
from replay.explain import explain
from replay.explain.codes import Codes
from replay.explain.model import Explanation, PastedLine
from replay.grammar.executor import shared
from replay.grammar.source import form_of, forms
from replay.parse.families import BY_ARTIFACT, BY_HEADER
from replay.store import schema

WATCHDOG = (
    "[rank3]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600029 "
    "milliseconds before timing out."
)
COMPLETION = (
    "vm:1:2 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<38462> with status=12 "
    "opcode=0 len=0 vendor err 129 (Send) localGid fe80:: remoteGids fe80::"
)


def one(text: str) -> PastedLine:
    (line,) = explain(text).lines
    return line


def fields(answer: PastedLine, row: int = 0) -> dict[str, str]:
    return {field.name: field.value for field in answer.rows[row].fields}


@pytest.mark.parametrize(
    ("text", "name", "role", "rule"),
    [
        ("137", "137: SIGKILL", "cause", "rank-killed"),
        ("-9", "-9: SIGKILL", "cause", "rank-killed"),
        ("exit code 137", "137: SIGKILL", "cause", "rank-killed"),
        ("exited with code 139", "139: SIGSEGV", "cause", "rank-crashed"),
        ("exitcode: -15", "-15: SIGTERM", "victim", None),
        ("signal 15", "15: SIGTERM", "victim", None),
        ("SIGTERM", "SIGTERM (15)", "victim", None),
        ("exit status 1", "1", "either", None),
        ("exit code 77", "77", "either", None),
        ("Xid 79", "79", "cause", "device-fault-xid"),
        ("Xid (PCI:0000:1a:00): 45", "45", "victim", None),
        ("ncclSystemError 2", "ncclSystemError (2)", "either", None),
        ("ncclRemoteError", "ncclRemoteError (6)", "victim", None),
        ("status 12", "12: IBV_WC_RETRY_EXC_ERR", "either", "ib-transport-error"),
        ("ibv_wc status=5", "5: IBV_WC_WR_FLUSH_ERR", "victim", None),
        ("IBV_WC_WR_FLUSH_ERR", "IBV_WC_WR_FLUSH_ERR (5)", "victim", None),
        ("WR_FLUSH_ERR", "IBV_WC_WR_FLUSH_ERR (5)", "victim", None),
        ("CUDA error 710", "710: cudaErrorAssert", "cause", "kernel-error"),
        ("errno 111", "111: ECONNREFUSED", "either", None),
        ("ECONNRESET", "ECONNRESET (104)", "victim", None),
        ("GB0059", "GB0059: Failed to trace builtin operator", "cause", "graph-break-by-kind"),
        ("gb0170", "GB0170: Data-dependent branching", "cause", "graph-break-by-kind"),
        ("NCCL_DEBUG", "NCCL_DEBUG", "none", None),
        ("collective-timeout", "collective-timeout", "victim", "collective-timeout"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "ChildFailedError", "victim", None),
        ("PHB", "PHB", "none", None),
    ],
)
def test_a_code_has_a_meaning_a_role_and_the_rules_that_read_it(
    text: str, name: str, role: str, rule: str | None
) -> None:
    answer = explain(text)
    first = answer.codes[0]
    assert (first.name, first.role) == (name, role)
    assert first.means
    assert first.source.startswith("rules/")
    assert rule is None or rule in [r.rule for r in first.read_by]


def test_a_bare_number_has_all_its_meanings() -> None:
    assert [code.what.split(" ")[0] for code in explain("12").codes] == ["status", "errno", "signal"]
    assert [code.name for code in explain("2").codes][:2] == ["2", "2: ncclSystemError"]


def test_a_setting_says_what_its_value_costs_or_does_not_do() -> None:
    assert "host memory" in explain("NCCL_P2P_DISABLE=1").codes[0].look
    assert "equal on all ranks" in explain("export NCCL_ALGO=Ring").codes[0].look
    assert "only 1 switches it on" in explain("TORCHDYNAMO_VERBOSE=2").codes[0].look
    assert "seems" not in explain("TORCHDYNAMO_VERBOSE=1").codes[0].look
    assert "over each other" in explain("NCCL_DEBUG_FILE=/tmp/nccl.log").codes[0].look


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("NCCL_DEBUG_FIL", "NCCL_DEBUG_FILE"),
        ("SIGTREM", "SIGTERM"),
        ("colective-timeout", "collective-timeout"),
        ("Xid 146", "Xid 145: an NVLink failed"),
    ],
)
def test_an_unknown_code_says_so_and_names_the_nearest(text: str, nearest: str) -> None:
    answer = explain(text)
    assert not answer.is_known
    assert not answer.codes
    assert nearest in [near.looks for near in answer.nearest]


def test_an_unknown_line_names_the_nearest_form_and_its_place() -> None:
    answer = explain("Watchdog catched collective operation timeout, it ran for milliseconds before timing out")
    assert not answer.is_known
    assert answer.nearest[0].looks.startswith("Watchdog caught collective operation timeout")
    file, _, number = answer.nearest[0].place.rpartition(":")
    line = (Path(__file__).parent.parent / file).read_text().splitlines()[int(number) - 1]
    assert "Watchdog caught" in line


def test_nothing_is_like_a_text_of_somebody_else() -> None:
    assert explain("hello world").nearest == ()


def test_a_watchdogs_line_is_a_victims() -> None:
    line = one(WATCHDOG)
    assert [row.table for row in line.rows] == ["timeouts", "collectives"]
    assert line.rows[0].role == "victim"
    assert fields(line)["ran_ms"] == "600029"
    assert {f.name: f.means for f in line.rows[0].fields}["ran_ms"] == "waited"
    assert "collective-timeout" in [r.rule for r in line.rows[0].read_by]
    assert line.header is not None
    assert line.header.record == "c10"
    assert line.form is not None
    assert line.form.record == "watchdog_timeout"
    assert any("2.2 and later" in remark for remark in line.form.remarks)
    assert ("rank", "3") in [(f.name, f.value) for f in line.head]


def test_the_form_is_the_one_that_took_the_line_and_stands_where_it_says() -> None:
    text = "[Rank 0] Work WorkNCCL(SeqNum=1, OpType=BARRIER, Timeout(ms)=5) timed out in blocking wait."
    match = shared().one("c10d", text)
    assert match is not None
    form = form_of(match, text)
    line = (Path(__file__).parent.parent / form.place.split(":")[0]).read_text().splitlines()[form.line - 1]
    assert "timed out in blocking wait" in line
    assert "blocking wait" in form.looks


def test_codes_in_a_row_are_told_as_well() -> None:
    (row,) = one(COMPLETION).rows
    assert [code.name for code in row.codes] == ["12: IBV_WC_RETRY_EXC_ERR"]
    assert row.role == "cause"
    assert [r.rule for r in row.read_by] == ["ib-transport-error"]


def test_a_reason_without_its_block_is_a_guard_that_failed() -> None:
    for text in ("    - 0/0: tensor 'x' size mismatch at index 0. expected 8, actual 7",
                 "tensor 'L['x']' size mismatch at index 0. expected 8, actual 7"):  # fmt: skip
        line = one(text)
        assert line.rows[0].table == "guard_failures"
        assert line.text == text
        assert (fields(line)["expected"], fields(line)["cause"]) == ("8", "recompile-dynamic-shape")
        assert not fields(line).keys() & {"fn", "compile_id"}  # what the block would tell, and nobody said


def test_an_item_of_torchruns_table_needs_no_table() -> None:
    line = one("exitcode  : -9 (pid: 12)")
    assert line.form is not None
    assert line.form.record == "table_code"
    assert [code.name for code in line.codes] == ["-9: SIGKILL"]


def test_a_frame_needs_no_traceback_and_a_label_no_vote() -> None:
    assert one('[rank0]:   File "/srv/train.py", line 19, in step').form is not None
    labelled = one("3: exitcode  : -9 (pid: 12)")
    assert labelled.wrapper == "srun_label"
    assert labelled.codes


def test_lines_are_read_together() -> None:
    head = "V1129 22:51:29.204000 15856 torch/_dynamo/guards.py:4786] [0/1] [__recompiles] "
    block = [
        "Recompiling function f in t.py:3",
        "    triggered by the following guard failure(s):",
        "    - 0/0: x.k == 2",
    ]
    answer = explain("\n".join([*(head + line for line in block), "mine"]))
    assert [row.table for line in answer.lines for row in line.rows] == ["compiles", "guard_failures"]
    assert fields(answer.lines[2])["fn"] == "f"
    assert not answer.lines[3].is_known


def test_every_event_table_has_a_reading_and_its_conditions_hold_or_not() -> None:
    codes = Codes(load_rules())
    readings = codes.table("readings")
    con = duckdb.connect()
    schema.create(con)
    families = {f for group in (*BY_HEADER.values(), *BY_ARTIFACT.values()) for f in group}
    last = {}
    for fact in readings:
        assert fact["role"] in ("cause", "victim", "either", "none")
        assert fact["means"]
        assert fact["look"]
        name = fact["table"]
        if "." in name:
            family, _, form = name.partition(".")
            assert family in families
            assert form in {f.form for f in forms(family)}
        else:
            con.execute(f"SELECT count(*) FROM {name} WHERE {fact['where']}")
            last[name] = fact["where"]
    assert {t.name for t in schema.tables().values() if t.section == "event"} <= last.keys()
    assert set(last.values()) == {"true"}


def test_every_code_of_the_tables_is_found_by_its_number_and_name() -> None:
    codes = Codes(load_rules())
    for name in codes.names:
        assert list(codes.named(name)), name
    for table in ("signals", "xid", "nccl_results", "ib_status", "cuda_errors", "errno", "exit_codes"):
        assert all(fact.get("role") in ("cause", "victim", "either", "none", None) for fact in codes.table(table))
    categories = {f["category"] for f in codes.table("exceptions")}
    assert categories <= {f["category"] for f in codes.table("exception_categories")}
    kinds = {f["kind"] for f in codes.table("graph_breaks")}
    assert kinds <= {f["kind"] for f in codes.table("graph_break_kinds")}


def test_every_form_of_every_grammar_has_a_place() -> None:
    for family in {f for group in (*BY_HEADER.values(), *BY_ARTIFACT.values()) for f in group}:
        for form in forms(family):
            assert form.line > 0
            assert form.record


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=80))
def test_any_text_gets_an_answer(text: str) -> None:
    if text.strip():
        assert isinstance(explain(text), Explanation)


def test_nothing_to_explain_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing to explain"):
        explain(" \n")


def test_the_command_writes_text_and_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explain", WATCHDOG]) == 0
    said = capsys.readouterr().out
    assert "a victim, as a rule" in said
    assert "grammars/c10d.lark:" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    assert main(["explain", "SIGTERM", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["codes"][0]["role"] == "victim"
    assert main(["explain", "what is this"]) == 1
    assert "Not known" in capsys.readouterr().out
    assert main(["explain", ""]) == 2


def test_the_command_passes_no_escape_sequence_on(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "RuntimeError: \x1b[31mred\x07 \u202egnp"])
    assert not set(capsys.readouterr().out) & {"\x1b", "\x07", "\u202e"}
