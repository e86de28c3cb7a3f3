"""Hooks on leaves: their order, and on leaves that a step makes."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

D = torch.float64


def add_one(gradient):
    return gradient + 1


def twice(gradient):
    return gradient * 2


def one_to_accumulated(p):
    p.grad.add_(1)


def twice_accumulated(p):
    p.grad.mul_(2)


def of_gradient(p):
    return p.register_hook(add_one), p.register_hook(twice), p._backward_hooks


def of_accumulated(p):
    return p.register_post_accumulate_grad_hook(one_to_accumulated), p.register_post_accumulate_grad_hook(twice_accumulated), p._post_accumulate_grad_hooks


@pytest.mark.parametrize("put", [of_gradient, of_accumulated])
@pytest.mark.parametrize("moved_at", [None, 0, 2, "in a step", "put on in a step", "another is put on in a step"])
def test_hooks_of_a_leaf_are_called_in_the_order_in_which_they_came(put, moved_at, as_plain):
    """torch goes over the dict below the OrderedDict, whose order `move_to_end` does not change."""
    def scenario(compiled):
        p = nn.Parameter(torch.ones(3, dtype=D))
        if moved_at != "put on in a step":
            first, _, hooks = put(p)
        if moved_at == "another is put on in a step":
            hooks.move_to_end(first.id)

        @compiled
        def step(x):
            p.grad = None
            on = put(p) if moved_at in ("put on in a step", "another is put on in a step") else ()
            if moved_at == "in a step":
                hooks.move_to_end(first.id)
            if moved_at == "put on in a step":
                on[2].move_to_end(on[0].id)
            (p * x).sum().backward()
            for handle in on[:2]:
                handle.remove()
            return p.grad.clone()

        found = []
        for call in range(5):
            if call == moved_at:
                hooks.move_to_end(first.id)
            found.append(step(torch.ones(3, dtype=D)))
        p.grad = None
        (p * 3).sum().backward()
        return [*found, p.grad, [hook.__name__ for hook in dict.values(p._backward_hooks or {})]]

    as_plain(scenario)


def by_name(v, y):
    return torch.autograd.grad(y, v)[0]


def by_walk(v, y):
    y.backward()
    return v.grad


@pytest.mark.parametrize("make", [lambda x: x.detach().requires_grad_(), lambda x: torch.ones(3, dtype=D, requires_grad=True), lambda x: x.detach().clone().requires_grad_(True)])
@pytest.mark.parametrize("gradient", [by_name, by_walk])
@pytest.mark.parametrize("put", [of_gradient, of_accumulated, lambda v: v.register_hook(lambda g: None), lambda v: v.register_hook(add_one).remove()])
def test_hooks_on_a_leaf_that_the_call_makes(make, gradient, put, as_plain):
    def scenario(compiled):
        @compiled
        def step(x):
            v = make(x)
            put(v)
            return gradient(v, (v * v * x).sum()), v.detach() * 2

        return [step(torch.arange(3.0, dtype=D) + call) for call in range(5)]

    as_plain(scenario)
    stats = tenon.stats()
    assert stats["graphs"] <= 2 and stats["graph_breaks"] == stats["eager_fallbacks"] == 0, stats


def test_a_leaf_with_hooks_that_leaves_the_call(as_plain):
    def scenario(compiled):
        @compiled
        def made(x):
            v = x.detach().requires_grad_()
            v.register_hook(add_one)
            return v

        found = []
        for call in range(3):
            v = made(torch.arange(3.0, dtype=D) + call)
            (v * v).sum().backward()
            found.append(v.grad)
        return found

    as_plain(scenario)
