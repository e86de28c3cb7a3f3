"""Kernels of every schedule at sizes that fill a card, against torch in float64 there: python3 values.py LIBTENON"""
from __future__ import annotations

import sys

import torch

from tenon_api import Session

DTYPES = {"f32": (torch.float32, 1e-5), "f64": (torch.float64, 1e-12), "f16": (torch.float16, 4e-3), "bf16": (torch.bfloat16, 3e-2)}


def cases():
    """Each: a name, the input's shape, the lines that make %y of %x, with S its shape and R the result's, the result's shape, and torch's."""
    for shape in ((4096, 4096), (1000, 777), (37, 100000), (100000, 37), (3, 1000003), (20000, 8), (129, 2050)):
        rows, columns = shape
        yield "sum of rows", shape, ["%y: D[R] on device2:0 = sum(%x) {dim = [1], keepdim = false}"], (rows,), lambda x: x.sum(1)
        yield "sum of columns", shape, ["%y: D[R] on device2:0 = sum(%x) {dim = [0], keepdim = false}"], (columns,), lambda x: x.sum(0)
        yield "sum of all", shape, ["%y: D[] on device2:0 = sum(%x) {dim = [0, 1], keepdim = false}"], (), lambda x: x.sum()
        yield "maximum of columns", shape, ["%y: D[R] on device2:0 = amax(%x) {dim = [0], keepdim = false}"], (columns,), lambda x: x.amax(0)
        yield "transpose", shape, ["%t: D[R] on device2:0 = permute(%x) {dims = [1, 0]}", "%y: D[R] on device2:0 = neg(%t)"], (columns, rows), lambda x: -x.t()
    for shape in ((4096, 4096), (1000, 777), (300, 8192), (300, 8190), (100, 20000), (5000, 64), (5000, 6), (129, 2050)):
        yield "softmax of rows", shape, ["%y: D[S] on device2:0 = softmax(%x) {dim = 1}"], shape, lambda x: torch.softmax(x, 1)
        yield "softmax of columns", shape, ["%y: D[S] on device2:0 = softmax(%x) {dim = 0}"], shape, lambda x: torch.softmax(x, 0)
        yield "layer_norm", shape, [f"%y: D[S] on device2:0 = layer_norm(%x) {{eps = 1e-05, normalized_shape = [{shape[1]}]}}"], shape, \
            lambda x: torch.nn.functional.layer_norm(x, x.shape[1:])
    for shape in ((16, 64, 56, 56), (8, 3, 100, 33)):
        b, c, h, w = shape
        yield "channels last", shape, ["%t: D[R] on device2:0 = permute(%x) {dims = [0, 2, 3, 1]}", "%y: D[R] on device2:0 = neg(%t)"], (b, h, w, c), lambda x: -x.permute(0, 2, 3, 1)
        yield "statistics of channels", shape, ["%y: D[R] on device2:0 = sum(%x) {dim = [0, 2, 3], keepdim = false}"], (c,), lambda x: x.sum((0, 2, 3))
        yield "statistics of last channels", (b, h, w, c), ["%y: D[R] on device2:0 = sum(%x) {dim = [0, 1, 2], keepdim = false}"], (c,), lambda x: x.sum((0, 1, 2))
        to, pooled = "{dims = [0, 3, 1, 2]}", (b, (h + 1) // 2, (w + 1) // 2, c)
        window = "{ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [1, 1], stride = [2, 2]}"
        yield "windows of last channels", (b, h, w, c), [f"%c: D[{b}, {c}, {h}, {w}] on device2:0 = permute(%x) {to}",
                                                         f"%p: D[{b}, {c}, {pooled[1]}, {pooled[2]}] on device2:0 = max_pool(%c) {window}",
                                                         "%y: D[R] on device2:0 = permute(%p) {dims = [0, 2, 3, 1]}"], pooled, \
            lambda x: torch.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)


def scatters(session: Session) -> tuple[int, int]:
    """Many points to a target, from all of the card at once: how many kinds are what the host's torch makes of them, bit for bit, and how many are not."""
    whole = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "u8": torch.uint8}
    floats = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    passed = failed = 0
    for targets in (5, 97, 100003):
        for dtype, type_ in (whole | floats).items():
            for reduce in ("sum", "prod", "amax", "amin") if dtype in whole else ("amax", "amin"):
                x = torch.randint(-9, 9, (targets, 33)).to(type_) if dtype in whole else torch.randn(targets, 33).to(type_)
                v = torch.randint(-9, 9, (20000, 33)).to(type_) if dtype in whole else torch.randn(20000, 33).to(type_)
                index = torch.randint(targets, (20000, 33))
                program = session.compile(f"""graph @main (%x: {dtype}[{targets}, 33] on device2:0, %i: i64[20000, 33] on device2:0, %v: {dtype}[20000, 33] on device2:0) {{
  %y: {dtype}[{targets}, 33] on device2:0 = scatter(%x, %i, %v) {{dim = 0, reduce = "{reduce}"}}
  return %y
}}""")
                given, result = [t.cuda() for t in (x, index, v)], torch.empty_like(x, device="cuda")
                want, good = x.scatter_reduce(0, index, v, reduce), True
                for _ in range(3):
                    result.zero_()
                    program.run(program.bound([t.data_ptr() for t in given], [result.data_ptr()], torch.cuda.current_stream().cuda_stream))
                    torch.cuda.synchronize()
                    good = good and torch.equal(result.cpu(), want)
                passed, failed = passed + good, failed + (not good)
                if not good:
                    print(f"scatter {reduce} {dtype} to {targets}: {(result.cpu() != want).sum().item()} elements differ")
    return passed, failed


def main() -> int:
    session = Session(sys.argv[1])
    torch.manual_seed(0)
    passed, failed = scatters(session)
    for name, shape, body, result_shape, eager in cases():
        for dtype, (type_, tolerance) in DTYPES.items():
            values = {"D[": dtype + "[", "[S]": f"[{', '.join(map(str, shape))}]", "[R]": f"[{', '.join(map(str, result_shape))}]"}
            text = "\n".join(["graph @main (%x: D[S] on device2:0) {", *("  " + line for line in body), "  return %y", "}"])
            for old, new in values.items():
                text = text.replace(old, new)
            x = torch.randn(shape, device="cuda").to(type_)
            results = [torch.empty(result_shape, device="cuda", dtype=type_) for _ in range(2)]
            try:
                program = session.compile(text)
                for result in results:
                    program.run(program.bound([x.data_ptr()], [result.data_ptr()], torch.cuda.current_stream().cuda_stream))
                torch.cuda.synchronize()
            except RuntimeError as problem:
                if "no code for this target" in str(problem) or "serves" in str(problem):
                    continue
                raise
            want, scale = eager(x.double()), eager(x.double().abs()).abs()
            error = ((results[0].double() - want).abs() / (want.abs() + scale.mean() * 1e-2 + 1e-30)).max().item()
            same = torch.equal(results[0], results[1])
            good = error < tolerance * 100 and same
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"{name} {dtype} {shape}: error {error:.2e}{'' if same else ', other bits each time'}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
