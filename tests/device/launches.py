"""What launches cost the host and the card, as a graph of the driver and one by one: python3 launches.py LIBTENON"""
from __future__ import annotations

import statistics
import sys
import time

import torch

from bench import microseconds
from card_times import back_to_back
from tenon_api import Session

NODES = 30


def chain() -> str:
    lines, last = [], "x"
    for i in range(NODES):
        lines += [f"  %r{i}: f32[512, 1024] on device2:0 = softmax(%{last}) {{dim = 1}}", f"  %c{i}: f32[512, 1024] on device2:0 = softmax(%r{i}) {{dim = 0}}"]
        last = f"c{i}"
    return "\n".join(["graph @main (%x: f32[512, 1024] on device2:0) {", *lines, f"  return %{last}", "}"])


def pointwise(elements: int) -> str:
    return f"graph @main (%x: f32[{elements}] on device2:0) {{\n  %y: f32[{elements}] on device2:0 = add(%x, 1.0)\n  return %y\n}}"


PROGRAMS = {"x + 1, 1 element": (pointwise(1), (1,)), "x + 1, 16 M elements": (pointwise(4096 * 4096), (4096 * 4096,)), f"{2 * NODES} dependent softmaxes": (chain(), (512, 1024))}


def host(run, count: int) -> float:
    """Microseconds of the host a call, back to back."""
    best = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        best.append((time.perf_counter() - start) / count * 1e6)
        torch.cuda.synchronize()
    return statistics.median(best)


def burst(run, count: int = 20) -> float:
    """Microseconds of the card a call, back to back."""
    return statistics.median(back_to_back(run, count, rounds=7))


def softmaxes(x):
    for _ in range(NODES):
        x = torch.softmax(torch.softmax(x, 1), 0)
    return x


def main() -> None:
    session = Session(sys.argv[1])
    for name, (text, shape) in PROGRAMS.items():
        x, y, z = torch.rand(shape, device="cuda"), torch.empty(shape, device="cuda"), torch.empty(shape, device="cuda")
        stream = torch.cuda.current_stream().cuda_stream
        for graphs in ("true", "false", "true", "false"):
            program = session.compile(text, f'{{"cuda": {{"graphs": {graphs}}}}}')
            first = program.bound([x.data_ptr()], [y.data_ptr()], stream)
            kept = program.kept
            second = program.bound([x.data_ptr()], [z.data_ptr()], stream)
            turns = [first, second]

            def moved(state=[0]):
                state[0] ^= 1
                program.run(turns[state[0]])

            still = lambda: program.run(first)
            print(f"{name:28} graphs {graphs:6} idle {microseconds(still):7.1f} us, moved {microseconds(moved):7.1f}; back to back {burst(still):7.1f}; "
                  f"host {host(still, 300):6.2f}, moved {host(moved, 300):6.2f}", flush=True)
            del kept
    x = torch.rand(512, 1024, device="cuda")
    for mode in ("default", "reduce-overhead"):
        compiled = torch.compile(softmaxes, mode=mode)
        for _ in range(3):
            compiled(x)
        print(f"torch.compile {mode}: {2 * NODES} softmaxes idle {microseconds(lambda: compiled(x)):.1f} us, back to back {burst(lambda: compiled(x)):.1f}", flush=True)


if __name__ == "__main__":
    main()
