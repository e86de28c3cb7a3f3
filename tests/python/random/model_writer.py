"""Writes random torch modules as Python source: layers, functions, control flow and writes, with every shape tracked."""
from __future__ import annotations

import dataclasses
import math
import random

POINTWISE = ("torch.relu({0})", "F.gelu({0})", "torch.sigmoid({0})", "torch.tanh({0})", "F.silu({0})", "{0}.abs().sqrt()", "torch.exp(-{0}.abs())",
             "{0}.clamp(-1, 1)", "F.leaky_relu({0}, 0.1)", "F.softplus({0})", "F.hardswish({0})", "{0} * 2 - 1", "torch.where({0} > 0, {0}, {0} * 0.5)",
             "{0}.masked_fill({0} > 1, 0.25)", "torch.nan_to_num({0} / 3)", "F.elu({0})", "{0}.double().to({0}.dtype)")
BINARY = ("{0} + {1}", "{0} * {1}", "{0} - {1}", "torch.maximum({0}, {1})", "torch.where({0} > {1}, {0}, {1})", "torch.lerp({0}, {1}, 0.3)", "torch.hypot({0}, {1})",
          "({0} + {1}) / (1 + {1}.abs())")
IN_PLACE = ("{0}.add_(1)", "{0}.mul_(0.5)", "{0}.relu_()", "{0}[0] = 0", "{0} += 0.25", "{0}[..., -1] = 1.5", "{0}.clamp_(-2, 2)", "{0}[:, ::2] *= 2", "{0}.copy_({0}.tanh())")
LAYERS = ("nn.ReLU()", "nn.GELU()", "nn.Tanh()", "nn.Identity()", "nn.Dropout(0.1)", "nn.Sigmoid()", "nn.SiLU()")


@dataclasses.dataclass
class Model:
    source: str
    input_shape: tuple[int, ...]
    batch_is_free: bool  # whether another first extent is a valid input too


class ModelWriter:
    """One module. `rng` decides everything."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.layers: list[str] = []
        self.body: list[str] = []
        self.variables: dict[str, tuple] = {}
        self.names = 0
        self.indent = "        "

    def write(self) -> Model:
        rng = self.rng
        shape = rng.choice([(4, 8), (3, 5, 16), (2, 3, 12, 12), (5, 6), (2, 7, 8)])
        self.variables["x"] = shape
        self.line("x = x * 1.0")
        for _ in range(rng.randint(4, 12)):
            rng.choices([self.pointwise, self.binary, self.layer, self.mix, self.reduce, self.move, self.write_in_place, self.branch, self.loop, self.container, self.state],
                        weights=[4, 3, 4, 3, 2, 3, 2, 1, 1, 1, 1])[0]()
        results = rng.sample(sorted(self.variables), k=min(len(self.variables), rng.randint(1, 3)))
        self.line(f"return {', '.join(results)}")
        init = "".join(f"        {layer}\n" for layer in self.layers)
        source = ("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                  f"        self.calls = 0\n{init}\n    def forward(self, x):\n" + "".join(f"{line}\n" for line in self.body))
        return Model(source, shape, True)

    # ---- the parts
    def line(self, text: str) -> None:
        self.body.append(self.indent + text)

    def pick(self, rank: int | None = None) -> str | None:
        fitting = [name for name, shape in self.variables.items() if rank is None or len(shape) == rank]
        return self.rng.choice(fitting) if fitting else None

    def bind(self, expression: str, shape: tuple) -> str:
        self.names += 1
        name = f"v{self.names}"
        self.line(f"{name} = {expression}")
        self.variables[name] = tuple(shape)
        return name

    def add_layer(self, expression: str) -> str:
        name = f"layer{len(self.layers)}"
        self.layers.append(f"self.{name} = {expression}")
        return f"self.{name}"

    # ---- statements
    def pointwise(self) -> None:
        v = self.pick()
        self.bind(self.rng.choice(POINTWISE).format(v), self.variables[v])

    def binary(self) -> None:
        v = self.pick()
        fitting = [name for name, shape in self.variables.items() if shape == self.variables[v]]
        self.bind(self.rng.choice(BINARY).format(v, self.rng.choice(fitting)), self.variables[v])

    def layer(self) -> None:
        rng, v = self.rng, self.pick()
        shape = self.variables[v]
        if len(shape) < 2:
            return
        kind = rng.choice(["linear", "norm", "activation", "conv" if len(shape) == 4 else "linear", "attention" if len(shape) == 3 else "sequential"])
        if kind == "linear":
            width = rng.choice([4, 8, 16])
            self.bind(f"{self.add_layer(f'nn.Linear({shape[-1]}, {width}, bias={rng.random() < 0.7})')}({v})", (*shape[:-1], width))
        elif kind == "norm" and len(shape) == 4:
            self.bind(f"{self.add_layer(rng.choice([f'nn.BatchNorm2d({shape[1]})', f'nn.GroupNorm(1, {shape[1]})']))}({v})", shape)
        elif kind == "norm":
            self.bind(f"{self.add_layer(f'nn.LayerNorm({shape[-1]})')}({v})", shape)
        elif kind == "conv":
            out, stride, size = rng.choice([3, 4, 6]), rng.choice([1, 1, 2]), rng.choice([1, 3])
            if min(shape[2:]) < size:
                return
            extents = tuple((n + 2 * (size // 2) - size) // stride + 1 for n in shape[2:])
            self.bind(f"{self.add_layer(f'nn.Conv2d({shape[1]}, {out}, {size}, stride={stride}, padding={size // 2})')}({v})", (shape[0], out, *extents))
        elif kind == "attention":
            layer = self.add_layer(f"nn.MultiheadAttention({shape[-1]}, {2 if shape[-1] % 2 == 0 else 1}, batch_first=True)")
            self.bind(f"{layer}({v}, {v}, {v}, need_weights=False)[0]", shape)
        elif kind == "sequential":
            parts = [f"nn.Linear({shape[-1]}, 8)", rng.choice(LAYERS), f"nn.Linear(8, {shape[-1]})"]
            self.bind(f"{self.add_layer('nn.Sequential(' + ', '.join(parts) + ')')}({v}) + {v}", shape)
        else:
            self.bind(f"{self.add_layer(rng.choice(LAYERS))}({v})", shape)

    def mix(self) -> None:
        """Products, concatenations and softmax."""
        rng, v = self.rng, self.pick()
        shape = self.variables[v]
        if len(shape) < 2:
            return
        which = rng.randrange(5) if len(shape) > 2 else rng.randrange(1, 4)  # the first extent is the batch's: it stays first
        if which == 0:
            self.bind(f"{v} @ {v}.transpose(-1, -2)", (*shape[:-1], shape[-2]))
        elif which == 1:
            self.bind(f"torch.softmax({v}, dim={rng.choice([-1, 1])})", shape)
        elif which == 2:
            dim = rng.randrange(1, len(shape))
            self.bind(f"torch.cat([{v}, {v} * 2], dim={dim})", tuple(2 * n if d == dim else n for d, n in enumerate(shape)))
        elif which == 3:
            self.bind(f"torch.cumsum({v}, dim=-1) / {shape[-1]}", shape)
        else:
            self.bind(f"torch.einsum('...ij->...ji', {v}).contiguous()", (*shape[:-2], shape[-1], shape[-2]))

    def reduce(self) -> None:
        rng, v = self.rng, self.pick()
        shape = self.variables[v]
        if len(shape) < 2:
            return
        dim = rng.randrange(1, len(shape))
        keep = rng.random() < 0.6
        expression = rng.choice(["{v}.mean({d}, keepdim={k})", "{v}.sum(dim={d}, keepdim={k})", "{v}.amax({d}, keepdim={k})", "{v}.std({d}, keepdim={k}, correction=0)",
                                 "torch.logsumexp({v}, {d}, keepdim={k})", "{v}.max({d}, keepdim={k}).values", "{v}.argmax({d}, keepdim={k}).to({v}.dtype)"])
        result = tuple(1 if d == dim else n for d, n in enumerate(shape)) if keep else tuple(n for d, n in enumerate(shape) if d != dim)
        self.bind(expression.format(v=v, d=dim, k=keep), result)

    def move(self) -> None:
        rng, v = self.rng, self.pick()
        shape = self.variables[v]
        if len(shape) < 2:
            return
        which = rng.randrange(7)
        if which == 0:
            self.bind(f"{v}.flatten(1)", (shape[0], math.prod(shape[1:])))
        elif which == 1:
            self.bind(f"{v}.transpose(1, -1)", (shape[0], shape[-1], *shape[2:-1], shape[1]) if len(shape) > 2 else shape)
        elif which == 2 and shape[-1] > 1:
            self.bind(f"{v}[..., 1:]", (*shape[:-1], shape[-1] - 1))
        elif which == 3 and shape[-1] % 2 == 0:
            self.bind(f"{v}.chunk(2, dim=-1)[{rng.randrange(2)}]", (*shape[:-1], shape[-1] // 2))
        elif which == 4:
            self.bind(f"{v}.unsqueeze(1).expand(-1, 2, *[-1] * {len(shape) - 1})", (shape[0], 2, *shape[1:]))
        elif which == 5:
            self.bind(f"F.pad({v}, (1, 0))", (*shape[:-1], shape[-1] + 1))
        else:
            self.bind(f"{v}.reshape({v}.shape[0], -1)", (shape[0], math.prod(shape[1:])))
        name = f"v{self.names}"
        if len(self.variables.get(name, ())) > 4:
            del self.variables[name]

    def write_in_place(self) -> None:
        fitting = [name for name, shape in self.variables.items() if len(shape) >= 2]
        v = self.rng.choice(fitting)
        name = self.bind(f"{v}.clone()", self.variables[v])
        self.line(self.rng.choice(IN_PLACE).format(name))

    def branch(self) -> None:
        """On a shape, on the mode, or on the data; both sides give one shape."""
        v = self.pick()
        shape = self.variables[v]
        condition = self.rng.choice([f"{v}.shape[-1] > 6", "self.training", f"{v}.sum() > 0", f"bool(({v} > 100).any())", f"isinstance({v}, torch.Tensor)"])
        self.names += 1
        name = f"v{self.names}"
        self.line(f"if {condition}:")
        self.line(f"    {name} = {self.rng.choice(POINTWISE).format(v)}")
        self.line("else:")
        self.line(f"    {name} = {self.rng.choice(POINTWISE).format(v)}")
        self.variables[name] = shape

    def loop(self) -> None:
        v = self.pick()
        name = self.bind(f"{v} * 0.5", self.variables[v])
        self.line(f"for i in range({self.rng.randint(2, 4)}):")
        self.line(f"    {name} = {name} + {self.rng.choice(POINTWISE).format(v)} * (i + 1)")

    def container(self) -> None:
        v = self.pick()
        shape = self.variables[v]
        self.line(f"parts = {{'a': {v}, 'b': [{v} + 1, {v} - 1]}}")
        self.bind("sum(parts['b'], parts['a']) / len(parts)", shape)

    def state(self) -> None:
        self.line("self.calls += 1")
        v = self.pick()
        self.bind(f"{v} * self.calls", self.variables[v])


def write_model(seed: int) -> Model:
    """The module of a seed: the same source every time."""
    return ModelWriter(random.Random(seed)).write()
