"""One line after another with its private names replaced; and, on the first reading, which names there are.

A line may hold several: a JSON record has its newlines as two characters. Each piece is looked at by itself: the line
of code below a frame, the numbers of a printed tensor, names in guards, then everything else token by token.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from replay.grammar.compile import load
from replay.parse.places import is_installed
from replay.repro.redact.names import Names
from replay.repro.redact.places import Places
from replay.repro.redact.vocabulary import is_public

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile("[0-9]")
_NEWLINE = "\\n"
_TENSOR_WORDS = frozenset("0123456789.,-+e[]() naif")
_MARKS = ('File "', 'File \\"', "TRACE starts_line ")
_SOURCE_MARKS = ("L[", "G[", "<class", "<function", "<bound", "<locals>", "<mod", "<gen", "<coro")
_CODE = ", code: "
_COMMENT = "  # "
_LOC = '"loc": "'
_PEM_BEGINS, _PEM_ENDS = "-----BEGIN ", "-----END "
_PEM_MOST_LINES = 200
_KEY_WORD = 16
"""From so many characters on a word of a key is taken for a part of it; the last word of a line at any length."""
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_DUNDER = ("<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<genexpr>", "<setcomp>", "<locals>")


def _pattern(family: str) -> re.Pattern[str]:
    """The pattern of a family that is scanned for."""
    (production,) = load(family).productions
    return re.compile(production.pattern)


def _field(found: re.Match[str], name: str) -> str | None:
    return next((v for k, v in found.groupdict().items() if v is not None and k.split("__")[0] == name), None)


@dataclass(slots=True)
class _Stream:
    """What was open at the end of a writer's last piece."""

    code_below: tuple[int, int] | None = None
    """A frame of the user's own came: words before it, and its indentation."""
    tensor: int = 0
    """Open brackets of a printed tensor."""
    key: int = 0
    """How many more lines a block of PEM may have that is open."""


class Rewriter:
    """Rewrites lines in the order of their file; `learns`: take note of names instead, and return nothing of use."""

    def __init__(self, names: Names, places: Places, learns: bool = False) -> None:
        self._names, self._places, self._learns = names, places, learns
        self._tokens, self._frames, self._sources = map(_pattern, ("private", "private_frame", "private_source"))
        self._streams: dict[object, _Stream] = {}
        self._chunks: dict[str, str] = {}
        self._kinds: dict[str, Callable[[str], str]] = {
            "secret": names.secret, "email": self._email, "mac": names.mac, "ipv6": names.ipv6, "ipv4": names.ipv4,
            "url": places.url, "path": self._path, "windows": places.windows,
        }  # fmt: skip

    def line(self, text: str, writer: object = None) -> str:
        """Return a line as it may be shown. `writer` tells streams apart that take turns in one file."""
        stream = self._streams.get(writer)
        if stream is None:
            stream = self._streams[writer] = _Stream()
        if _NEWLINE not in text:
            return self._piece(text, stream)
        return _NEWLINE.join(self._piece(piece, stream) for piece in text.split(_NEWLINE))

    def _piece(self, text: str, stream: _Stream) -> str:
        if stream.key or _PEM_BEGINS in text:
            text = _without_key(text, stream)
        if stream.code_below is not None and not text.startswith(('"', '\\"')):  # not the rest of a record
            below, stream.code_below = stream.code_below, None
            start = _code_start(text, *below)
            if start is not None:
                return self._tokens_of(text[:start]) + self._code(text[start:])
        if stream.tensor and set(text.strip()) <= _TENSOR_WORDS:
            stream.tensor = max(stream.tensor + _opened(text), 0)
            return _NUMBER.sub("0", text)
        stream.tensor = 0
        if "tensor([" in text or "array([" in text:
            text = self._tensors(text, stream)
        if any(mark in text for mark in _MARKS):
            text = self._frames_of(text, stream)
        if self._learns and any(mark in text for mark in _SOURCE_MARKS):
            self._names_of(text)
        return self._codes_of(text)

    def _tensors(self, text: str, stream: _Stream) -> str:
        """Write 0 for the digits of printed tensors and arrays."""
        parts, at = [], 0
        while True:
            found = [p for p in (text.find("tensor([", at), text.find("array([", at)) if p >= 0]
            if not found:
                break
            start = text.index("(", min(found))
            end, depth = start, 0
            while end < len(text):
                depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(text[end], 0)
                end += 1
                if depth == 0 or (depth == 1 and text[end - 1] == "]"):
                    break
            else:
                stream.tensor = depth
            parts += [text[at:start], _NUMBER.sub("0", text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _frames_of(self, text: str, stream: _Stream) -> str:
        """Look at `File "x", line 3, in f`: whose it is, and whether a line of code follows."""
        parts, at = [], 0
        for found in self._frames.finditer(text):
            file = _field(found, "file") or _field(found, "escaped_file") or ""
            if file.startswith("<"):
                continue
            if is_installed(file):
                stream.code_below = None
                continue
            head = text[: found.start()]
            stream.code_below = (len(head.split()), len(head) - len(head.rstrip()))
            if self._learns:
                self._places.learn(file)
                self._identifiers(_field(found, "fn") or "")
            elif " " in file:  # the tokens below end at a blank
                shown = self._places.path(file)
                parts += [text[at : found.start()], found.group().replace(file, shown)]
                at = found.end()
        return "".join([*parts, text[at:]])

    def _codes_of(self, text: str) -> str:
        """Replace code that stands in a line: of graphs, of guards' comments, of the stacks of traces."""
        if _CODE in text and "File: " in text:
            head, _, code = text.partition(_CODE)
            place = head.rpartition("File: ")[2]
            self._place(place)
            shown = code if is_installed(place) else self._code(code)
            return self._tokens_of(head) + _CODE + shown
        if _COMMENT in text and " in " in text.rpartition(_COMMENT)[2]:
            head, _, place = text.rpartition(_COMMENT)
            reason, mark, code = head.partition(_COMMENT)
            self._place(place)
            shown = code if is_installed(place) or not mark else self._code(code)
            return self._tokens_of(reason) + mark + shown + _COMMENT + self._tokens_of(place)
        if _LOC in text:
            parts = text.split(_LOC)
            return _LOC.join([self._tokens_of(parts[0]), *map(self._located, parts[1:])])
        return self._tokens_of(text)

    def _place(self, place: str) -> None:
        """Learn from `train.py:16 in forward`."""
        if self._learns and not is_installed(place):
            path, _, rest = place.partition(":")
            self._places.learn(path)
            fn = rest.partition(" in ")[2].partition(" ")[0].partition(",")[0]
            self._identifiers(fn)

    def _located(self, text: str) -> str:
        """The code of a stack entry ends at its quote; whose it is stands in another line, so all of it goes."""
        at = 0
        while at < len(text) and text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        return self._code(text[:at]) + self._tokens_of(text[at:])

    def _code(self, text: str) -> str:
        bare = text.strip()
        if not bare:
            return text
        if self._learns:
            self._identifiers(bare)
            return text
        core = bare.rstrip('"}')  # the end of a record that holds the line
        start = text.index(bare)
        return text[:start] + (self._names.code(core) if core else "") + text[start + len(core) :]

    def _identifiers(self, text: str) -> None:
        for word in _IDENTIFIER.findall(text):
            if word not in _DUNDER and not is_public(word):
                self._names.identifier(word)

    def _names_of(self, text: str) -> None:
        """Learn the names that guards and texts of objects hold."""
        for found in self._sources.finditer(text):
            dotted = found.group() if _field(found, "guarded") else ""
            dotted = dotted or _field(found, "class") or _field(found, "object") or _field(found, "local") or ""
            if not dotted.startswith(("torch.", "builtins.", "numpy.", "_dynamo")):
                self._identifiers(dotted)

    def _tokens_of(self, text: str) -> str:
        return self._tokens.sub(self._token, text)

    def _token(self, found: re.Match[str]) -> str:
        """One token; the group that took it says what it is."""
        kind, whole = found.lastgroup or "word", found.group()
        if kind == "word":  # one that stands alone teaches nothing
            return whole if self._learns else self._word(found, whole)
        if kind == "secret_value":
            key = found["secret_key"]
            return key + self._secret_value(found["secret_value"])
        if kind == "numbers":
            lead = found["hostlist"]
            known = self._names.table["host names"].get(lead) or self._names.table["host names"].get(lead.rstrip("-"))
            return (known + "-" * (len(lead) - len(lead.rstrip("-"))) if known else self._names.chunk(lead)) + whole[
                len(lead) :
            ]
        if kind == "path" and not self._learns:
            return self._cut_path(whole, found.string[found.end() :])
        return self._kinds[kind](whole)

    def _cut_path(self, whole: str, after: str) -> str:
        """A path; but where a header of NCCL cut off a ratio (`6/48gpu-7:12:12 [0]`), its host is no part of it."""
        if _is_header(after):
            for host in self._names.table["host"]:
                if host in self._names.anywhere and whole.endswith(host):
                    return self._tokens_of(whole[: -len(host)]) + self._names.anywhere[host]
        return self._path(whole)

    def _secret_value(self, value: str) -> str:
        return value if is_public(value) else self._names.secret(value)

    def _word(self, found: re.Match[str], whole: str) -> str:
        known = self._chunks.get(whole)
        if known is None:
            known = self._names.chunk(whole)
            if len(self._chunks) < 300_000:
                self._chunks[whole] = known
        if known == whole and found.string[found.end() : found.end() + 1] == ":":
            return self._torn(whole, found.string[found.end() :])
        return known

    def _torn(self, whole: str, after: str) -> str:
        """The header of an NCCL line may stand directly behind what it cut off, which may be half a host itself.

        `Channel 0gpu-7:12:12 [0]`, `gpgpu-7:12:12 [0]`, and elsewhere `u-7:12:12 [0]`.
        """
        anywhere = self._names.anywhere
        hosts = [host for host in self._names.table["host"] if host in anywhere]
        for host in hosts:
            if whole.endswith(host):
                head = whole[: -len(host)]
                half = next((anywhere[h][: len(head)] for h in hosts if head and h.startswith(head)), head)
                return half + anywhere[host]
        if _is_header(after):
            for host in hosts:
                if host.endswith(whole) and len(anywhere[host]) == len(host):
                    return anywhere[host][len(host) - len(whole) :]
        return whole

    def _path(self, text: str) -> str:
        if self._learns:
            self._owner(text)
        return self._places.path(text)

    def _owner(self, text: str) -> None:
        """Learn whose home a path leads through."""
        parts = text.split("/")
        for n, part in enumerate(parts[:-1]):
            if part in {"home", "Users", "homes"} and n < 3 and parts[n + 1]:
                self._names.user(parts[n + 1])
            if part.startswith("torchinductor_"):
                self._names.user(part.removeprefix("torchinductor_"))

    def _email(self, text: str) -> str:
        who, _, where = text.partition("@")
        if where not in self._names.anywhere and "." not in where:
            return self._tokens_of(who) + "@" + self._names.chunk(where)
        self._names.host(where)
        return self._names.user(who) + "@" + self._names.chunk(where)


def _without_key(text: str, stream: _Stream) -> str:
    """The text with the contents of a private key or certificate masked: between its marks, on one line or on many."""
    before, begins, rest = text.partition(_PEM_BEGINS)
    if not begins:
        before, rest = "", text
    else:
        label, dashes, rest = rest.partition("-----")
        before += begins + label + dashes
        stream.key = _PEM_MOST_LINES
    body, ends, after = rest.partition(_PEM_ENDS)
    stream.key = 0 if ends else stream.key - 1
    words = body.split(" ")
    last = max((n for n, word in enumerate(words) if word.strip()), default=0)
    shown = [_masked(word) if len(word) >= _KEY_WORD or n == last else word for n, word in enumerate(words)]
    return before + " ".join(shown) + ends + after


def _masked(word: str) -> str:
    return "x" * len(word) if set(word.strip("\r")) <= _BASE64 else word


def _is_header(text: str) -> bool:
    """Whether `:12:34 [0]` begins a text: what stands behind the host in a line of NCCL."""
    _, pid, rest = (*text.split(":", 2), "", "")[:3]
    tid, _, device = rest.partition(" [")
    return pid.isdigit() and tid.isdigit() and device[:1].isdigit()


def _opened(text: str) -> int:
    return sum(text.count(c) for c in "[(") - sum(text.count(c) for c in "])")


def _code_start(text: str, words: int, indent: int) -> int | None:
    """Where the code begins in the line below a frame: behind as many words, indented more; None if it has none."""
    at = 0
    for _ in range(words):
        while at < len(text) and text[at].isspace():
            at += 1
        while at < len(text) and not text[at].isspace():
            at += 1
    rest = text[at:]
    code = rest.lstrip()
    if not code or len(rest) - len(code) <= indent or code.startswith(("File ", "^", "~", "[Previous line")):
        return None
    return at + len(rest) - len(code)
