"""Lines of torch that its compiler is told one by one, although header and message are found for many at once.

They stand between the lines that make rows by themselves and those that are read by themselves: what they say depends
on the lines around them, but only on those of torch's compiler (a recompile and its reasons, a stack, a guard that is
not in a tree).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

import numpy as np
import numpy.typing as npt

from replay.grammar.bulk import Taken, shared
from replay.grammar.model import Match
from replay.grammar.texts import Codes, Places, filled
from replay.parse.families import families
from replay.parse.model import Segment
from replay.parse.segments import of_torch
from replay.parse.torch_lines import FAMILIES
from replay.sources.model import Batch, Identity


@dataclass(slots=True)
class Told:
    """Lines of one form of header: their places in the batch, writers and times (NaN: no stamp) [s since 1970]."""

    places: Places
    head: Taken
    writers: Codes
    ts: npt.NDArray[np.float64]

    def segments(self, batch: Batch) -> Iterator[tuple[int, Segment | None]]:
        """Give the places of the lines, and the segment of each that nobody but torch's compiler wants."""
        matches = self._matches()
        identities: dict[tuple[Identity, str], Identity] = {}
        rows = zip(self.places.tolist(), self.head.rows(), self.writers.tolist(), self.ts.tolist(), strict=True)
        for nth, (place, head, writer, t) in enumerate(rows):
            match = matches.get(nth)
            if match is not None and match.family not in FAMILIES:
                yield place, None
                continue
            line, text = batch.line(place), head.get("text", "")
            who = line.identity, head["id"]
            if who not in identities:
                identities[who] = of_torch(*who)
            yield place, Segment(line, "torch", head, text, identities[who], None if isnan(t) else t, match, writer)

    def _matches(self) -> dict[int, Match]:
        """What the grammars of each artifact make of the messages."""
        artifacts, bodies = self.head.field("artifact").coded(), filled(self.head.field("text"))
        found: dict[int, Match] = {}
        for number, artifact in enumerate(artifacts.values):
            at = np.flatnonzero(artifacts.codes == number)
            taken, _ = shared(families("torch", artifact)).take(bodies.pick(at))
            for message in taken:
                production = message.production
                for nth, fields in zip(at[message.where].tolist(), message.rows(), strict=True):
                    found[nth] = Match(message.family, production.form, production.record, fields)
        return found
