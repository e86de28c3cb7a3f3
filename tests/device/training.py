"""Networks trained on the card, step by step, against eager: python3 training.py [NAME…]

A *model* situation compiles the network, and the loop around it is eager. A *step* situation compiles the whole step: forward, loss, backward, optimizer."""
from __future__ import annotations

import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

import tenon
from judged import D, differences, run

STEPS = 5


class Residual(nn.Module):
    def __init__(self, channels: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.one, self.two = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 2)
        x = F.relu(x + self.norm2(self.two(F.relu(self.norm1(self.one(x))))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Whitened(nn.Module):
    """With decompositions that torch alone differentiates."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(64, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = torch.tanh(self.inner(x))
        spread = x.T @ x / len(x) + torch.eye(16, device=x.device, dtype=x.dtype)
        return self.head(x @ torch.linalg.inv(torch.linalg.cholesky(spread)).T)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), heads, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, w)
        x = x + F.dropout(self.out(a), self.dropout, self.training)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(nn.Module):
    """A small language model; the embedding and the head may be one matrix."""

    def __init__(self, vocabulary: int = 97, width: int = 64, dropout: float = 0.0, tied: bool = False) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(32, width)
        self.blocks = nn.ModuleList(Block(width, 4, dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, t):
        x = self.tokens(t) + self.places(torch.arange(t.shape[1], device=t.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self, kind) -> None:
        super().__init__()
        self.cell, self.head = kind(12, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Manual(nn.Module):
    """What is written by hand: gathers, scatters, indices, sorts, masks."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.weight = nn.Parameter(torch.randn(20, 16)), nn.Parameter(torch.randn(16, 10))

    def forward(self, t):
        x = self.table[t]                                             # backward of an index: accumulates
        y = torch.zeros_like(x).scatter_add(1, (t % 7)[..., None].expand_as(x), x)
        y = y + x.gather(1, (t % 5)[..., None].expand_as(x)).cumsum(1)
        y = y.masked_fill(y > 3, 3.0).index_add(0, t[:2, 0] % 4, x[:2])
        best = y.sort(1, descending=True).values[:, :3].mean(1) + y.topk(2, dim=1).values.sum(1) + y.amax(1)
        return best @ self.weight


def mlp(*extra) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), *extra, nn.Linear(128, 10))


def pictures():
    return torch.randn(8, 3, 16, 16, device=D), torch.randint(0, 10, (8,), device=D)


def rows():
    return torch.randn(256, 64, device=D), torch.randint(0, 10, (256,), device=D)


def sentences():
    tokens = torch.randint(0, 97, (4, 17), device=D)
    return tokens[:, :-1], tokens[:, 1:].reshape(-1)


def sequences():
    return torch.randn(8, 9, 12, device=D), torch.randint(0, 10, (8,), device=D)


def indices():
    return torch.randint(0, 20, (8, 9), device=D), torch.randint(0, 10, (8,), device=D)


MODELS = {
    "mlp": (mlp, rows), "batch norm": (lambda: mlp(nn.BatchNorm1d(128)), rows), "layer norm": (lambda: mlp(nn.LayerNorm(128), nn.GELU()), rows),
    "dropout": (lambda: mlp(nn.Dropout(0.3)), rows), "residual": (Residual, pictures), "wide residual": (lambda: Residual(64), pictures),
    "language": (Language, sentences), "language, dropout": (lambda: Language(dropout=0.1), sentences), "language, tied": (lambda: Language(tied=True), sentences),
    "lstm": (lambda: Recurrent(nn.LSTM), sequences), "gru": (lambda: Recurrent(nn.GRU), sequences), "by hand": (Manual, indices), "whitened": (Whitened, rows),
    "encoder layer": (lambda: nn.Sequential(nn.TransformerEncoderLayer(12, 2, 24, 0.1, batch_first=True), nn.Flatten(), nn.Linear(108, 10)), sequences),
    "group norm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose2d(8, 4, 2, 2), nn.AvgPool2d(2), nn.Flatten(), nn.LazyLinear(10)), pictures),
    "unet": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear"), nn.PReLU(), nn.InstanceNorm2d(8), nn.Softplus(), nn.ReflectionPad2d(1),
                                   nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.LogSoftmax(1), nn.LazyLinear(10)), pictures),
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05), "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, 1e-3), "adamw": lambda p: torch.optim.AdamW(p, 1e-3, amsgrad=True), "adam, one by one": lambda p: torch.optim.Adam(p, 1e-3, foreach=False),
    "adam, fused": lambda p: torch.optim.Adam(p, 1e-3, fused=True), "adam, capturable": lambda p: torch.optim.Adam(p, 1e-3, capturable=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.5), "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2), "adadelta": lambda p: torch.optim.Adadelta(p, 0.1),
    "radam": lambda p: torch.optim.RAdam(p, 1e-3), "nadam": lambda p: torch.optim.NAdam(p, 1e-3), "adamax": lambda p: torch.optim.Adamax(p, 1e-3), "rprop": lambda p: torch.optim.Rprop(p, 1e-3),
}


def plain_step(model, optimizer, x, target):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
    return loss.detach()


def clipped_step(model, optimizer, x, target):
    optimizer.zero_grad(set_to_none=False)
    loss = F.cross_entropy(model(x), target, label_smoothing=0.1)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss.detach(), norm


def accumulated_step(model, optimizer, x, target):
    optimizer.zero_grad()
    losses = []
    for part, wanted in zip(x.chunk(2), target.chunk(2)):
        loss = F.cross_entropy(model(part), wanted) / 2
        loss.backward()
        losses.append(loss.detach())
    optimizer.step()
    return sum(losses)


def item_step(model, optimizer, x, target):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x).softmax(-1), F.one_hot(target, 10).float()) + 1e-3 * sum(p.square().sum() for p in model.parameters())
    loss.backward()
    optimizer.step()
    return loss.item()


def autocast_step(dtype):
    def step(model, optimizer, x, target):
        optimizer.zero_grad()
        with torch.autocast(D.split(":")[0], dtype=dtype):
            loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def no_worse(got, want, exact) -> bool:
    """Whether parameters and buffers are as close to those of float64 as eager's, by a small factor."""
    error = lambda state: max((t.double() - e).abs().max().item() / (e.abs().max().item() + 1e-30) for t, e in zip(state, exact, strict=True) if e.is_floating_point())  # noqa: E731
    return error(got) <= 3 * error(want) + 1e-6


def trained(make, data, optimizer, step, compile_model, compile_step, rtol=2e-3, atol=2e-4) -> str:
    """Trains two copies, one of them compiled, on the same batches from the same seeds, and compares losses, parameters, buffers and gradients after each step.
    Where they differ, another copy in float64 says which is right."""
    torch.manual_seed(0)
    with torch.device(D):
        first = make()
    torch.manual_seed(1)
    batches = [data() for _ in range(STEPS)]
    with torch.no_grad():
        first(batches[0][0])  # lazy layers
    second, exact = copy.deepcopy(first), copy.deepcopy(first).double()
    optimizers = [optimizer(list(net.parameters())) for net in (first, second)]
    forward = tenon.compile(second) if compile_model else second
    compiled_step = tenon.compile(step) if compile_step else step
    for number, batch in enumerate(batches):
        torch.manual_seed(number)
        want = step(first, optimizers[0], *batch)
        torch.manual_seed(number)
        got = compiled_step(forward, optimizers[1], *batch)
        if said := differences(got, want, rtol, atol):
            return f"result of step {number}: {said}"
        state = [{name: (t.detach(), t.grad) for name, t in net.named_parameters()} | dict(net.named_buffers()) for net in (first, second)]
        if said := differences(state[1], state[0], rtol, atol):
            optimizer_of_exact = optimizer(list(exact.parameters()))
            for earlier in range(number + 1):
                torch.manual_seed(earlier)
                step(exact, optimizer_of_exact, *(t.double() if t.is_floating_point() else t for t in batches[earlier]))
            everything = [[*net.parameters(), *net.buffers()] for net in (second, first, exact)]
            if no_worse(*everything):
                print("       drifts apart, as close to float64 as eager is", flush=True)
                return ""
            return f"after step {number}: {said[:300]}"
    return ""


def scaled(compile_step: bool) -> str:
    """Automatic mixed precision as torch's documentation has it: autocast in float16, and a scaler around the optimizer."""
    torch.manual_seed(0)
    first = mlp().to(D)
    second = copy.deepcopy(first)
    sides = [(net, torch.optim.SGD(net.parameters(), 0.05), torch.amp.GradScaler(D.split(":")[0], init_scale=2.0**10)) for net in (first, second)]

    def step(net, optimizer, scaler, x, target):
        optimizer.zero_grad()
        with torch.autocast(D.split(":")[0], dtype=torch.float16):
            loss = F.cross_entropy(net(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    compiled, forward = (tenon.compile(step), second) if compile_step else (step, tenon.compile(second))
    for number in range(STEPS):
        batch = rows()
        want, got = step(*sides[0], *batch), compiled(forward, *sides[1][1:], *batch)
        if said := differences([got, *second.parameters()], [want, *first.parameters()], 1e-2, 2e-3):
            return f"step {number}: {said}"
    return differences(sides[1][2].get_scale(), sides[0][2].get_scale())


def input_gradients() -> str:
    """Gradients of what a compiled function computes, of inputs, twice differentiated, with hooks."""
    def fn(x, w):
        return (torch.tanh(x @ w) * x.sum(1, keepdim=True)).exp().mean()

    compiled, seen = tenon.compile(fn), []
    for call in range(3):
        torch.manual_seed(call)
        x, w = torch.randn(5, 4, device=D) * 0.3, torch.randn(4, 4, device=D) * 0.3
        results = []
        for way in (fn, compiled):
            a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
            a.register_hook(lambda g: seen.append(g) or g * 2)
            first = torch.autograd.grad(way(a, b), (a, b), create_graph=True)
            second = torch.autograd.grad(first[0].square().sum() + first[1].sum(), (a, b))
            results.append([*(g.detach() for g in first), *second])
        if said := differences(results[1], results[0]):
            return f"call {call}: {said}"
    return ""


def varying_batches() -> str:
    torch.manual_seed(0)
    first = Residual().to(D)
    second = copy.deepcopy(first)
    sides = [(net, torch.optim.Adam(net.parameters(), 1e-3)) for net in (first, second)]
    compiled = tenon.compile(plain_step)
    for number, size in enumerate((8, 8, 5, 7, 8, 3)):
        x, target = torch.randn(size, 3, 16, 16, device=D), torch.randint(0, 10, (size,), device=D)
        want, got = plain_step(*sides[0], x, target), compiled(*sides[1], x, target)
        if said := differences([got, *second.parameters()], [want, *first.parameters()], 2e-3, 2e-3):
            return f"step {number}: {said}"
    return ""


def situations():
    def entry(*args, **options):
        return lambda: trained(*args, **options)

    found = {}
    for name, (make, data) in MODELS.items():
        found[f"model {name}"] = entry(make, data, OPTIMIZERS["sgd"], plain_step, True, False)
        found[f"step {name}"] = entry(make, data, OPTIMIZERS["momentum"], plain_step, False, True)
    for name, optimizer in OPTIMIZERS.items():
        found[f"step mlp, {name}"] = entry(mlp, rows, optimizer, plain_step, False, True, atol=3e-3 if "ada" in name or "prop" in name else 1e-3)
    found["step residual, adam"] = entry(Residual, pictures, OPTIMIZERS["adam"], plain_step, False, True, atol=3e-3)
    found["step language, adamw"] = entry(Language, sentences, OPTIMIZERS["adamw"], plain_step, False, True, atol=3e-3)
    for name, step in (("clipped", clipped_step), ("accumulated", accumulated_step), ("item", item_step)):
        found[f"model {name}"] = entry(mlp, rows, OPTIMIZERS["adamw"], step, True, False, atol=3e-3)
        found[f"step {name}"] = entry(mlp, rows, OPTIMIZERS["adamw"], step, False, True, atol=3e-3)
        found[f"both {name}"] = entry(mlp, rows, OPTIMIZERS["sgd"], step, True, True)
    for dtype in (torch.float16, torch.bfloat16):
        found[f"model autocast {dtype}"] = entry(Residual, pictures, OPTIMIZERS["sgd"], autocast_step(dtype), True, False, rtol=2e-2, atol=2e-2)
        found[f"step autocast {dtype}"] = entry(mlp, rows, OPTIMIZERS["sgd"], autocast_step(dtype), False, True, rtol=2e-2, atol=1e-2)
        found[f"step language autocast {dtype}"] = entry(Language, sentences, OPTIMIZERS["sgd"], autocast_step(dtype), False, True, rtol=3e-2, atol=2e-2)
    found["model half"] = entry(lambda: mlp().to(torch.bfloat16), lambda: (rows()[0].bfloat16(), rows()[1]), OPTIMIZERS["sgd"], plain_step, True, False, rtol=3e-2, atol=2e-2)
    found["step half"] = entry(lambda: mlp().to(torch.bfloat16), lambda: (rows()[0].bfloat16(), rows()[1]), OPTIMIZERS["sgd"], plain_step, False, True, rtol=3e-2, atol=2e-2)
    found["step double"] = entry(lambda: mlp(nn.Tanh()).double(), lambda: (rows()[0].double(), rows()[1]), OPTIMIZERS["adam"], plain_step, False, True, rtol=1e-6, atol=1e-8)
    found["model scaler"], found["step scaler"] = lambda: scaled(False), lambda: scaled(True)
    found["input gradients"], found["varying batches"] = input_gradients, varying_batches
    return found


if __name__ == "__main__":
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
    sys.exit(run(situations()))
