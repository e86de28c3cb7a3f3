"""TENON_TRACE, TENON_PERF, and torch's profiler: what calls, compiles and kernels look like there."""
import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

import tenon

PROGRAM = """
import sys
import numpy as np
import tenon

def wave(a, b):
    return np.sin(a) + np.cos(b) * 2

A = np.linspace(0, 1, 64)
compiled = tenon.compile(wave)
for _ in range(3):
    result = compiled(A, A)
assert np.allclose(result, wave(A, A))
print("done")
"""


def run(folder: pathlib.Path, program: str = PROGRAM, **environment: str) -> subprocess.CompletedProcess:
    (folder / "program.py").write_text(program)
    paths = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    ran = subprocess.run([sys.executable, str(folder / "program.py")], cwd=folder, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().endswith("done")
    return ran


def within(inner, outer):
    return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01


def test_a_trace_has_captures_compiles_and_kernels_by_call(tmp_path):
    run(tmp_path, TENON_TRACE="trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    assert all(event["ph"] == "X" and event["dur"] >= 0 and event["cat"] == "tenon" for event in events)
    by_name = {name: [event for event in events if event["name"] == name] for name in {event["name"] for event in events}}
    calls = sorted(by_name["call wave"], key=lambda event: event["ts"])
    assert len(calls) == 3
    first = calls[0]
    for phase in ("capture wave", "compile"):
        assert any(within(event, first) for event in by_name[phase]), phase
    assert any(name.startswith("passes: ") for name in by_name) and any(name.startswith("compile by llvm") for name in by_name)
    kernels = [event for event in events if event.get("args", {}).get("place", "").endswith("program.py:7")]
    assert [sum(within(kernel, call) for kernel in kernels) for call in calls] == [1, 1, 1]
    assert {kernel["name"] for kernel in kernels} == {"fused_sin_cos_mul_add"}


def test_nodes_of_the_reference_are_in_the_trace(tmp_path):
    run(tmp_path, PROGRAM.replace("tenon.compile(wave)", "tenon.compile(wave, backend='reference')"), TENON_TRACE="trace-%p.json")
    (path,) = tmp_path.glob("trace-*.json")
    events = json.loads(path.read_text())
    assert str(events[0]["pid"]) in path.name
    assert sum(event["name"] == "sin" and event["args"]["place"].endswith("program.py:7") for event in events) == 3


def test_the_child_of_a_fork_writes_nothing_into_the_trace(tmp_path):
    forking = PROGRAM.replace("print(", "import os\nif (child := os.fork()) == 0:\n    compiled(A, A)\n    sys.exit()\nos.waitpid(child, 0)\nprint(")
    run(tmp_path, forking, TENON_TRACE="trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    assert len({event["pid"] for event in events}) == 1 and sum(event["name"] == "call wave" for event in events) == 3


@pytest.mark.parametrize("path", ["missing/trace.json", "."])
def test_a_trace_that_cannot_be_written_is_told_once(tmp_path, path):
    ran = run(tmp_path, TENON_TRACE=path)
    assert ran.stderr.count("no trace is written") == 1 and "TENON_TRACE takes the name of a file in a folder that exists and may be written" in ran.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "program.py"]


def test_a_trace_that_another_process_writes_is_left_alone(tmp_path):
    import fcntl

    with open(tmp_path / "trace.json", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("mine")
        file.flush()
        assert "another process writes" in run(tmp_path, TENON_TRACE="trace.json").stderr
    assert (tmp_path / "trace.json").read_text() == "mine"


# ---- perf


def records(path: pathlib.Path):
    """(kind, body) of each record of a jitdump file, by the kernel's jitdump-specification.txt."""
    data = path.read_bytes()
    magic, version, size, machine, _, pid, _, flags = struct.unpack_from("<IIIIIIQQ", data)
    assert (magic, version, size, flags) == (0x4A695444, 1, 40, 0) and f"jit-{pid}.dump" == path.name and machine in (62, 183)
    at, last = size, 0
    while at < len(data):
        kind, length, time = struct.unpack_from("<IIQ", data, at)
        assert length >= 16 and at + length <= len(data) and time >= last
        yield kind, data[at + 16 : at + length]
        at, last = at + length, time


def test_jitdump_has_code_with_its_lines(tmp_path):
    run(tmp_path, TENON_PERF="jitdump", TENON_CACHE="false")
    (path,) = tmp_path.glob("jit-*.dump")
    lines, ends, loaded = {}, {}, []
    for kind, body in records(path):
        if kind == 2:  # debug information
            address, entries = struct.unpack_from("<QQ", body)
            assert entries == 2  # where the code begins, and where it ends
            at, line, _ = struct.unpack_from("<QiI", body, 16)
            file, rest = body[32:].split(b"\0", 1)
            lines[address], ends[address] = (file.decode(), line), struct.unpack_from("<Q", rest)[0]
            assert at == address and struct.unpack_from("<i", rest, 8)[0] == line and rest[16:].rstrip(b"\0") == file
        else:
            assert kind == 0  # code
            _, _, vma, address, size, index = struct.unpack_from("<IIQQQQ", body)
            name, code = body[40:].split(b"\0", 1)
            assert vma == address and size == len(code) > 0 and any(code) and ends.get(address, address + size) == address + size
            loaded.append((index, name.decode(), address))
    assert [index for index, _, _ in loaded] == list(range(1, len(loaded) + 1))
    kernels = [(name, lines.get(address)) for _, name, address in loaded]
    assert any(name == "tenon: fused_sin_cos_mul_add" and line == (str(tmp_path / "program.py"), 7) for name, line in kernels), kernels


def test_the_perf_map_has_names(tmp_path):
    said = PROGRAM.replace('print("done")', 'import os\nprint(open("/proc/self/maps").read())\nprint(os.getpid(), "done")')
    *mapped, last = run(tmp_path, said, TENON_PERF="map").stdout.strip().splitlines()
    pid = last.split()[0]
    path = pathlib.Path(f"/tmp/perf-{pid}.map")
    try:
        entries = [line.split(" ", 2) for line in path.read_text().splitlines()]
    finally:
        path.unlink()
    assert entries and all(int(address, 16) > 0 and int(size, 16) > 0 for address, size, _ in entries)
    kernels = [int(address, 16) for address, _, name in entries if name == "tenon: fused_sin_cos_mul_add"]
    mappings = [([int(end, 16) for end in fields[0].split("-")], fields[1], fields[5:]) for fields in map(str.split, filter(None, mapped))]
    around = [(rights, name) for at in kernels for (first, last), rights, name in mappings if first <= at < last]
    assert around and all(found == ("r-xp", []) for found in around), around  # perf looks for names in mappings without one alone


def test_another_word_for_perf_is_refused(tmp_path):
    refused = PROGRAM.replace("for _ in range(3):\n    result = compiled(A, A)", "try:\n    compiled(A, A)\nexcept tenon.ConfigError as error:\n    print(error)\nresult = wave(A, A)")
    assert "diagnostics.perf must be map or jitdump, not: loud" in run(tmp_path, refused, TENON_PERF="loud").stdout


def test_a_dump_that_cannot_be_written_is_told_once(tmp_path):
    ran = run(tmp_path, "import os\nos.chdir('/proc')\n" + PROGRAM, TENON_PERF="jitdump", TENON_WARM_UP="false")
    assert ran.stderr.count("perf is told nothing") == 1


# ---- torch's profiler


def names_while_profiled(action):
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        action()
    return {event.key: event.count for event in profiler.key_averages()}, profiler


def ancestors(event):
    names = []
    while (event := event.cpu_parent) is not None:
        names.append(event.name)
    return names


def test_calls_and_kernels_are_ranges_of_torchs_profiler():
    torch = pytest.importorskip("torch")
    fn = tenon.compile(lambda x: torch.softmax(x.sin() + 1, -1))
    x = torch.randn(8, 16)
    want = fn(x)

    def twice():
        assert torch.equal(fn(x), want)
        fn(x)

    names, profiler = names_while_profiled(twice)
    (call,) = [name for name in names if name.startswith("tenon: call ")]
    assert names[call] == 2
    kernels = {name: count for name, count in names.items() if name.startswith("tenon: fused_sin_add_") and name.endswith("_div")}
    assert sum(kernels.values()) == 2
    assert all(call in ancestors(event) for event in profiler.events() if event.name in kernels)
    fn(x)
    later, _ = names_while_profiled(lambda: None)
    assert not [name for name in later if name.startswith("tenon")]


def test_captures_and_compiles_are_ranges_too():
    torch = pytest.importorskip("torch")
    names, _ = names_while_profiled(lambda: tenon.compile(lambda x: torch.tanh(x) * 3)(torch.randn(5)))
    assert any(name.startswith("tenon: capture ") for name in names) and "tenon: compile" in names


def test_a_call_that_raises_ends_its_ranges():
    torch = pytest.importorskip("torch")

    @tenon.compile
    def fails(x):
        y = x + 1
        raise KeyError("mine")

    def action():
        with pytest.raises(KeyError, match="mine"):
            fails(torch.ones(3))

    names, _ = names_while_profiled(action)
    assert any(name.startswith("tenon: call ") for name in names)


def test_a_backward_is_a_range():
    torch = pytest.importorskip("torch")
    fn = tenon.compile(lambda x: (x.sin() * x).sum())
    fn(torch.ones(4, requires_grad=True)).backward()
    x = torch.ones(4, requires_grad=True)
    names, _ = names_while_profiled(lambda: fn(x).backward())
    assert any(name.startswith("tenon: backward of ") for name in names), names
    torch.testing.assert_close(x.grad, torch.ones(4).sin() + torch.ones(4).cos())


def test_a_profiler_on_another_thread_does_no_harm():
    torch = pytest.importorskip("torch")
    import threading

    fn = tenon.compile(lambda x: x * 2 + 1)
    x = torch.ones(3)
    fn(x)
    failures = []

    def work():
        for _ in range(200):
            if not torch.equal(fn(x), x * 2 + 1):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        names_while_profiled(lambda: fn(x))
    for thread in threads:
        thread.join()
    assert not failures
