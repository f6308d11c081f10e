"""Parameters of the model as a trainer lists them: which are sharded over ranks, which each rank holds for itself."""

from replay.parse.model import Passing, Segment, Sink

_TEXT_CUT = 400


class Parameters:
    """Rows of parameters from the family parameters."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def feed(self, segment: Segment) -> None:
        """Take a message; only those that parameters.lark took are looked at."""
        if segment.match is None or segment.match.family != "parameters":
            return
        fields = segment.fields
        text = fields.get("text", "").strip()[:_TEXT_CUT] or None
        is_sharded = segment.record == "sharded"
        self._sink.row(
            "parameters", segment, name=fields["name"], **{"class": fields["class"]}, is_sharded=is_sharded, text=text
        )

    def minds(self, passing: Passing) -> bool:
        """See Assembler."""
        return False

    def close(self) -> None:
        """Nothing is held."""
