"""Operations as NCCL logs them: rows of `collectives` and `tuning`."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from replay.grammar.numbers import integer
from replay.grammar.texts import Coded, Codes, Numbers, Texts, combined
from replay.parse import model
from replay.parse.blocks.nccl_comms import Communicators, Membership
from replay.parse.model import Segment, Sink, Value
from replay.parse.rows import Column, Rows, constant, number, text

# ncclDataType_t: name and size
_DTYPES = {
    0: ("int8", 1),
    1: ("uint8", 1),
    2: ("int32", 4),
    3: ("uint32", 4),
    4: ("int64", 8),
    5: ("uint64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("bfloat16", 2),
    10: ("float8_e4m3", 1),
    11: ("float8_e5m2", 1),
}
_REDOPS = {0: "sum", 1: "prod", 2: "max", 3: "min", 4: "avg"}
_ALGOS = {0: "TREE", 1: "RING", 2: "COLLNET_DIRECT", 3: "COLLNET_CHAIN", 4: "NVLS", 5: "NVLS_TREE", 6: "PAT"}
_PROTOS = {0: "LL", 1: "LL128", 2: "SIMPLE"}
_REDUCING = {"allreduce", "reduce", "reducescatter"}
_ROOTED = {"broadcast", "reduce", "gather", "scatter"}
_PAIRED = {"send", "recv"}
_OTHER_NAMES = {"bcast": "broadcast"}


def _op(name: str) -> str:
    name = name.lower()
    return _OTHER_NAMES.get(name, name)


def _dtype(text: str) -> tuple[str, int | None]:
    code = integer(text)
    return _DTYPES.get(-1 if code is None else code, (text, None))


def _bytes(count: str, dtype: str) -> int | None:
    elements, size = integer(count), _dtype(dtype)[1]
    return elements * size if elements is not None and size else None


def _redop(op: str, text: str) -> str | None:
    code = integer(text)
    return _REDOPS.get(-1 if code is None else code, "user") if _op(op) in _REDUCING else None


def _of(ops: set[str], column: str) -> Column:
    """A number that only these operations have."""
    return Column(lambda op, value: integer(value) if _op(op) in ops else None, ("op", column))


def _operation(source: str) -> Rows:
    return Rows(
        "collectives",
        {
            "source": constant(source),
            "comm": text("comm"),
            "nranks": number("nranks"),
            "logged_seq": number("op_count", 16),
            "op": Column(_op, ("op",)),
            "dtype": Column(lambda text: _dtype(text)[0], ("dtype",)),
            "count": number("count"),
            "bytes": Column(_bytes, ("count", "dtype")),
            "root": _of(_ROOTED, "root"),
            "redop": Column(_redop, ("op", "redop")),
            "peer": _of(_PAIRED, "root"),
            "state": constant("issued"),
        },
    )


def _named(names: dict[int, str], field: str) -> Column:
    def make(text: str) -> str:
        value = integer(text)
        return text if value is None else names.get(value, text)

    return Column(make, (field,))


OPERATIONS = {"coll": _operation("nccl-coll"), "call": _operation("nccl-call")}
"""Operations as one line tells them; which communicator a pointer means, other lines tell."""

_CHOSEN = {"op": text("op"), "bytes": number("bytes")}
_CHOICE = Rows("tuning", _CHOSEN | {"algo": text("algo"), "proto": text("proto"), "channels": text("channels")})
CHOICES = {
    "tuning": _CHOICE,
    "tuning_kernel": _CHOICE,
    "tuning_copy": _CHOICE,
    "tuning_numbers": Rows(
        "tuning", _CHOSEN | {"algo": _named(_ALGOS, "algo_number"), "proto": _named(_PROTOS, "proto_number")}
    ),
}


class Collectives:
    """The operations of one writer."""

    def __init__(self, comms: Communicators) -> None:
        self._comms = comms

    def rows(self, sink: Sink, segment: Segment) -> None:
        """Take a line of the family nccl_coll."""
        record = segment.record
        if record in OPERATIONS:
            known = self._comms.find(segment.fields["comm"])
            OPERATIONS[record].row(sink, segment, **membership(known, integer(segment.fields.get("nranks"))))
        elif record in CHOICES:
            CHOICES[record].row(sink, segment)
        elif record in {"call_init", "call_split"}:
            self._comms.begun(sink, segment, "start")
        elif record == "call_end":
            self._comms.ended(sink, segment)


def membership(known: Membership | None, nranks: int | None) -> dict[str, Value]:
    """The columns that tell a communicator; its size is the line's own, where that tells one."""
    return {
        "comm_id": known.comm_id if known else None,
        "comm_rank": known.comm_rank if known else None,
        "nranks": nranks or (known.nranks if known else None),
    }


def memberships(
    comms_of: Callable[[int], Communicators],
    since: int,
    where: tuple[Codes, npt.NDArray[np.int64]],
    pointers: Texts,
    sizes: Numbers,
) -> dict[str, model.Column]:
    """The columns of `membership` for many lines, none before line `since`: by their writers and numbers, and what they
    say of communicator and size.
    """
    writers, numbers = where
    told = pointers.coded()
    codes, firsts = combined([Coded(writers, range(int(writers.max()) + 1)), told])
    known: list[Membership | None] = []
    moving: list[tuple[int, Communicators, str]] = []
    for at, first in enumerate(firsts.tolist()):
        comms, pointer = comms_of(int(writers[first])), str(told.values[told.codes[first]])
        known.append(comms.find(pointer))
        if comms.changed(pointer) >= since:
            moving.append((at, comms, pointer))
    was = codes
    for at, comms, pointer in moving:
        codes = codes.copy() if codes is was else codes
        for place in np.flatnonzero(was == at).tolist():
            codes[place] = len(known)
            known.append(comms.find_at(pointer, int(numbers[place])))
    found = Coded(codes, known)
    own = np.array([k.nranks or 0 if k else 0 for k in known], np.int64)[codes]
    is_told = sizes.values != 0 if sizes.is_null is None else (sizes.values != 0) & ~sizes.is_null
    values = np.where(is_told, sizes.values, own)
    has_none = ~is_told & np.array([k is None or k.nranks is None for k in known], np.bool_)[codes]
    return {
        "comm_id": found.map(lambda k: k.comm_id if k else None),
        "comm_rank": found.map(lambda k: k.comm_rank if k else None),
        "nranks": Numbers(values, has_none if has_none.any() else None),
    }
