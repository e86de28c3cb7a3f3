"""Scalars of NumPy that vary beside torch's tensors: Python's numbers, as torch takes them, in one graph."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

USES = {
    "mul": lambda x, w: x * w,
    "reflected": lambda x, w: w * x - w / x + w**x,
    "mul_": lambda x, w: x.clone().mul_(w),
    "in place": lambda x, w: (y := x.clone(), y.__iadd__(w))[0],
    "lerp": lambda x, w: torch.lerp(x, x * 2, w),
    "lerp_": lambda x, w: x.clone().lerp_(x * 2, w),
    "alpha": lambda x, w: torch.add(x, x, alpha=w),
    "value": lambda x, w: torch.addcmul(x, x, x, value=w),
    "clamp": lambda x, w: x.clamp(max=w),
    "comparison": lambda x, w: (x > w, w >= x),
    "where": lambda x, w: torch.where(x > w, x, w),
    "fill_": lambda x, w: x.clone().fill_(w),
    "average": lambda x, w: x.clone().mul_(w).add_(x, alpha=1 - w),
    "cosine": lambda x, w: x.double() * np.cos(w),
    "list": lambda x, w: torch._foreach_mul([x, x * 2], w),
    "quotient": lambda x, w: x / w + torch.std(x) * w,
}


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", USES)
def test_one_graph(check, name, kind):
    fn, x = USES[name], torch.arange(1.0, 4.0)
    compiled = tenon.compile(fn)
    for i in range(6):
        w = kind(0.5 + 0.03 * i)
        torch.testing.assert_close(compiled(x, w), fn(x, w))
    stats = tenon.stats()
    assert stats["graphs"] <= 2 and stats["graph_breaks"] == 0, stats


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_integers(kind):
    def fn(x, n):
        return x * n, x + n, x[0] ** n, x // n

    x, compiled = torch.arange(1, 4), tenon.compile(fn)
    for i in range(1, 6):
        torch.testing.assert_close(compiled(x, kind(i)), fn(x, kind(i)))


def test_an_item_is_written_as_torch_does():
    def fn(x, w):
        y = x.clone()
        y[0] = w
        return y

    x, compiled = torch.ones(3), tenon.compile(fn)
    for i in range(4):
        torch.testing.assert_close(compiled(x, np.float64(i)), fn(x, np.float64(i)))
    for call in (fn, compiled):
        with pytest.raises(TypeError, match="can't assign a numpy.float32"):
            call(x, np.float32(1))


def test_a_schedule_of_numpy_trains():
    torch.manual_seed(0)
    net, twin = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    twin.load_state_dict(net.state_dict())
    teacher, other = [[p.detach().clone() for p in n.parameters()] for n in (net, twin)]

    def step_of(network, averages):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

        def step(x, decay):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
            for average, p in zip(averages, network.parameters()):
                average.mul_(decay).add_(p.detach(), alpha=1 - decay)

        return step

    plain, compiled = step_of(net, teacher), tenon.compile(step_of(twin, other))
    for i in range(8):
        x, decay = torch.randn(4, 3), 1 - 0.1 * (np.cos(np.pi * i / 8) + 1) / 2
        plain(x, decay)
        compiled(x, decay)
    torch.testing.assert_close(other, teacher)
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["graphs"] <= 2
