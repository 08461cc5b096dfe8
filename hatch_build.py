"""Compiles `judgekit/kernel` where there is a C compiler; without one the package is pure Python, the figures the same.

An editable install gets the compiled module beside its sources, any other in the wheel alone.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("judgekit", "kernel")


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]  # a hook does not ask what it configures
    """Adds the compiled module to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless `JUDGEKIT_PURE` is set."""
        if self.target_name != "wheel" or os.environ.get("JUDGEKIT_PURE"):
            return
        self._scratch = Path(tempfile.mkdtemp(prefix="judgekit-"))
        try:
            built = compiled(Path(self.root) / FOLDER, self._scratch)
        except Exception as error:  # noqa: BLE001 - whatever it is, the package works without
            self.app.display_warning(f"the kernel was not compiled, so large files are read more slowly: {error}")
            return
        if version == "editable":
            shutil.copy(built, Path(self.root) / FOLDER)
        else:
            build_data["force_include"][str(built)] = str(FOLDER / built.name)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Leave nothing behind."""
        if hasattr(self, "_scratch"):
            shutil.rmtree(self._scratch, ignore_errors=True)


def digest(folder: Path) -> str:
    """A hash of the sources, by which a test sees that what is loaded was made from them."""
    sources = sorted([*folder.glob("*.c"), *folder.glob("*.h")])
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


def compiled(folder: Path, scratch: Path) -> Path:
    """The compiled module.

    Args:
        folder: the sources.
        scratch: a folder for what the compiler makes.

    Raises:
        Exception: of many kinds, where something that a compiler needs is missing.
    """
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    sources = sorted(map(str, folder.glob("*.c")))
    module = Extension("_kernel", sources, define_macros=[("SOURCES", f'"{digest(folder)}"')])
    command = build_ext(Distribution({"name": "judgekit", "ext_modules": [module]}))
    command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "temp")
    command.ensure_finalized()
    command.run()
    return Path(command.get_outputs()[0])
