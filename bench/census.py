"""Which production takes which message of NCCL: every format of the library, made into a line and read.

    python bench/census.py CATALOGUE [--docs] [--known] [--missing]
    python bench/census.py --wheel nvidia_nccl_cu12-2.27.7-*.whl ... [--catalogue CATALOGUE]

CATALOGUE is a table (tab-separated) with the columns format, levels, first, last: printf formats and the versions that
have them. From wheels the formats are read out of the library itself; what is a message there, the catalogue tells.
`--docs` writes docs/formats.md, `--known` writes grammars/nccl_known.shapes (every message that no grammar takes),
`--missing` prints what is not recognised. A message is typed where a grammar gives it columns, known text where only
its shape is known, and not recognised where it is taken as any text.
"""

import argparse
import csv
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.grammar.compile import load
from replay.grammar.executor import shared
from replay.parse.families import families
from replay.parse.known_text import KnownText, known_text
from replay.resources import folder

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "formats.md"
VERSIONS = [
    "2.9.9",
    "2.10.3",
    "2.11.4",
    "2.12.12",
    "2.13.4",
    "2.14.3",
    "2.15.5",
    "2.16.5",
    "2.17.1",
    "2.18.1",
    "2.18.3",
    "2.18.6",
    "2.19.3",
    "2.19.4",
    "2.20.5",
    "2.21.5",
    "2.22.3",
    "2.23.4",
    "2.24.3",
    "2.25.1",
    "2.26.2",
    "2.26.6",
    "2.27.3",
    "2.27.7",
    "2.28.3",
    "2.28.9",
    "2.29.2",
    "2.29.7",
    "2.30.3",
    "2.30.7",
    "2.31.2",
    "2.32.3",
]
LEVELS = ("INFO", "WARN", "ATTN")
TYPED = frozenset(
    {"nccl_channel", "nccl_comm", "nccl_coll", "nccl_topo", "nccl_env", "nccl_net", "nccl_warn", "nccl_warn_only"}
)
CLASSES = ("typed", "known text", "not recognised")
_CONVERSION = re.compile(r"%([-+ #0]*)([0-9*]*)(\.[0-9*]+)?(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z%])")
_SIGNS = re.compile("[*#]")
_CALL = "Call to  failed"
"""Of a macro that puts in the name of what it calls."""
_TELLING = 8
"""Letters that a message must have of its own to be known by them."""
_NUMBERS = frozenset("diuxXpfgeEo")
_VALUES = {"d": "3", "i": "3", "u": "4", "x": "1a000", "X": "1A000", "p": "0x7f2a4c000b60", "f": "12.50", "g": "12.5"}
_WORDS = (  # what stands before a text tells what the text is
    (re.compile(r"(version|local:|remote) $"), "2.28.9"),
    (re.compile(r"^Error while $"), "creating"),
    (re.compile(r"^UDS: .*failed : $"), "Permission denied"),
    (re.compile(r"(error|failed ?:|failed with|errno|returned|with error) ?:? ?'?$"), "Connection refused"),
    (re.compile(r"(from|to|peer|address|addr|remote) $"), "10.0.0.2<41234>"),
    (re.compile(r"(NET|COLLNET)/$"), "IB"),
    (re.compile(r"via (SHM|P2P)/$"), "direct"),
    (re.compile(r"^$|^NCCL_|FUNC"), "ncclCommInitRank"),
)
_FIXED = (  # texts that the library itself puts together: what a conversion stands for there
    ("%s comm %p rank", {0: "ncclCommInitRank"}),
    ("%s: opCount", {0: "AllReduce"}),
    ("%s set by environment", {0: "NCCL_IB_TIMEOUT"}),
    ("%s set to", {0: "NCCL_IB_HCA"}),
    ("NVLS multicast support is %savailable", {0: "not "}),
    ("%s:%d (%s)", {0: "init.cc", 2: "ncclCommInitRankFunc"}),
    ("%s:%d ", {0: "init.cc"}),
    ("%s [", {0: "AllReduce"}),
    ("%s: %ld Bytes", {0: "AllReduce", 2: "RING", 3: "LL"}),
    ("%s: %zu Bytes", {0: "AllReduce", 2: "RING", 3: "LL"}),
    ("Pattern ", {5: "NVL", 6: "PIX"}),
    ("%s/Plugin", {0: "NET"}),
    ("NET/Socket : Using", {0: " [0]eth0:10.0.0.1<0>"}),
    ("NET/IB : Using", {0: " [0]mlx5_0:1/RoCE [RO]", 1: "eth0", 2: "10.0.0.1<0>"}),
    ("Bootstrap timings", {0: "12.50"}),
    ("Bootstrap", {0: "eth0:10.0.0.1<0>"}),
    ("Trees", {0: " [0] 1/-1/-1->0->-1"}),
    ("%s : %s allocated", {0: "AllReduce", 1: "sendbuff"}),
    ("%s : ", {0: "AllReduce"}),
    ("Channel ", {6: "/GDRDMA", 7: "/Shared", 8: ""}),
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format with the level it is printed at and the first and last version that has it (indexes of VERSIONS)."""

    text: str
    level: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a format: one of CLASSES, and the production that took it, as family and form."""

    format: Format
    kind: str
    production: str


def read_catalogue(path: Path) -> list[Format]:
    """Read the formats of a catalogue that are printed at a level of LEVELS."""
    with path.open(encoding="utf8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        Format(row["format"], level, VERSIONS.index(row["first"]), VERSIONS.index(row["last"]))
        for row in rows
        for level in row["levels"].split(",")
        if level in LEVELS
    ]


def instantiate(text: str) -> str:
    """Return a message of this format, with plausible values."""
    fixed = next((values for begin, values in _FIXED if text.startswith(begin)), {})
    nth = -1

    def value(match: re.Match[str]) -> str:
        nonlocal nth
        flags, kind = match[1], match[4]
        if kind == "%":
            return "%"
        nth += 1
        if nth in fixed:
            return fixed[nth]
        if kind in _VALUES:
            return ("0x" if "#" in flags else "") + _VALUES[kind]
        before = text[: match.start()]
        return next((word for pattern, word in _WORDS if pattern.search(before)), "mlx5_0")

    return _CONVERSION.sub(value, plain(text))


def plain(text: str) -> str:
    """Return a format as the log shows its first line: escapes undone, the end of the line taken off."""
    first = text.replace("\\t", "\t").replace("\\r", "").removesuffix("\\n").split("\\n")[0]
    return first.replace(_CALL, "Call to bind failed")


def shape_of(text: str) -> str | None:
    """Return the line of grammars/nccl_known.shapes for a format; None where its own words do not tell it."""
    shape, at = "", 0
    for match in _CONVERSION.finditer(text := plain(text)):
        shape += _SIGNS.sub("*", text[at : match.start()])
        shape += "%" if match[4] == "%" else "#" if match[4] in _NUMBERS else "*"
        at = match.end()
    shape += _SIGNS.sub("*", text[at:])
    shape = re.sub(r"\*[*#]+|#+\*[*#]*", "*", shape)
    return shape if sum(c.isalpha() for c in shape) >= _TELLING else None


def header(level: str, version: int) -> str:
    """Return what stands before a message of a version."""
    line = "node-1:100:200 [0] "
    stamped, with_function = version >= VERSIONS.index("2.26.2"), version >= VERSIONS.index("2.30.7")
    if level == "INFO":
        return f"{line}NCCL INFO "
    place = "init.cc:1117 (ncclCommInitRankFunc) " if with_function else "init.cc:1117 "
    return f"{'[2026-11-29 23:14:27] ' if stamped else ''}{line}{place}NCCL {level} "


def take(form: Format, known: KnownText) -> Found:
    """Read a line of this format as parsing does."""
    text = instantiate(form.text)
    for version in {form.first, form.last}:
        head = shared().one("headers", header(form.level, version) + text)
        if text and (head is None or head.record != "nccl" or head.fields.get("text") != text):
            return Found(form, CLASSES[2], "header")
    for family in families("nccl", form.level):
        match = shared().one(family, text)
        if match is not None and family in TYPED:
            return Found(form, CLASSES[0], f"{family}.{match.form}")
        if match is not None and family != "nccl_text":
            return Found(form, CLASSES[1], f"{family}.{match.form}")
    if known.takes(text):
        return Found(form, CLASSES[1], "nccl_known")
    return Found(form, CLASSES[2], "nccl_text")


def census(formats: Iterable[Format], known: KnownText) -> list[Found]:
    """Read a line of each format."""
    return [take(form, known) for form in formats]


def by_version(found: Iterable[Found]) -> Iterator[tuple[str, list[int]]]:
    """Give for each version the number of its formats in each of CLASSES."""
    everything = list(found)
    for index, version in enumerate(VERSIONS):
        own = [f for f in everything if f.format.first <= index <= f.format.last]
        if own:
            yield version, [sum(f.kind == kind for f in own) for kind in CLASSES]


def unknown_shapes(formats: Iterable[Format]) -> list[str]:
    """Return the shapes of all formats that no grammar takes."""
    nothing = KnownText([])
    left = {shape_of(form.text) for form in formats if take(form, nothing).kind == CLASSES[2]}
    return sorted(shape for shape in left if shape is not None)


def write_known(shapes: list[str]) -> None:
    """Write grammars/nccl_known.shapes."""
    head = (
        "// Messages of NCCL 2.9.9 to 2.32.3 that no grammar gives columns: `*` stands for a text, `#` for a number.\n"
        "// Written by `python bench/census.py CATALOGUE --known`.\n"
    )
    path = folder("grammars") / "nccl_known.shapes"
    path.write_text(head + "".join(f"{shape}\n" for shape in shapes), encoding="utf8")


def grammar_rows() -> Iterator[tuple[str, int, str]]:
    """Give name, number of productions and the first sentence of each grammar."""
    for path in [*sorted(folder("grammars").glob("*.lark")), *sorted(folder("grammars").glob("nested/*.lark"))]:
        comment = ""
        for line in path.read_text(encoding="utf8").splitlines():
            if not line.startswith("//"):
                break
            comment += line.removeprefix("//")
        nested = path.parent.name == "nested"
        yield (
            path.stem,
            0 if nested else len(load(path.stem).productions),
            re.split(r"(?<=[a-z)\]])[.:](?= |$)", comment.strip())[0],
        )


def documentation(found: list[Found]) -> str:
    """Return docs/formats.md."""
    taken: dict[str, int] = {}
    for one in found:
        family = one.production.partition(".")[0]
        taken[family] = taken.get(family, 0) + 1
    parts = [
        "# Formats\n",
        "Written by `python bench/census.py CATALOGUE --docs`; do not edit.\n",
        "## Grammars\n",
        "Each file of `grammars/` and how many productions the compiler makes of it (0: Lark itself runs it).\n",
        "| grammar | productions | what it reads |\n|---|---|---|",
        *(f"| {name} | {count} | {text.replace('|', chr(92) + '|')} |" for name, count, text in grammar_rows()),
        "\n## NCCL: which production takes which message\n",
        f"Every WARN, INFO and ATTN format of the library's releases ({len(found)} formats and levels), made into a"
        " line and read. Typed: its values stand in columns. Known text: recognised, counted and kept. The last column"
        " is the share that is typed or known.\n",
        "| NCCL | formats | typed | known text | not recognised | recognised |\n|---|---|---|---|---|---|",
    ]
    for version, counts in by_version(found):
        share = 100 * (counts[0] + counts[1]) / sum(counts)
        parts.append(f"| {version} | {sum(counts)} | {counts[0]} | {counts[1]} | {counts[2]} | {share:.1f} % |")
    parts += ["\n| taken by | formats |\n|---|---|"]
    parts += [f"| {family} | {count} |" for family, count in sorted(taken.items(), key=lambda item: -item[1])]
    return "\n".join(parts) + "\n"


def wheel_texts(path: Path) -> Iterator[str]:
    """Give the texts in the library of a wheel (or in a library's file) that may be formats of messages."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            name = next(n for n in archive.namelist() if "libnccl.so" in n)
            data = archive.read(name)
    else:
        data = path.read_bytes()
    for found in re.finditer(rb"[\t\n\x20-\x7e]{8,2000}(?=\x00)", data):
        text = found[0].decode().replace("\n", "\\n").replace("\t", "\\t")
        if "%" in text or " " in text:
            yield text


def wheel(path: Path, catalogue: Iterable[Format], known: KnownText) -> None:
    """Print what is taken of the formats of one library."""
    texts = set(wheel_texts(path))
    match = re.search(r"[0-9]+\.[0-9]+\.[0-9]+", path.name)
    version = match[0] if match else next((v for t in texts for v in re.findall(r"NCCL version ([0-9.]+)", t)), "")
    index = VERSIONS.index(version) if version in VERSIONS else len(VERSIONS) - 1
    own = [Format(f.text, f.level, index, index) for f in catalogue if f.text in texts]
    rows = census(own, known)
    counts = [sum(f.kind == kind for f in rows) for kind in CLASSES]
    print(path.name, version, len(rows), *(f"{kind} {count}" for kind, count in zip(CLASSES, counts, strict=True)))
    conversions = [t for t in texts if "%" in t and not any(t == f.text for f in own) and t[:1].isupper()]
    strange = [f for f in census((Format(t, "WARN", index, index) for t in conversions), known) if f.kind == CLASSES[2]]
    print(f"  texts with conversions beside the catalogue: {len(conversions)}, not recognised {len(strange)}")


def main(arguments: list[str]) -> None:
    """Run the census."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", type=Path, nargs="?")
    parser.add_argument("--wheel", type=Path, nargs="*", default=[])
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--missing", action="store_true")
    given = parser.parse_args(arguments)
    formats = read_catalogue(given.catalogue) if given.catalogue else []
    if given.known:
        write_known(unknown_shapes(formats))
    known = known_text("nccl_known")
    for path in given.wheel:
        wheel(path, formats, known)
    found = census(formats, known)
    for version, counts in by_version(found):
        print(version, sum(counts), *(f"{kind} {count}" for kind, count in zip(CLASSES, counts, strict=True)), sep="\t")
    if given.missing:
        for one in found:
            if one.kind == CLASSES[2]:
                print(one.format.level, VERSIONS[one.format.first], one.production, instantiate(one.format.text))
    if given.docs:
        DOCS.write_text(documentation(found), encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1:])
