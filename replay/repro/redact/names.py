"""What each private name is replaced by: the same name always by the same one, as long as it and of the same kind.

As long, because NCCL's blocks of 4096 bytes, columns that launchers pad and offsets tell something. Numbers at the
end of hosts, pods and files stay: they order things.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from replay.repro.redact.vocabulary import is_public
from replay.sources.layout import folder_name

ROLES = frozenset({"worker", "master", "launcher", "head", "chief", "server", "driver", "agent", "rank", "main", "ps"})
"""Words in names of pods and hosts that tell what they are for."""
_PUBLIC_LABELS = frozenset(
    {"com", "net", "org", "io", "edu", "gov", "local", "localdomain", "internal", "svc", "cluster", "compute"}
    | {"lan", "corp", "example", "pods"}
)
_ROLE = "|".join(sorted(ROLES))
_TAIL = re.compile(rf"(?:(?:[-._]?(?:{_ROLE}))?[-._]?[0-9]{{1,6}})+$|(?:[-._](?:{_ROLE}))$")
_GROUPS = re.compile("[0-9]+")
_PARTS = re.compile("([-._]+)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST_PARTS = 10
_NODE_WORDS = {2: "vm", 3: "nid", 4: "host", 5: "nodes", 6: "server", 7: "machine", 8: "cpu-host", 11: "worker-host",
               12: "compute-host"}  # fmt: skip
"""Names by which a folder is known to be a node's, by their length."""


def _letters(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = _LETTERS[digit] + text
        if number == 0:
            return text


@dataclass(slots=True)
class Names:
    """Private names and their replacements. `table` is what may be shown to their owner only: kind -> name -> new."""

    keeps_length: bool = True
    """Whether a replacement is as long as what it replaces; else it is short and ends in a capital letter."""
    table: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    anywhere: dict[str, str] = field(default_factory=dict)
    """Names that are replaced wherever they stand; longest may have several parts."""
    _kept: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    _counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _octets: dict[tuple[str, str], str] = field(default_factory=dict)
    _pools: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _inside: tuple[str, ...] | None = None

    def _fresh(self, kind: str, length: int) -> str:
        """A new word of so many letters (more, where all such words are taken)."""
        while True:
            number = self._counts[kind]
            self._counts[kind] += 1
            if not self.keeps_length:
                word = kind + _letters(number).upper()
            else:
                tail = _letters(number)
                room = length - len(tail)
                word = kind[: max(room, 1)] + "a" * max(room - len(kind), 0) + tail
            if word not in self._taken and (not is_public(word) or len(word) < 3):
                self._taken.add(word)
                return word

    def _replace(self, kind: str, text: str, new_kind: str = "") -> str:
        """The replacement of a whole word, styled as it is: `_private`, `ClassName`, `CONSTANT`."""
        known = self.table[kind].get(text)
        if known is not None:
            return known
        bare = text.lstrip("_")
        word = self._fresh(new_kind or kind, len(bare))
        if bare[:1].isupper():
            word = word.upper() if bare.isupper() and len(bare) > 1 else word[0].upper() + word[1:]
        new = text[: len(text) - len(bare)] + word
        self.table[kind][text] = new
        return new

    def _lead(self, kind: str, text: str) -> str:
        """A name with a number or a role at its end keeps those."""
        tail = _TAIL.search(text)
        if tail is None or len(_GROUPS.findall(text)) > 3:
            return self._replace(kind, text)
        lead = text[: tail.start()]
        if not lead or lead in ROLES:
            return text
        if kind == "host" and lead not in self.table["host names"] and folder_name(text).record == "node":
            word = _NODE_WORDS.get(len(lead) if self.keeps_length else 4, "")
            if word and word not in (lead, *self._taken):  # folders of that name hold what one node wrote
                self._taken.add(word)
                self.table["host names"][lead] = word
        new = self._replace(f"{kind} names", lead, kind) + tail.group()
        self.table[kind][text] = new
        return new

    def keep(self, text: str) -> None:
        """Never replace this name: a key of figures, whose words tell what they measure."""
        self._kept.add(text)

    def identifier(self, text: str) -> None:
        """Learn a name of a function, class, variable or module."""
        if not (is_public(text) or text in self._kept or text in self.anywhere):
            self._learn(text, self._replace("name", text))

    def host(self, text: str) -> None:
        """Learn the name of a host, pod or container; of one with a domain, both. Two letters (`vm`) name nobody."""
        first, dot, rest = text.partition(".")
        if (
            text in self.anywhere or not first or first == "localhost" or _GROUPS.fullmatch(first)
            or (is_public(first) and first.isalpha())
        ):  # fmt: skip
            return
        new = self._lead("host", first)
        if new != first:
            self._learn(first, new)
        if rest and not _GROUPS.fullmatch(rest.split(".")[0]):
            domain = ".".join(
                p if p in _PUBLIC_LABELS or not p else self._replace("domain", p) for p in rest.split(".")
            )
            self._learn(rest, domain)
            self._learn(text, f"{new}{dot}{domain}")

    def user(self, text: str) -> str:
        """Learn a person's name and return its replacement; root is nobody."""
        if len(text) < 2 or text in {"root", "runner"} or _GROUPS.fullmatch(text):
            return text
        new = self._replace("user", text)
        if len(text) > 2 and (not is_public(text) or not text.isalpha()):
            self._learn(text, new)
        return new

    def component(self, text: str, is_file: bool) -> str:
        """Return the replacement of one folder or file of a path; its extension stays."""
        if text in self.anywhere:
            return self.anywhere[text]
        stem, ext = text, ""
        if is_file:
            at = text.find(".", 1)
            stem, ext = (text, "") if at < 0 else (text[:at], text[at:])
            if not (len(ext) < 24 and all(p.isalnum() and len(p) < 9 for p in ext.split(".")[1:])):
                stem, ext = text, ""
        if not any(c.isalpha() for c in stem):
            return text
        if stem in self.anywhere:
            return self.anywhere[stem] + ext
        new = self._lead("file" if is_file else "folder", stem)
        if stem.isidentifier() and len(stem) > 3 and not is_public(stem):
            self._learn(stem, new)
        return new + ext

    def secret(self, text: str) -> str:
        """Return the replacement of a key or password."""
        return self._replace("secret", text)

    def ipv4(self, text: str) -> str:
        """Return another address in a like net: who shares a prefix still does. Those that say nothing stay."""
        if text.startswith(("127.", "0.", "255.", "169.254.")):
            return text
        parts = text.split(".")
        kept = 2 if text.startswith("192.168.") or (parts[0] == "172" and 16 <= int(parts[1]) < 32) else 1
        new = parts[:kept] if parts[0] in {"10", "172", "192"} else [self._octet("", parts[0])]
        while len(new) < 4:
            new.append(self._octet(".".join(parts[: len(new)]), parts[len(new)]))
        self.table["address"][text] = ".".join(new)
        return ".".join(new)

    def _octet(self, prefix: str, octet: str) -> str:
        known = self._octets.get((prefix, octet))
        if known is None:
            size = len(octet)
            low, high = {1: (0, 10), 2: (10, 100), 3: (100, 256)}[size]
            known = octet
            while known == octet:
                number = self._pools[prefix, size] = self._pools[prefix, size] + 1
                known = str(low + number % (high - low))
            self._octets[prefix, octet] = known
        return known

    def ipv6(self, text: str) -> str:
        """Return another address of the same form; the first group of a local one stays."""
        groups = text.split(":")
        new = [groups[0] if groups[0][:2] in {"fe", "fc", "fd", "00"} else "2001"[: len(groups[0])]]
        for at, group in enumerate(groups[1:], 1):
            new.append(group if group in {"", "0000", "ffff"} else self._group(":".join(groups[:at]), group))
        self.table["address"][text] = ":".join(new)
        return ":".join(new)

    def _group(self, prefix: str, group: str) -> str:
        known = self._octets.get((prefix, group))
        if known is None:
            known = group
            while known == group:
                number = self._pools[prefix, -len(group)] = self._pools[prefix, -len(group)] + 1
                known = f"{number % 16 ** len(group):0{len(group)}x}"
            self._octets[prefix, group] = known
        return known

    def mac(self, text: str) -> str:
        """Return another hardware address."""
        known = self.table["address"].get(text)
        if known is None:
            number = self._counts["mac"] = self._counts["mac"] + 1
            known = "02:00:00:" + ":".join(f"{number >> shift & 255:02x}" for shift in (16, 8, 0))
            self.table["address"][text] = known
        return known

    def code(self, text: str) -> str:
        """Return what stands for a line of somebody's code: equal lines stay equal."""
        return self.table["code"].setdefault(text, f"code_{len(self.table['code']) + 1}")

    def _learn(self, text: str, new: str) -> None:
        if text != new and text not in self.anywhere and text not in self._kept:
            self.anywhere[text] = new
            self._inside = None

    def chunk(self, text: str) -> str:
        """Return a run of letters, digits, `.`, `-` and `_` with every private name in it replaced."""
        whole = self.anywhere.get(text)
        if whole is not None:
            return whole
        parts = _PARTS.split(text)
        if len(parts) == 1:
            return self._part(text)
        out: list[str] = []
        at = 0
        while at < len(parts):
            for end in range(min(len(parts), at + 2 * _MOST_PARTS - 1), at, -2):
                joined = "".join(parts[at:end])
                found = self.anywhere.get(joined)
                if found is None and end - at > 1 and joined.isidentifier() and is_public(joined):
                    found = joined  # `check_obj_id` is ours, though `obj` may be somebody's
                if found is not None:
                    out.append(found)
                    break
            else:
                end = at + 1
                out.append(self._part(parts[at]))
            if end < len(parts):
                out.append(parts[end])
            at = end + 1
        joined = "".join(out)
        return self._part(joined) if "_" in joined else joined

    def _part(self, text: str) -> str:
        """A name inside a longer one: `torchinductor_ada`, `l_self_modules_tower_`, `TowerBackward`."""
        known = self.anywhere.get(text)
        if known is not None or len(text) < 4 or is_public(text):
            return text if known is None else known
        if self._inside is None:
            self._inside = tuple(sorted((n for n in self.anywhere if len(n) > 3), key=lambda n: (-len(n), n)))
        for name in self._inside:
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                new = self.anywhere[name]
                if _is_edge(text, at, end):
                    text = text[:at] + new + text[end:]
                    end = at + len(new)
                at = text.find(name, max(end, at + 1))
        return text

    def all(self) -> Iterable[tuple[str, str, str]]:
        """Give kind, name and replacement of everything that was replaced."""
        for kind in sorted(self.table):
            for text, new in sorted(self.table[kind].items()):
                if text != new:
                    yield kind, text, new


def _is_edge(text: str, at: int, end: int) -> bool:
    """Whether a name stands for itself there: not in the middle of a word."""
    before = text[at - 1] if at else "_"
    after = text[end] if end < len(text) else "_"
    starts = not before.isalpha() or (before.islower() and text[at].isupper())
    ends = not after.isalpha() or (after.isupper() and text[end - 1].islower())
    return starts and ends
