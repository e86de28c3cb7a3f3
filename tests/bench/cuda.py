"""``python -m tests.bench.cuda [WORD…]``: programs on a card, beside eager torch and torch.compile in its default mode and with `reduce-overhead`.

Microseconds of a call around an idle card, in turns, and of its host alone; the first call in seconds. A word names the workloads that have it in
their names; ``=NAME`` the one that is called so; ``--no-peer`` leaves torch.compile out, ``--no-default`` its default mode."""
from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

import tenon
from tests.bench.decoding import Decoder
from tests.bench.residual import DenseNet121, ResNet18

D = "cuda:0"
Call = Callable[[], object]


class Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, w))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def of_function(fn: Callable, *shape: int) -> Callable[[Callable], Call]:
    """`make(way)`: the call as `way` compiles the function."""
    x = torch.randn(*shape, device=D)

    def make(way: Callable) -> Call:
        compiled = way(fn)
        return lambda: compiled(x)

    return make


def inference(model: nn.Module, *shape: int, dtype: torch.dtype = torch.float32) -> Callable[[Callable], Call]:
    """In the mode, eval or train, in which the model is given."""
    model, x = model.to(D, dtype), torch.randn(*shape, device=D, dtype=dtype)

    def make(way: Callable) -> Call:
        compiled = way(model)

        def call():
            with torch.no_grad():
                return compiled(x)

        return call

    return make


def decoding(model: nn.Module) -> Callable[[Callable], Call]:
    """One token after the other, at positions up to the last one, in bfloat16."""
    model, token = model.to(D, torch.bfloat16).eval(), torch.ones(1, 1, dtype=torch.int64, device=D)

    def make(way: Callable) -> Call:
        compiled, position = way(model), torch.full((1,), 1000, dtype=torch.int64, device=D)

        def call():
            with torch.no_grad():
                position.add_(1).remainder_(2048)
                return compiled(token, position)

        return call

    return make


def training(model: nn.Module, loss_of: Callable, *shape: int) -> Callable[[Callable], Call]:
    """A whole step with Adam; a peer that compiles the network alone does so."""
    model, x = model.to(D), torch.randn(*shape, device=D)

    def make(way: Callable) -> Call:
        net = copy.deepcopy(model)
        optimizer = torch.optim.Adam(net.parameters(), 1e-4)
        forward = net if way is tenon.compile else way(net)

        def step():
            optimizer.zero_grad()
            loss = loss_of(forward(x))
            loss.backward()
            optimizer.step()

        return tenon.compile(step) if way is tenon.compile else step

    return make


def classes(y):
    return F.cross_entropy(y, torch.arange(y.shape[0], device=y.device) % y.shape[1])


WORKLOADS: dict[str, Callable[[], Callable[[Callable], Call]]] = {
    "relu(x + 1) * 2": lambda: of_function(lambda x: torch.relu(x + 1) * 2, 4096, 4096),
    "sin + cos": lambda: of_function(lambda x: torch.sin(x) + torch.cos(x), 4096, 4096),
    "softmax": lambda: of_function(lambda x: x.softmax(-1), 4096, 4096),
    "layer_norm": lambda: of_function(lambda x: F.layer_norm(x, (4096,)), 4096, 4096),
    "gelu, layer_norm": lambda: of_function(lambda x: F.layer_norm(F.gelu(x), (4096,)), 4096, 4096),
    "sums of rows": lambda: of_function(lambda x: x.sum(1), 4096, 4096),
    "sums of columns": lambda: of_function(lambda x: x.sum(0), 4096, 4096),
    "transposed": lambda: of_function(lambda x: x.t().contiguous(), 4096, 4096),
    "x + 1, one element": lambda: of_function(lambda x: x + 1, 1),
    "draw: dropout of 1000": lambda: of_function(lambda x: F.dropout(x, 0.1), 1000),
    "draw: dropout(gelu(x)) + x of 1000": lambda: of_function(lambda x: F.dropout(F.gelu(x), 0.1) + x, 1000),
    "draw: dropout of 4096 x 4096": lambda: of_function(lambda x: F.dropout(x, 0.1), 4096, 4096),
    "draw: dropout(gelu(x)) + x of 4096 x 4096": lambda: of_function(lambda x: F.dropout(F.gelu(x), 0.1) + x, 4096, 4096),
    "draw: rand_like of 1000": lambda: of_function(torch.rand_like, 1000),
    "GPT-2 block": lambda: inference(Block().eval(), 4, 512, 768),
    "GPT-2 block in bfloat16": lambda: inference(Block().eval(), 4, 512, 768, dtype=torch.bfloat16),
    "ResNet-18": lambda: inference(ResNet18().eval(), 16, 3, 128, 128),
    "ResNet-18 in train mode": lambda: inference(ResNet18(), 16, 3, 128, 128),
    "DenseNet-121": lambda: inference(DenseNet121().eval(), 16, 3, 128, 128),
    "DenseNet-121 in train mode": lambda: inference(DenseNet121(), 16, 3, 128, 128),
    "decoding": lambda: decoding(Decoder()),
    "MLP step": lambda: training(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)), classes, 256, 64),
    "GPT-2 block step": lambda: training(Block(), lambda y: y.square().mean(), 4, 512, 768),
    "ResNet-18 step": lambda: training(ResNet18(), classes, 16, 3, 128, 128),
    "DenseNet-121 step": lambda: training(DenseNet121(), classes, 16, 3, 128, 128),
}


def idle(call: Call) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000


def host(call: Call, count: int = 20) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        call()
    taken = (time.perf_counter() - start) / count * 1e6
    torch.cuda.synchronize()
    return taken


def measure(name: str, ways: dict[str, Callable]) -> None:
    make, calls, first, peaks = WORKLOADS[name](), {}, {}, {}
    for label, way in ways.items():
        start = time.perf_counter()
        try:
            calls[label] = make(way)
            for _ in range(4):
                calls[label]()
            torch.cuda.synchronize()
        except Exception as problem:  # the line says so
            print(f"{name}: {label}: {problem!r}"[:300])
            calls.pop(label, None)
            continue
        first[label] = time.perf_counter() - start
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
        calls[label]()
        torch.cuda.synchronize()
        peaks[label] = (torch.cuda.max_memory_allocated() - base) / 2**20
    times: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(30):
        for label, call in calls.items():
            times[label].append(idle(call))
    cells = [f"{label} {statistics.median(times[label]):.1f} us (host {min(host(call) for _ in range(3)):.1f}, {peaks[label]:.1f} MB, first calls {first[label]:.2f} s)" for label, call in calls.items()]
    print(f"{name}: " + "; ".join(cells), flush=True)


def chosen(words: list[str]) -> list[str]:
    """Names of workloads; all, where there are no words."""
    return [name for name in WORKLOADS if not words or any(word[1:] == name if word.startswith("=") else word in name for word in words)]


def main() -> None:
    ways: dict[str, Callable] = {"tenon": tenon.compile, "eager": lambda fn: fn}
    if "--no-peer" not in sys.argv:
        ways |= {"torch.compile": torch.compile, "reduce-overhead": lambda fn: torch.compile(fn, mode="reduce-overhead")}
    if "--no-default" in sys.argv:
        ways.pop("torch.compile", None)
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for name in chosen([word for word in sys.argv[1:] if not word.startswith("--")]):
        tenon.reset()
        torch.compiler.reset()
        measure(name, ways)


if __name__ == "__main__":
    main()
