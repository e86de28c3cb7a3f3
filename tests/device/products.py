"""Products and convolutions on tensor cores: errors against float64 beside torch's, and times beside torch's in the same run: python3 products.py LIBTENON"""
from __future__ import annotations

import sys

import torch
from torch.nn.functional import conv2d

from card_times import back_to_back
from tenon_api import Session

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SIZES = [(512, 512, 512), (1024, 1024, 1024), (2048, 768, 768), (2048, 768, 2304), (2048, 768, 3072), (4096, 4096, 4096)]
ODD = [(77, 65, 63), (300, 301, 299), (64, 4096, 64), (16, 768, 3072), (1000, 8, 500), (129, 127, 1)]
#: Convolutions of ResNet-18 of 16 pictures of 128 x 128: side, channels, results, kernel, stride, padding.
CONVOLUTIONS = [(128, 3, 64, 7, 2, 3), (32, 64, 64, 3, 1, 1), (32, 64, 128, 3, 2, 1), (16, 128, 128, 3, 1, 1), (32, 64, 128, 1, 2, 0), (16, 128, 256, 3, 2, 1), (8, 256, 256, 3, 1, 1),
                (16, 128, 256, 1, 2, 0), (8, 256, 512, 3, 2, 1), (4, 512, 512, 3, 1, 1), (8, 256, 512, 1, 2, 0)]


def microseconds(run, times: int = 20) -> float:
    """Of a call among others that follow each other: the least of a few rounds."""
    run()
    return min(back_to_back(run, times, rounds=5))


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    """The root of the mean square, by that of what is wanted."""
    return ((got.double() - want).norm() / want.norm()).item()


def bound(session: Session, text: str, inputs: list[torch.Tensor], result: torch.Tensor):
    """Calls of a graph: one that keeps float32's precision, and one that rounds operands to tf32."""
    def call(rounds: str):
        program = session.compile(text, f'{{"tf32_products": {rounds}, "tf32_convolutions": {rounds}}}')
        arguments = program.bound([x.data_ptr() for x in inputs], [result.data_ptr()], torch.cuda.current_stream().cuda_stream)
        return lambda: program.run(arguments)

    return call("false"), call("true")


def judge(name: str, runs, result: torch.Tensor, eager, want: torch.Tensor, timed: bool, rounding) -> bool:
    """Prints a row; `rounding` sets whether torch may round operands of float32 to tf32."""
    fails, row = False, f"{name:34}"
    for run, rounds in zip(runs, (False, True) if result.dtype == torch.float32 else (False,)):
        rounding(rounds)
        run()
        torch.cuda.synchronize()
        mine, theirs = error_of(result, want), error_of(eager(), want)
        row += f"{' | tf32' if rounds else ''} {mine:.2e} {theirs:.2e}" + (f" {microseconds(run):8.1f} {microseconds(eager):8.1f}" if timed else "")
        if not mine <= 1.1 * theirs + 1e-12:
            fails, row = True, row + " WORSE"
    rounding(False)
    print(row)
    return fails


def products(session: Session) -> int:
    def rounding(on: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = on

    failed = 0
    print(f"{'':34} {'error':8} {'eager':8} {'here us':>8} {'eager us':>8}")
    for dtype, kind in DTYPES.items():
        for m, k, n in SIZES + ODD:
            for transposed in (False, True):
                x, w = torch.randn(m, k, device="cuda").to(kind), torch.randn((n, k) if transposed else (k, n), device="cuda").to(kind)
                right = w.t() if transposed else w
                place = "device2:0"
                lines = [f"graph @main (%x: {dtype}[{m}, {k}] on {place}, %w: {dtype}[{', '.join(map(str, w.shape))}] on {place}) {{"]
                if transposed:
                    lines.append(f"  %t: {dtype}[{k}, {n}] on {place} = permute(%w) {{dims = [1, 0]}}")
                lines += [f"  %y: {dtype}[{m}, {n}] on {place} = matmul(%x, {'%t' if transposed else '%w'})", "  return %y", "}"]
                result = torch.empty(m, n, device="cuda", dtype=kind)
                name = f"{dtype} {m} x {k} x {n}{' transposed' if transposed else ''}"
                try:
                    failed += judge(name, bound(session, "\n".join(lines), [x, w], result), result, lambda: x @ right, x.double() @ right.double(), (m, k, n) in SIZES, rounding)
                except RuntimeError as problem:
                    print(f"{name:34} {str(problem)[:150]}")
    return failed


def convolutions(session: Session) -> int:
    def rounding(on: bool) -> None:
        torch.backends.cudnn.allow_tf32 = on

    failed = 0
    torch.backends.cudnn.benchmark = True
    for dtype in ("f32", "bf16"):
        for side, channels, results, kernel, stride, padding in CONVOLUTIONS:
            kind, out = DTYPES[dtype], (side + 2 * padding - kernel) // stride + 1
            x = torch.randn(16, channels, side, side, device="cuda").to(kind).to(memory_format=torch.channels_last)
            w = torch.randn(results, channels, kernel, kernel, device="cuda").to(kind).to(memory_format=torch.channels_last)
            place = "device2:0"
            text = f"""graph @main (%x: {dtype}[16, {side}, {side}, {channels}] on {place}, %w: {dtype}[{results}, {kernel}, {kernel}, {channels}] on {place}) {{
  %y: {dtype}[16, {out}, {out}, {results}] on {place} = convolution_channels_last(%x, %w) {{padding = [{padding}, {padding}], stride = [{stride}, {stride}]}}
  return %y
}}"""
            result = torch.empty(16, results, out, out, device="cuda", dtype=kind).to(memory_format=torch.channels_last)
            name = f"{dtype} {kernel}x{kernel} {channels} -> {results} at {side} by {stride}"
            try:
                want = conv2d(x.double(), w.double(), None, stride, padding)
                failed += judge(name, bound(session, text, [x, w], result), result, lambda: conv2d(x, w, None, stride, padding), want, True, rounding)
            except RuntimeError as problem:
                print(f"{name:34} {str(problem)[:150]}")
    return failed


def main() -> int:
    torch.manual_seed(0)
    session = Session(sys.argv[1])
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    return min(products(session) + convolutions(session), 1)


if __name__ == "__main__":
    sys.exit(main())
