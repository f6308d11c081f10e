"""Texts of gloo: it waited in vain, the other end went away, or sizes differ and nobody checked."""

from replay.grammar.numbers import integer
from replay.parse.blocks.c10d import kind_of
from replay.parse.blocks.failing import Saying, Tell, log
from replay.parse.model import Sink
from replay.parse.ops import operation


class Gloo:
    """Rows of timeouts, peer_losses, mismatches and log_messages from the family gloo."""

    def __init__(self, sink: Sink, tell: Tell) -> None:
        self._sink, self._tell = sink, tell
        self._barriers: set[tuple[str | None, str | None]] = set()

    def take(self, saying: Saying) -> None:
        """Take a text of gloo.lark."""
        fields, segment = saying.fields, saying.segment
        match saying.match.record:
            case "gloo_timeout":
                self._timeout(saying, "gloo", None)
            case "gloo_mesh":
                self._timeout(saying, "rendezvous", None)
            case "barrier_missing":
                missing = fields["missing"].replace(" ", "")
                key = (missing, fields.get("timeout_ms"))
                if key not in self._barriers:  # an error line, then the exception
                    self._barriers.add(key)
                    self._timeout(saying, "monitored-barrier", missing)
            case "barrier_timeout" | "barrier_victim" | "barrier_wrapper":
                self._timeout(saying, "monitored-barrier", None)
            case "gloo_closed" | "gloo_closed_own":
                self._loss(saying, "aborted" if saying.match.record == "gloo_closed_own" else "closed")
            case "gloo_error":
                self._loss(saying, kind_of(fields["msg"], "closed"))
            case "gloo_size":
                self._sink.row(
                    "mismatches",
                    segment,
                    aspect="shape",
                    mine=f"{fields['mine']} bytes",
                    theirs=f"{fields['theirs']} bytes",
                    detail=saying.message,
                )
            case _:
                log(self._sink, saying, "c10d")

    def close(self) -> None:
        """Nothing is held."""

    def _timeout(self, saying: Saying, kind: str, missing: str | None) -> None:
        op = saying.fields.get("op")
        self._sink.row(
            "timeouts",
            saying.segment,
            kind=kind,
            group_rank=integer(saying.fields.get("group_rank")),
            logged_seq=integer(saying.fields.get("seq")),
            op=None if op is None else operation(op),
            timeout_ms=integer(saying.fields.get("timeout_ms")),
            missing=missing,
            text=saying.message,
        )

    def _loss(self, saying: Saying, kind: str) -> None:
        peer = saying.fields.get("peer") or _bracketed(saying.fields.get("peer_bare"))
        self._sink.row("peer_losses", saying.segment, kind=kind, layer="gloo", peer=peer, text=saying.message)


def _bracketed(peer: str | None) -> str | None:
    return None if peer is None else f"[{peer}"
