"""The screen on a run of 1,000 ranks and a million events: first screen, keys, memory; in a terminal of its own.

    python bench/tui.py [--steps 240] [--size 80x24 240x70] [--keep FOLDER]

The logs are synthetic (`replay synth`) and read by the whole pipeline; both are kept in FOLDER for the next time. Then
`replay tui` runs as a process behind a pseudo-terminal that says it can show whole frames, and is driven through every
kind of key. Printed for each size of the terminal:

    first     from the database being open to the frame that shows lanes and the first finding [s]; at most 1
    key       from the bytes of a key to the end of the frame that answers it [ms], median and p95; p95 at most 50
    settled   the same to the last frame, in which what the database was asked for has come
    CPU       what the whole process used between a key and its frame [ms], p95: other load on the machine is not in it
    memory    the most the process ever had in memory [MiB]; at most 400
    what-if   from a key that takes the finding's cause out, or puts it back, to the answer [s], the longest; and to
              the frame of keys that are pressed meanwhile [ms], the longest

Exit code 1 if one of the bounds is broken. On a machine that does other things too, `chrt -r 10 python bench/tui.py`
keeps what they take out of the times. A key that is escape waits for 100 ms for what may follow it: Textual's way.
"""

import argparse
import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from replay.run import ProgressCallback, Run, open_run
from replay.synth import write
from replay.tui.app import ReplayApp

SCENARIO = """
about: A thousand ranks; one compiles anew, one waits for its data.
torch: 2.9.1
nccl: 2.27.7
topology: {nodes: 125, gpus: 8, network: ib}
parallel: {buckets: 3}
steps: {count: %d, noise: 0.03}
logs: {nccl: coll, torch: [recompiles, dynamo]}
faults:
- {kind: recompile, ranks: [3]}
- {kind: slow-data, ranks: [517]}
"""
FIRST_S, KEY_MS, MEMORY_MIB = 1.0, 50.0, 400.0
FRAME_END = b"\x1b[?2026l"
QUIET_S = 0.12
"""A screen on which nothing was painted for so long has settled."""
PATIENCE_S = 1.0

RIGHT, LEFT, UP, DOWN = b"\x1b[C", b"\x1b[D", b"\x1b[A", b"\x1b[B"
HOME, END = b"\x1b[H", b"\x1b[F"
STEP, STEP_BACK, PAGE_UP, PAGE_DOWN, TAB_BACK = b"\x1b[1;2C", b"\x1b[1;2D", b"\x1b[5~", b"\x1b[6~", b"\x1b[Z"
WALK: list[bytes] = [
    *[b"c"] * 3, *[b"o"] * 2, b"i", *[b"n"] * 3, *[b"p"] * 2,
    *[RIGHT] * 30, *[LEFT] * 10, *[STEP] * 20, *[STEP_BACK] * 5, *[b"]"] * 3, *[b"["] * 2, *[b"}"] * 8, *[b"{"] * 4,
    b"G", b"g", b"r", *[RIGHT] * 10, b"r",
    *[b"+"] * 10, *[b","] * 3, *[b"."] * 3, *[b"-"] * 4, b"0",
    b"1", *[DOWN] * 5, *[UP] * 3, b"\r", *[DOWN] * 10, PAGE_DOWN, PAGE_UP, b"\r",
    b"a", *[DOWN] * 5, b"a", *[DOWN] * 10, PAGE_DOWN, b"a",
    b"2", *[DOWN] * 10, *[PAGE_DOWN] * 3, PAGE_UP, b"\r", b"3", *[DOWN] * 4, b"\r", *[UP] * 2,
    b"4", *[DOWN] * 3, b"5", *[DOWN] * 3, b"6", *[DOWN] * 3, b"z", *[DOWN] * 3, b"z", *[b"\t"] * 3, TAB_BACK,
    b"/", *[bytes([c]) for c in b"kind:step rank:0-99"], b"\r", *[RIGHT] * 10, *[DOWN] * 3, b"\x1b",
    b":", *[bytes([c]) for c in b"step 100"], b"\r", b":", *[bytes([c]) for c in b"rank 517"], b"\r", b"d",
    b"?", *[DOWN] * 3, b"\x1b", b"t", b"t", b">", b"R", b"R", b"<",
    b"s", *[bytes([c]) for c in b" LIMIT 5"], b"\r", b"\x0f", *[DOWN] * 3, RIGHT, LEFT, b"\t", b"\x1b",
    *[STEP] * 10, *[RIGHT] * 10, *[LEFT] * 5, b")", b"(", END, HOME, b"y",
    b"x", *[DOWN] * 5, PAGE_DOWN, b"\x1b", b" ", b" ",
]  # fmt: skip
"""Every kind of key of the main screen, a filter, a place to go to, the SQL pad, a script and the help; at the end the
run is played, which does not settle, and halted.
"""


@dataclass
class Terminal:
    """A pseudo-terminal with a program in it."""

    process: subprocess.Popen[bytes]
    master: int
    seen: bytearray = field(default_factory=bytearray)
    times: list[tuple[int, float]] = field(default_factory=list)
    """Up to which byte had come at which time."""

    def read(self, seconds: float) -> bool:
        """Take what comes within some seconds; False if nothing did."""
        if not select.select([self.master], [], [], max(seconds, 0))[0]:
            return False
        try:
            part = os.read(self.master, 1 << 16)
        except OSError:
            return False
        if b"\x1b[?2026$p" in part:
            os.write(self.master, b"\x1b[?2026;2$y")
        self.seen += part
        self.times.append((len(self.seen), time.monotonic()))
        return bool(part)

    def wait_for(self, mark: bytes, begin: int, seconds: float) -> float | None:
        """Return the time at which a mark had come behind `begin`; None if it did not."""
        end = time.monotonic() + seconds
        while True:
            at = self.seen.find(mark, begin)
            if at >= 0:
                return next(t for size, t in self.times if size >= at + len(mark))
            if time.monotonic() >= end:
                return None
            self.read(end - time.monotonic())

    def settle(self) -> float:
        """Wait until nothing is painted any more; return when the last byte came."""
        while self.read(QUIET_S):
            pass
        return self.times[-1][1]

    def cpu(self) -> float:
        """Return the seconds of CPU that all threads of the program used."""
        folder = Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in folder.iterdir()) / 1e9

    def peak(self) -> float:
        """Return the most memory that the program had [MiB]."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def start(command: list[str], columns: int, rows: int, environment: dict[str, str]) -> Terminal:
    """Run a command in a terminal of a size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env=os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | environment,
    )  # fmt: skip
    os.close(slave)
    return Terminal(process, master)


def child(database: str) -> None:
    """Be `replay tui`, and note when the database was open."""

    def opener(progress: ProgressCallback) -> Run:
        run = open_run([database], progress=progress)
        Path(os.environ["BENCH_OPEN"]).write_text(repr(time.monotonic()))
        return run

    ReplayApp(opener, [database]).run()


@dataclass(frozen=True, slots=True)
class Figures:
    """What one walk came to: seconds, milliseconds, MiB."""

    first: float
    keys: list[float]
    settled: list[float]
    cpu: list[float]
    slowest: list[tuple[float, str]]
    silent: int
    memory: float
    what_if: list[float]
    """Seconds from a key to the run without a cause."""
    meanwhile: list[float]
    """Milliseconds from a key, pressed while that is worked out, to its frame."""


def measure(database: Path, columns: int, rows: int) -> Figures:
    """Walk through a run in a terminal of a size."""
    with tempfile.TemporaryDirectory() as cache:
        note = Path(cache) / "open"
        terminal = start(
            [sys.executable, __file__, "--child", str(database)], columns, rows,
            {"BENCH_OPEN": str(note), "REPLAY_CACHE_DIR": cache},
        )  # fmt: skip
        try:
            marks = (b"ranks \xc3\x97 time", b"Rank 3 recompiled")
            shown = [terminal.wait_for(mark, 0, 60) for mark in marks]
            if None in shown:
                raise SystemExit(f"the first screen did not come: {bytes(terminal.seen[-2000:])!r}")
            first = max(t for t in shown if t is not None) - float(note.read_text())
            terminal.settle()
            answers = [(*_press(terminal, key, settles=n != len(WALK) - 2), key) for n, key in enumerate(WALK)]
            what_if, meanwhile = _what_if(terminal)
            memory = terminal.peak()
        finally:
            terminal.process.terminate()
            terminal.process.wait(timeout=10)
            os.close(terminal.master)
    answered = [(key, late, cpu, name) for key, late, cpu, name in answers if key is not None]
    return Figures(
        first,
        [a[0] for a in answered],
        [a[1] for a in answered],
        [a[2] for a in answered],
        sorted(((a[0], repr(a[3])) for a in answered), reverse=True)[:8],
        len(answers) - len(answered),
        memory,
        what_if,
        meanwhile,
    )


def _what_if(terminal: Terminal) -> tuple[list[float], list[float]]:
    """Go to the first finding and take its cause out, put it back, and so on: s to each answer; and ms to the frames of
    keys that are pressed while it is being worked out.
    """
    for key in (b":", b"F", b"1", b"\r"):
        _press(terminal, key)
    answers, meanwhile = [], []
    out, back = b"instead of", b"What is known"
    for key, answer in ((b"w", out), (b" ", back), (b" ", out), (b"0", back)):
        begin, began = len(terminal.seen), time.monotonic()
        os.write(terminal.master, key)
        terminal.wait_for(FRAME_END, begin, PATIENCE_S)
        for other in (DOWN, UP):
            at, pressed = len(terminal.seen), time.monotonic()
            os.write(terminal.master, other)
            frame = terminal.wait_for(FRAME_END, at, PATIENCE_S)
            meanwhile += [] if frame is None else [1000 * (frame - pressed)]
        if terminal.wait_for(answer, begin, 20) is not None:
            answers.append(terminal.settle() - began)
    _press(terminal, b"\x1b")
    return answers, meanwhile


def _press(terminal: Terminal, key: bytes, *, settles: bool = True) -> tuple[float | None, float, float]:
    """Press a key: ms to its frame and to the last one, ms of CPU to its frame. None: there was nothing to paint."""
    begin, cpu, began = len(terminal.seen), terminal.cpu(), time.monotonic()
    os.write(terminal.master, key)
    frame = terminal.wait_for(FRAME_END, begin, PATIENCE_S)
    used = terminal.cpu() - cpu
    last = terminal.settle() if settles else terminal.times[-1][1]
    if frame is None:
        return None, 0.0, 0.0
    return 1000 * (frame - began), 1000 * (last - began), 1000 * used


def prepare(folder: Path, steps: int) -> Path:
    """Return the database of the run, made now or an earlier time."""
    place = folder / f"run-{steps}.duckdb"
    if not place.exists():
        scenario, logs = folder / f"scenario-{steps}.yaml", folder / f"run-{steps}"
        scenario.write_text(SCENARIO % steps)
        print(f"making the run in {shlex.quote(str(folder))} (minutes; kept for the next time)", file=sys.stderr)
        open_run([logs / "logs" if logs.exists() else write(scenario, logs)], db=place).close()
    return place


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--size", nargs="+", default=["80x24", "240x70"], metavar="COLUMNSxROWS")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "replay-bench-tui")
    parser.add_argument("--child", metavar="DATABASE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return 0
    arguments.keep.mkdir(parents=True, exist_ok=True)
    database = prepare(arguments.keep, arguments.steps)
    bad = False
    print(_describe(database))
    for size in arguments.size:
        columns, rows = map(int, size.split("x"))
        found = measure(database, columns, rows)
        p95 = float(np.percentile(found.keys, 95))
        bad |= found.first > FIRST_S or p95 > KEY_MS or found.memory > MEMORY_MIB
        print(
            f"{size:>8}  first {found.first:.2f} s  key {np.median(found.keys):.0f} ms, p95 {p95:.0f} ms"
            f"  settled {np.median(found.settled):.0f} ms, p95 {np.percentile(found.settled, 95):.0f} ms"
            f"  CPU p95 {np.percentile(found.cpu, 95):.0f} ms  memory {found.memory:.0f} MiB"
            f"  ({len(found.keys)} keys, {found.silent} without a frame)"
        )
        print(
            f"          what-if: {len(found.what_if)} answers, the longest after {max(found.what_if, default=0):.2f} s"
            f"; keys meanwhile at most {max(found.meanwhile, default=0):.0f} ms"
        )
        print("          slowest: " + ", ".join(f"{name} {ms:.0f} ms" for ms, name in found.slowest))
    return int(bad)


def _describe(database: Path) -> str:
    with open_run([database]) as run:
        events, ranks = run.sql("SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM ranks)").rows[0]
    return f"{events:,} events of {ranks:,} ranks, {database.stat().st_size / 2**20:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
