"""What a random module may do next with what it holds: an image, a sequence or rows. Each layer is text, for `__init__` and for `forward`."""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class State:
    """What `x` is when the next layer is drawn. Sizes but the batch are known; images are (batch, channels, height, width), sequences
    (batch, length, width), rows (batch, width)."""

    kind: str
    sizes: list[int]
    random: random.Random
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    kept: list[tuple[str, str, list[int]]] = field(default_factory=list)  # name, kind and sizes of earlier values
    made: int = 0

    def name(self) -> str:
        self.made += 1
        return f"m{self.made}"

    def module(self, text: str, call: str = "x = self.{0}(x)") -> None:
        name = self.name()
        self.init.append(f"self.{name} = {text}")
        self.forward.append(call.format(name))

    def line(self, *text: str) -> None:
        self.forward.extend(text)

    def choose(self, *options):
        return self.random.choice(options)

    def divisor(self, number: int) -> int:
        return self.random.choice([d for d in range(1, number + 1) if number % d == 0])


Layer = Callable[[State], None]
LAYERS: dict[str, list[Layer]] = {"image": [], "sequence": [], "rows": []}


def of(*kinds: str) -> Callable[[Layer], Layer]:
    def add(layer: Layer) -> Layer:
        for kind in kinds:
            LAYERS[kind].append(layer)
        return layer

    return add


# ---- what suits any kind


@of("image", "sequence", "rows")
def activation(s: State) -> None:
    name = s.choose("ReLU()", "GELU()", "SiLU()", "Hardswish()", "Mish()", "Softplus()", "ELU()", "Tanh()", "LeakyReLU(0.1)", "Sigmoid()", "PReLU()",
                    "GELU(approximate='tanh')", "ReLU6(inplace=True)", "SELU()", "Hardsigmoid()", "Softsign()", "LogSigmoid()", "ReLU(inplace=True)", "CELU()")
    s.module(f"nn.{name}", s.choose("x = self.{0}(x)", "x = self.{0}(x * 1.5)", "x = self.{0}(x) + x", "x = self.{0}(x + 1)"))


@of("image", "sequence", "rows")
def function(s: State) -> None:
    s.line(s.choose("x = F.relu(x)", "x = torch.tanh(x)", "x = x * torch.sigmoid(x)", "x = F.normalize(x, dim=1)", "x = x.clamp(-2, 2)", "x = x / (1 + x.abs())",
                    "x = torch.where(x > 0, x, x * 0.1)", "x = F.softmax(x, dim=-1)", "x = x.masked_fill(x > 1, 0.5)", "x = F.log_softmax(x, dim=1)",
                    "x = x - x.mean(dim=1, keepdim=True)", "x = (x.square() + 1e-3).sqrt()", "x = torch.exp(-x.abs())", "x = x.roll(1, dims=1)",
                    "x = x.flip(-1)", "x = torch.lerp(x, x.sin(), 0.3)", "x = x.cumsum(-1) / x.shape[-1]", "x = F.hardtanh(x, -1.5, 1.5)",
                    "x = torch.addcmul(x, x, x, value=0.1)", "x = x.mul(0.5).add_(1)", "x = x.contiguous()", "x = x.detach() * 0.5 + x",
                    "x = torch.nan_to_num(x / 3)", "x = x.double().to(x.dtype)"))


@of("image", "sequence", "rows")
def write(s: State) -> None:
    s.line("x = x * 1.0", s.choose("x.add_(1)", "x.relu_()", "x[0] = 0", "x += 0.25", "x[..., -1] = 1.5", "x.clamp_(-2, 2)", "x[:, ::2] *= 2", "x.copy_(x.tanh())",
                                   "x[x > 1] = 0.5", "y = x[:, :1]\ny.mul_(2)", "x.masked_fill_(x < -1, -1)"))


@of("image", "sequence", "rows")
def dropout(s: State) -> None:
    s.module(f"nn.Dropout({s.choose(0.1, 0.5)})")


@of("image", "sequence", "rows")
def parameter(s: State) -> None:
    name = s.name()
    width = s.sizes[0] if s.kind == "image" else s.sizes[-1]
    s.init.append(f"self.{name} = nn.Parameter(torch.randn({width}) * 0.1)")
    s.line(f"x = x + self.{name}.view(-1, 1, 1)" if s.kind == "image" else s.choose(f"x = x * (1 + self.{name})", f"x = torch.add(x, self.{name}, alpha=0.5)"))


@of("image", "sequence", "rows")
def keep(s: State) -> None:
    name = f"kept{len(s.kept)}"
    s.line(f"{name} = x" if s.random.random() < 0.7 else f"{name} = x.clone()")
    s.kept.append((name, s.kind, list(s.sizes)))


@of("image", "sequence", "rows")
def join(s: State) -> None:
    same = [name for name, kind, sizes in s.kept if kind == s.kind and sizes == s.sizes]
    if not same:
        return keep(s)
    other = s.random.choice(same)
    axis, place = {"image": (1, 0), "sequence": (2, 1), "rows": (1, 0)}[s.kind]
    if s.random.random() < 0.6 or s.sizes[place] > 64:
        s.line(s.choose(f"x = x + {other}", f"x = x * torch.sigmoid({other})", f"x = torch.maximum(x, {other})", f"x = torch.stack([x, {other}]).mean(0)", f"x = torch.where(x > {other}, x, {other} - x)",
                        f"x = torch.hypot(x, {other} + 3)", f"x = torch.lerp(x, {other}, 0.3)", f"x = (x + {other}) / (1 + {other}.abs())"))
    else:
        s.line(s.choose(f"x = torch.cat([x, {other}], dim={axis})", f"x = torch.cat(({other}, x, ), {axis})"))
        s.sizes[place] *= 2


@of("image", "sequence", "rows")
def halves(s: State) -> None:
    axis, place = {"image": (1, 0), "sequence": (2, 1), "rows": (1, 0)}[s.kind]
    if s.sizes[place] % 2:
        return activation(s)
    s.line(s.choose(f"a, b = x.chunk(2, dim={axis})", f"a, b = torch.split(x, x.shape[{axis}] // 2, dim={axis})"),
           s.choose("x = a * b.sigmoid()", "x = a + b", "x = F.relu(a) - b", "a, b = b, a\nx = a * 2 + b.tanh()"))
    s.sizes[place] //= 2


@of("image", "sequence", "rows")
def condition(s: State) -> None:
    test = s.choose("self.training", "x.shape[0] > 2", "x.dim() == 3", "scale > 1", "mask is None", "isinstance(x, torch.Tensor)", "x.requires_grad", "x.is_contiguous()")
    s.line(f"if {test}:", "    x = x * 1.25", "else:", s.choose("    x = x - 0.5", "    x = x.neg()"))


@of("image", "sequence", "rows")
def data_condition(s: State) -> None:
    if s.random.random() < 0.6:
        return function(s)
    s.line(s.choose("if x.sum() > 0.5:", "if bool((x > 5).any()):", "if x.max().item() > 1e3:"), "    x = x * 0.5", "else:", "    x = x + 0.25")


@of("image", "sequence", "rows")
def buffer(s: State) -> None:
    name = s.name()
    s.init.append(f"self.register_buffer('{name}', torch.zeros(()))")
    s.line(*s.choose((f"self.{name} += 1",), (f"self.{name}.mul_(0.9).add_(x.detach().mean(), alpha=0.1)",), (f"self.{name} = self.{name} + x.detach().abs().max()",),
                     ("with torch.no_grad():", f"    self.{name}.copy_(x.mean())")))
    if s.random.random() < 0.5:
        s.line(f"x = x + self.{name} * 0.01")


@of("image", "sequence", "rows")
def attribute(s: State) -> None:
    name = s.name()
    s.init.append(f"self.{name} = {s.choose('[]', '{}')}")
    s.line(*((f"self.{name}.append(x.shape[1])",) if s.init[-1].endswith("[]") else (f"self.{name}['last'] = x.shape[-1]", f"x = x + len(self.{name})")))


@of("image", "sequence", "rows")
def scaled(s: State) -> None:
    s.line(s.choose("x = x * scale", "x = x * scale if scale != 1 else x", "x = (lambda t: t * scale)(x)", "x = sum([x, x * scale]) / 2",
                    "if mask is not None:\n    x = x + mask.to(x.dtype)", "x = functools.reduce(torch.add, [x, x.tanh(), x.sin()])"))


@of("image", "sequence", "rows")
def drawn(s: State) -> None:
    if s.random.random() < 0.5:
        return dropout(s)
    s.line(s.choose("x = x + torch.randn_like(x) * 0.1", "x = F.dropout(x, 0.3, self.training)", "x = x * torch.bernoulli(torch.full_like(x, 0.7))",
                    "x = x + torch.rand(x.shape[-1], dtype=x.dtype)"))
