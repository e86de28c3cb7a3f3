"""Programs of Python on the card, compiled, against torch's own execution there; then what calls cost the host.

``frontend.py`` needs the package on PYTHONPATH; it prints a line for each program, and ends with 1 where one is wrong."""
from __future__ import annotations

import copy
import sys
import time

import torch
import torch.nn.functional as F

import tenon

D = "cuda:0"
X, Y = torch.randn(64, 48), torch.randn(48)


def writes(x):
    x += 1
    x[0].mul_(2)
    x[x > 0] = 0.5
    return x.sum()


def breaks(x):
    y = x + 1
    print(end="")
    return y * 2


PROGRAMS = {
    "relu": (lambda x: torch.relu(x + 1) * 2, X),
    "softmax": (lambda x: x.softmax(-1), X),
    "sums": (lambda x: (x.sum(0), x.mean(1), x.max(1)), X),
    "product": (lambda x, y: x @ y, X, Y),
    "views": (lambda x: (x[1:, ::2], x.t()), X),
    "writes": (writes, X),
    "device": (lambda x: (x.device, x.is_cuda, x.get_device(), x.is_cpu), X),
    "made there": (lambda x: torch.zeros(64, 48, device=x.device) + torch.arange(48, device=x.device) * x, X),
    "constant": (lambda x: torch.tensor([2.0], device=x.device) * x, X),
    "to the host": (lambda x: (x.cpu() + 1, x.to("cpu").sigmoid().to(x.device) + x), X),
    "cuda()": (lambda x: x.cuda() + x.cpu().cuda(), X),
    "number beside": (lambda x: x * torch.tensor(2.0), X),
    "item": (lambda x: x + x.max().item(), X),
    "branch": (lambda x: x + 1 if x.max() > 0 else x - 1, X),
    "found sizes": (lambda x: (x[x > 0], torch.nonzero(x > 0)), X),
    "a break": (breaks, X),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1).relu(), torch.randn(2, 3, 32, 32), torch.randn(8, 3, 3, 3)),
    "fft": (lambda x: torch.fft.rfft(x).abs(), X),
    "inverse": (lambda x: torch.linalg.inv(x.t() @ x + torch.eye(48, device=x.device)), X),
    "gelu, layer_norm": (lambda x: F.layer_norm(F.gelu(x), (48,)), X),
    "sort": (lambda x: x.sort(-1), X),
    "cat": (lambda x: torch.cat([x, x + 1]), X),
    "half": (lambda x: (x.half() * 2).float(), X),
}


def placed(values):
    return [v.to(D) for v in copy.deepcopy(values)]


def differences(got, want) -> str:
    if isinstance(want, torch.Tensor):
        if (got.device, got.dtype, got.shape) != (want.device, want.dtype, want.shape):
            return f"{got.device} {got.dtype} {tuple(got.shape)} instead of {want.device} {want.dtype} {tuple(want.shape)}"
        if not torch.allclose(got.double(), want.double(), rtol=2e-3, atol=1e-4):
            return f"off by {(got.double() - want.double()).abs().max().item():.3g}"
        return "" if got.stride() == want.stride() else f"(strides {got.stride()} instead of {want.stride()})"
    if isinstance(want, (list, tuple)):
        return "; ".join(filter(None, map(differences, got, want)))
    close = abs(got - want) < 1e-4 * max(1, abs(want)) if isinstance(want, float) else got == want
    return "" if close else f"{got} instead of {want}"


def check(name, fn, *values) -> bool:
    tenon.reset()
    compiled, said = tenon.compile(fn), ""
    try:
        for _ in range(3):
            mine, eager = placed(values), placed(values)
            want, got = fn(*eager), compiled(*mine)
            said = said or differences(got, want) or differences(mine, eager)
    except Exception as problem:  # the line says what came out
        said = repr(problem)[:300]
    stats = tenon.stats()
    backends = {name: counts["runs"] for name, counts in stats["backends"].items() if counts["runs"]}
    print(f"{'ok   ' if not said or said.startswith('(') else 'WRONG'} {name}: graphs {stats['graphs']}, breaks {stats['graph_breaks']}, "
          f"eager {stats['eager_fallbacks']}, runs {backends} {said}", flush=True)
    if stats["graphs"] == 0 or stats["eager_fallbacks"]:
        try:
            print("      ", [str(reason)[:300] for reason in tenon.explain(fn)(*placed(values)).break_reasons])
        except Exception as problem:
            print("      ", repr(problem)[:300])
    return not said or said.startswith("(")


def microseconds(call, count=2000) -> float:
    for _ in range(200):
        call()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - start)
        torch.cuda.synchronize()
    return best / count * 1e6


def network() -> torch.nn.Module:
    """A residual network of the size of ResNet-18."""
    class Block(torch.nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.one, self.two = torch.nn.Conv2d(a, b, 3, stride, 1, bias=False), torch.nn.Conv2d(b, b, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = torch.nn.BatchNorm2d(b), torch.nn.BatchNorm2d(b)
            self.short = torch.nn.Sequential(torch.nn.Conv2d(a, b, 1, stride, bias=False), torch.nn.BatchNorm2d(b)) if stride > 1 or a != b else torch.nn.Identity()

        def forward(self, x):
            return torch.relu(self.norm2(self.two(torch.relu(self.norm1(self.one(x))))) + self.short(x))

    layers = [torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)]
    for a, b, stride in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)):
        layers.append(Block(a, b, stride))
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 1000)).eval()


def costs() -> None:
    tenon.reset()
    print(f"torch.empty: {microseconds(lambda: torch.empty(1, device=D)):.2f} us", flush=True)
    for size in (1, 4096 * 4096):
        x = torch.ones(size, device=D)
        compiled = tenon.compile(lambda x: x + 1)
        print(f"x + 1, {size} elements: eager {microseconds(lambda: x + 1):.2f} us a call, compiled {microseconds(lambda: compiled(x)):.2f} us", flush=True)
    x = torch.ones(64, 64)
    compiled = tenon.compile(lambda x: x + 1)
    print(f"x + 1 on the host: eager {microseconds(lambda: x + 1):.2f} us a call, compiled {microseconds(lambda: compiled(x)):.2f} us", flush=True)
    model, x = network().to(D), torch.randn(1, 3, 224, 224, device=D)
    compiled = tenon.compile(model)
    with torch.no_grad():
        want, got = model(x), compiled(x)
        print(f"residual network: off by {(got - want).abs().max().item():.3g} of {want.abs().max().item():.3g}")

        def synchronised(call):
            call()
            torch.cuda.synchronize()

        print(f"residual network: eager {microseconds(lambda: synchronised(lambda: model(x)), 50):.0f} us, compiled {microseconds(lambda: synchronised(lambda: compiled(x)), 50):.0f} us")
    stats = tenon.stats()
    print({name: counts for name, counts in stats["backends"].items() if counts["runs"]}, "breaks", stats["graph_breaks"], "eager", stats["eager_fallbacks"])


if __name__ == "__main__":
    print(torch.__version__, torch.cuda.get_device_name(), "python", sys.version.split()[0])
    wrong = [name for name, (fn, *values) in PROGRAMS.items() if not check(name, fn, *values)]
    print({key: value for key, value in tenon.stats().items() if "fall" in key or "field" in key})
    try:
        costs()
    finally:
        print("wrong:", wrong)
    sys.exit(1 if wrong else 0)
