"""Memory that ran out, and errors of GPUs and drivers, as any text tells them."""

from collections.abc import Mapping

from replay.grammar.numbers import integer, real
from replay.parse.blocks.failing import Saying
from replay.parse.failure_kinds import cuda_error
from replay.parse.model import Sink, Value

_MIB = {
    "bytes": 1 / 2**20,
    "B": 1 / 2**20,
    "KiB": 1 / 2**10,
    "MiB": 1.0,
    "GiB": 2.0**10,
    "TiB": 2.0**20,
    "KB": 1 / 2**10,
    "MB": 1.0,
    "GB": 2.0**10,
    "TB": 2.0**20,
}


class Device:
    """Rows of memory and device_faults from the family device."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._asserted = False

    def take(self, saying: Saying) -> None:
        """Take a text of device.lark."""
        fields = saying.fields
        match saying.match.record:
            case "oom" | "oom_bare":
                self._memory(
                    saying,
                    "cuda-oom",
                    requested_mb=_mib(fields.get("requested")),
                    total_mb=_mib(fields.get("total")),
                    free_mb=_mib(fields.get("free")),
                    used_mb=_mib(fields.get("used")),
                    torch_mb=_torchs(fields),
                )
            case "alloc_failed":
                count = integer(fields.get("bytes"))
                requested = _mib(fields.get("requested")) if count is None else count / 2**20
                self._memory(saying, "alloc-failed", requested_mb=requested)
            case "cuda_error" if "out of memory" in fields["error"]:
                self._memory(saying, "cuda-oom")
            case "cuda_error" | "library_error":
                code, kind = cuda_error(fields.get("error", saying.text))
                self._fault(saying, kind, code)
            case "device_assert":
                if not self._asserted:  # every thread of a block says it
                    self._fault(saying, "cuda", 710)
                self._asserted = True
            case "driver":
                code, _ = cuda_error(saying.text)
                self._fault(saying, "driver", code)
            case "throttle":
                self._fault(saying, "throttle", None)
            case "lost":
                self._fault(saying, "lost", None)
            case _:
                pass

    def close(self) -> None:
        """Nothing is held."""

    def _memory(self, saying: Saying, kind: str, **columns: Value) -> None:
        self._sink.row("memory", saying.segment, kind=kind, text=saying.message, **columns)

    def _fault(self, saying: Saying, kind: str, code: int | None) -> None:
        self._sink.row("device_faults", saying.segment, kind=kind, code=code, text=saying.message)


def _torchs(fields: Mapping[str, str]) -> float | None:
    """What torch's allocator holds, in MiB: what it gave away and what it keeps."""
    given, kept = _mib(fields.get("allocated")), _mib(fields.get("reserved"))
    return None if given is None or kept is None else given + kept


def _mib(text: str | None) -> float | None:
    """MiB of "362.00 MiB" or "1.5 GiB"."""
    if text is None:
        return None
    number, _, unit = text.partition(" ")
    value = real(number)
    return None if value is None else value * _MIB[unit]
