"""Compiles of frames: from the first to the last line of a compile id, one row of `compiles` each.

Ids come again after `torch._dynamo.reset()`: a message that begins a compile and names an id that has begun already
begins another one. `0/0_1` is the first restart of the analysis of `0/0`, not a compile of its own.
"""

from dataclasses import dataclass

from replay.parse.model import Segment, Sink
from replay.parse.places import Frame, is_installed, users_frame
from replay.parse.torch_lines import compile_id_of, frame_number, nth_of, record_of

_BLOCK = "recompile-block"
_DONE = {"compile_settled", "compile_backend_done"}
_SETTLES = {"compile_settled", "compile_gc"}
_WORKING = {"compile_start", "compile_backend", "compile_inductor"}
_REASON_CUT = 300


@dataclass(slots=True)
class _Compile:
    """What is known of a compile so far. `first` is the line its row names."""

    first: Segment
    compile_id: str | None
    t_first: float | None
    t_last: float | None = None
    fn: str | None = None
    file: str | None = None
    line: int | None = None
    user: Frame | None = None
    restart: int = 0
    is_recompile: bool = False
    is_begun: bool = False
    is_started: bool = False
    is_working: bool = False
    is_in_backend: bool = False
    is_settled: bool = False
    evidence: str = "log"
    status: str | None = None
    backend: str | None = None
    fail_type: str | None = None
    fail_reason: str | None = None


class Compiles:
    """Follows the compiles of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._by_id: dict[str, _Compile] = {}
        self._by_place: dict[tuple[str, str, int], _Compile] = {}
        self._nameless: _Compile | None = None
        """A recompile without an id (up to 2.2), which the next compile of that function is, or one of 2.0."""
        self._current: _Compile | None = None
        self._stack: list[Frame] | None = None
        self._given_up: _Compile | None = None

    @property
    def reads_stack(self) -> bool:
        """Whether the lines that follow may be the stack of a frame."""
        return self._stack is not None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if record == "recompile_frame":
            self._framework_frame(segment.fields)
        elif record.startswith(("compile_", "recompile_head", "limit_", "break_fatal")):
            self._take(segment, record)
        trace_id = segment.head.get("trace_id")
        if trace_id is not None and trace_id != "-/-":
            compile_id, _, restart = trace_id.partition("_")
            self._touch(compile_id, int(restart or 0), segment, record)
        return None

    def close(self) -> None:
        """See Assembler."""
        if self._nameless is not None:
            self._row(self._nameless)
        for compile_ in self._by_id.values():
            self._row(compile_)
        self._nameless, self._by_id = None, {}

    def _take(self, segment: Segment, record: str) -> None:
        fields = segment.fields
        match record:
            case "recompile_head":
                self._recompiled(segment)
            case "compile_start":
                self._started(segment)
            case "compile_begin":
                self._started(segment)
                self._stack = []
            case "compile_frame":
                if self._stack is not None:
                    self._stack.append(_frame(fields))
            case "compile_backend" if self._current is not None:
                self._current.backend, self._current.is_in_backend = fields["backend"], True
            case "compile_wont":
                self._gave_up(segment)
            case "compile_loop" | "compile_skip" if self._current is not None:
                self._current.status = "skipped"
                self._current.fail_reason = segment.text[:_REASON_CUT]
            case "compile_failure" | "break_fatal":
                self._failed(segment)
            case "limit_head":
                self._refused(segment)
            case "limit_function" if self._current is not None and self._current.fn is None:
                self._current.fn, self._current.file = fields["fn"], fields["file"]
                self._current.line = int(fields["fn_line"])
            case "compile_gc" if self._current is not None and self._current.is_in_backend:
                self._current.status = self._current.status or "failed"
            case _ if record in _DONE and self._current is not None:
                self._current.status = self._current.status or "done"
                self._current.is_in_backend = False

    def _recompiled(self, segment: Segment) -> None:
        """A recompile block: it is the line that the row of its compile names."""
        compile_id = compile_id_of(segment)
        fields = segment.fields
        made = self._by_id.get(compile_id) if compile_id is not None else None
        if made is None or made.is_begun or made.evidence == _BLOCK:
            made = self._make(segment, compile_id)
        made.first, made.evidence, made.is_recompile = segment, _BLOCK, True
        made.fn, made.file, made.line = fields["fn"], fields["file"], int(fields["fn_line"])
        self._current, self._stack = made, None

    def _started(self, segment: Segment) -> None:
        fields, compile_id = segment.fields, compile_id_of(segment)
        restart = int(segment.head.get("trace_id", "").partition("_")[2] or 0)
        again = segment.record == "compile_begin"
        known = self._by_id.get(compile_id) if compile_id is not None else self._nameless
        waiting = self._nameless
        if compile_id is not None and waiting is not None and waiting.is_recompile and waiting.fn == fields["fn"]:
            known = self._name(waiting, compile_id)
        elif known is None or (known.is_begun if again else known.is_started and restart <= known.restart):
            known = self._make(segment, compile_id)
        known.is_begun = True
        known.is_started = known.is_started or not again
        known.restart = max(known.restart, restart)
        known.fn = fields["fn"]
        known.file = fields.get("file", known.file)
        known.line = int(fields["fn_line"]) if "fn_line" in fields else known.line
        if self._current is not None and self._current is not known and self._current.is_started:
            self._current.status = self._current.status or "done"
        if known.file is not None and known.line is not None:
            self._by_place[known.fn, known.file, known.line] = known
        self._current = known

    def _make(self, segment: Segment, compile_id: str | None) -> _Compile:
        made = _Compile(segment, compile_id, segment.t)
        if compile_id is not None:
            return self._replace(compile_id, made)
        if self._nameless is not None:
            self._row(self._nameless)
        self._nameless = made
        return made

    def _name(self, waiting: _Compile, compile_id: str) -> _Compile:
        """The recompile that was logged without an id has one after all."""
        waiting.compile_id, self._nameless = compile_id, None
        return self._replace(compile_id, waiting)

    def _replace(self, compile_id: str, made: _Compile) -> _Compile:
        before = self._by_id.pop(compile_id, None)
        if before is not None:
            self._row(before)
        self._by_id[compile_id] = made
        return made

    def _touch(self, compile_id: str, restart: int, segment: Segment, record: str) -> None:
        """Any line with an id moves the end of its compile, until that is settled; then only what settles it does:
        a backward pass that is compiled later has the same id.
        """
        found = self._by_id.get(compile_id)
        if found is None:
            waiting = self._nameless
            if waiting is not None and waiting.is_recompile and nth_of(compile_id) > 0:
                found = self._name(waiting, compile_id)
            else:
                found = self._make(segment, compile_id)
        found.restart = max(found.restart, restart)
        found.is_working = found.is_working or record in _WORKING
        if record == "compile_inductor_done":
            found.status = found.status or "done"
        is_guard = segment.head.get("artifact") in {"guards", "verbose_guards"}
        settles = is_guard or record in _SETTLES
        if settles:
            found.is_settled, found.status = True, found.status or "done"
        moves = settles or not (found.is_settled or found.status == "skipped")
        if moves and not record.startswith(("recompile_", "limit_")):
            found.t_last = segment.t
        in_stack = record in {"compile_begin", "compile_frame"} or segment.text.startswith("    ")
        if self._stack is not None and not in_stack:
            found.user = users_frame(self._stack) or found.user
            self._stack = None

    def _framework_frame(self, fields: dict[str, str]) -> None:
        """The stack in a recompile block may name the user's frame of a framework function."""
        frame = _frame(fields)
        if self._current is not None and self._current.evidence == _BLOCK and not is_installed(frame.file):
            self._current.user = frame

    def _gave_up(self, segment: Segment) -> None:
        fields = segment.fields
        found = self._by_place.get((fields["fn"], fields["file"], int(fields["fn_line"])))
        if found is None:
            found = self._make(segment, compile_id_of(segment))
            found.fn, found.file, found.line = fields["fn"], fields["file"], int(fields["fn_line"])
        found.status, self._given_up = "skipped", found

    def _failed(self, segment: Segment) -> None:
        """An exception of the compiler: behind "WON'T CONVERT" why it gave up, else the end of the current compile."""
        found = self._given_up if segment.header == "torch" else self._current
        if found is None or found.fail_type is not None:
            return
        found.fail_type = segment.fields.get("fail_type") or segment.fields.get("fatal_type")
        found.fail_reason = segment.fields.get("reason", "")[:_REASON_CUT] or None
        if segment.header != "torch":
            found.status = "failed"

    def _refused(self, segment: Segment) -> None:
        """The limit is hit: this compile does not take place."""
        compile_id = compile_id_of(segment)
        found = self._by_id.get(compile_id) if compile_id is not None else self._nameless
        if found is None and compile_id is not None:
            found = self._make(segment, compile_id)
        if found is not None:
            found.status, found.fail_reason = "skipped", segment.text[:_REASON_CUT]
            self._current = found

    def _row(self, compile_: _Compile) -> None:
        nth = nth_of(compile_.compile_id) if compile_.compile_id else None
        start, end = compile_.t_first, compile_.t_last
        is_framework = is_installed(compile_.file) if compile_.file else None
        user = compile_.user
        if is_framework is False and compile_.file and compile_.line is not None:
            user = Frame(compile_.file, compile_.line, compile_.fn or "")
        self._sink.row(
            "compiles",
            compile_.first,
            t_lo=start,
            t_hi=start,
            end_lo=end,
            end_hi=end,
            compile_id=compile_.compile_id,
            frame=frame_number(compile_.compile_id) if compile_.compile_id else None,
            nth=nth,
            restart=compile_.restart,
            is_recompile=compile_.is_recompile or bool(nth),
            fn=compile_.fn,
            fn_file=compile_.file,
            fn_line=compile_.line,
            user_file=user.file if user else None,
            user_line=user.line if user else None,
            is_framework=is_framework,
            status=compile_.status or ("started" if compile_.is_started or compile_.is_working else None),
            backend=compile_.backend,
            duration_s=round(end - start, 6) if start is not None and end is not None else None,
            fail_type=compile_.fail_type,
            fail_reason=compile_.fail_reason,
            evidence=compile_.evidence,
        )


def _frame(fields: dict[str, str]) -> Frame:
    return Frame(fields["file"], int(fields["line"]), fields["fn"])
