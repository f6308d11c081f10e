"""What torch's own checks said: fingerprints of collectives, DDP's parameters, the analyser's report."""

from math import prod

from replay.grammar.executor import shared
from replay.grammar.numbers import integer
from replay.parse.blocks.failing import TEXT_CUT, Saying, is_nameless
from replay.parse.model import Sink, Value
from replay.parse.ops import dtype, operation, size_of

_ASPECTS = (("sequence", "seq"), ("op", "op"), ("shape", "shape"), ("dtype", "dtype"), ("device", "device"))
_KINDS = {
    "COLLECTIVE_TYPE_MISMATCH": "op",
    "SIZE_OR_SYNTAX_MISMATCH": "shape",
    "COLLECTIVE_DTYPE_MISMATCH": "dtype",
    "COLLECTIVE_STATE_MISMATCH": "order",
}
_BETWEEN = ", Culprit rank "


class Checks:
    """Rows of mismatches and collectives from the family checks."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._report: dict[str, str] = {}

    def take(self, saying: Saying) -> None:
        """Take a text of checks.lark."""
        fields = saying.fields
        match saying.match.record:
            case "fingerprint" | "fingerprint_alone":
                self._fingerprint(saying)
            case "param_differs":
                what = f"params[{fields['param']}] {fields['what']}"
                self._params(saying, f"{what} [{fields['mine']}]", None)
            case "param_count":
                self._params(saying, f"{fields['mine']} params", f"{fields['theirs']} params")
            case "report_head":
                self._report = {"seq": fields["seq"]}
            case "report_group":
                self._report["group"] = fields["group"].partition(":")[0]
            case "report_op":
                self._report["op"] = fields["op_name"]
            case "report_missing":
                self._missing(saying)
            case "report_errors":
                for nth, part in enumerate(fields["errors"].split(_BETWEEN)):
                    self._culprit(saying, part if nth == 0 else _BETWEEN[2:] + part)
            case _:
                pass  # names of unused parameters: they are a part of the exception's message

    def close(self) -> None:
        """Nothing is held."""

    def _fingerprint(self, saying: Saying) -> None:
        fields = saying.fields
        own = {"rank": integer(fields["rank"])} if is_nameless(saying.segment) else {}
        seq, kind = integer(fields.get("seq")), dtype(fields.get("dtype"))
        op, other_op = operation(fields["op"]), fields.get("other_op")
        count, width = _count(fields.get("shape")), size_of(kind)
        self._sink.row(
            "collectives",
            saying.segment,
            source="fingerprint",
            comm_rank=integer(fields["rank"]),
            logged_seq=seq,
            op=op,
            dtype=kind,
            count=count,
            bytes=None if count is None or width is None else count * width,
            shape=fields.get("shape"),
            state="issued",
            **own,
        )
        differing = [
            (aspect, fields.get(name), fields.get(f"other_{name}"))
            for aspect, name in _ASPECTS
            if fields.get(name) != fields.get(f"other_{name}")
        ]
        if other_op is None:
            differing = []
        if fields["op"] != other_op:  # then sizes and types differ by nature
            differing = [d for d in differing if d[0] in {"op", "sequence"}]
        for aspect, mine, theirs in differing or [("order", None, None)]:
            self._sink.row(
                "mismatches",
                saying.segment,
                group_rank=integer(fields["rank"]),
                other_rank=integer(fields.get("other_rank")),
                aspect=aspect,
                mine=mine,
                theirs=theirs,
                op=op,
                other_op=None if other_op is None else operation(other_op),
                logged_seq=seq,
                detail=(fields.get("aspects") or saying.text).strip()[:TEXT_CUT],
                **own,
            )

    def _params(self, saying: Saying, mine: str, theirs: str | None) -> None:
        fields = saying.fields
        own: dict[str, Value] = {}
        if "rank" in fields and is_nameless(saying.segment):
            own["rank"] = integer(fields["rank"])
        self._sink.row(
            "mismatches",
            saying.segment,
            group_rank=integer(fields.get("rank")),
            other_rank=integer(fields["other_rank"]),
            aspect="params",
            mine=mine,
            theirs=theirs,
            detail=saying.message,
            **own,
        )

    # ---- the analyser's report tells of other ranks than its own

    def _missing(self, saying: Saying) -> None:
        self._sink.row(
            "mismatches",
            saying.segment,
            aspect="missing",
            mine=saying.fields["ranks"],
            op=self._op(),
            logged_seq=integer(self._report.get("seq")),
            detail=saying.message,
        )

    def _culprit(self, saying: Saying, text: str) -> None:
        found = shared().one("checks", text)
        if found is None or found.record != "culprit":
            return
        fields = found.fields
        self._sink.row(
            "mismatches",
            saying.segment,
            rank=integer(fields["rank"]),
            aspect=_KINDS.get(fields["kind"], "order"),
            mine=fields.get("found"),
            theirs=fields.get("theirs"),
            op=self._op(),
            logged_seq=integer(self._report.get("seq")),
            detail=text[:TEXT_CUT],
        )

    def _op(self) -> str | None:
        return operation(self._report["op"]) if "op" in self._report else None


def _count(shape: str | None) -> int | None:
    """Elements of a shape as the fingerprint prints it: "16", "4, 5"; several tensors are not told apart."""
    if not shape or "[" in shape or "]" in shape:
        return None
    sizes = [integer(part.strip()) for part in shape.split(",")]
    return prod(n for n in sizes if n is not None) if all(n is not None for n in sizes) else None
