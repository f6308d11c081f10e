"""The last words of a Python process: tracebacks of what it raised, and of a crash.

Tracebacks are blocks, not lines of a line grammar: these are templates that are held against the parser by test.
"""

from collections.abc import Iterator

_PACKAGES = "/opt/venv/lib/python3.11/site-packages"
_GLOO = "../third_party/gloo/gloo/transport/tcp"
_MAIN = (("/workspace/train.py", 248, "<module>", "main()"), ("/workspace/train.py", 176, "main", "train(config)"))
_RAISED = (
    ("collate.py", 41, "collate", 'labels = torch.stack([row["labels"] for row in rows])', "KeyError: 'labels'"),
    (
        "dataset.py",
        63,
        "__getitem__",
        "table = pq.read_table(self.files[index])",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/part-00017.parquet'",
    ),
    (
        "model.py",
        119,
        "forward",
        "x = x.view(batch, self.heads, -1)",
        "RuntimeError: shape '[32, 12, -1]' is invalid for input of size 393215",
    ),
    ("schedule.py", 18, "rate", "return self.base / self.total", "ZeroDivisionError: division by zero"),
)


def raised(choice: int) -> Iterator[str]:
    """An exception of the user's code."""
    file, number, name, source, error = _RAISED[choice % len(_RAISED)]
    yield from _traceback((*_MAIN, (f"/workspace/{file}", number, name, source)), error)


def out_of_memory(version: tuple[int, ...], device: int) -> Iterator[str]:
    """CUDA has no memory left."""
    kind = "torch.OutOfMemoryError" if version >= (2, 5) else "torch.cuda.OutOfMemoryError"
    capacity = (
        "has a total capacity of 79.15 GiB of which 214.75 MiB is free"
        if version >= (2, 2)
        else "has a total capacty of 79.15 GiB of which 214.75 MiB is free"
    )
    error = (
        f"{kind}: CUDA out of memory. Tried to allocate 1.50 GiB. GPU {device} {capacity}. Including non-PyTorch"
        " memory, this process has 78.93 GiB memory in use. Of the allocated memory 76.02 GiB is allocated by PyTorch,"
        " and 1.21 GiB is reserved by PyTorch but unallocated."
    )
    yield from _traceback((*_MAIN, ("/workspace/model.py", 97, "forward", "h = self.up(x)")), error)


def gloo_timed_out(timeout_ms: int) -> Iterator[str]:
    """A rank waited in gloo until it gave up."""
    yield from _gloo(f"[{_GLOO}/unbound_buffer.cc:81] Timed out waiting {timeout_ms}ms for recv operation to complete")


def gloo_closed(peer: str) -> Iterator[str]:
    """A rank's peer in gloo is gone."""
    yield from _gloo(f"[{_GLOO}/pair.cc:534] Connection closed by peer [{peer}]:41872")


def _gloo(error: str) -> Iterator[str]:
    collective = (
        (f"{_PACKAGES}/torch/distributed/c10d_logger.py", 81, "wrapper", "return func(*args, **kwargs)"),
        (f"{_PACKAGES}/torch/distributed/distributed_c10d.py", 2806, "all_reduce", "work.wait()"),
    )
    yield from _traceback((*_MAIN, *collective), f"RuntimeError: {error}")


def mismatch(mine: str, other: str, my_rank: int, other_rank: int, aspects: str) -> Iterator[str]:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: the fingerprints of a collective differ."""
    error = (
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank {my_rank} is running collective: {mine},"
        f" but Rank {other_rank} is running collective: {other}."
        f"Collectives differ in the following aspects: \t {aspects}"
    )
    frame = (
        f"{_PACKAGES}/torch/distributed/distributed_c10d.py",
        2806,
        "all_reduce",
        "work = group.allreduce([tensor], opts)",
    )
    yield from _traceback((*_MAIN, frame), error)


def fingerprint(seq: int, op: str, shape: int, dtype: str) -> str:
    """A collective as DETAIL names it."""
    kind = {"Float": "float (default)", "Half": "c10::Half", "BFloat16": "c10::BFloat16", "Long": "long int"}[dtype]
    options = (
        f"dtype={kind}, device=cuda, layout=Strided (default), requires_grad=false (default),"
        " pinned_memory=false (default), memory_format=(nullopt)"
    )
    return (
        f"CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{shape}], TensorDtypes={dtype},"
        f" TensorDeviceTypes=TensorOptions({options}))"
    )


def segfault() -> Iterator[str]:
    """Faulthandler's report of a crash, innermost frame first."""
    yield "Fatal Python error: Segmentation fault"
    yield ""
    yield "Current thread 0x00007f2a4c0d1740 (most recent call first):"
    yield '  File "/workspace/ops/fused.py", line 52 in forward'
    yield '  File "/workspace/model.py", line 97 in forward'
    yield '  File "/workspace/train.py", line 176 in main'
    yield '  File "/workspace/train.py", line 248 in <module>'


def _traceback(frames: tuple[tuple[str, int, str, str], ...], error: str) -> Iterator[str]:
    yield "Traceback (most recent call last):"
    for file, number, name, source in frames:
        yield f'  File "{file}", line {number}, in {name}'
        yield f"    {source}"
    yield error
