"""Projects that know nothing of Tenon's tree but the installed SDK."""
import os
import pathlib
import re
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).parents[2]

FIRST_PARTY = {
    "reference": ROOT / "plugins/backends/reference",
    "printer": ROOT / "plugins/backends/printer",
    "canonical": ROOT / "plugins/passes/canonical",
    "simplify": ROOT / "plugins/passes/simplify",
    "cleanup": ROOT / "plugins/passes/cleanup",
    "text": ROOT / "plugins/frontends/text",
}
# They need LLVM 19, and Python with NumPy. `codegen` is a library that `llvm` and `cuda` share.
LARGE = {"codegen": ROOT / "plugins/backends/codegen", "llvm": ROOT / "plugins/backends/llvm", "cuda": ROOT / "plugins/backends/cuda", "python": ROOT / "plugins/frontends/python"}
SAMPLES = {"strength": ROOT / "samples/05_pass_plugin", "my_passes": ROOT / "sdk/template/pass"}


class OutOfTree:
    """Configures and builds projects against one installation of the SDK."""

    def __init__(self, sdk: pathlib.Path, folder: pathlib.Path, environment: dict[str, str]):
        self.sdk, self.folder, self.environment = sdk, folder, environment

    def configure(self, source: pathlib.Path, name: str, *options: str) -> pathlib.Path:
        """Configures a project and gives its build folder."""
        target = self.folder / name
        command = ["cmake", "-S", str(source), "-B", str(target), f"-DCMAKE_PREFIX_PATH={self.sdk}", *options]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return target

    def build(self, source: pathlib.Path, name: str, *options: str) -> pathlib.Path:
        """Builds a project and gives the folder of its plugins."""
        target = self.configure(source, name, *options)
        start = time.monotonic()
        done = subprocess.run(["cmake", "--build", str(target), "--parallel", str(os.cpu_count() or 2)], capture_output=True, text=True, env=self.environment)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr
        print(f"{name}: built in {time.monotonic() - start:.1f} s")
        return target / "lib/tenon/plugins"


def write_project(folder: pathlib.Path, sources: dict[str, pathlib.Path]) -> pathlib.Path:
    """Copies plugin folders into a project that finds the SDK and adds each of them, as one author's project would."""
    folder.mkdir()
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(out_of_tree VERSION 9.9 LANGUAGES CXX)",
             "set(CMAKE_POSITION_INDEPENDENT_CODE ON)", "set(CMAKE_CXX_VISIBILITY_PRESET hidden)", "set(CMAKE_UNITY_BUILD ON)",
             "find_package(TenonSDK REQUIRED)", "tenon_core_for_plugins()"]
    for name, source in sources.items():
        shutil.copytree(source, folder / name)
        lines.append(f"add_subdirectory({name})")
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    return folder


def exported_symbols(library: pathlib.Path) -> list[str]:
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
    return [line.split()[-1] for line in listing.splitlines()]


def write_documented_plugins(folder: pathlib.Path) -> pathlib.Path:
    """The project that the blocks of docs/plugins.md make."""
    page = (ROOT / "docs/plugins.md").read_text()
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", page, re.S).group(1))
    for code in re.findall(r"```cpp\n(.*?)```", page, re.S):
        (folder / re.match(r"// (\w+\.cpp)\n", code).group(1)).write_text(code)
    return folder
