"""What the training script prints: steps, work, the end.

The shapes of trainers' lines are everybody's own and the grammar of them is one of shapes, which has no inverse: these
are templates, and a test holds each of them against the parser.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class StepDone:
    """A finished step of a rank, times in seconds."""

    rank: int
    step: int
    total: int
    loss: float
    data: float
    forward: float
    backward: float
    optimizer: float
    duration: float


class Trainer:
    """Writes the lines of one style. `moment` is the time on the rank's host."""

    def __init__(self, style: str, world: int, torch: str, start: datetime) -> None:
        self.style, self.world, self.torch, self.start = style, world, torch, start
        self._step: Callable[[datetime, StepDone], str] = getattr(self, f"_step_{style}")

    def speaks(self, rank: int) -> bool:
        """Whether a rank prints its steps: some trainers let only one do so."""
        if self.style in ("hf", "torchtitan"):
            return rank == 0
        return rank == self.world - 1 if self.style == "megatron" else True

    def step(self, at: float, done: StepDone) -> str:
        """A step's line."""
        return self._step(self.start + timedelta(seconds=at), done)

    def say(self, at: float, rank: int, text: str) -> str:
        """What a rank says beside its steps."""
        moment = self.start + timedelta(seconds=at)
        match self.style:
            case "keyed":
                return f"{_milli(moment, '.')} [trainer rank={rank}] {text}"
            case "words":
                return f"{_milli(moment, ',')} INFO rank {rank}: {text}"
            case "bracket":
                return f"[rank {rank}] {text}"
            case "torchtitan":
                return f"[titan] {_milli(moment, ',')} - root - INFO - {text}"
            case "json":
                return f"{_milli(moment, ',')} INFO [rank {rank}] {text}"
        return f"[{moment:%Y-%m-%d %H:%M:%S}] rank {rank}: {text}"

    def began(self, at: float, rank: int) -> str:
        """The process group is up."""
        return self.say(at, rank, f"init world={self.world} torch={self.torch}")

    def _step_keyed(self, moment: datetime, s: StepDone) -> str:
        parts = {"data_ms": s.data, "fwd_ms": s.forward, "bwd_ms": s.backward, "opt_ms": s.optimizer}
        times = " ".join(f"{name}={seconds * 1e3:.1f}" for name, seconds in parts.items())
        return f"{_milli(moment, '.')} [trainer rank={s.rank}] step={s.step} loss={s.loss:.5f} {times}"

    def _step_words(self, moment: datetime, s: StepDone) -> str:
        return (
            f"{_milli(moment, ',')} INFO rank {s.rank} step {s.step + 1}/{s.total} loss {s.loss:.4f} "
            f"data_time {s.data:.4f}s forward_time {s.forward:.4f}s step_time {s.duration:.3f}s"
        )

    def _step_bracket(self, moment: datetime, s: StepDone) -> str:
        return f"[rank {s.rank}] step {s.step} loss {s.loss:.4f}"

    def _step_json(self, moment: datetime, s: StepDone) -> str:
        return json.dumps(
            {
                "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}",
                "rank": s.rank,
                "step": s.step,
                "loss": round(s.loss, 5),
                "data_s": round(s.data, 4),
                "fwd_s": round(s.forward, 4),
                "bwd_s": round(s.backward, 4),
                "step_s": round(s.duration, 4),
            }
        )

    def _step_torchtitan(self, moment: datetime, s: StepDone) -> str:
        tokens = int(8192 / max(s.duration, 1e-6))
        return (
            f"[titan] {_milli(moment, ',')} - root - INFO - step: {s.step + 1:2}  loss: {s.loss:7.4f}"
            f"  grad_norm: {s.loss / 7:7.4f}  memory: 31.35GiB(39.6%)  tps: {tokens:,}  tflops: 98.12  mfu: 31.4%"
        )

    def _step_megatron(self, moment: datetime, s: StepDone) -> str:
        return (
            f" [{moment:%Y-%m-%d %H:%M:%S}] iteration {s.step + 1:8}/{s.total:8} | "
            f"consumed samples: {(s.step + 1) * 32:12} | elapsed time per iteration (ms): {s.duration * 1e3:.1f} | "
            f"learning rate: 1.000000E-05 | global batch size:    32 | lm loss: {s.loss:.6E} | loss scale: 1.0 | "
            f"grad norm: {s.loss / 7:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def _step_hf(self, moment: datetime, s: StepDone) -> str:
        return str(
            {
                "loss": round(s.loss, 4),
                "grad_norm": round(s.loss / 7, 4),
                "learning_rate": 5e-05,
                "epoch": round((s.step + 1) / s.total, 2),
            }
        )


def _milli(moment: datetime, mark: str) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}{mark}{moment.microsecond // 1000:03}"
