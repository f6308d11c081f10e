"""Which payload families a message is tried against, by the world that its header names (and, for torch's own
artifacts, by the marker in the header). Order is preference.
"""

BY_HEADER: dict[str, tuple[str, ...]] = {
    "torch": ("compile", "dynamic", "limit", "cache", "cudagraphs", "break_hint", "ddp", "launcher", "c10d"),
    "c10": ("c10d", "device", "checks", "gloo"),
    "nccl": (
        "nccl_channel",
        "nccl_comm",
        "nccl_coll",
        "nccl_topo",
        "nccl_env",
        "nccl_net",
        "nccl_warn",
        "nccl_info",
        "nccl_text",
    ),
    "app": (
        "nccl_bare",
        "python",
        "launcher",
        "scheduler",
        "kernel",
        "device",
        "gloo",
        "c10d",
        "checks",
        "parameters",
        "trainer",
    ),
    "": (
        "python",
        "launcher",
        "scheduler",
        "kernel",
        "device",
        "gloo",
        "c10d",
        "checks",
        "versions",
        "nccl_ras",
        "nccl_bare",
        "torch_bare",
        "parameters",
        "trainer",
    ),
}

BY_ARTIFACT: dict[str, tuple[str, ...]] = {
    "recompiles": ("recompiles",),
    "recompiles_verbose": ("recompiles",),
    "graph_breaks": ("graph_breaks",),
    "guards": ("guard_tree",),
    "verbose_guards": ("guard_tree",),
    "graph_code": ("graphs",),
    "graph_code_verbose": ("graphs",),
    "graph": ("graphs",),
    "graph_sizes": ("graphs",),
    "aot_graphs": ("graphs",),
    "aot_joint_graph": ("graphs",),
    "pre_grad_graphs": ("graphs",),
    "post_grad_graphs": ("graphs",),
    "ddp_graphs": ("graphs",),
    "output_code": ("graphs",),
    "kernel_code": ("graphs",),
    "schedule": ("schedule",),
    "fusion": ("schedule",),
    "ir_pre_fusion": ("schedule",),
    "ir_post_fusion": ("schedule",),
    "compiled_autograd": ("graphs",),
    "cudagraphs": ("cudagraphs",),
    "perf_hints": ("cudagraphs", "compile"),
}


def is_of_guards(artifact: str) -> bool:
    """Whether an artifact prints guards."""
    return BY_ARTIFACT.get(artifact) == ("guard_tree",)


def is_of_graphs(artifact: str) -> bool:
    """Whether an artifact prints graphs or code."""
    return BY_ARTIFACT.get(artifact) == ("graphs",)


NCCL_WARNING = ("nccl_net", "nccl_warn", "nccl_warn_only", "nccl_other", "nccl_text")


def families(header: str, marker: str | None) -> tuple[str, ...]:
    """Families for a message with this header and marker: torch's artifact, NCCL's level."""
    if header == "nccl":
        return NCCL_WARNING if marker in {"WARN", "ATTN"} else BY_HEADER["nccl"]
    if marker is not None:
        return BY_ARTIFACT.get(marker, ())
    return BY_HEADER.get(header, ())
