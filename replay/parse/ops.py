"""One spelling for operations and data types: libraries have several for each.

NCCL says AllReduce, c10d's work ALLREDUCE, its recorder nccl:all_reduce, a graph all_reduce.default.
"""

from functools import lru_cache

_ENDINGS = ("_coalesced", "_base", "_tensor", "_into", "_single", "_sparse")
_PLAIN = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reducescatter",
    "alltoall": "alltoall",
    "recvanysource": "recv",
}
_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
_SIZES = {
    "float64": 8,
    "int64": 8,
    "complex64": 8,
    "complex128": 16,
    "float32": 4,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
}


@lru_cache(maxsize=512)
def operation(text: str) -> str:
    """Return the name as in collectives.op: "_ALLGATHER_BASE" and "nccl:all_gather_into_tensor" are "allgather"."""
    name = text.rpartition(":")[2].split(" ")[0].lower().strip("_")
    if name.endswith("_barrier"):  # NCCL has none: torch runs an allreduce and calls it so
        return "barrier"
    shorter = ""
    while shorter != name:
        shorter, name = name, _without_ending(name)
    joined = name.replace("_", "")
    return _PLAIN.get(joined, joined)


def _without_ending(name: str) -> str:
    for ending in _ENDINGS:
        if name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending)
    return name


def dtype(text: str | None) -> str | None:
    """Return torch's name of a C++ scalar type: "BFloat16" is "bfloat16"."""
    if not text:
        return None
    name = text.rpartition("::")[2].split(" ")[0]
    return _DTYPES.get(name, name.lower())


def size_of(name: str | None) -> int | None:
    """Bytes of one element, None for a type that is not known."""
    if name is None:
        return None
    return _SIZES.get(name, 1 if name in {"int8", "uint8", "bool"} or name.startswith("float8") else None)
