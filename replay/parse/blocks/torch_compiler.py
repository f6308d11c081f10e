"""All that torch.compile says, for one writer: hands each line to the part that reads it.

One assembler instead of twelve: most lines are of no interest to most parts, and a part is asked only where its grammar
took the line or while it holds a block open.
"""

from collections.abc import Sequence
from typing import Protocol

from replay.grammar.executor import shared
from replay.parse.blocks.autotune import Autotune
from replay.parse.blocks.caches import Caches
from replay.parse.blocks.compile_times import CompileTimes
from replay.parse.blocks.compiles import Compiles
from replay.parse.blocks.cudagraphs import CudaGraphs
from replay.parse.blocks.ddp_buckets import DdpBuckets
from replay.parse.blocks.graph_breaks import GraphBreaks
from replay.parse.blocks.graphs import Graphs
from replay.parse.blocks.guard_trees import GuardLines, GuardTrees
from replay.parse.blocks.limits import Limits
from replay.parse.blocks.recompiles import Recompiles
from replay.parse.blocks.schedules import Schedules
from replay.parse.blocks.symbols import Symbols
from replay.parse.blocks.torch_messages import TorchMessages
from replay.parse.families import is_of_guards
from replay.parse.model import Passing, Segment, Sink

_BARE = "torch_bare"
_FRAME, _SOURCE = 2, 4
"""Blanks before a frame of a stack, and before the line of source code below it, which can read like anything."""
SILENT = frozenset({("dynamic", "dynamic_known")})
"""Records of messages that are known and tell nothing to keep."""
_EXIT = "interpreter_exit"
"""The head of a table whose lines are of another grammar than it."""


class _Part(Protocol):
    """Reads the lines of some grammars, as an Assembler does."""

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        ...

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        ...

    def close(self) -> None:
        """See Assembler."""
        ...


class TorchCompiler:
    """Rows of compiles, compile_times, guards, guard_failures, symbols, recompile_limits, ddp_buckets, graph_breaks,
    graphs, graph_ops, kernels, fusion_rounds, cache_events, cudagraphs, autotune, env and log_messages.
    """

    def __init__(self, sink: Sink) -> None:
        self._compiles = Compiles(sink)
        self._messages = TorchMessages(sink)
        self._is_bare_next = False
        self._guards = GuardTrees(sink)
        self._graphs = graphs = Graphs(sink)
        breaks = GraphBreaks(sink)
        self._by_family: dict[str, _Part] = {
            "recompiles": Recompiles(sink),
            "limit": Limits(sink),
            "graph_breaks": breaks,
            "break_hint": breaks,
            "graphs": graphs,
            "guard_tree": self._guards,
            "cache": Caches(sink),
            "cudagraphs": CudaGraphs(sink),
            "autotune": Autotune(sink),
            "compile_times": CompileTimes(sink),
            "dynamic": Symbols(sink),
            "schedule": Schedules(sink),
            "ddp": DdpBuckets(sink),
        }
        self._parts = list(dict.fromkeys(self._by_family.values()))
        self._opened: list[_Part] = []
        """Parts that hold a block open."""

    def feed(self, segment: Segment) -> str | None:
        """Take the next line; "continuation" if it belongs to a block that a part holds open."""
        if segment.header == "torch":
            return self._headed(segment)
        if segment.header:
            return None
        own, found = segment.match, shared().one(_BARE, segment.text)
        if found is None and not any(_goes_on(part, segment) for part in self._opened):
            return self._indented(segment)
        # the line may be known to another grammar as well (an exception's last line); here it is read as torch's
        segment.match = found
        verdict = self._ask(segment, everybody=found is not None)
        self._compiles.feed(segment)
        segment.match = own
        return verdict or ("parsed" if found is not None else self._indented(segment))

    def minds(self, passing: Passing) -> bool:
        """See Assembler. A line of a long message goes on with the one that is open, and minds no other part."""
        if passing.header != "torch":
            return False
        own = self._long_part(passing.artifact)
        if own is not None and not own.goes_on(passing):
            return True
        opened = any(part is not own for part in self._opened)
        return opened or self._messages.is_open or self._compiles.reads_stack

    def _long_part(self, artifact: str | None) -> GuardTrees | Graphs | None:
        """The part that reads the long messages of an artifact."""
        if artifact is None:
            return None
        return self._guards if is_of_guards(artifact) else self._graphs

    def guards(self, first: Segment, last: Segment, lines: GuardLines, begin: int, end: int) -> None:
        """Take lines of the tree of guards that is open: those from one place to another."""
        self._compiles.feed(first)
        self._compiles.feed(last)
        self._guards.many(lines, begin, end, first.writer_id)

    def graph(self, first: Segment, last: Segment, texts: Sequence[str]) -> None:
        """Take lines of the text of the graph that is open."""
        self._compiles.feed(first)
        self._compiles.feed(last)
        self._graphs.many(last, texts)

    def touch(self, segment: Segment) -> None:
        """Note a line that tells nothing but its compile."""
        self._compiles.feed(segment)

    def close(self) -> None:
        """The writer's lines are over."""
        for part in self._parts:
            part.close()
        self._messages.close()
        self._compiles.close()

    def _indented(self, segment: Segment) -> str | None:
        """A line that is indented goes on with a message of a format that gives only its first line a header."""
        blanks = _SOURCE if segment.match is not None else _FRAME
        self._is_bare_next = self._is_bare_next and not segment.header and not segment.text[:blanks].strip()
        return "continuation" if self._is_bare_next else None

    def _headed(self, segment: Segment) -> str | None:
        self._is_bare_next = "mmdd" not in segment.head
        verdict = self._ask(segment, everybody=segment.record == _EXIT)
        self._compiles.feed(segment)
        family = segment.match.family if segment.match is not None else ""
        if verdict is None and family not in self._by_family:
            return self._messages.feed(segment)
        if self._messages.is_open:
            self._messages.close()
        return verdict

    def _ask(self, segment: Segment, *, everybody: bool) -> str | None:
        wanted = self._by_family.get(segment.match.family) if segment.match is not None else None
        asked = [] if wanted is None else [wanted]
        if everybody or any(part is not wanted for part in self._opened):
            asked = [part for part in self._parts if everybody or part is wanted or _goes_on(part, segment)]
        verdict = None
        for part in asked:
            answer = part.feed(segment)
            verdict = verdict or answer
            if part.head is None and part in self._opened:
                self._opened.remove(part)
            elif part.head is not None and part not in self._opened:
                self._opened.append(part)
        return verdict


def _goes_on(part: _Part, segment: Segment) -> bool:
    """Whether a line may belong to the block that a part holds. Since 2.3 every line of a message has its header: one
    without is somebody else's, and ends nothing.
    """
    head = part.head
    return head is not None and (segment.header == "torch" or "mmdd" not in head.head)
