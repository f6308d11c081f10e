"""The text of a script: a heading, the constants with the place that each came from, the recipe's text, the launcher.

What comes from a log enters here and nowhere else: as a literal of a checked type, or as a comment of printable ASCII.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

from replay.repro.recipe import Fix, Literals, Recipe

WIDTH = 120
_GROUP = re.compile(r" *#- ([a-z_]+)$")
"""The mark of a line that shrinking may leave out."""

_IMPORTS = """\
import multiprocessing, os, signal, sys, tempfile, time
from datetime import datetime, timedelta
"""
_SAY = """\
say = lambda text: print(f"{datetime.now():%Y-%m-%d %H:%M:%S.%f} {text}", flush=True)
"""
_GROUP_OPEN = """\
    dist.init_process_group("gloo", f"file://{folder}/store", timedelta(seconds=<<timeout>>), WORLD, rank)
"""
_GROUP_CLOSE = """\
    dist.destroy_process_group()
"""
_ON_CUDA = """\
    torch.cuda.set_device(rank % torch.cuda.device_count())
"""
_MADE_FOR_CPU = """\
    torch.set_default_device("cuda")
"""
_CUDA_OPEN = """\
    dist.init_process_group("nccl", f"file://{folder}/store", timedelta(seconds=<<timeout>>), WORLD, rank)
"""
_LAUNCH = """\
if __name__ == "__main__":
    os.makedirs("<<logs>>", exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("<<method>>")
        ranks = [context.Process(target=main, args=(rank, folder<<run>>)) for rank in range(WORLD)]
        [process.start() for process in ranks]
        [(process.join(<<seconds>>), process.kill()) for process in ranks]  # what still runs then is ended
<<exits>>"""
_EXITS = """\
        for rank, code in enumerate(process.exitcode for process in ranks):
            if code:
                how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                print(f"process {rank} terminated with {how}")
"""


@dataclass(frozen=True, slots=True)
class Value:
    """A constant: what it is, and in words where it came from (text of a log in it is made harmless when written)."""

    value: Literals
    source: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that makes one script. `odd` are the ranks that the fault is put on; `without` are lines left out."""

    recipe: Recipe
    cause: str
    world: int
    odd: tuple[int, ...]
    values: Mapping[str, Value]
    without: Set[str] = field(default_factory=frozenset)
    tight: bool = False
    """Whether blank lines are left out: of a script that was made as small as can be."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where a script runs that needs no GPU."""

    @property
    def on_cuda(self) -> bool:
        """Whether the script runs on a GPU."""
        return "cuda" in {self.device, self.recipe.needs}

    def value(self, name: str) -> Literals:
        """Return a parameter's value."""
        return self.values[name].value


def render(plan: Plan, fix: Fix | None = None) -> str:
    """Return the script, with the advised change if one is given."""
    recipe = plan.recipe
    body = recipe.body(plan.cause)
    if fix is not None:
        body = recipe.changed(body, fix)
    body = "\n".join(_kept(body, plan.without)).strip("\n") + "\n"
    used = {name for name in plan.values if re.search(rf"\b{name.upper()}\b", body)}
    parts = [
        _heading(plan, fix),
        _IMPORTS,
        _settings(recipe.settings_of(plan.cause), plan.on_cuda),
        _constants(plan, used, body),
        "\n",
        *([_SAY, "\n"] if "say(" in body else []),
        body,
        "\n",
        _launcher(plan),
    ]
    text = "".join(parts)
    return "".join(line for line in text.splitlines(True) if line.strip()) if plan.tight else text


def groups(recipe: Recipe, cause: str) -> list[str]:
    """Return the names of the lines that may be left out, in their order."""
    return list(dict.fromkeys(m[1] for line in recipe.body(cause).splitlines() if (m := _GROUP.search(line))))


def comment(text: str) -> str:
    """Return a text as it may stand in a comment: printable ASCII in one line."""
    return "".join(c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)


def literal(value: Literals) -> str:
    """Return the Python literal of a value.

    Raises TypeError for anything but a bool, int, float or text: nothing else may enter a script.
    """
    if type(value) not in {bool, int, float, str}:
        raise TypeError(f"{type(value).__name__} is no value of a script")
    if isinstance(value, float) and not -1e308 < value < 1e308:
        raise TypeError("a script's numbers are finite")
    return ascii(value)


def _kept(body: str, without: Set[str]) -> list[str]:
    lines = []
    for line in body.splitlines():
        mark = _GROUP.search(line)
        if mark is None:
            lines.append(line)
        elif mark[1] not in without:
            lines.append(line[: mark.start()])
    return lines


def _heading(plan: Plan, fix: Fix | None) -> str:
    who = "all ranks" if len(plan.odd) == plan.world else "ranks " + ", ".join(map(str, plan.odd))
    device = "CUDA" if plan.on_cuda else "CPU, gloo"
    lines = [f"# {plan.cause} on {who if len(plan.odd) != 1 else who.replace('ranks', 'rank')} of {plan.world}."]
    if fix is not None:
        lines = [f"# {lines[0][2:]} With the advised change: {fix.says}"]
    lines[0] += f" Needs torch only ({device}); writes logs/, reads nothing."
    return "\n".join(lines) + "\n"


def _settings(settings: Mapping[str, str], on_cuda: bool) -> str:
    given = dict(settings) | ({} if on_cuda else {"GLOO_SOCKET_IFNAME": "lo"})
    named = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"os.environ.update({named})\n\nimport torch, torch.distributed as dist\n\n"


def _constants(plan: Plan, used: Set[str], body: str) -> str:
    recipe = plan.recipe
    rows = [("WORLD", str(plan.world), plan.values["world"].source if "world" in plan.values else "ranks")]
    if re.search(r"\bODD\b", body):
        rows.append(("ODD", str(list(plan.odd)), "ranks with the fault"))
    rows += [
        (name.upper(), literal(plan.values[name].value), f"{parameter.says}{plan.values[name].source}")
        for name, parameter in recipe.parameters.items()
        if name in used and name in plan.values
    ]
    if re.search(r"\bTIMEOUT_S\b", body):
        rows.append(("TIMEOUT_S", str(recipe.timeout_s), "of each operation"))
    width = max(len(f"{name} = {value}") for name, value, _ in rows if len(value) < 40)
    lines = []
    for name, value, says in rows:
        said = f"{name} = {value}".ljust(width)
        lines.append(f"{said}  # {comment(says)}"[:WIDTH] if len(said) < WIDTH - 20 else said)
    return "\n".join(lines) + "\n"


def _launcher(plan: Plan) -> str:
    recipe = plan.recipe
    logs, run, told = ("logs/{run}", ", run", "rank, run") if recipe.runs else ("logs", "", "rank")
    head = f"def main(rank, folder{run}):\n"
    head += f'    log = os.open(f"{logs}/rank{{rank}}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n'
    head += "    os.dup2(log, 1), os.dup2(log, 2)\n"
    seconds = str(recipe.seconds)
    if plan.on_cuda:
        head += _ON_CUDA + (_MADE_FOR_CPU if recipe.needs == "cpu" else "")
    opened = _CUDA_OPEN if plan.on_cuda else _GROUP_OPEN
    head += opened.replace("<<timeout>>", str(recipe.timeout_s)) if recipe.group else ""
    head += f"    work({told})\n" + (_GROUP_CLOSE if recipe.group else "") + "\n\n"
    launch = _LAUNCH.replace("<<method>>", "spawn" if plan.on_cuda else "fork").replace("<<run>>", run)
    launch = launch.replace("<<seconds>>", seconds).replace("<<exits>>", _EXITS if recipe.exits else "")
    if not recipe.runs:
        return head + launch.replace("<<logs>>", "logs")
    first, *lines = launch.replace('"<<logs>>"', 'f"logs/{run}"').splitlines()
    looped = [first, f"    for run in {recipe.runs!r}:", *(f"    {line}" for line in lines)]
    return head + "\n".join(looped) + "\n"
