"""Ingest to disk against lnav on the same bytes, in turns; CPU seconds, not wall-clock.

    python bench/ingest.py [--mb 200] [--runs 3] [--set coll info dynamo guards trace]

Five sets are written: operations of NCCL (8 files), a mix of what NCCL logs at start (8 files), what torch traces
(TORCH_LOGS=+dynamo), recompiles with guards (TORCH_LOGS=recompiles_verbose,guards) and the file of TORCH_TRACE (both a
quarter of the size). torch's lines are recorded from the installed torch and repeated with other stamps and process
ids. lnav gets a format with a pattern for each kind of line that we store fields of:

    equal   lnav extracts and writes (CSV) every field that we store of a line; our CPU / lnav's is to be at most 0.7
    query   lnav answers one query on header fields and keeps nothing; at most 1.5, the aim is 1.0

tlparse, which reads files of TORCH_TRACE only and writes pages of HTML, reads the last set; lnav cannot.
lnav is a Debian package, tlparse is on PyPI; without them our figures are printed alone.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

OPS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")
FILES = 8
STAMP = r"(?<timestamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
NCCL = rf"^\[{STAMP}\] (?<host>[^: ]+):(?<pid>\d+):(?<tid>\d+) \[(?<dev>-?\d+)\] NCCL (?<level>[A-Z]+) "
TORCH = (
    r"^(?<level>[VDIWEC])(?<timestamp>\d{4} \d\d:\d\d:\d\d\.\d+) (?<pid>\d+) (?<path>[^\]:]+):(?<lineno>\d+)\]"
    r"(?: \[(?<compile_id>[0-9/_!-]+)\])?+(?: \[__(?<artifact>[a-z_]+)\])?+ ?+"
)
COMMENT = (
    r"(?:\s+#\s(?:(?<code_line>.*?)\s+#\s)?(?<user_file>[^ ]+):(?<user_line>\d+) in (?<user_fn>\S+)(?: \(.*\))?)?"
    r"(?<body>)$"
)
PATTERNS = {
    "coll": {
        "coll": NCCL + r"(?<op>[A-Za-z]+): opCount (?<op_count>[0-9a-f]+) sendbuff 0x[0-9a-f]+ recvbuff 0x[0-9a-f]+ "
        r"count (?<count>\d+) datatype (?<dtype>\d+) op (?<redop>\d+) root (?<root>\d+) comm (?<comm>0x[0-9a-f]+) "
        r"\[nranks=(?<nranks>\d+)\] stream 0x[0-9a-f]+(?<body>)$",
    },
    "info": {
        "p2p": NCCL + r"Channel (?<channel>\d+)/(?<conn>\d+) : (?<me>\d+)\[(?<mydev>[0-9a-f]+)\] -> (?<peer>\d+)"
        r"\[(?<peerdev>[0-9a-f]+)\] via (?<transport>P2P)/(?<method>\S+)(?<body>)$",
        "net": NCCL + r"Channel (?<channel>\d+)/(?<conn>\d+) : (?<me>\d+)\[(?<mydev>[0-9a-f]+)\] -> (?<peer>\d+)"
        r"\[(?<peerdev>[0-9a-f]+)\] \[(?<direction>send|receive)\] via NET/(?<transport>\w+)/(?<netdev>\d+)"
        r"(?:/(?<gdr>GDRDMA))?(?<body>)$",
        "ring": NCCL + r"Ring (?<channel>\d+) : (?<prev>-?\d+) -> (?<me>\d+) -> (?<peer>\d+)(?<body>)$",
        "env": NCCL + r"(?<name>NCCL_\w+) set by environment to (?<value>.*)(?<body>)$",
        "other": NCCL + r"(?!Channel \d|Ring \d|NCCL_\w+ set by)(?<body>.*)$",
    },
    "dynamo": {
        "leaf": TORCH + r"(?<depth>(?:\| )*)\+- (?<guard>[A-Z_]+): (?<code>"
        r"(?:check_tensor\(|___check_\w+\(|hasattr\(|(?:not )?___dict_contains\((?<key>'[^']*'), )?(?<source>.*?)"
        r"(?:, \w+, DispatchKeySet\((?<keys>[^)]*)\), torch\.(?<tensor_dtype>\w+), device=[^,]*, "
        r"requires_grad=(?<grad>\w+), size=(?<shape>\[[^\]]*\]), stride=(?<stride>\[[^\]]*\])\)"
        r"|, \d+\).*?|(?:, '\w+'\))? == (?<expected>.*?)|\)?))" + COMMENT,
        "manager": TORCH + r"(?<depth>(?:\| )*)\+- (?<manager>\w+Manager): source=(?<source>.*?)"
        r"(?:, accessed_by=(?<accessor>.*?))?, type=(?<body>.*)$",
        "recompiled": TORCH + r"Recompiling function (?<fn>\S+) in (?<fn_file>.*):(?<fn_line>\d+)(?<body>)$",
        "size": TORCH + r"    - (?<failed_id>[0-9/]+): tensor '(?<source>.*?)' size mismatch at index (?<dim>\d+)\. "
        r"expected (?<expected>\d+), actual (?<actual>\d+)(?<body>)$",
        "reason": TORCH + r"    - (?<failed_id>[0-9/]+): (?!tensor )(?<code>.*?)" + COMMENT,
        "other": TORCH
        + r"(?!(?:\| )*\+- (?:[A-Z_]+: |\w+Manager: source=)|Recompiling function |    - [0-9/]+: )(?<body>.*)$",
    },
}
PATTERNS["guards"] = PATTERNS["dynamo"]
"""lnav takes the pattern that it took last as long as that fits, so no line may fit two of them."""
INTEGERS = {"pid", "tid", "dev", "count", "dtype", "redop", "root", "nranks", "channel", "conn", "me", "peer", "lineno"}
SAMPLES = {"coll": "coll", "info": "ring", "dynamo": "other", "guards": "other"}
JOB = """
    import torch
    class Block(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.up, self.down, self.scale = torch.nn.Linear(width, width), torch.nn.Linear(width, width), 1.0
        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)) * self.scale)
    model = torch.nn.Sequential(*[Block(16) for _ in range(3)])
    def step(x, factor):
        return model(x).sum() * factor
    compiled = torch.compile(step, backend="aot_eager")
    for size, factor in ((4, 2), (5, 2), (6, 2), (4, 3), (4, 5.5), (4, True)):
        compiled(torch.randn(size, 16), factor)
"""


def coll(seed: int) -> Iterator[str]:
    """Operations of one rank."""
    rnd, n = random.Random(seed), 0
    head = f"node{seed // 4}:{4000 + seed}:{4100 + seed} [{seed % 4}] NCCL INFO "
    while True:
        stamp = f"[2026-11-29 {n // 36000 % 24:02d}:{n // 600 % 60:02d}:{n // 10 % 60:02d}] "
        send, receive = rnd.getrandbits(40), rnd.getrandbits(40)
        yield (
            f"{stamp}{head}{rnd.choice(OPS)}: opCount {n:x} sendbuff 0x7f{send:010x} recvbuff 0x7f{receive:010x} count "
            f"{rnd.choice((1024, 4096, 1048576, 25557032))} datatype 7 op 0 root 0 comm 0x55{rnd.getrandbits(2):010x} "
            f"[nranks=8] stream 0x56{seed:010x}\n"
        )
        n += 1


def info(seed: int) -> Iterator[str]:
    """What one rank says while its communicators are made."""
    rnd, n = random.Random(seed), 0
    head = f"node{seed // 4}:{4000 + seed}:{4100 + seed} [{seed % 4}] NCCL INFO "
    while True:
        stamp = f"[2026-11-29 {n // 36000 % 24:02d}:{n // 600 % 60:02d}:{n // 10 % 60:02d}] "
        channel, me, peer = rnd.randrange(24), rnd.randrange(8), rnd.randrange(8)
        body = rnd.choice((
            f"Channel {channel:02d}/0 : {me}[{me}] -> {peer}[{peer}] via P2P/IPC",
            f"Channel {channel:02d}/0 : {me}[{me}] -> {peer}[{peer}] via P2P/CUMEM/read",
            f"Channel {channel:02d}/0 : {me}[{me}] -> {peer}[{peer}] [send] via NET/IB/{me}/GDRDMA",
            f"Channel {channel:02d}/0 : {me}[{me}] -> {peer}[{peer}] [receive] via NET/Socket/{me}",
            f"Ring {channel:02d} : {me} -> {peer} -> {rnd.randrange(8)}",
            f"Connected to proxy localRank {me} -> connection 0x7f{rnd.getrandbits(40):010x}",
            f"New proxy send connection {n} from local rank {me}, transport 2",
            "NCCL_SOCKET_IFNAME set by environment to eth0",
            "P2P Chunksize set to 524288",
            "Connected all rings",
            "Using network IB",
        ))  # fmt: skip
        yield f"{stamp}{head}{body}\n"
        n += 1


def recorded(logs: str, place: Path) -> Iterator[str]:
    """Lines of a real torch, again and again: each time as of another process, at another time."""
    script = place / "job.py"
    script.write_text(textwrap.dedent(JOB))
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"TORCH_LOGS": logs}, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines(keepends=True) if line[:1] in "VDI" and line[1:5].isdigit()]
    pid = lines[0].split()[2]
    for again in range(10**9):
        hour, minute = again // 60 % 24, again % 60
        for line in lines:
            yield f"{line[:6]}{hour:02d}:{minute:02d}{line[11:]}".replace(f" {pid} ", f" {70000 + again % 16} ", 1)


def traced(place: Path) -> Iterator[str]:
    """The file of TORCH_TRACE of a real torch, again and again."""
    folder, script = place / "trace", place / "job.py"
    script.write_text(textwrap.dedent(JOB))
    subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"TORCH_TRACE": str(folder)}, capture_output=True, check=True
    )
    (written,) = folder.iterdir()
    text = written.read_text()
    while True:
        yield text


def write(name: str, size: int, place: Path) -> list[Path]:
    """Write a set of about `size` bytes."""
    place.mkdir()
    sources: dict[str, Callable[[int], Iterator[str]]] = {"coll": coll, "info": info}
    if name in sources:
        jobs = [(place / f"rank{r}.log", sources[name](r), size // FILES) for r in range(FILES)]
    elif name == "trace":
        jobs = [(place / "dedicated_log_torch_trace_rank_0.log", traced(place.parent), size // 4)]
    else:
        logs = "+dynamo" if name == "dynamo" else "recompiles_verbose,guards"
        jobs = [(place / "torch.log", recorded(logs, place.parent), size if name == "dynamo" else size // 4)]
    for path, lines, most in jobs:
        with path.open("w") as out:
            written = 0
            for line in lines:
                written += out.write(line)
                if written >= most:
                    break
    return [path for path, _, _ in jobs]


def lnav_format(name: str, home: Path, sample: str) -> str:
    """Write the format file; return the columns of its table."""
    patterns = PATTERNS[name]
    fields: list[str] = []
    for pattern in patterns.values():
        fields += [f.split(">")[0] for f in pattern.split("(?<")[1:]]
    names = [f for f in dict.fromkeys(fields) if f not in {"timestamp", "level", "body"}]
    stamp = "%m%d %H:%M:%S.%f" if name in {"dynamo", "guards"} else "%Y-%m-%d %H:%M:%S"
    definition = {
        "title": name,
        "multiline": False,
        "timestamp-format": [stamp],
        "regex": {key: {"pattern": pattern} for key, pattern in patterns.items()},
        "level-field": "level",
        "body-field": "body",
        "value": {f: {"kind": "integer" if f in INTEGERS else "string"} for f in names},
        "sample": [{"line": sample}],
    }
    place = home / "formats" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "format.json").write_text(json.dumps({f"bench_{name}": definition}))
    return ", ".join(names)


def cpu_of(command: list[str], env: dict[str, str] | None = None) -> tuple[float, int]:
    """CPU seconds of a command and of all it started, and its peak memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}: {done.stderr[-800:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout.split()[-1] or 0)


OURS = """
    import resource, sys
    from pathlib import Path
    import replay.cli  # how often Python looks for cycles
    from replay.grammar.executor import shared
    from replay.parse.pipeline import parse_file
    from replay.sources.discover import discover
    from replay.sources.model import Hints
    from replay.sources.read import read_batches
    from replay.store import database
    from replay.store.writer import TableSink
    with database.building(Path(sys.argv[2])) as con, database.sparing(con):
        sink = TableSink(con)
        con.execute("BEGIN")
        for file in discover([sys.argv[1]], Hints()).files:
            counts = parse_file(file, read_batches(file, Hints(), sink.problem), sink, Hints(), shared())
            sink.file(file, counts, ends_whole=True)
        sink.flush()
        con.execute("COMMIT")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def ours(logs: Path, database: Path) -> tuple[float, int]:
    """Our CPU seconds, start-up included, and peak memory in MB."""
    database.unlink(missing_ok=True)
    installed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return cpu_of([sys.executable, "-c", textwrap.dedent(OURS), str(logs), str(database)], installed)


def lnav(home: Path, files: list[Path], *commands: str) -> float:
    """CPU seconds of lnav without a screen."""
    arguments = [word for command in commands for word in ("-c", command)]
    return cpu_of(["lnav", "-n", "-I", str(home), *arguments, "-c", ";SELECT 0", *map(str, files)])[0]


def _check(home: Path, files: list[Path], count: str) -> None:
    """See to it that a pattern takes each line: one that none takes becomes part of the message before it."""
    done = subprocess.run(
        ["lnav", "-n", "-I", str(home), "-c", count, *map(str, files)], capture_output=True, text=True, check=True
    )
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    if int(done.stdout.split()[-1]) != lines:
        sys.exit(f"lnav takes {done.stdout.split()[-1]} of {lines} lines")


def tlparse(file: Path, place: Path) -> float:
    """CPU seconds of tlparse."""
    command = ["tlparse", str(file), "-o", str(place / "pages"), "--overwrite", "--no-browser"]
    return cpu_of(["sh", "-c", '"$@" >&2 && echo 0', "sh", *command])[0]


def peers(name: str, files: list[Path], place: Path) -> dict[str, Callable[[], float]]:
    """What else reads the set, by name."""
    if name == "trace":
        return {"tlparse": lambda: tlparse(files[0], place)} if shutil.which("tlparse") else {}
    if shutil.which("lnav") is None:
        return {}
    with files[0].open() as lines:
        sample = lines.readline().rstrip("\n")
    columns = lnav_format(name, place / "home", sample)
    every = f";SELECT log_path, log_line, log_time, log_level, {columns}, log_raw_text FROM bench_{name}"
    query = f";SELECT log_level, count(*) FROM bench_{name} GROUP BY log_level"
    _check(place / "home", files, f";SELECT count(*) FROM bench_{name}")
    return {
        "lnav equal": lambda: lnav(place / "home", files, every, f":write-csv-to {place / 'out.csv'}"),
        "lnav query": lambda: lnav(place / "home", files, query),
    }


def main() -> None:
    """Run the sets that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--set", nargs="+", default=[*PATTERNS, "trace"], choices=[*PATTERNS, "trace"])
    options = parser.parse_args()
    print("set      MB  ours CPU s    MB/s  peak MB  against what: its CPU s, ratio")
    for name in options.set:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            files = write(name, options.mb * 1_000_000, place / "logs")
            size = sum(f.stat().st_size for f in files) / 1e6
            others = peers(name, files, place)
            mine: list[float] = []
            theirs: dict[str, list[float]] = {other: [] for other in others}
            peak = 0
            for _ in range(options.runs):
                seconds, memory = ours(place / "logs", place / "db.duckdb")
                mine.append(seconds)
                peak = max(peak, memory)
                for other, run in others.items():
                    theirs[other].append(run())
            seconds = statistics.median(mine)
            line = f"{name:7}{size:4.0f}{seconds:12.2f}{size / seconds:8.1f}{peak:9d}"
            for other, taken in theirs.items():
                line += f"  {other}: {statistics.median(taken):.2f}, {seconds / statistics.median(taken):.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
