"""How the loops are compiled when the package is installed."""

import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hatch_build
from judgekit.kernel import kernel
from tests.builders import REPOSITORY

pytestmark = pytest.mark.slow

SOURCES = REPOSITORY / hatch_build.FOLDER
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
HEADERS = Path(sysconfig.get_path("include"))
needs_compiler = pytest.mark.skipif(
    shutil.which(COMPILER) is None or not (HEADERS / "Python.h").exists(), reason="no C compiler, or no Python.h"
)


@pytest.mark.skipif(kernel is None, reason="the package was installed without a C compiler")
def test_what_is_loaded_was_compiled_from_these_sources() -> None:
    assert hatch_build.digest(SOURCES) == kernel.SOURCES, "judgekit/kernel has changed: install the package again"


@needs_compiler
def test_the_sources_compile_without_a_warning() -> None:
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    command = [COMPILER, "-fsyntax-only", *strict, "-isystem", str(HEADERS), *map(str, SOURCES.glob("*.c"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def hook(said: list[str], target: str = "wheel") -> hatch_build.KernelHook:
    app: Any = SimpleNamespace(display_warning=said.append)
    return hatch_build.KernelHook(str(REPOSITORY), {}, None, None, "", target, app)  # type: ignore[arg-type]


def build_data() -> dict[str, Any]:
    return {"force_include": {}, "pure_python": True, "infer_tag": False}


@needs_compiler
def test_a_wheel_gets_a_module_that_loads_and_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGEKIT_PURE", raising=False)
    said: list[str] = []
    building, data = hook(said), build_data()
    building.initialize("standard", data)
    assert said == []
    assert (data["pure_python"], data["infer_tag"]) == (False, True)
    ((built, target),) = data["force_include"].items()
    assert Path(target).parent == hatch_build.FOLDER
    spec = importlib.util.spec_from_file_location("_kernel", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.ranks_in_lists([["a"]], [["b", "a"]], 3) == ([(2,)], [1])
    building.finalize("standard", data, "")
    assert not Path(built).exists()


def test_without_a_compiler_the_wheel_is_pure_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGEKIT_PURE", raising=False)
    monkeypatch.setenv("CC", "/no/such/compiler")
    said: list[str] = []
    building, data = hook(said), build_data()
    building.initialize("standard", data)
    building.finalize("standard", data, "")
    assert data == build_data()
    assert len(said) == 1
    assert said[0].startswith("the kernel was not compiled, so large files are read more slowly: ")


def test_the_loops_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEKIT_PURE", "1")
    said: list[str] = []
    data = build_data()
    hook(said).initialize("standard", data)
    assert (data, said) == (build_data(), [])
    monkeypatch.delenv("JUDGEKIT_PURE")
    hook(said, "sdist").initialize("standard", data)
    assert (data, said) == (build_data(), [])
