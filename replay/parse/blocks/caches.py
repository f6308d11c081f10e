"""Hits, misses and failures of compile caches to rows of `cache_events`; settings in cache keys to `env`."""

from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

_EVENTS = {
    "cache_fx_hit": ("fx", "hit"),
    "cache_fx_miss": ("fx", "miss"),
    "cache_fx_bypass": ("fx", "bypass"),
    "cache_fx_save": ("fx", "save"),
    "cache_fx_corrupt": ("fx", "corrupt"),
    "cache_fx_unsaved": ("fx", "unsaved"),
    "cache_aot_hit": ("aotautograd", "hit"),
    "cache_aot_miss": ("aotautograd", "miss"),
    "cache_aot_bypass": ("aotautograd", "bypass"),
    "cache_aot_save": ("aotautograd", "save"),
    "cache_aot_corrupt": ("aotautograd", "corrupt"),
    "cache_aot_unsaved": ("aotautograd", "unsaved"),
    "cache_pgo_corrupt": ("pgo", "corrupt"),
}
_FAILURES = {"corrupt", "unsaved"}
"""Events whose reason may be in the traceback below."""


class Caches:
    """Reads the cache lines of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._failed: Segment | None = None
        """A cache that could not be read; its traceback follows, and the last line of that is the reason."""
        self._config: dict[str, str] = {}

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._failed

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if self._failed is not None:
            if record == "cache_error":
                self._event(self._failed, segment.text)
                self._failed = None
                return "continuation"
            if record not in _EVENTS and is_same_message(segment, self._failed):
                return "continuation"
            self.close()
        if record == "cache_config":
            name, value = segment.fields["name"], segment.fields["value"]
            if self._config.get(name) != value:
                self._config[name] = value
                self._sink.row("env", segment, name=f"inductor.{name}", value=value, origin="torch")
        elif record in _EVENTS and _EVENTS[record][1] in _FAILURES and "reason" not in segment.fields:
            self._failed = segment
        elif record in _EVENTS:
            self._event(segment, segment.fields.get("reason"))
        return None

    def close(self) -> None:
        """See Assembler."""
        failed, self._failed = self._failed, None
        if failed is not None:
            self._event(failed, None)

    def _event(self, segment: Segment, reason: str | None) -> None:
        cache, event = _EVENTS[segment.record]
        self._sink.row(
            "cache_events",
            segment,
            compile_id=compile_id_of(segment),
            cache=cache,
            event=event,
            key=segment.fields.get("key"),
            reason=reason,
        )
