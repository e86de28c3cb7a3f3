"""What calls of compiled functions cost the host, and what a residual network takes: python3 costs.py"""
from __future__ import annotations

import sys
import time

import torch

import tenon

D = "cuda:0"


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
    costs()
