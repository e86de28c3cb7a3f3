"""Hooks that write the gradient which torch hands them, in place: it may be one element that is seen as many."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def spread_hooks():
    def doubles(gradient):
        gradient.mul_(2)

    def sets(gradient):
        gradient[0] = 5

    return [doubles, sets]


@pytest.mark.parametrize("hook", spread_hooks(), ids=lambda hook: hook.__name__)
@pytest.mark.parametrize("loss", [lambda y: y.sum(), lambda y: y.sum(0).sum(), lambda y: (y + 1).sum(), lambda y: y.view(-1).sum(), lambda y: y.mean(), lambda y: (y * y).sum(),
                                  lambda y: y.sum(0).exp().sum(), lambda y: y.t().sum(1).exp().sum(), lambda y: y.mean(0).exp().sum(), lambda y: y.logsumexp(0).sum()])
def test_a_hook_that_writes_the_gradient(hook, loss):
    """What `sum` spreads is one element for torch, which refuses that, or writes all of it; what is computed is written."""
    def of(loss):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = x * 2
        y.register_hook(hook)
        try:
            loss(y).backward()
        except RuntimeError as error:
            return str(error)
        return x.grad

    def whole():
        return of(loss)

    expected, inside, around = of(loss), tenon.compile(whole)(), of(tenon.compile(loss))
    for found in (inside, around):
        assert type(found) is type(expected)
        assert found == expected if isinstance(found, str) else torch.equal(found, expected)
