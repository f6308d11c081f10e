"""Logs that disks, pipes, people and enemies have had in their hands: no crash, no hang, no line that is not counted.

    python bench/mutate.py [--inputs 2000] [--seed 0] [--logs FOLDER ...] [--keep FOLDER]

Each input is a piece of a real log (corpora/, and FOLDER where given) with one or several mutations of MUTATIONS done
to it, some compressed, some as an archive that is cut or that expands without end. Inputs are read as runs of RUN
files, through everything: ingest, timeline, rules, report, log. Of each input the lines that were written must be the
lines that are accounted for, each in one class, and the counts must be those of the table of lines. What fails is
printed with its seed, and kept in --keep. Exit code 1 if anything fails; an input that takes more than PATIENCE
seconds of the clock ends the program with a traceback of where it is.
"""

import argparse
import faulthandler
import gzip
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from replay.report import json as report_json
from replay.report import log as report_log
from replay.report import markdown, text
from replay.resources import folder
from replay.run import open_run

LARGEST = 16_000
"""Bytes of a log that are mutated."""
RUN = 40
"""Inputs that are read as one run."""
PATIENCE = 600
"""Seconds of the clock that a run may take before it counts as hanging."""
BLOCK = 4096
HUGE = (70_000, 300_000, 1_500_000)
"""Lengths of a long line: behind what patterns see, behind what is kept, behind a block that is read."""
BOMB = 24 << 20
"""Bytes without an end of line that an archive expands to; of short lines, a 256th of it."""

JUNK = [
    b"\0", b"\xff", b"\r", b"\x1b[31m", b"\x1b]0;x\x07", b"\xe2\x80\xae", b"\n\n", b"\xe2\x96", b"(" * 50, b"[" * 50,
    b"]:[", b"{", b'"', b"'", b"nan", b"-1", b"9" * 30, b"rank ", b": ", b"[rank7]:", b"[rank999999]:", b"1e999", b"0x",
    b"Traceback (most recent call last):\n", b'  File "', b"RuntimeError: ", b"h:1:2 [0] NCCL INFO ",
    b"2026-13-45 99:99:99", b"9999-12-31 23:59:59", b"0001-01-01 00:00:00", b"E1399 25:61:61.999999 ",
]  # fmt: skip
BROKEN_UTF8 = [
    b"\x80", b"\xbf\xbf", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x92", b"\xf5\x80\x80\x80", b"\xfe",
    b"\xef\xbb\xbf", b"\xc3(", b"\xf8\x88\x80\x80\x80",
]  # fmt: skip
NESTS = [
    b"(",
    b"[",
    b"{",
    b'{"a":',
    b'{"log":"',
    b"L['x'][",
    b"Tuple[",
    b"if (",
    b"| +- ",
    b"[rank0]:",
    b"[1,0]<stderr>:",
]
REASON = "V1130 00:00:10.5 1 torch/_dynamo/guards.py:1] [0/1] [__recompiles]     - 0/0: "
BAITS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "(" * n,
    "nested JSON": lambda n: '{"a":' * (n // 5),
    "wrapped JSON": lambda n: '{"log":"' + '{\\"log\\":' * (n // 10),
    "prefixes": lambda n: "[rank0]:[1,0]<stderr>:" * (n // 22),
    "headers": lambda n: "host:1:2 [0] NCCL INFO x " * (n // 25),
    "a host without end": lambda n: "a" * n + " NCCL INFO x",
    "bars": lambda n: "50%|####\r" * (n // 9),
    "escapes": lambda n: "\x1b[31m" * (n // 5),
    "figures": lambda n: "step 1 loss=2 " * (n // 14),
    "blanks": lambda n: "epoch" + " " * n + "x",
    "guards": lambda n: REASON + "L['x'].a[0](" * (n // 12),
    "quotes": lambda n: REASON + "'\"" * (n // 2),
    "error": lambda n: "aError: " * (n // 8),
    "digits": lambda n: "NCCL version 2." + "1" * n + "x",
}
"""Lines on which a pattern that is not linear does not end."""

Mutation = Callable[[random.Random, bytes, bytes], bytes]
"""From a log, and another one, to what became of it."""


def _span(chance: random.Random, data: bytes) -> tuple[int, int]:
    begin = chance.randrange(len(data) + 1)
    return begin, min(begin + chance.choice([1, 10, 100, 1000]), len(data))


def _put(chance: random.Random, data: bytes, piece: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + piece + data[at:]


def _changed(change: Callable[[random.Random, bytes], bytes]) -> Mutation:
    """A mutation of a few bytes at one place."""

    def mutate(chance: random.Random, data: bytes, _: bytes) -> bytes:
        begin, end = _span(chance, data)
        return data[:begin] + change(chance, data[begin:end]) + data[end:]

    return mutate


def _of_lines(change: Callable[[random.Random, list[bytes]], list[bytes]]) -> Mutation:
    """A mutation of the order of lines."""
    return lambda chance, data, _: b"\n".join(change(chance, data.split(b"\n")))


def _inserted(pieces: Callable[[random.Random], bytes]) -> Mutation:
    return lambda chance, data, _: _put(chance, data, pieces(chance))


def _moved(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    begin = chance.randrange(len(lines))
    block = lines[begin : begin + chance.choice([1, 5, 50])]
    rest = lines[:begin] + lines[begin + len(block) :]
    at = chance.randrange(len(rest) + 1)
    return rest[:at] + block + rest[at:]


def _repeated(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    begin = chance.randrange(len(lines))
    end = begin + chance.choice([1, 6, 50])
    return lines[:end] + lines[begin:end] * chance.choice([1, 2, 20]) + lines[end:]


def _torn(_: random.Random, data: bytes, other: bytes) -> bytes:
    """Two writers, one pipe: blocks that end in the middle of a line."""
    size = max(len(data), len(other))
    return b"".join(data[n : n + BLOCK] + other[n : n + BLOCK] for n in range(0, size, BLOCK))


def _interleaved(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Lines of two ranks in one stream."""
    queues = [data.split(b"\n"), other.split(b"\n")]
    lines = []
    while all(queues):
        queue = chance.choice(queues)
        lines.append(queue.pop(0))
    return b"\n".join(lines + queues[0] + queues[1])


MUTATIONS: dict[str, Mutation] = {
    "cut": _changed(lambda chance, piece: b""),
    "doubled": _changed(lambda chance, piece: piece * 2),
    "noise": _changed(lambda chance, piece: chance.randbytes(len(piece))),
    "turned": _changed(lambda chance, piece: piece[::-1]),
    "newlines": _changed(lambda chance, piece: piece.replace(b"\n", chance.choice([b"", b"\r", b"\r\n", b"\0"]))),
    "digits": _changed(
        lambda chance, piece: bytes(chance.choice(b"0123456789") if 48 <= c <= 57 else c for c in piece)
    ),
    "junk": _inserted(lambda chance: chance.choice(JUNK)),
    "NUL": _inserted(lambda chance: b"\0" * chance.choice([1, 100, 5000])),
    "0xFF": _inserted(lambda chance: b"\xff" * chance.choice([1, 30])),
    "lone CR": _inserted(lambda chance: b"\r" * chance.choice([1, 3, 500])),
    "broken UTF-8": _inserted(lambda chance: chance.choice(BROKEN_UTF8)),
    "huge line": _inserted(lambda chance: chance.choice([b"x", b" ", b"a=1 ", b"\xe2\x96\x88"]) * chance.choice(HUGE)),
    "nested": _inserted(lambda chance: chance.choice(NESTS) * chance.choice([100, 5000])),
    "bait": _inserted(lambda chance: f"\n{chance.choice([*BAITS.values()])(20_000)}\n".encode()),
    "moved block": _of_lines(_moved),
    "repeated block": _of_lines(_repeated),
    "shuffled": _of_lines(lambda chance, lines: chance.sample(lines, len(lines))),
    "torn writes": _torn,
    "interleaved ranks": _interleaved,
}
_LARGE = frozenset({"huge line", "bait", "nested"})


def piece(chance: random.Random, content: bytes) -> bytes:
    """Return some lines' worth of a log."""
    at = chance.randrange(max(len(content) - LARGEST, 1))
    return content[at : at + LARGEST]


def mutated(chance: random.Random, content: bytes, other: bytes) -> tuple[bytes, list[str]]:
    """Return a piece of a log with mutations done to it, and their names."""
    data, done = piece(chance, content), []
    for _ in range(chance.choice([1, 2, 5, 20])):
        name = chance.choice([*MUTATIONS])
        if name in _LARGE and name in done:
            continue
        data = MUTATIONS[name](chance, data, piece(chance, other))[: 4 * max(HUGE)]
        done.append(name)
    return data, done


def lines_in(content: bytes) -> int:
    """Return the number of lines of a content: its newlines, and what stands behind the last."""
    return content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))


Inputs = dict[str, tuple[int | None, list[str]]]
"""By the path of an input: the lines that it holds (None: an archive that is not read to its end), what was done."""


def write(chance: random.Random, originals: Sequence[Path], place: Path, count: int) -> Inputs:
    """Write mutated inputs into a folder."""
    inputs: Inputs = {}
    for number in range(count):
        content, done = mutated(chance, _content(chance.choice(originals)), _content(chance.choice(originals)))
        name = chance.choice(["rank{}.log", "{}/stderr.log", "node{0}/out.{0}", "{}.txt", "nccl.h{0}.{0}"])
        path = place / name.format(number)
        lines: int | None = lines_in(content)
        match chance.randrange(12):
            case 0:
                path, content = path.with_name(path.name + ".gz"), gzip.compress(content, 1)
                done.append("gzip")
            case 1:
                path, whole = path.with_name(path.name + ".gz"), gzip.compress(content, 1)
                content, lines = whole[: chance.randrange(1, len(whole))], None
                done.append("cut gzip")
            case 2 if number % 8 == 0:
                path, lines = path.with_name(path.name + ".gz"), None
                fill = chance.choice([b"\0", b"x", b"\n", b"RuntimeError: x\n"])
                content = gzip.compress(content + fill * (BOMB >> 8 if b"\n" in fill else BOMB), 9)
                done.append("gzip bomb")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        inputs[path.relative_to(place).as_posix()] = lines, done
    return inputs


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def faults(logs: Path, db: Path, inputs: Inputs) -> tuple[list[str], Counter[str]]:
    """Read the inputs as one run; return what is wrong, and the number of lines by class."""
    found: list[str] = []
    classes: Counter[str] = Counter()
    with open_run([logs], db=db) as run:
        kept = {
            (path, name): count
            for path, name, count in run.sql(
                "SELECT f.path, l.class, count(*) FROM lines AS l JOIN files AS f USING (file_id) GROUP BY ALL"
            ).rows
        }
        rows = run.sql("SELECT path, kind, lines, parsed, continuation, plain, malformed FROM files").rows
        for path, kind, lines, *numbers in rows:
            expected, done = inputs[path]
            counts = dict(zip(report_log.CLASSES, (n or 0 for n in numbers), strict=True))
            classes.update(counts)
            wanted = 0 if kind in {"binary", "empty", "unreadable"} else lines if expected is None else expected
            if kind in {"binary", "unreadable"}:
                classes[f"files {kind}"] += 1
            if not (lines or 0) == sum(counts.values()) == wanted:
                found.append(f"{path} ({kind}): {wanted} lines, told {lines}, classed {counts}: {done}")
            if any(kept.get((path, name), 0) != count for name, count in counts.items()):
                found.append(f"{path} ({kind}): classes {counts} are not those of the lines: {done}")
        found += [f"{path} is missing: {inputs[path][1]}" for path in inputs.keys() - {row[0] for row in rows}]
        found += [text for (text,) in run.sql("SELECT text FROM problems WHERE text LIKE 'rule %'").rows]
        report = run.report()
        for show in (report_json.render, markdown.render, lambda r: text.render(r, text.Style())):
            odd = {c for c in show(report) if c != "\n" and not c.isprintable()}
            if odd - {"\u2028"}:
                found.append(f"a report shows {odd}")
        shown = sum(1 for _ in run.log())
        if shown != sum(kept.values()):
            found.append(f"the log shows {shown} of {sum(kept.values())} lines")
    return found, classes


def originals(places: Iterable[Path]) -> list[Path]:
    """Return the logs below the places, those of the corpora among them."""
    found = [p for p in folder("corpora").glob("*/logs/**/*") if p.is_file()]
    found += [p for place in places for p in place.rglob("*") if p.is_file()]
    return sorted(p for p in found if p.stat().st_size)


def run_of(seed: int, sources: Sequence[Path], count: int, place: Path) -> tuple[list[str], Mapping[str, int]]:
    """Write and read one run; return its faults and the number of lines by class."""
    (place / "logs").mkdir()
    inputs = write(random.Random(seed), sources, place / "logs", count)
    try:
        return faults(place / "logs", place / "run.duckdb", inputs)
    except Exception:  # whatever it is, it is what is looked for
        return [traceback.format_exc()], {}


def main() -> int:
    """Read all inputs; print what fails and what it came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logs", type=Path, nargs="*", default=[])
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    sources = originals(asked.logs)
    failed, classes, before = 0, Counter[str](), os.times()
    for number in range(0, asked.inputs, RUN):
        seed = asked.seed + number // RUN
        print(f"seed {seed}", end="\r", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            found, counts = run_of(seed, sources, min(RUN, asked.inputs - number), Path(temporary))
            faulthandler.cancel_dump_traceback_later()
            classes.update(counts)
            if found:
                failed += 1
                print(f"seed {seed}:", *found, sep="\n  ", flush=True)
                if asked.keep:
                    shutil.copytree(Path(temporary) / "logs", asked.keep / str(seed), dirs_exist_ok=True)
    used, peak = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = used.user + used.system - before.user - before.system
    print(f"{asked.inputs} inputs of {len(sources)} logs, {failed} runs with faults; {dict(classes)}")
    print(f"{seconds:.0f} CPU seconds, {peak // 1024} MB at the peak")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
