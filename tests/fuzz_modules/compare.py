"""A module compiled against itself: results, gradients, buffers and random state, over several calls, sizes and modes."""
from __future__ import annotations

import copy
import dataclasses
import itertools
import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

import tenon
from tests.fuzz_modules.module import Drawn
from tests.fuzz_tensors.compare import other_strides

EPSILON = {torch.bfloat16: 2.0**-8, torch.float32: 2.0**-23, torch.float64: 2.0**-52}
PLAN = [(3, False), (3, False), (5, False), (3, True), (4, True), (2, False), (7, False)]  # batch size, training


def leaves(value: object, path: str) -> list[tuple[str, object]]:
    """What a structure holds, by path; the structure itself is among it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"class": type(value).__name__, **vars(value)}
    if isinstance(value, dict):
        return [(path, sorted(map(str, value)))] + [leaf for key in value for leaf in leaves(value[key], f"{path}[{key!r}]")]
    if isinstance(value, (list, tuple)):
        return [(path, f"{type(value).__name__} of {len(value)}")] + [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    return [(path, value)]


def described(value: object) -> str:
    return f"{value.dtype}{list(value.shape)} requires_grad={value.requires_grad}" if isinstance(value, Tensor) else repr(value)


def difference(got: object, want: object, exact: object, tolerance: float) -> str | None:
    """What differs: type, metadata, strides, or an error against float64 beyond three times eager's and the tolerance of the largest value."""
    if not isinstance(want, Tensor):
        return None if type(got) is type(want) and (got == want or got != got) else f"{described(got)} instead of {want!r}"
    if described(got) != described(want):
        return f"{described(got)} instead of {described(want)}"
    if found := other_strides(got, want):
        return found
    if not want.dtype.is_floating_point:
        return None if torch.equal(got, want) else f"{got} instead of {want}"
    got, want, exact = (t.detach().double() for t in (got, want, exact))
    finite = want.isfinite()
    if not torch.equal(got.isfinite(), finite) or not torch.equal(got.isnan(), want.isnan()):
        return "other elements are infinite or NaN"
    if not finite.any():
        return None
    exact = torch.where(exact.isfinite(), exact, want)
    error, eager = ((t - exact)[finite].abs().max().item() for t in (got, want))
    scale = max(1.0, want[finite].abs().max().item())
    return None if error <= 3 * eager + tolerance * scale else f"error {error:.3g} where eager's is {eager:.3g}, values to {scale:.3g}"


def call(net: nn.Module, run: Callable, x: Tensor, keywords: dict, grad: bool, seed: int) -> dict:
    """The result or the exception, the gradients of all, the state of the module, and what the random generator gives next."""
    torch.manual_seed(seed)
    x = x.clone(memory_format=torch.preserve_format).requires_grad_(grad and x.is_floating_point())
    net.zero_grad()
    with torch.set_grad_enabled(grad):
        try:
            result = run(x, **keywords)
        except Exception as error:
            return {"raised": f"{type(error).__name__}: {error}"}
    drawn = torch.rand(2)
    losses = [t.double().square().sum() for _, t in leaves(result, "") if isinstance(t, Tensor) and t.requires_grad]
    if losses:
        sum(losses).backward()
    gradients = {name: p.grad for name, p in net.named_parameters()} | {"x": x.grad}
    attributes = {name: value for name, value in vars(net).items() if isinstance(value, (list, dict)) and not name.startswith("_")}
    return copy.deepcopy({"gradients": gradients, "buffers": dict(net.named_buffers()), "attributes": attributes, "drawn": drawn}) | {"result": result}


def run(drawn: Drawn) -> str | None:
    """What differs first; None when nothing does, or from where plain execution raises."""
    r = random.Random(drawn.seed + 1)
    net = drawn.make()
    twin, exact_net = copy.deepcopy(net), copy.deepcopy(net).double()
    compiled = tenon.compile(lambda *a, **k: twin(*a, **k), **drawn.options) if r.random() < 0.3 else tenon.compile(twin, **drawn.options)
    grad = r.random() < 0.4
    for number, (batch, training) in enumerate(PLAN):
        grad = grad and number < 5
        x, keywords = drawn.inputs(batch, drawn.seed + number)
        for each in (net, twin, exact_net):
            each.train(training)
        want = call(net, net, x, keywords, grad, number)
        exact = call(exact_net, exact_net, x.double() if x.is_floating_point() else x, keywords, grad, number)
        got = call(twin, compiled, x, keywords, grad, number)
        if "raised" in want:
            return None if got.get("raised") == want["raised"] else f"call {number}: {described(got)} instead of {want['raised']}"
        judged = drawn.dtype != torch.float64 and "raised" not in exact and not drawn.is_random(training)  # float64 draws other numbers
        tolerance = EPSILON[drawn.dtype] * (300 if judged and not grad else 2000)
        ours, theirs, exact = leaves(got, ""), leaves(want, ""), leaves(exact if judged else want, "")
        where = f"call {number}, batch {batch}, training={training}, grad={grad}"
        if [path for path, _ in ours] != [path for path, _ in theirs]:
            return f"{where}: {[p for p, _ in ours]} instead of {[p for p, _ in theirs]}"
        for (path, mine), (_, eager), (_, true) in zip(ours, theirs, exact):
            if found := difference(mine, eager, true, tolerance):
                return f"{where}: {path}: {found}"
        if number == 2 and r.random() < 0.5:
            with torch.no_grad():
                for parameter in itertools.chain(net.parameters(), twin.parameters(), exact_net.parameters()):
                    parameter.mul_(0.75)
    return None
