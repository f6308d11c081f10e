"""The application's own lines: steps with their figures, settings, versions, and what the trainer says it is doing.

Everything here is what somebody's print or logger said, so nothing is taken for sure: figures keep their text, and a
line that is not understood gives no row.
"""

from collections.abc import Iterable
from dataclasses import replace

from replay.grammar.executor import shared
from replay.parse.blocks.figures import WORLD, Figure, Reading, mebibytes, package, read, spelled
from replay.parse.model import Passing, Segment, Sink, Value

_EXECUTOR = shared()
_TRAIN_BARS = frozenset(
    {
        "",
        "train",
        "training",
        "step",
        "steps",
        "epoch",
        "iter",
        "iteration",
        "iterations",
        "it",
        "progress",
        "batch",
        "batches",
    }
)
_ITEM_UNITS = frozenset({"examples/s", "example/s", "samples/s", "ba/s", "files/s", "rows/s"})
_BAR_KINDS = frozenset({"save", "load", "eval", "data", "preprocess", "download", "compile"})
_PHASES = {"train": "train", "training": "train"} | dict.fromkeys(
    ("eval", "evaluation", "val", "valid", "validation", "test"), "eval"
)
_NO_FIGURES = frozenset(
    {"rank", "timestamp", "ts", "asctime", "level", "levelname", "logger", "msg", "message", "host", "hostname"}
)
_GROUP_NAMES = ("group", "pg", "comm", "process_group")
_NAMED = frozenset({"step", "record", "settings", "figure", "mixed"})
"""Records in which a name with a colon is a figure; elsewhere it is prose."""
_TEXT_CUT = 400


class Trainer:
    """Rows of step_lines, metrics, activities, env, packages, memory, and of collectives that the trainer announces."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._entered: dict[tuple[str, str], tuple[Segment, dict[str, Value]]] = {}
        self._bar_step: int | None = None
        self._last_step: int | None = None
        self._seeds: set[str] = set()

    def feed(self, segment: Segment) -> None:
        """Take a message; only those that trainer.lark took are looked at. Never claims a line of another block."""
        if segment.record == "interpreter_exit":
            columns: dict[str, Value] = {"kind": "other", "phase": "point", "what": "interpreter exit"}
            self._sink.row("activities", segment, **columns, text=segment.text)
        if segment.match is None or segment.match.family != "trainer":
            return
        record = segment.match.record
        if record == "bar":
            self._bar(segment)
            return
        reading = read(_EXECUTOR, segment.text)
        kind, _, phase = record.rpartition("_")
        if kind == "collective":
            self._collective(segment, phase == "end", reading)
            return
        if phase in ("begin", "end", "point"):
            self._activity(segment, kind.replace("_", "-"), phase, reading)
        self._world(segment, record)
        match record:
            case "version":
                self._package(segment, segment.fields["package"], segment.fields["version"])
            case "seed":
                self._setting(segment, "seed", segment.fields["seed"])
                return
            case "not_finite":
                self._not_finite(segment, reading)
                return
            case "advice":
                return
            case "timers":
                figures = [replace(f, name=f"{f.name}_ms") for f in reading.figures]
                self._metrics(segment, figures, self._last_step, reading.epoch)
                return
            case "mixed" if segment.header != "app":
                return
        self._figures(segment, record, reading)

    def minds(self, passing: Passing) -> bool:
        """See Assembler."""
        return False

    def close(self) -> None:
        """Operations that were entered and never left are rows too."""
        for segment, columns in self._entered.values():
            self._sink.row("collectives", segment, **columns)
        self._entered.clear()

    def _figures(self, segment: Segment, record: str, reading: Reading) -> None:
        figures = [f for f in reading.figures if f.name not in _NO_FIGURES]
        step = reading.step if reading.step is not None or record != "record" else self._bar_step
        is_step = reading.step is not None or (record == "record" and reading.epoch is not None)
        if is_step and not reading.is_config and any(f.number is not None or f.is_identity for f in figures):
            self._step(segment, step, reading.epoch, reading.total, _phase(segment, figures))
            self._metrics(segment, figures, step, reading.epoch)
            return
        for figure in figures:
            if figure.shape in ("spaced", "rated") or (figure.shape == "named" and record not in _NAMED):
                continue  # of prose, or said by the record itself
            if reading.lists_identities:
                name = figure.name if figure.is_identity else f"checksum.{figure.name}"
                self._metric(segment, replace(figure, name=name, number=None), step, reading.epoch)
            elif name := package(figure) or "":
                self._package(segment, name, figure.text)
            elif figure.is_identity or (figure.is_measured and not reading.is_config):
                self._metric(segment, figure, step, reading.epoch)
            else:
                self._setting(segment, figure.name, figure.text)

    def _step(
        self, segment: Segment, step: int | None, epoch: float | None, total: int | None, phase: str | None
    ) -> None:
        self._last_step = step
        self._sink.row("step_lines", segment, step=step, epoch=epoch, total=total, phase=phase)

    def _not_finite(self, segment: Segment, reading: Reading) -> None:
        """A figure that somebody found to be no number any more; of a gradient or a weight, its norm."""
        name, text = segment.fields["nan_of"].lower(), segment.fields["nan"]
        name = spelled(name) if "loss" in name else "grad_norm" if name.startswith("grad") else f"{spelled(name)}_norm"
        value = float("inf") if text.lower().startswith("inf") else float("nan")
        self._metric(segment, Figure(name, text, value, "spaced"), reading.step, reading.epoch)

    def _metrics(self, segment: Segment, figures: Iterable[Figure], step: int | None, epoch: float | None) -> None:
        for figure in figures:
            if "seed" in figure.parts and figure.text not in self._seeds:
                self._seeds.add(figure.text)
                self._setting(segment, figure.name, figure.text)
            self._metric(segment, figure, step, epoch)

    def _metric(self, segment: Segment, figure: Figure, step: int | None, epoch: float | None) -> None:
        value = None if figure.is_identity or figure.total is not None else figure.number
        text = figure.text if figure.total is None else f"{figure.text}/{figure.total}"
        self._sink.row("metrics", segment, step=step, epoch=epoch, name=figure.name, value=value, text=text[:_TEXT_CUT])
        if kind := _memory(figure):
            used = mebibytes(figure)
            self._sink.row("memory", segment, kind=kind, used_mb=used, step=step, text=segment.text[:_TEXT_CUT])

    def _setting(self, segment: Segment, name: str, value: str) -> None:
        name = "world_size" if spelled(name).lower() in WORLD else name
        self._sink.row("env", segment, name=name, value=value[:_TEXT_CUT], origin="app")

    def _package(self, segment: Segment, name: str, version: str) -> None:
        name = name.lower()
        self._sink.row("packages", segment, name="torch" if name == "pytorch" else name, version=version)

    def _world(self, segment: Segment, record: str) -> None:
        match = segment.match
        if record == "init_point":
            match = _EXECUTOR.one("trainer", segment.fields.get("text", ""))
        if match is not None and match.record == "world":
            self._setting(segment, "world_size", match.fields["world_size"])

    def _activity(self, segment: Segment, kind: str, phase: str, reading: Reading) -> None:
        what = segment.fields.get("what", "")
        if kind == "skip":
            kind, what = "other", f"skip {what}"
        self._sink.row(
            "activities",
            segment,
            kind=kind,
            phase=phase,
            what=what[:_TEXT_CUT] or None,
            duration_s=reading.took_s,
            step=reading.step,
            text=segment.text[:_TEXT_CUT],
        )

    def _bar(self, segment: Segment) -> None:
        words, count = segment.fields.get("desc", ""), _whole(segment.fields["n"])
        before, behind = read(_EXECUTOR, words), read(_EXECUTOR, segment.fields.get("postfix", ""))
        figures = [f for f in (*before.figures, *behind.figures) if f.shape not in ("spaced", "counted")]
        kind = _bar_kind(words, segment.fields.get("rate_unit", "").strip(), figures)
        if kind is not None:
            text = segment.text[:_TEXT_CUT]
            self._sink.row(
                "activities", segment, kind=kind, phase="progress", what=words or None, step=count, text=text
            )
            return
        epoch = before.epoch
        self._bar_step = count
        self._step(segment, count, epoch, _whole(segment.fields["total"]), _PHASES.get(words.partition(" ")[0].lower()))
        self._metrics(segment, (*_rate(segment.fields), *figures), count, epoch)

    def _collective(self, segment: Segment, is_end: bool, reading: Reading) -> None:
        op = segment.fields["op"].lower().replace("_", "").replace("-", "").replace(" ", "")
        group = next((f.text for f in reading.figures if f.name in _GROUP_NAMES), "")
        columns: dict[str, Value] = {"source": "app", "comm": group or None, "op": op, "state": "issued"}
        begun, told = self._entered.pop((op, group), (None, columns))
        if is_end:
            end: dict[str, Value] = {"state": "completed", "exit_lo": segment.t, "exit_hi": segment.t}
            self._sink.row("collectives", begun or segment, **(told | end))
            return
        if begun is not None:
            self._sink.row("collectives", begun, **told)
        self._entered[op, group] = (segment, columns)


def _whole(text: str) -> int:
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(float(text.rstrip("kM")) * scale)


def _rate(fields: dict[str, str]) -> tuple[Figure, ...]:
    """The speed that a bar shows; it shows "?" before it knows one."""
    if not fields.get("rate", "?").strip("?"):
        return ()
    unit = fields["rate_unit"].strip()
    return (Figure(spelled(unit).replace("/", "_per_"), fields["rate"] + unit, float(fields["rate"]), "rated"),)


def _bar_kind(words: str, unit: str, figures: list[Figure]) -> str | None:
    """The activity that a progress bar shows, None where it shows training steps."""
    doing = _EXECUTOR.one("trainer", words) if words else None
    kind = doing.record.rpartition("_")[0] if doing else ""
    if kind in _BAR_KINDS:
        return kind
    if unit in _ITEM_UNITS:
        return "preprocess"
    first = words.partition(" ")[0].strip(":").lower()
    return None if first in _TRAIN_BARS or any("loss" in f.parts for f in figures) else "other"


def _memory(figure: Figure) -> str | None:
    """The kind of memory that a figure tells, None where it tells none."""
    parts = figure.parts
    if mebibytes(figure) is None:
        return None
    if "rss" in parts:
        return "rss"
    if not parts.isdisjoint({"reserved", "cached"}):
        return "cuda-reserved"
    return "cuda-allocated" if not parts.isdisjoint({"mem", "memory", "alloc", "allocated", "vram"}) else None


def _phase(segment: Segment, figures: list[Figure]) -> str | None:
    """Whether the line is about training or evaluation, by its logger, its first word or the names of its losses."""
    first = segment.text.lstrip("[ ").partition(" ")[0].strip("]:,(").lower()
    for word in (segment.head.get("logger", ""), first):
        if word in _PHASES:
            return _PHASES[word]
    losses = [f.name.replace("/", "_").replace(".", "_").split("_")[0] for f in figures if "loss" in f.parts]
    return "eval" if losses and all(_PHASES.get(name) == "eval" for name in losses) else None
