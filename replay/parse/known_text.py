"""Messages of a library that are known by their shape and carry nothing that a table keeps.

Shapes are data (`grammars/*.shapes`), one a line: literal text, `*` for a text and `#` for a number or an address. A
library has thousands of messages that tell nothing of a run; as productions of a grammar they would cost every start
the compilation of all of them. Here a shape is looked up by its rarest word, so a text costs a lookup for each word.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from replay.resources import folder

_NUMBER = frozenset("0123456789abcdefABCDEFxX.+-()nil ")
"""What a `#` stands for is written with: digits, signs, "0x..", "(nil)", blanks that fill a column."""
_MOST_WORDS = 300
"""Words of a text that are looked up: no message has more that are its own."""
_SHORTEST = 3
"""Letters of a word by which a shape can be known."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Literal parts of a message and what stands between them: `gaps[i]` ("*" or "#") before `parts[i + 1]`."""

    parts: tuple[str, ...]
    gaps: str

    @classmethod
    def of(cls, text: str) -> "Shape":
        """Return the shape that a line of the file tells."""
        parts, gaps, begin = [], "", 0
        for at, sign in enumerate(text):
            if sign in "*#":
                parts.append(text[begin:at])
                gaps += sign
                begin = at + 1
        return cls((*parts, text[begin:]), gaps)

    def takes(self, text: str) -> bool:
        """Whether the whole text has this shape. Linear: each part is looked for once, behind the one before."""
        first, last = self.parts[0], self.parts[-1]
        if not text.startswith(first):
            return False
        if not self.gaps:
            return text == first
        end = len(text) - len(last)
        if not text.endswith(last) or end < len(first):
            return False
        at = len(first)
        for gap, part in zip(self.gaps, self.parts[1:-1], strict=False):
            found = text.find(part, at, end)
            if found < 0 or not _fits(gap, text[at:found]):
                return False
            at = found + len(part)
        return _fits(self.gaps[-1], text[at:end])

    def words(self) -> list[str]:
        """Whole words of its literal text: those that any text of this shape holds between blanks."""
        marked = "\0".join(self.parts)
        return [w for w in marked.split(" ") if "\0" not in w and sum(c.isalpha() for c in w) >= _SHORTEST]


def _fits(gap: str, text: str) -> bool:
    return gap == "*" or _NUMBER.issuperset(text)


class KnownText:
    """Shapes by their rarest word."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        found = [(shape, shape.words()) for shape in shapes]
        common = Counter(word for _, words in found for word in set(words))
        self._by_word: dict[str, list[Shape]] = {}
        self._wordless: list[Shape] = []
        for shape, words in found:
            if words:
                self._by_word.setdefault(min(words, key=common.__getitem__), []).append(shape)
            else:
                self._wordless.append(shape)

    def takes(self, text: str) -> bool:
        """Whether a text has one of the shapes."""
        for word in set(text.split(" ", _MOST_WORDS)):
            if any(shape.takes(text) for shape in self._by_word.get(word, ())):
                return True
        return any(shape.takes(text) for shape in self._wordless)


@cache
def known_text(name: str) -> KnownText:
    """Load `grammars/<name>.shapes`. Raises FileNotFoundError if there is none."""
    lines = (folder("grammars") / f"{name}.shapes").read_text(encoding="utf8").splitlines()
    return KnownText(Shape.of(line) for line in lines if line and not line.startswith("//"))
