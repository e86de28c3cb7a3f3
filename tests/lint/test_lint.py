"""The rules of the house that a command can check. Each test names the rule; what it prints is the list of offenders."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD", ROOT / "build/release"))
CODE = {".h", ".cpp", ".hpp"}


def tracked(*folders: str, suffixes: set[str] = CODE) -> list[pathlib.Path]:
    """Files under version control; where there is no repository (an unpacked archive), all files."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return [path for path in paths if path.suffix in suffixes and path.exists()]


def offenders(paths: list[pathlib.Path], pattern: str, allowed: str = r"$^") -> list[str]:
    """Lines that match, as file:line: text."""
    wrong, right = re.compile(pattern), re.compile(allowed)
    found = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if wrong.search(line) and not right.search(f"{name}:{line}"):
                found.append(f"{name}:{number}: {line.strip()}")
    return found


ARROWS = {
    "framework/core": r'#include ["<](host|plugins|tenon|llvm|tbb|oneapi|boost|dlfcn|Python|cuda)[/.]',
    "framework/host": r'#include ["<](plugins/|llvm/|Python\.h|cuda)',
    "sdk": r'#include ["<](host|plugins|llvm|Python|cuda)[/.]',
    "plugins/passes": r'#include ["<](host|plugins)/|#include ["<]tenon/(host\.h|embed\.hpp)',
    "plugins/backends": r'#include ["<](host|plugins)/|#include ["<]tenon/(host\.h|embed\.hpp)',
    "plugins/frontends/text": r'#include ["<](host|plugins)/|#include ["<]tenon/(host\.h|embed\.hpp)',
    "plugins/frontends/python": r'#include ["<](host|plugins)/',
}


@pytest.mark.parametrize("folder", ARROWS)
def test_includes_point_one_way(folder):
    assert offenders(tracked(folder), ARROWS[folder]) == []


def test_the_header_of_the_contract_is_c(tmp_path):
    """plugin.h and graph_buffer.h compile as C11, so that an author needs no C++."""
    source = tmp_path / "contract.c"
    source.write_text('#include "core/abi/plugin.h"\n#include "core/abi/graph_buffer.h"\nint main(void) { return TENON_ABI_NEWEST == 0; }\n')
    done = subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(ROOT / "framework"), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_core_has_no_threads():
    assert offenders(tracked("framework/core"), r"#include <(thread|future|condition_variable)>|\bdlopen\(") == []


def op_names() -> set[str]:
    """The ops of the catalogue, from a run of the conformance kit on a backend that claims nothing."""
    run = subprocess.run([str(BUILD / "bin/tenon-conformance"), str(BUILD / "lib/tenon/plugins/printer.so"), "--json"], capture_output=True, text=True)
    return set(json.loads(run.stdout)["by_op"])


def test_no_table_of_ops_outside_the_catalogue():
    """A rule or a fast path names the op that it is about; a file that names many is a table."""
    ops = op_names()
    assert len(ops) > 50
    most = 12
    exceptions = {
        "plugins/backends/llvm/isa/library_functions.cpp",  # functions of the C library, by scalar primitive
        "plugins/frontends/python/foreign/math_functions.cpp",  # of Python's module math
        "plugins/frontends/python/builtins/table.cpp",  # of Python's module operator, and builtins
        "plugins/frontends/python/recording/recorded_scalars.cpp",  # operators of Python's numbers
    }
    tables = {}
    for path in tracked("framework", "sdk", "plugins/backends", "plugins/passes", "plugins/frontends"):
        name = str(path.relative_to(ROOT))
        if name.startswith("framework/core/ops/") or name in exceptions:
            continue
        text = re.sub(r'\b(one|call)\((\w+ \? )?"\w+"', "", path.read_text())  # nodes that are made
        named = ops & set(re.findall(r'"(\w+)"', text))
        if len(named) > most and not re.search(r"_rules\.cpp$", name):
            tables[name] = sorted(named)
    assert tables == {}


def test_functions_of_libraries_are_known_by_name_in_one_place():
    """A row of foreign/function_traits.cpp says what must be known by name; all other code asks for the trait."""
    compared = r'\b(function|foreign)\.(name|last_word\(\))(\.(starts_with|ends_with|find)\(| ?[!=]= ?)|\.contains\((function|foreign)\.'
    assert offenders(tracked("plugins/frontends/python"), compared, r"python/foreign/") == []


def test_what_targets_share_names_no_instruction_set():
    pattern = r"(?i)\b(avx|sse|x86|f16c|libmvec|sfence|zmm|ymm|znver|nvvm|nvptx|ptx|warp)|_ZGV"
    assert offenders(tracked("plugins/backends/codegen", suffixes=CODE | {".md"}), pattern) == []


def test_what_recognises_kernels_and_products_says_nothing_of_how_a_machine_runs_them():
    """Targets make schedules of what they are given; costs are asked of codegen/machine."""
    paths = tracked(*(f"plugins/backends/codegen/{room}" for room in ("loops", "machine", "fusion", "graph", "places")), suffixes=CODE)
    assert offenders(paths, r"(?i:\b(lanes?|panels?|tiles?|threads?|caches?|warps?|blocks? of threads)\b)|[a-z](Lane|Panel|Tile|Thread|Cache|Warp)") == []


def test_the_framework_names_no_plugin():
    names = [path.parent.name for path in (ROOT / "plugins").glob("*/*/CMakeLists.txt")]
    pattern = '"(' + "|".join(n for n in names if n not in ("text", "codegen")) + ')"'
    # The fallback backend is a setting whose default is written down once.
    allowed = r"framework/host/driver/(config|flags)\.(h|cpp):"
    paths = [p for p in tracked("framework", "sdk") if "template" not in p.parts]
    # Names of passes and ops coincide with library names ("simplify"); only string literals that are the whole name count.
    assert offenders(paths, pattern, allowed) == []


def test_the_framework_names_no_kind_of_device():
    """It knows devices by number, from DLPack's own header; their words are whose who brings them."""
    named = r"(?i)^([^/]|/[^/])*\b(kDL)?(cuda|rocm|mps|xpu|maia|vulkan|opencl|metal)\w*\b"
    allowed = r"core/abi/dlpack\.h:"
    assert offenders(tracked("framework/core", "framework/host"), named, allowed) == []


def test_the_environment_is_read_in_one_place():
    pattern = r"\b(secure_)?getenv\(|os\.environ"
    paths = tracked("framework", "sdk", "plugins", suffixes=CODE | {".py"})
    assert offenders(paths, pattern, r"/(flags?|environment)\.(cpp|h|py):") == []


def test_versions_are_told_apart_in_compat_only():
    assert offenders(tracked("framework", "sdk", "plugins"), r"^\s*#\s*(el)?if.*\b(PY_VERSION|LLVM_VERSION)", r"/compat/") == []


def test_both_versions_of_catch_are_spelled_in_one_place():
    assert offenders(tracked("tests"), r"catch2/|Catch::Matchers::", r"^tests/catch(_main\.cpp|\.h):") == []


def test_every_plugin_exports_one_symbol():
    libraries = sorted((BUILD / "lib/tenon/plugins").glob("*.so"))
    assert libraries
    for library in libraries:
        listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
        assert [line.split()[-1] for line in listing.splitlines()] == ["tenon_plugin_entry"], library.name


def test_no_static_object_of_the_llvm_backend_is_destroyed():
    """They would be destroyed before the thread that improves kernels, which uses them, is waited for."""
    imported = subprocess.run(["nm", "-D", "--undefined-only", str(BUILD / "lib/tenon/plugins/llvm.so")], check=True, capture_output=True, text=True).stdout
    assert imported and not re.search(r"\b__cxa_atexit\b", imported)


def test_every_plugin_has_a_manifest():
    for library in (BUILD / "lib/tenon/plugins").glob("*.so"):
        manifest = json.loads(library.with_suffix(".json").read_text())
        assert manifest["name"] == library.stem


def test_no_drawer_names():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert [n for n in names if re.search(r"(^|[/_])(utils?|helpers?|common|misc)(\.|/)", n, re.I)] == []


def test_no_notes_to_self():
    paths = [p for p in tracked("framework", "sdk", "plugins", "tests", "samples", suffixes=CODE | {".py"}) if p != pathlib.Path(__file__)]
    assert offenders(paths, r"(?i)(//|#) *(todo|fixme|hack|for now|previously|no longer|new:)") == []


def test_every_rule_and_pass_has_a_golden_test():
    golden = {path.stem for path in (ROOT / "tests/golden").rglob("*.tir")}
    folders = {path.name for path in (ROOT / "tests/golden").iterdir() if path.is_dir()}
    for manifest in (BUILD / "lib/tenon/plugins").glob("*.json"):
        assert set(json.loads(manifest.read_text()).get("passes", [])) <= folders, manifest.name
    rules = {rule for path in (ROOT / "plugins/passes").rglob("*_rules.cpp") for rule in re.findall(r'\{"(\w+)", (?:op|any|view|cast)', path.read_text())}
    assert len(rules) > 40
    assert rules <= golden


def test_file_lengths():
    """A file that needs more lines is about more than one thing."""
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in tracked("framework", "sdk", "plugins", "tests", suffixes=CODE | {".py"})}
    assert {name: lines for name, lines in lengths.items() if lines > 450} == {}
