"""What tests of several layers need: the build under test, and an installation of it."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build folder under test."""
    return pathlib.Path(os.environ.get("TENON_BUILD", ROOT / "build/release"))


@pytest.fixture(scope="session")
def installation(build, tmp_path_factory) -> pathlib.Path:
    """The prefix of an installation of everything. What several tests compile against it is in one place, so that the compiler cache knows it."""
    prefix = tmp_path_factory.mktemp("installation")
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True, capture_output=True)
    return prefix


@pytest.fixture(scope="session")
def compiler_environment(tmp_path_factory) -> dict[str, str]:
    """Environment variables for builds out of tree: CMake's own, and those of the compiler cache. Paths in the cache and in objects are
    relative to the tests' folder, so that another run's folders find the same objects. Slightly optimised: compiling core takes a third longer,
    and the conformance kit a third of the time."""
    folder = tmp_path_factory.getbasetemp().resolve()
    cache = {"CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1",
             "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
    chosen = {"CXX": "g++", "CXXFLAGS": f"-O1 -fmacro-prefix-map={folder}/="}
    if shutil.which("ccache"):
        chosen["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    if shutil.which("ninja"):
        chosen["CMAKE_GENERATOR"] = "Ninja"
    return {**os.environ, **cache, **chosen}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """Where two processes share the tests by group (`--dist loadgroup`), a file is one, so that what its tests share is made once; a mark says otherwise."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
