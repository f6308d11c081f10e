"""Records of TORCH_TRACE to rows: compiles with their metrics, guard failures, graph breaks, graphs, caches, versions.

Payloads that are texts of the log (graph breaks, graphs, reasons) go through the same parts that read them there.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from replay.grammar.executor import shared
from replay.parse.blocks.graph_breaks import GraphBreaks
from replay.parse.blocks.graphs import Graph, graph_rows
from replay.parse.blocks.guard_trees import GuardTrees
from replay.parse.blocks.recompiles import Block, write
from replay.parse.graph_text import read_graph
from replay.parse.model import Segment, Sink
from replay.parse.places import Frame, is_installed, users_frame
from replay.parse.torch_lines import compile_id_of, frame_number, nth_of
from replay.sources.model import Line

_GRAPHS = {
    "dynamo_output_graph": "dynamo",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "inductor_post_grad_graph": "post_grad",
    "inductor_output_code": "output_code",
    "optimize_ddp_split_graph": "ddp",
    "optimize_ddp_split_child": "ddp",
    "compiled_autograd_graph": "compiled_autograd",
    "before_pre_grad_graph": "pre_grad",
}
_CACHES = {
    "fx_graph_cache_hit": ("fx", "hit"),
    "fx_graph_cache_miss": ("fx", "miss"),
    "fx_graph_cache_bypass": ("fx", "bypass"),
    "aotautograd_cache_hit": ("aotautograd", "hit"),
    "aotautograd_cache_miss": ("aotautograd", "miss"),
    "aotautograd_cache_bypass": ("aotautograd", "bypass"),
}
_CONFIGS = {"dynamo_config": "dynamo", "inductor_config": "inductor", "functorch_config": "functorch"}
_SOFT = {"Unsupported", "SkipFrame", "UserError"}
"""Exceptions by which a frame is given up, and runs eagerly."""
_CUT = 300


@dataclass(slots=True)
class _Compile:
    """A compile that has begun. `reasons` is the record of why the entries before did not fit."""

    start: Segment
    fn: str | None = None
    file: str | None = None
    line: int | None = None
    user: Frame | None = None
    restart: int = 0
    reasons: Segment | None = None
    texts: list[str] = field(default_factory=list)


class TraceRows:
    """Writes the rows of the records of one file, in order."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._strings: dict[int, str] = {}
        self._open: dict[str, _Compile] = {}
        self._counts: dict[str, int] = {}
        self._told: set[tuple[str, str]] = set()

    def take(
        self, segment: Segment, kind: str, meta: dict[str, Any], members: dict[str, Any], payload: list[Line]
    ) -> None:
        """Take a record with its payload."""
        name = kind if kind != "artifact" else str(meta.get("name"))
        if kind == "str":
            self._string(members["str"])
        elif kind == "dynamo_start":
            self._started(segment, meta)
        elif kind in {"compilation_metrics", "bwd_compilation_metrics"}:
            self._metrics(
                segment, meta, is_forward=kind == "compilation_metrics" and meta.get("is_forward") is not False
            )
        elif name == "recompile_reasons":
            self._reasons(segment, [line.text[1:] for line in payload])
        elif name == "dynamo_graph_break_reason":
            self._break(segment, payload)
        elif name == "dynamo_cpp_guards_str":
            self._guards(segment, payload)
        elif name in _GRAPHS:
            self._graph(segment, _GRAPHS[name], payload)
        elif name in _CACHES:
            self._cache(segment, *_CACHES[name], _object(payload))
        elif name == "torch_version":
            self._package(segment, "torch", _object(payload).get("pytorch_version"))

    def close(self) -> None:
        """The file is over: compiles without metrics did not end."""
        for compile_id, compile_ in self._open.items():
            self._row(compile_id, compile_, None, {})
        self._open = {}

    def _string(self, entry: object) -> None:
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int):
            self._strings[entry[1]] = str(entry[0])

    def _started(self, segment: Segment, meta: dict[str, Any]) -> None:
        compile_id = compile_id_of(segment)
        if compile_id is None:
            return
        known = self._open.get(compile_id)
        if known is None or known.fn is not None:
            if known is not None:
                self._row(compile_id, known, None, {})
            known = self._open[compile_id] = _Compile(segment)
        frames = [self._frame(entry) for entry in meta.get("stack") or [] if isinstance(entry, dict)]
        if frames:
            known.file, known.line, known.fn = frames[-1]
            known.user = users_frame(frames)

    def _frame(self, entry: dict[str, Any]) -> Frame:
        number = entry.get("filename")
        file = self._strings.get(number, "") if isinstance(number, int) else str(number or "")
        line = entry.get("line")
        return Frame(file or "<unknown>", line if isinstance(line, int) else 0, str(entry.get("name")))

    def _reasons(self, segment: Segment, lines: list[str]) -> None:
        """One reason is bare text, several are a JSON list of texts. They come before their compile's start."""
        compile_id = compile_id_of(segment)
        if compile_id is None:
            return
        text = "\n".join(lines)
        texts = [text]
        if text.startswith("["):
            try:
                texts = [str(entry) for entry in json.loads(text)]
            except ValueError:
                texts = [line.strip(' ",') for line in lines]
        known = self._open.get(compile_id)
        if known is not None:
            self._row(compile_id, known, None, {})
        self._open[compile_id] = _Compile(segment, reasons=segment, texts=texts)

    def _metrics(self, segment: Segment, meta: dict[str, Any], *, is_forward: bool) -> None:
        self._package(segment, "torch", meta.get("pytorch_version"))
        self._package(segment, "python", meta.get("python_version"))
        for member, origin in _CONFIGS.items():
            self._config(segment, origin, meta.get(member))
        compile_id = compile_id_of(segment)
        if compile_id is None or not is_forward:
            return
        known = self._open.pop(compile_id, None) or _Compile(segment)
        known.fn = meta.get("co_name") or known.fn
        known.file = meta.get("co_filename") or known.file
        known.line = meta.get("co_firstlineno") or known.line
        restarts = meta.get("restart_reasons")
        known.restart = len(restarts) if isinstance(restarts, list) else 0
        self._row(compile_id, known, segment, meta)

    def _row(self, compile_id: str, compile_: _Compile, end: Segment | None, meta: dict[str, Any]) -> None:
        first = compile_.reasons or compile_.start
        is_framework = is_installed(compile_.file) if compile_.file else None
        if compile_.reasons is not None:
            self._failures(compile_id, compile_)
        user = compile_.user
        if is_framework is False and compile_.file and compile_.line:
            user = Frame(compile_.file, compile_.line, compile_.fn or "")
        fail_type = meta.get("fail_type")
        short = str(fail_type).rpartition(".")[2].strip("'>") if fail_type else None
        status = "started" if end is None else "done" if short is None else "skipped" if short in _SOFT else "failed"
        start_t, end_t = compile_.start.t, end.t if end is not None else None
        duration = _seconds(meta)
        if end is compile_.start and end_t is not None and duration is not None:
            start_t = end_t - duration
        if duration is None and start_t is not None and end_t is not None:
            duration = round(end_t - start_t, 6)
        nth = nth_of(compile_id)
        self._sink.row(
            "compiles",
            first,
            t_lo=start_t,
            t_hi=start_t,
            end_lo=end_t,
            end_hi=end_t,
            compile_id=compile_id,
            frame=frame_number(compile_id),
            nth=nth,
            restart=compile_.restart,
            is_recompile=nth > 0 or compile_.reasons is not None,
            fn=compile_.fn,
            fn_file=compile_.file,
            fn_line=compile_.line,
            user_file=user.file if user else None,
            user_line=user.line if user else None,
            is_framework=is_framework,
            status=status,
            duration_s=duration,
            fail_type=short,
            fail_reason=" ".join(str(meta.get("fail_reason")).split("\n")[:2])[:_CUT] if short else None,
            evidence="trace" if end is None else "metrics",
        )

    def _failures(self, compile_id: str, compile_: _Compile) -> None:
        segment = compile_.reasons
        if segment is None:
            return
        block = Block(segment, segment, compile_.fn, compile_.file, compile_.line, compile_id, None)
        for text in compile_.texts:
            for line in text.split("\n"):
                block.add(segment, shared().one("recompiles", "- " + line))
        write(self._sink, block)

    def _break(self, segment: Segment, payload: list[Line]) -> None:
        """A graph break: its payload is what the log says of it, with the exception behind."""
        _as_logged(GraphBreaks(self._sink), segment, payload, artifact="graph_breaks", family="graph_breaks")

    def _guards(self, segment: Segment, payload: list[Line]) -> None:
        """The guards of a compile: its payload is the tree that the log prints."""
        _as_logged(GuardTrees(self._sink), segment, payload, artifact="guards", family="guard_tree")

    def _graph(self, segment: Segment, kind: str, payload: list[Line]) -> None:
        text = read_graph(tuple(line.text[1:] for line in payload), is_code=kind == "output_code")
        if text.is_empty:
            return
        nth = self._counts.get(kind, 0)
        self._counts[kind] = nth + 1
        graph_rows(self._sink, segment, Graph(kind, None, text, nth), payload[-1].line_no)

    def _cache(self, segment: Segment, cache: str, event: str, told: dict[str, Any]) -> None:
        self._sink.row(
            "cache_events",
            segment,
            compile_id=compile_id_of(segment),
            cache=cache,
            event=event,
            key=told.get("key"),
            reason=told.get("cache_bypass_reason"),
        )

    def _package(self, segment: Segment, name: str, version: object) -> None:
        if isinstance(version, str) and ("package", name) not in self._told:
            self._told.add(("package", name))
            self._sink.row("packages", segment, name=name, version=version.partition(" ")[0])

    def _config(self, segment: Segment, origin: str, told: object) -> None:
        """Settings, once a file: they are the same in every record."""
        if not isinstance(told, str) or ("config", origin) in self._told:
            return
        self._told.add(("config", origin))
        try:
            settings = json.loads(told)
        except ValueError:
            return
        if isinstance(settings, dict):
            for name, value in settings.items():
                if isinstance(value, str | int | float | bool):
                    self._sink.row("env", segment, name=f"{origin}.{name}", value=str(value), origin="torch")


def _as_logged(
    part: GraphBreaks | GuardTrees, segment: Segment, payload: list[Line], *, artifact: str, family: str
) -> None:
    """Read a payload by the part that reads the same text in a log."""
    head = segment.head | {"artifact": artifact}
    for line in payload:
        text = line.text[1:]
        piece = Segment(line, "torch", head, text, segment.identity, segment.t, writer_id=segment.writer_id)
        piece.match = shared().one(family, text)
        part.feed(piece)
    part.close()


def _object(payload: list[Line]) -> dict[str, Any]:
    """The JSON object of a payload, {} where it is none."""
    try:
        told = json.loads("\n".join(line.text[1:] for line in payload))
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _seconds(meta: dict[str, Any]) -> float | None:
    """Duration that the metrics tell; 2.3 to 2.5 tell it in seconds."""
    micro, seconds = meta.get("duration_us"), meta.get("entire_frame_compile_time_s")
    if isinstance(micro, int | float):
        return micro / 1e6
    return float(seconds) if isinstance(seconds, int | float) else None
