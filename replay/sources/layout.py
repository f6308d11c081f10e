"""What the path of a file tells about the process that wrote it; the names are in folders.lark and filenames.lark."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from replay.grammar.executor import shared
from replay.sources.model import Identity

_COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
_LABELS = ("label", "label_number", "task")
_STREAMS = {"stdout": "stdout", "stderr": "stderr", "out": "stdout", "err": "stderr"}


@dataclass(frozen=True, slots=True)
class Name:
    """One folder or file name: the form that took it, its record, and its fields."""

    text: str
    form: str = ""
    record: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def number(self, key: str) -> int | None:
        """The field as a number, None if it is absent or too long for one of ours."""
        value = self.fields.get(key, "")
        return int(value) if value.isdigit() and len(value) < 10 else None


@dataclass(slots=True)
class Place:
    """A file's path, read. `folders` are those below LOGS, outermost first."""

    folders: list[Name]
    file: Name
    lead: Name
    """What stands before the number in the file's name, read like a folder's name."""
    stem: Name
    """The file's name up to its first dot, read like a folder's name; not where it holds a rank or a job."""
    identity: Identity
    attempt: int = 0
    weak: tuple[str, int] | None = None
    """Lead and number of a name whose number may be a rank."""


@lru_cache(maxsize=4096)
def folder_name(text: str) -> Name:
    """Read a folder's name."""
    return _name("folders", text)


def _name(family: str, text: str) -> Name:
    found = shared().one(family, text)
    return Name(text, found.form, found.record, found.fields) if found else Name(text)


def place(path: str, above: Sequence[str] = ()) -> Place:
    """Read a path relative to LOGS. `above` are the last folders of LOGS itself: of them only torchrun's
    attempt_N and the local rank below it count.
    """
    *folders, last = path.split("/")
    for suffix in _COMPRESSED:
        last = last.removesuffix(suffix)
    names = [folder_name(f) for f in folders]
    for n, name in enumerate(names):
        if name.record == "launch" and (n + 1 == len(names) or names[n + 1].record != "attempt"):
            names[n] = Name(name.text)
    file = _name("filenames", last)
    lead = folder_name(file.fields.get("lead", ""))
    context = [folder_name(f) for f in above]
    while context and context[0].record != "attempt":
        context.pop(0)
    stem = folder_name(last.split(".")[0]) if file.form in {"numbered", "other"} else Name("")
    result = Place(names, file, lead, stem, Identity())
    for parent, name in zip([None, *context, *names], [*context, *names], strict=False):
        _folder(result, parent, name)
    _file(result)
    return result


def _folder(result: Place, parent: Name | None, name: Name) -> None:
    who = result.identity
    match name.record:
        case "attempt":
            result.attempt = name.number("attempt") or 0
        case "debug":
            who = replace(who, pid=name.number("pid"))
        case "rank":
            who = replace(who, rank=name.number("rank"))
        case "local_rank":
            who = replace(who, local_rank=name.number("local_rank"))
        case "index" if parent is not None and parent.record == "attempt":
            who = replace(who, local_rank=name.number("index"))
        case "index":
            who = replace(who, label=name.text)
        case "node":
            who = replace(who, host=name.text, label=name.text)
        case "pod":
            who = replace(who, label=name.fields["label"])
        case "group_rank":
            who = replace(who, label=name.text)
        case "numbered" if who.pid is None:
            who = replace(who, label=name.text)
        case "stream":
            who = replace(who, stream=_STREAMS[name.fields["stream"]])
    result.identity = who


def _file(result: Place) -> None:
    who, file = result.identity, result.file
    for name in (result.lead, result.stem):
        if name.record == "node":
            who = replace(who, host=name.text, label=name.text)
    if file.record == "rank":
        who = replace(who, rank=file.number("rank"))
    elif file.record == "local_rank":
        who = replace(who, local_rank=file.number("local_rank"))
    elif file.record == "weak" and (number := file.number("index")) is not None:
        result.weak = (file.fields.get("lead", ""), number)
        if who.label is None and file.form == "numbered":
            who = replace(who, label=f"{file.fields['lead']}-{number}")
    if "host" in file.fields:
        who = replace(who, host=file.fields["host"])
    if "pid" in file.fields:
        who = replace(who, pid=file.number("pid"))
    if who.label is None and (label := next((file.fields[k] for k in _LABELS if k in file.fields), None)):
        who = replace(who, label=label)
    result.identity = replace(who, stream=_stream(file.text) or who.stream)


def _stream(name: str) -> str | None:
    """`.out` alone says nothing: schedulers put both streams there."""
    tokens = name.lower().replace("_", ".").replace("-", ".").split(".")
    if "stderr" in tokens or "err" in tokens:
        return "stderr"
    return "stdout" if "stdout" in tokens or tokens[0] == "out" else None


def guess_ranks(places: Sequence[Place], said: Sequence[frozenset[int]]) -> dict[int, tuple[int, bool]]:
    """Ranks that the numbers of file names may be, and whether the contents confirm it.

    Only where the names of a folder count from zero without a gap, and no file's lines name another rank; confirmed
    where the lines of two files or more name just that rank. `said` are the ranks that each file's lines name.
    """
    groups: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    for n, where in enumerate(places):
        if where.weak is not None:
            groups[tuple(f.text for f in where.folders), where.weak[0]].append(n)
    guesses: dict[int, tuple[int, bool]] = {}
    for (folders, lead), members in groups.items():
        shift = int(lead.endswith("worker") and (folders, lead.removesuffix("worker") + "master") in groups)
        numbers = {n: where.weak[1] + shift for n in members if (where := places[n]).weak is not None}
        distinct = sorted(set(numbers.values()))
        in_a_row = distinct == list(range(shift, shift + len(distinct))) and len(distinct) + shift > 1
        is_first = lead.endswith("master") and distinct == [0]
        if (in_a_row or is_first) and all(said[n] <= {number} for n, number in numbers.items()):
            confirmed = len({number for n, number in numbers.items() if said[n]}) > 1
            guesses |= {n: (number, confirmed) for n, number in numbers.items()}
    return guesses
