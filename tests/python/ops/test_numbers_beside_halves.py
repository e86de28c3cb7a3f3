"""Numbers that the graph computes beside tensors of half precision: rounded where torch's kernels round them, bit by bit."""
from __future__ import annotations

import pytest

import tenon

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "mul": lambda x, y, z, n: x * n,
    "number_first": lambda x, y, z, n: n * x,
    "div": lambda x, y, z, n: x / n,
    "floor": lambda x, y, z, n: torch.div(x, n, rounding_mode="floor"),
    "add": lambda x, y, z, n: n + x + n,
    "sub": lambda x, y, z, n: x - n,
    "rsub": lambda x, y, z, n: n - x,
    "addcdiv": lambda x, y, z, n: x.addcdiv(y, z, value=n),
    "addcmul": lambda x, y, z, n: x.addcmul(y, z, value=-n),
    "lerp": lambda x, y, z, n: x.lerp(y, n),
    "in_place": lambda x, y, z, n: x.clone().mul_(n).addcdiv_(y, z, value=n).sub_(n),
    "compared": lambda x, y, z, n: x > n,
    "clamped": lambda x, y, z, n: x.clamp(max=n),
    "chosen": lambda x, y, z, n: torch.where(x > 1, x, n),
    "sum": lambda x, y, z, n: x.sum() * n,
    "scaled": lambda x, y, z, n: torch.add(x, y, alpha=n).sub_(z, alpha=-n),
    "number_over": lambda x, y, z, n: n / x,
    "number_to": lambda x, y, z, n: n**x,
    "floordiv": lambda x, y, z, n: x // n,
    "mod": lambda x, y, z, n: x % n,
    "fmod": lambda x, y, z, n: x.fmod(n),
    "filled": lambda x, y, z, n: x.masked_fill(x > 1, n) + torch.full_like(y, n) + z.clone().fill_(n),
    "wider": lambda x, y, z, n: x.float() * n + y,
}
NUMBERS = {"element": lambda t: t.item(), "float": lambda t: float(t) * 1.5}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_of_plain_execution(name, dtype):
    """In one graph, whatever the number is. Sizes are of whole vectors: of `alpha` torch rounds twice in what is left."""
    torch.manual_seed(0)
    x, y, z = ((torch.rand(1984) * 3 + 0.1).to(dtype) for _ in range(3))
    for number in NUMBERS.values():

        def fn(x, y, z, t, number=number):
            return FUNCTIONS[name](x, y, z, number(t))

        tenon.reset()
        compiled = tenon.compile(fn, fullgraph=True)
        for value in (0.3337, 1.2345678, 0.001234):
            got, want = compiled(x, y, z, torch.tensor(value)), fn(x, y, z, torch.tensor(value))
            assert got.dtype == want.dtype
            torch.testing.assert_close(got, want, rtol=0, atol=0)


TENSORS = {
    "mul": lambda x, t: x * t,
    "first": lambda x, t: t * x,
    "in_place": lambda x, t: x.clone().mul_(t).div_(t),
    "div": lambda x, t: x / t,
    "over": lambda x, t: t / x,
    "floor": lambda x, t: torch.div(x, t, rounding_mode="floor"),
    "integers": lambda x, t: x * (t * 1000).long(),
    "one_each": lambda x, t: x[0] * t + x.sum() * t.double(),
    "gradient": lambda x, t: torch.autograd.grad((x.requires_grad_() * t).sum(), x)[0],
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_of_one_number(name, dtype):
    """What torch multiplies with and divides by is taken as wide as it is."""
    x = (torch.rand(2000, generator=torch.Generator().manual_seed(0)) + 0.1).to(dtype)
    for value in (0.3337, 1.2345678):
        t = torch.tensor(value)
        torch.testing.assert_close(tenon.compile(TENSORS[name], fullgraph=True)(x, t), TENSORS[name](x, t), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adagrad", "Adamax", "Rprop", "RMSprop", "ASGD", "Adafactor"])
def test_steps_of_optimizers(name):
    """Parameters of half precision: no break, and what plain execution leaves."""
    left = []
    for compiles in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 2).to(torch.bfloat16)
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.01)

        def step(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()

        run = tenon.compile(step) if compiles else step
        for at in range(8):
            run(torch.full((3, 4), 0.25 + at, dtype=torch.bfloat16))
        left.append([p.detach() for p in net.parameters()])
    torch.testing.assert_close(left[1], left[0], rtol=2e-2, atol=2e-2)
    assert tenon.stats()["graph_breaks"] == 0, tenon.stats()
