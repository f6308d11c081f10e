"""Places in source code: which files are the user's own, and which frame of a stack is."""

from collections.abc import Iterable
from typing import NamedTuple

_INSTALLED = (
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/lib64/python",
    "/torchinductor_",  # generated code
    "/torch/_dynamo/",
    "/torch/_inductor/",
    "/torch/_functorch/",
    "/torch/nn/",
    "/torch/distributed/",
    "/torch/optim/",
    "/torch/utils/",
    "/torch/autograd/",
    "/importlib/",
)
_INSTALLED_HEADS = (
    # no file at all
    "<",
    # relative to an entry of sys.path, or to torch's own folder, as in the comments of guards
    "torch/",
    "_dynamo/",
    "_inductor/",
    "_functorch/",
    "_higher_order_ops/",
    "_functional",
    "nn/modules/",
    "nn/parallel/",
    "nn/functional.py",
    "nn/utils/",
    "fx/experimental/",
    "optim/optimizer.py",
    "optim/lr_scheduler.py",
    "optim/adam",
    "optim/sgd.py",
    "distributed/_",
    "distributed/fsdp/",
    "distributed/tensor/",
    "autograd/function.py",
    "autograd/grad_mode.py",
    "utils/_",
    "utils/checkpoint.py",
)


_WRAPPERS = ("torch/distributed/fsdp/", "torch/distributed/_composable/", "torch/nn/parallel/")
"""Code of torch that stands between the user's modules, not called by name."""
_ENTRIES = ("torch/_dynamo/external_utils.py", "torch/_dynamo/eval_frame.py")
"""Files of torch through which a compiled region is entered."""


class Frame(NamedTuple):
    """A frame of a stack."""

    file: str
    line: int
    fn: str


def is_installed(path: str) -> bool:
    """Whether a file lies in torch, in another installed package or in Python's own library (or is no file)."""
    path = path.replace("\\", "/")
    return path.startswith(_INSTALLED_HEADS) or any(part in path for part in _INSTALLED)


def is_wrapper(path: str) -> bool:
    """Whether a file belongs to what wraps the user's modules: FSDP, DDP."""
    return any(part in path.replace("\\", "/") for part in _WRAPPERS)


def inside(frames: list[Frame]) -> list[Frame]:
    """Return the frames of the compiled region: behind torch's last entry. Where torch shows no entry, all of them."""
    for at in range(len(frames) - 1, -1, -1):
        if frames[at].file.replace("\\", "/").endswith(_ENTRIES):
            return frames[at + 1 :]
    return frames


def users_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame in a file of the user's own; `frames` run from the outermost to the innermost."""
    found = None
    for frame in frames:
        if not is_installed(frame.file):
            found = frame
    return found
