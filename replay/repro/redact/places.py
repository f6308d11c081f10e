"""Paths and addresses of the web in a text: what is the machine's or a package's, what somebody's own."""

from replay.parse.places import is_installed
from replay.repro.redact.names import Names
from replay.repro.redact.vocabulary import is_public, is_public_part
from replay.sources.layout import folder_name

_SYSTEM = frozenset({"dev", "proc", "sys", "usr", "lib", "lib64", "bin", "sbin", "etc", "boot"})
"""Top folders of the machine: nothing below them is anybody's."""
_TEMPORARY = frozenset({"tmp", "var", "run", "opt"})
"""Top folders in which words of ours stay."""
_HOMES = frozenset({"home", "Users", "homes"})
_ROOTS = _SYSTEM | _TEMPORARY | _HOMES | {"root", "srv", "mnt", "data", "scratch", "workspace", "app", "work", "shared"}
_SOURCES = frozenset({"cpp", "cc", "cu", "h", "hpp", "cuh", "c"})
_OF_TORCH = frozenset({"torch", "aten", "c10", "caffe2", "third_party", "csrc", "nccl", "gloo", "ATen"})
_OF_NCCL = frozenset(
    {"transport", "graph", "misc", "plugin", "ras", "scheduler", "register", "gin", "rma", "symmetric"}
)
"""Folders of NCCL's sources, which its lines name from there on."""
_KEPT_FOLDERS = frozenset({"attempt", "debug", "rank", "local_rank", "index", "stream", "part"})
_INSTALLED = ("site-packages", "dist-packages")
_HOST_WORDS = (
    "pytorch.org",
    "pytorch.github.io",
    "python.org",
    "nvidia.com",
    "pypi.org",
    "aka.ms",
    "intel.com",
    "amd.com",
    "readthedocs.io",
)
_PUBLIC_OWNERS = frozenset(
    {"pytorch", "NVIDIA", "triton-lang", "huggingface", "openai", "facebookincubator", "Lightning-AI", "microsoft"}
    | {"google", "python"}
)
_LONGEST_EXTENSION = 10


class Places:
    """Rewrites paths; knows which whole paths there are, for those that are told without their beginning."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._whole: dict[str, list[str]] = {}
        self._done: dict[str, str] = {}

    def again(self) -> "Places":
        """Return the same without what was decided before all names were known."""
        fresh = Places(self._names)
        fresh._whole = self._whole
        return fresh

    def learn(self, path: str) -> None:
        """Take note of a whole path in which code lies."""
        if path.startswith("/") and not is_installed(path):
            known = self._whole.setdefault(path.rsplit("/", 1)[1], [])
            if path not in known:
                known.append(path)
                self.path(path)

    def path(self, text: str) -> str:
        """Return a path with what is somebody's own replaced; depth and extensions stay."""
        known = self._done.get(text)
        if known is None:
            known = self._path(text)
            if len(self._done) < 200_000:
                self._done[text] = known
        return known

    def _path(self, text: str) -> str:
        parts = text.split("/")
        if text[0] not in "/~." and not _looks_like_file(parts):
            return "/".join(map(self._names.chunk, parts))
        keep = _public_from(parts, text)
        if keep == 0:
            return text
        if text[0] not in "/~.":
            for whole in self._whole.get(parts[-1], ()):
                if whole.endswith(text):
                    return self.path(whole)[-len(text) :] if self._names.keeps_length else self._own(parts, keep, "")
        return self._own(parts, keep, text)

    def _own(self, parts: list[str], keep: int, text: str) -> str:
        """Replace the components before `keep`."""
        names = self._names
        top = parts[1] if text.startswith("/") and len(parts) > 1 else ""
        new = []
        home = next((n for n, part in enumerate(parts[:3]) if part in _HOMES), None)
        for n, part in enumerate(parts):
            is_last = n == len(parts) - 1
            if n >= keep or part in {"", ".", "..", "~"} or (n == 1 and part in _ROOTS and top):
                new.append(part)
            elif top in _SYSTEM:
                new.append(names.chunk(part))
            elif home is not None and n <= home + 1:
                new.append(part if n <= home else names.user(part))
            elif (
                self._stays(parts, n)
                or (top in _TEMPORARY and is_public_part(part))
                or part.startswith(("torchinductor_", "torchelastic_"))
            ):
                new.append(names.chunk(part))
            elif any(p.startswith("torchinductor_") for p in parts[:n]):
                new.append(part)  # generated code, named by its hash
            else:
                new.append(names.component(part, is_last))
        return "/".join(new)

    @staticmethod
    def _stays(parts: list[str], n: int) -> bool:
        """Folders in which launchers and torch put logs: their names tell ranks and attempts."""
        below = folder_name(parts[n + 1]).record if n + 1 < len(parts) else ""
        record = folder_name(parts[n]).record
        return (n < len(parts) - 1 and record in _KEPT_FOLDERS) or (record == "launch" and below == "attempt")

    def url(self, text: str) -> str:
        """Return a link with host, person, folders and values replaced, unless it leads to public documentation."""
        names = self._names
        scheme, _, rest = text.partition("://")
        before, _, query = rest.partition("?")
        place, slash, path = before.partition("/")
        who, at, host = place.rpartition("@")
        name, colon, port = host.partition(":")
        owner = path.split("/")[0]
        if scheme == "file":
            return f"file://{self.path(before)}"
        if name.endswith(_HOST_WORDS) or (name == "github.com" and owner in _PUBLIC_OWNERS and not who):
            return text
        if who:
            person, _, password = who.partition(":")
            who = ":".join([names.user(person), *([names.secret(password)] if password else [])])
        if name and not _is_number(name) and name != "localhost" and is_public(name) is False:
            names.host(name)
        host = names.ipv4(name) if _is_number(name) else names.chunk(name)
        if host == name and not _is_number(name) and name not in {"", "localhost", "github.com"}:
            host = names.component(name, False)
        parts = path.split("/") if path else []
        path = "/".join(names.component(p, n == len(parts) - 1) if p else p for n, p in enumerate(parts))
        asked = "?" + names.secret(query) if query else ""
        return f"{scheme}://{who}{at}{host}{colon}{port}{slash}{path}{asked}"

    def windows(self, text: str) -> str:
        """Return a path of Windows, whatever the number of its backslashes, with its folders replaced."""
        drive, *parts = text.split("\\")
        names = self._names
        named = [n for n, p in enumerate(parts) if p]
        new = list(parts)
        for place, n in enumerate(named):
            if parts[named[0]] == "Users" and place < 2:
                new[n] = parts[n] if place == 0 else names.user(parts[n])
            else:
                new[n] = names.component(parts[n], n == named[-1])
        return "\\".join([drive, *new])


def _is_number(name: str) -> bool:
    return name.count(".") == 3 and all(p.isdigit() for p in name.split("."))


def _looks_like_file(parts: list[str]) -> bool:
    """Whether a text with slashes and no root names a file: ratios and units (`it/s`, `P2P/IPC`) do not."""
    stem, dot, ext = parts[-1].rpartition(".")
    return bool(stem and dot) and ext.isalnum() and ext[:1].isalpha() and len(ext) <= _LONGEST_EXTENSION


def _public_from(parts: list[str], text: str) -> int:
    """From which component on a path is a package's own or torch's."""
    for marker in _INSTALLED:
        if marker in parts:
            return parts.index(marker)
    ext = parts[-1].rpartition(".")[2].partition(":")[0]
    if ext in _SOURCES:
        found = [n for n, p in enumerate(parts) if p in _OF_TORCH]
        if found or len(parts) == 2 or parts[0] in _OF_NCCL:
            return found[0] if found else 0
    if parts[-1].startswith("lib") and ".so" in parts[-1]:
        return len(parts) - 1
    if is_installed(text):
        for n, part in enumerate(parts):
            if part.startswith("python") and n and parts[n - 1] in {"lib", "lib64"}:
                return n - 1
            if part == "torch" or part.startswith("torchinductor_"):
                return n
        return 0 if not text.startswith("/") else len(parts)
    return len(parts)
