"""Tensors and arrays that a program makes of constants are the same at every call: Python may ask for their elements in the graph."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def steps(x):
    for t in torch.arange(4).flip(0):
        if t > 0:
            x = x * t + 1
    return x


def windows(x):
    count = torch.div(x.shape[1], 4, rounding_mode="trunc")
    y = x.view(x.shape[0], count, 4)
    return y.new_zeros((count - 1, 3)) + y.sum() * 2, y[:, : count - 1]


def counted(x):
    t = torch.tensor(0)
    while t < 3:
        x, t = x + t, t + 1
    return x


PROGRAMS = {
    "a comparison": lambda x: x + 1 if torch.tensor(3.0) > 2 else x - 1,
    "a truth": lambda x: x + 1 if torch.ones(()) else x - 1,
    "not": lambda x: x + 1 if not torch.eye(3).any() else x - 1,
    "all": lambda x: x + 1 if torch.all(torch.ones(3) > 0) else x - 1,
    "int": lambda x: x * int(torch.tril(torch.ones(3, 3)).sum()),
    "float": lambda x: x * float(torch.tensor(2.0).sqrt()),
    "item": lambda x: x.reshape(torch.tensor(x.shape).prod().item()),
    "tolist": lambda x: [x * v for v in (torch.linspace(0, 1, 4) * 2).tolist()],
    "parts": lambda x: [x[int(i)] for i in torch.tensor([[0, 1], [1, 0]]).unbind()[1]],
    "equal": lambda x: x + 1 if torch.equal(torch.ones(3) * 2, torch.full((3,), 2.0)) else x - 1,
    "slices": lambda x: x[:, : torch.tensor([1, 2, 3]).max()],
    "range": lambda x: [x * i for i in range(torch.tensor(4) - 1)],
    "sizes": windows,
    "slices and what they are made of": lambda x: ((t := torch.tensor(7)), x[:, : t // 4], x.new_zeros(t))[1:],
    "written slices": lambda x: ((y := x + 1), y[:, torch.tensor(3) :].zero_(), y)[1:],
    "steps": steps,
    "counted": counted,
    "arrays": lambda x: x + 1 if np.ones(3).all() and (np.arange(3) * 2).sum() == 6 else x - 1,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_no_break(check, program):
    check(program, (torch.randn(2, 8),))
    assert tenon.stats()["graph_breaks"] == 0


def written(x):
    t = torch.zeros(2)
    row = t[0]
    y = t + 1
    t.add_(x[0, :2])
    return x + 1 if row > 0 else x - 1, x * 2 if y[0] > 0 else x * 3


def written_by_item(x):
    t = torch.zeros(2)
    t[0] = x[0, 0]
    return x + 1 if t.sum() > 0 else x - 1


def drawn(x):
    return x + 1 if torch.bernoulli(torch.full((), 0.5)) else x - 1


@pytest.mark.parametrize("program", [written, written_by_item, drawn])
def test_what_is_written_or_drawn_is_not_known(check, program):
    compiled = tenon.compile(program)
    for seed in range(6):
        x = torch.ones(2, 2) * (-1) ** seed
        torch.manual_seed(seed)
        want = program(x)
        torch.manual_seed(seed)
        check.same(compiled(x), want)


def test_a_value_of_other_sizes_is_another_one(check):
    def fn(x):
        return x + 1 if torch.ones(x.shape[0]).sum() > 3 else x - 1

    compiled = tenon.compile(fn)
    for n in (2, 3, 4, 5, 2, 6):
        x = torch.randn(n)
        check.same(compiled(x), fn(x))


def test_defaults_under_which_it_was_made(check):
    def fn(x):
        return x * (torch.tensor(1.0) / 3).item()

    compiled, x = tenon.compile(fn), torch.ones(2, dtype=torch.float64)
    check.same(compiled(x), fn(x))
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(compiled(x), fn(x))
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(compiled(x), fn(x))
