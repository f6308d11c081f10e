"""Versions that tools list."""

from replay.parse.blocks.failing import Saying
from replay.parse.model import Sink

_NAMES = {
    "torch": "torch",
    "nccl_package": "nccl",
    "cuda_driver": "cuda-driver",
}


class Versions:
    """Rows of packages from the family versions."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def take(self, saying: Saying) -> None:
        """Take a text of versions.lark."""
        version = saying.fields["version"]
        if saying.match.record == "cuda_built":
            self._sink.row("packages", saying.segment, name="torch", built_for=f"cuda{version}")
        else:
            self._sink.row("packages", saying.segment, name=_NAMES[saying.match.record], version=version)

    def close(self) -> None:
        """Nothing is held."""
