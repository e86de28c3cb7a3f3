"""What a call takes and does not read is a part of torch's autograd graph all the same: its gradient is zeros, not None."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def nothing_added_to_a_product(x, w):
    return torch.addmm(x, w, w, beta=0)


def nothing_added_to_a_vector(x, w):
    return torch.addmv(x[0], w, w[0], beta=0)


def nothing_added_to_products(x, w):
    return torch.baddbmm(x[None], w[None], w[None], beta=0), torch.addbmm(x, w[None], w[None], beta=0), torch.addr(x, w[0], w[1], beta=0)


def filled(x, w):
    return torch.fill(x, 3.0)


def filled_by_a_tensor(x, w):
    return torch.fill(x, w.sum()) * 2


def written_over_by_a_number(x, w):
    y = x * 1
    y[:] = 3.0
    return y


def written_over_by_a_tensor(x, w):
    y = x * 1
    y[...] = w
    return y


def no_part_of_it(x, w):
    return torch.zeros_like(x) + torch.full_like(w, 2) * w


def powers_of_two(x, w):
    return torch.ldexp(x, torch.tensor([[-1], [2], [0], [-3]])), torch.ldexp(w, torch.tensor(-1))


PROGRAMS = [nothing_added_to_a_product, nothing_added_to_a_vector, nothing_added_to_products, filled, filled_by_a_tensor, written_over_by_a_number, written_over_by_a_tensor,
            no_part_of_it, powers_of_two]


def outcome(f, leaf):
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    results = f(x, w)
    for result in results if isinstance(results, tuple) else (results,):
        if result.grad_fn is not None:
            result.square().sum().backward(retain_graph=True)
    return results, x.grad, w.grad


def whole(f):
    def step(x, w):
        results = f(x, w)
        results = results if isinstance(results, tuple) else (results,)
        sum(result.square().sum() for result in results).backward()
        return tuple(result.detach() for result in results)
    return step


@pytest.mark.parametrize("way", ["afterwards", "within"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_gradient_is_zeros(program, way, leaf):
    f = program if way == "afterwards" else whole(program)
    want, compiled = outcome(f, leaf), tenon.compile(f)
    for _ in range(2):
        got = outcome(compiled, leaf)
        torch.testing.assert_close(got, want)
        assert [g is None for g in got[1:]] == [g is None for g in want[1:]]
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)
