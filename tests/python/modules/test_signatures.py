"""Programs that ask for the signature of a function."""
import inspect

import pytest

import tenon

torch = pytest.importorskip("torch")


class Layer(torch.nn.Module):
    def feed(self, x):
        return x * 2

    def forward(self, x):
        return self.feed(x) + len(inspect.signature(self.feed).parameters)


def test_the_number_of_parameters_of_a_method(check):
    check(Layer(), (torch.ones(3),))
    assert tenon.stats()["graph_breaks"] == 0


def test_names_and_defaults_of_a_function(check):
    def scaled(x, by: float = 2.0, *, plus: int = 1):
        return x * by + plus

    def fn(x):
        given = {name: p.default for name, p in inspect.signature(scaled).parameters.items() if p.default is not p.empty}
        return scaled(x, **given), sorted(given)

    check(fn, (torch.ones(3),))
    scaled.__defaults__ = (5.0,)
    check(fn, (torch.ones(3),))
    scaled.__kwdefaults__["plus"] = 7
    check(fn, (torch.ones(3),))


def test_changes_after_the_capture_are_seen():
    def f(x):
        return x

    def fn(x):
        return x + len(inspect.signature(f).parameters)

    compiled, x = tenon.compile(fn), torch.ones(2)
    assert torch.equal(compiled(x), x + 1)
    f.__signature__ = inspect.Signature()
    assert torch.equal(compiled(x), x)
    del f.__signature__
    f.__code__ = (lambda a, b: a).__code__
    assert torch.equal(compiled(x), x + 2)
