"""Builds the native scanner into the wheel, and into the tree for an editable installation. Where there is no compiler
the wheel is one of Python alone: it reads the same, slower.
"""

import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

SCANNER = "replay.grammar._scan"


class ScannerHook(BuildHookInterface):
    """Compiles one file of C against Python's stable interface: one wheel does for all versions since 3.11."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, and tell the builder of what came out."""
        if self.target_name != "wheel":
            return
        built = _built(Path(self.root))
        if built is None:
            self.app.display_warning("no native scanner: it could not be compiled; logs are read by Python alone")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["force_include"][str(built)] = str(built.relative_to(self.root))


def _built(root: Path) -> Path | None:
    source = SCANNER.replace(".", "/") + ".c"
    extension = Extension(SCANNER, [source], py_limited_api=True, extra_compile_args=["-O3"])
    command = build_ext(Distribution({"ext_modules": [extension]}))
    command.inplace = True
    command.ensure_finalized()
    command.build_temp = str(root / "build")
    try:
        command.run()
    except Exception:  # whatever a compiler that is missing or too old makes of it
        return None
    return Path(command.get_ext_fullpath(SCANNER)).resolve()
