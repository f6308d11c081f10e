"""Names and figures inside a trainer's message, taken out by grammars/pairs.lark.

The grammar knows the shapes; here it is said what the pieces mean: which name counts steps, which values are numbers,
how a name is spelled so that "lm loss", "Loss" and "elapsed time (ms)" can be asked for in SQL.
"""

from dataclasses import dataclass
from functools import lru_cache

from replay.grammar.executor import ReExecutor

COUNTERS = ("step", "global_step", "iteration", "iter", "steps", "update", "num_updates", "it", "batch", "batch_idx")
"""Names that count steps, best first: beside "step=3", "batch=8" is a size."""
EPOCHS = ("epoch",)
_TRAINING = ("train", "trainer", "training")
"""Groups of figures, as in "train/step", that count what a bare "step" counts."""
WORLD = frozenset(
    {"world", "world_size", "num_processes", "nranks", "num_ranks", "number_of_processes", "number_of_ranks"}
)
PACKAGES = {"pytorch": "torch", "pytorch_lightning": "lightning", "torch_version": "torch", "pytorch_version": "torch"}
_PACKAGE_NAMES = frozenset(
    {
        "torch",
        "cuda",
        "cudnn",
        "nccl",
        "python",
        "triton",
        "transformers",
        "accelerate",
        "deepspeed",
        "lightning",
        "numpy",
        "gloo",
        "flash_attn",
        "transformer_engine",
    }
)
_MEASURES = frozenset(
    {
        "loss",
        "acc",
        "accuracy",
        "ppl",
        "perplexity",
        "norm",
        "sum",
        "mean",
        "std",
        "diff",
        "error",
        "err",
        "ms",
        "us",
        "sec",
        "secs",
        "seconds",
        "s",
        "time",
        "mb",
        "gb",
        "gib",
        "mib",
        "bleu",
        "f1",
        "score",
        "throughput",
        "tps",
        "mfu",
        "bandwidth",
        "bw",
        "reward",
        "kl",
        "entropy",
        "elapsed",
        "duration",
        "grad",
    }
)
_IDENTITIES = frozenset(
    {"checksum", "hash", "digest", "fingerprint", "crc", "sha", "md5", "ids", "id", "sha1", "sha256", "uuid"}
)
_NO_NAMES = frozenset(
    {
        "a",
        "about",
        "after",
        "and",
        "are",
        "at",
        "before",
        "by",
        "every",
        "first",
        "for",
        "from",
        "got",
        "has",
        "in",
        "is",
        "last",
        "line",
        "next",
        "of",
        "on",
        "only",
        "or",
        "over",
        "per",
        "pid",
        "port",
        "rank",
        "ranks",
        "than",
        "the",
        "to",
        "until",
        "using",
        "was",
        "with",
        "within",
        "took",
        "gpu",
        "gpus",
        "node",
        "nodes",
        "device",
    }
)
_CONFIG_WORDS = frozenset(
    {
        "config",
        "configuration",
        "args",
        "arguments",
        "hparams",
        "hyperparameters",
        "settings",
        "options",
        "env",
        "environment",
        "flags",
        "cfg",
        "init",
        "parameters",
    }
)
_SILENT_LABELS = frozenset(
    {
        "metrics",
        "results",
        "stats",
        "log",
        "summary",
        "progress",
        "status",
        "info",
        "warning",
        "error",
        "note",
        "train",
        "training",
    }
)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}
_MAX_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Figure:
    """One name and its value. `shape` is assigned, named (with a colon or quotes), spaced, counted or rated."""

    name: str
    text: str
    number: float | None
    shape: str
    total: int | None = None

    @property
    def parts(self) -> frozenset[str]:
        """The words of the name."""
        return _words(self.name)

    @property
    def is_measured(self) -> bool:
        """The name says that somebody measured it, rather than set it."""
        return self.number is not None and not self.parts.isdisjoint(_MEASURES)

    @property
    def is_identity(self) -> bool:
        """The value is a digest or a list of ids: text, even where it looks like a number."""
        return not self.parts.isdisjoint(_IDENTITIES)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message's figures say: its counters, its other figures, the seconds that something took."""

    figures: tuple[Figure, ...]
    lead: str
    step: int | None = None
    epoch: float | None = None
    total: int | None = None
    took_s: float | None = None

    @property
    def is_config(self) -> bool:
        """The message begins with a word such as "config" or "args"."""
        first = self.lead.split(maxsplit=1)[:1]
        return bool(first) and first[0].strip(":,").lower() in _CONFIG_WORDS

    @property
    def lists_identities(self) -> bool:
        """The words before the first figure say that digests follow."""
        return not _IDENTITIES.isdisjoint(self.lead.lower().replace(":", " ").split())


@lru_cache(maxsize=1024)
def _words(name: str) -> frozenset[str]:
    return frozenset(name.lower().replace(".", "_").replace("/", "_").replace("(", "_").split("_"))


def number(text: str) -> float | None:
    """Return the number that a value begins with and consists of but for a unit, None where it is a text."""
    plain = text.replace(",", "").replace("_", "")
    try:
        return float(plain)
    except ValueError:
        digits = plain.rstrip("%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/")
        if not digits or len(digits) < len(plain) - 8:
            return None
    try:
        return float(digits)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def spelled(name: str) -> str:
    """Return the name in one word: blanks become "_", a unit in brackets a suffix, capitals small unless all are."""
    name = name.replace("(ms)", "_ms").replace("(s)", "_s").strip().replace(" _", "_")
    name = "_".join(name.split())
    return name if name.isupper() and "_" in name else name[:1].lower() + name[1:] if "." in name else name.lower()


def seconds(count: str, unit: str) -> float:
    """Return a duration in seconds. `unit` begins like one of h, m(in), s, ms, us."""
    short = (
        unit
        if unit in ("ms", "us")
        else "ms"
        if unit.startswith("milli")
        else "us"
        if unit.startswith("micro")
        else unit[0]
    )
    return float(count) * _SECONDS[short]


def mebibytes(figure: Figure) -> float | None:
    """Return a memory figure in MiB, by the unit in its text or its name; None where neither tells."""
    if figure.number is None:
        return None
    unit = figure.text.lstrip("0123456789.,eE+-").lower() or figure.name.lower().rsplit("_", maxsplit=1)[-1]
    if unit in ("mb", "mib", "gb", "gib", "kb", "kib", "tb", "tib", "m", "g"):
        return figure.number * _MIB[unit[0]]
    return figure.number / 2**20 if unit in ("b", "bytes") else None


def package(figure: Figure) -> str | None:
    """Return the package whose version the figure tells, None where it tells none."""
    name = spelled(figure.name).replace("-", "_")
    name = PACKAGES.get(name, name.removesuffix("_version"))
    looks_like = figure.text[:1].isdigit() and figure.text.count(".") >= 1
    return name if looks_like and name in _PACKAGE_NAMES else None


def read(executor: ReExecutor, text: str) -> Reading:
    """Take the figures out of a message.

    A name and a figure with only a blank between them count on lines that have a counter, and only in a row: prose has
    such pairs too ("after 18 batches").
    """
    text = text[:_MAX_TEXT]
    found: list[Figure] = []
    label, end, took, first = "", 0, None, len(text)
    epoch: float | None = None
    for start, stop, fields in executor.scan("pairs", text):
        if "|" in text[end:start] or ";" in text[end:start]:
            label = ""
        if "label" in fields:
            words = fields["label"].lower()
            label = "" if words in _SILENT_LABELS or words in _CONFIG_WORDS else spelled(words)
            end = stop
            continue
        first = min(first, start)
        if "took" in fields:
            took = seconds(fields["duration"], fields["time_unit"])
            continue
        if "epoch" in fields:
            epoch = float(fields["epoch"])
            fields["key"] = "step"
        figure = _figure(fields, label if text[start : start + 1] not in "'\"" else "")
        if figure.shape == "rated" and any(f.name == figure.name for f in found):
            continue
        if figure.shape == "spaced" and _is_prose(figure, text[end:start], bool(found)):
            continue
        found.append(figure)
        end = stop
    return _sort(found, text[:first], epoch, took)


def _is_prose(figure: Figure, gap: str, goes_on: bool) -> bool:
    name = figure.name.lower()
    if name in _NO_NAMES and name != "rank":
        return True
    return name not in (*COUNTERS, *EPOCHS) and (not goes_on or any(c.isalpha() for c in gap))


def _figure(fields: dict[str, str], label: str) -> Figure:
    if "rate" in fields:
        unit = fields["rate_unit"].replace(" ", "")
        name = (
            "time_ms"
            if unit == "ms"
            else "time"
            if unit in ("s", "sec", "secs", "seconds")
            else unit.replace("/", "_per_")
        )
        return Figure(name, fields["rate"] + unit, float(fields["rate"]), "rated")
    name = spelled(fields["key"])
    group, _, counter = name.rpartition("/")
    if group in _TRAINING and counter in (*COUNTERS, *EPOCHS):
        name = counter
    if label and not name.startswith(label) and name not in COUNTERS:
        name = f"{label}.{name}"
    if "count" in fields:
        return Figure(name, fields["count"], float(fields["count"]), "counted", int(fields["total"]))
    if "number" in fields:
        unit = fields.get("unit", "")
        if unit in ("ms", "us") and not name.endswith(f"_{unit}"):
            name = f"{name}_{unit}"
        shape = "named" if "colon" in fields or "equals" in fields else "spaced"
        return Figure(name, fields["number"] + unit, number(fields["number"]), shape)
    value = fields["value"].rstrip(":").strip("'\"")
    return Figure(name, value, number(value), "named" if "colon" in fields else "assigned")


def _sort(found: list[Figure], lead: str, epoch: float | None, took: float | None) -> Reading:
    """Tell the counters from the other figures."""
    named = {f.name: f for f in reversed(found) if f.number is not None}
    counter = next((named[name] for name in COUNTERS if name in named and _counts(named[name], found)), None)
    eras = next((named[name] for name in EPOCHS if name in named), None)
    if epoch is None and eras is not None:
        epoch = eras.number
    rest = tuple(f for f in found if f is not counter and f is not eras)
    step = int(counter.number) if counter is not None and counter.number is not None else None
    return Reading(rest, lead, step, epoch, counter.total if counter else None, took)


def _counts(figure: Figure, found: list[Figure]) -> bool:
    """A counter is whole; names that may mean a size as well count only where nothing but an epoch stands before."""
    if figure.number is None or not figure.number.is_integer():
        return False
    if figure.name == "steps":
        return found[0] is figure and figure.shape != "assigned"
    if figure.name not in ("batch", "it", "update") or figure.total is not None:
        return True
    return all(f.name in EPOCHS for f in found[: found.index(figure)])
