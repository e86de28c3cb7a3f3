"""Times of kernels around an idle GPU, beside eager torch and torch.compile: python3 bench.py LIBTENON"""
from __future__ import annotations

import statistics
import sys
import time

import torch

from tenon_api import Session

SIDE = 4096
#: By name: what the graph does with %x, the shape of the result, and the same in torch.
PROGRAMS = {
    "relu(x + 1) * 2": (["%a: f32[N, N] on device2:0 = add(%x, 1.0)", "%b: f32[N, N] on device2:0 = relu(%a)", "%y: f32[N, N] on device2:0 = mul(%b, 2.0)"], (SIDE, SIDE), lambda x: torch.relu(x + 1) * 2),
    "sin(x) + cos(x)": (["%a: f32[N, N] on device2:0 = sin(%x)", "%b: f32[N, N] on device2:0 = cos(%x)", "%y: f32[N, N] on device2:0 = add(%a, %b)"], (SIDE, SIDE), lambda x: torch.sin(x) + torch.cos(x)),
    "softmax of rows": (["%y: f32[N, N] on device2:0 = softmax(%x) {dim = 1}"], (SIDE, SIDE), lambda x: torch.softmax(x, 1)),
    "layer_norm of rows": (["%y: f32[N, N] on device2:0 = layer_norm(%x) {eps = 1e-05, normalized_shape = [N]}"], (SIDE, SIDE), lambda x: torch.nn.functional.layer_norm(x, (SIDE,))),
    "softmax of columns": (["%y: f32[N, N] on device2:0 = softmax(%x) {dim = 0}"], (SIDE, SIDE), lambda x: torch.softmax(x, 0)),
    "sum of rows": (["%y: f32[N] on device2:0 = sum(%x) {dim = [1], keepdim = false}"], (SIDE,), lambda x: x.sum(1)),
    "sum of columns": (["%y: f32[N] on device2:0 = sum(%x) {dim = [0], keepdim = false}"], (SIDE,), lambda x: x.sum(0)),
    "sum of all": (["%y: f32[] on device2:0 = sum(%x) {dim = [0, 1], keepdim = false}"], (), lambda x: x.sum()),
    "transpose": (["%t: f32[N, N] on device2:0 = permute(%x) {dims = [1, 0]}", "%y: f32[N, N] on device2:0 = clone(%t)"], (SIDE, SIDE), lambda x: x.t().clone(memory_format=torch.contiguous_format)),
    "x + transpose": (["%t: f32[N, N] on device2:0 = permute(%x) {dims = [1, 0]}", "%y: f32[N, N] on device2:0 = add(%x, %t)"], (SIDE, SIDE), lambda x: x + x.t()),
}


def microseconds(run, times: int = 40) -> float:
    """The median of calls that each find the GPU idle."""
    for _ in range(5):
        run()
    taken = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end) * 1000)
    return statistics.median(taken)


def main() -> int:
    session = Session(sys.argv[1])
    torch.manual_seed(0)
    x = torch.randn(SIDE, SIDE, device="cuda")
    big = torch.empty(128 * 2**20, device="cuda")
    into = torch.empty_like(big)
    copy = microseconds(lambda: into.copy_(big), 10)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; a copy of 512 MB: {2 * big.nbytes / copy / 1e6:.2f} TB/s")
    del big, into
    print(f"{'':22}{'here':>9}{'eager':>9}{'compile':>9}{'cold ms':>9}  error")
    failed = 0
    for name, (body, shape, eager) in PROGRAMS.items():
        text = "\n".join(["graph @main (%x: f32[N, N] on device2:0) {", *("  " + line for line in body), "  return %y", "}"]).replace("N", str(SIDE))
        result = torch.empty(shape, device="cuda")
        try:
            start = time.perf_counter()
            program = session.compile(text)
            arguments = program.bound([x.data_ptr()], [result.data_ptr()], torch.cuda.current_stream().cuda_stream)
            program.run(arguments)
            torch.cuda.synchronize()
            cold = (time.perf_counter() - start) * 1000
            want = eager(x.double()).float()
            error = ((result - want).abs() / (want.abs() + want.abs().mean())).max().item()
            mine = microseconds(lambda: program.run(arguments))
        except RuntimeError as problem:
            print(f"{name:22} {problem}")
            failed += 1
            continue
        compiled = torch.compile(eager, dynamic=False)
        times = [mine, microseconds(lambda: eager(x)), microseconds(lambda: compiled(x))]
        print(f"{name:22}" + "".join(f"{t:9.1f}" for t in times) + f"{cold:9.1f}  {error:.1e}")
        failed += not error < 1e-4
    return failed


if __name__ == "__main__":
    sys.exit(main())
