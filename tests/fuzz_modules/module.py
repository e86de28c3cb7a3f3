"""Random modules, drawn from a seed, as text; and what they are called with."""
from __future__ import annotations

import random
import sys
import textwrap
import types

import torch
from torch import Tensor, nn

from tests.fuzz_modules import image_layers, sequence_layers  # noqa: F401: they add to LAYERS
from tests.fuzz_modules.layers import LAYERS, State

MOST_ELEMENTS = 40_000
PRELUDE = """
import collections, dataclasses, functools, torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.calls = body, 0
    def forward(self, x):
        self.calls += 1
        return F.relu(self.body(x) + x)

@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    extra: object = None

Pair = collections.namedtuple("Pair", "first second")
"""
RESULTS = ("x", "x, x.mean()", "{'out': x, 'size': x.shape[0]}", "Output(x, [x.abs().sum()])", "Pair(x, None)", "[x, *kept]", "Output(logits=x)", "(x, {'kept': kept})", "x.float()", "x.square().sum()")


class Drawn:
    def __init__(self, seed: int) -> None:
        r = random.Random(seed)
        self.seed, self.random = seed, r
        kind = r.choice(("image", "image", "sequence", "rows", "tokens"))
        sizes = {"image": lambda: [r.choice((1, 3, 4, 8)), r.choice((6, 8, 9, 16)), r.choice((6, 8, 12))], "sequence": lambda: [r.choice((3, 5, 8)), r.choice((6, 8, 16))],
                 "rows": lambda: [r.choice((3, 8, 10))], "tokens": lambda: [r.choice((4, 7)), 8]}[kind]()
        self.input_kind, self.input_sizes = kind, list(sizes)
        state = State("sequence" if kind == "tokens" else kind, sizes, r)
        if kind == "tokens":
            state.init.append("self.embed = nn.Embedding(11, 8)")
            state.line("x = self.embed(x)")
        for _ in range(r.randint(3, 14)):
            before = len(state.forward)
            r.choice(LAYERS[state.kind])(state)
            elements = 1
            for n in state.sizes:
                elements *= n
            if elements * 4 > MOST_ELEMENTS or len(state.forward) == before:
                break
        kept = ", ".join(name for name, _, _ in state.kept)
        state.line(f"kept = [{kept}]", f"return {r.choice(RESULTS)}")
        self.source = PRELUDE + "\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + textwrap.indent("\n".join(state.init), " " * 8) + \
            "\n    def forward(self, x, scale=1.0, *, mask=None):\n" + textwrap.indent("\n".join(state.forward), " " * 8) + "\n"
        self.dtype = r.choice((torch.float32,) * 6 + (torch.float64, torch.bfloat16))
        self.channels_last = kind == "image" and r.random() < 0.3
        self.options = r.choice(({}, {}, {}, {"dynamic": True}, {"options": {"freeze": True}}, {"mode": "max-autotune"}, {"dynamic": False}))
        self.hooked = r.random() < 0.1
        self.keyword = r.choice(({}, {}, {"scale": 2.0}, {"mask": 1}))

    def make(self) -> nn.Module:
        text = types.ModuleType(f"fuzz_{self.seed}")
        sys.modules[text.__name__] = text  # dataclasses and copies look there
        exec(compile(self.source, f"<module {self.seed}>", "exec"), vars(text))
        torch.manual_seed(self.seed)
        net = text.Net().to(self.dtype)
        if self.channels_last:
            net = net.to(memory_format=torch.channels_last)
        if self.hooked:
            net.register_forward_pre_hook(lambda module, args: (args[0] * 2, *args[1:]) if args[0].is_floating_point() else None)
        return net

    def inputs(self, batch: int, seed: int) -> tuple[Tensor, dict]:
        generator = torch.Generator().manual_seed(seed)
        if self.input_kind == "tokens":
            x = torch.randint(0, 11, (batch, self.input_sizes[0]), generator=generator)
        else:
            x = torch.randn(batch, *self.input_sizes, generator=generator).to(self.dtype)
        if self.channels_last:
            x = x.to(memory_format=torch.channels_last)
        keyword = {"mask": torch.ones((), dtype=torch.bool)} if "mask" in self.keyword else self.keyword
        return x, keyword

    def is_random(self, training: bool) -> bool:
        return any(word in self.source for word in ("randn_like", "torch.rand(", "bernoulli")) or (training and any(word in self.source for word in ("ropout", "TransformerEncoderLayer")))

    def __str__(self) -> str:
        return f"{self.dtype}, channels_last={self.channels_last}, {self.options}, hook={self.hooked}, {self.keyword}, input {self.input_sizes}\n" + self.source[len(PRELUDE):]
