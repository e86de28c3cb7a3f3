"""Methods of torch's and NumPy's classes and functions of their modules that a program replaces, adds and removes while compiled code is there."""
import contextlib
import functools
import operator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor
MISSING = object()


@contextlib.contextmanager
def patched(owner, name, value):
    before = owner.__dict__.get(name, MISSING)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name) if before is MISSING else setattr(owner, name, before)


def thrice(function):
    @functools.wraps(function)
    def wrapper(*args, **keywords):
        return function(*args, **keywords) * 3

    return wrapper


class Decorated:
    """A decorator that is a class."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords) * 3


def set_item(x):
    y = x * 1
    y[0] = 5.0
    return y


def add_in_place(x):
    y = x * 1
    y += 1
    return y


def ask(fn, x):
    try:
        return fn(x)
    except Exception as error:  # noqa: BLE001  compared
        return type(error).__name__


def times(factor):
    return lambda x, *args, **keywords: x * factor


OF_TENSORS = [
    ("cos", times(50), lambda x: x.cos()), ("cos", times(50), lambda x: torch.cos(x)), ("cos", thrice(Tensor.cos), lambda x: (x + 1).cos()), ("added", times(50), lambda x: x.added() if hasattr(x, "added") else x),
    ("added", property(times(50)), lambda x: getattr(x, "added", 0)), ("added", 7, lambda x: x * getattr(x, "added", 1)), ("shape", property(lambda self: (9,)), lambda x: x * x.shape[0]), ("ndim", property(lambda self: 9), lambda x: x * x.ndim),
    ("dtype", property(lambda self: torch.int8), lambda x: x.dtype is torch.int8), ("data", property(times(50)), lambda x: x.data), ("sum", times(50), lambda x: x.sum()), ("sum", times(50), lambda x: torch.sum(x)), ("item", times(50), lambda x: x.sum().item()),
    ("view", times(50), lambda x: x.view(2, 1)), ("size", lambda self, *_: 5, lambda x: x * x.size(0)), ("norm", thrice(Tensor.norm), lambda x: x.norm()), ("split", lambda self, *_, **__: [self * 0], lambda x: torch.split(x, 1)[0]), ("softmax", times(0), lambda x: F.softmax(x, 0)),
    ("cos", times(50), lambda x: Tensor.cos(x)), ("cos", times(50), lambda x: operator.methodcaller("cos")(x)), ("cos", times(50), lambda x: list(map(Tensor.cos, [x, x]))),
    ("__add__", times(50), lambda x: x + 1), ("__add__", thrice(Tensor.__add__), lambda x: x + 1), ("__radd__", times(50), lambda x: sum([x, x])), ("__iadd__", times(50), add_in_place), ("__rsub__", thrice(Tensor.__rsub__), lambda x: 1 - x), ("__neg__", times(50), lambda x: -x),
    ("__gt__", lambda self, other: True, lambda x: 1 < x), ("__eq__", lambda self, other: True, lambda x: x == 1), ("__getitem__", times(50), lambda x: x[0]), ("__setitem__", lambda self, key, value: None, set_item), ("__len__", lambda self: 7, lambda x: x * len(x)),
    ("__bool__", lambda self: True, lambda x: x + 1 if x.sum() > 100 else x - 1), ("__iter__", lambda self: iter([5]), lambda x: [v * 1 for v in x]), ("__float__", lambda self: 9.0, lambda x: float(x.sum())), ("__contains__", lambda self, item: True, lambda x: 50 in x),
    ("__getattr__", lambda self, name: 5, lambda x: getattr(x, "missing", 0)), ("__torch_function__", classmethod(lambda *_: 5), lambda x: x + 1), ("__format__", lambda self, how: "text", lambda x: f"{x}"),
    ("__format__", lambda self, how: "text", lambda x: f"{x[0]:.2f}"), ("__format__", lambda self, how: "text", lambda x: format(x.sum())), ("item", lambda self: 9.0, lambda x: f"{x.sum():.1f}"), ("dim", lambda self: 5, lambda x: "{}".format(x[1])),
]
OF_PARAMETERS = [case for case in OF_TENSORS if case[0] in ("added", "cos", "shape", "__add__", "__len__", "__getitem__", "__getattr__", "data") and not hasattr(case[1], "__wrapped__")]


def run(owner, name, value, use, make):
    def scenario(compile):
        x, fn = make(), compile(use)
        seen = [ask(fn, x)]
        with patched(owner, name, value):
            seen += [ask(fn, x), ask(fn, x)]
        seen.append(ask(fn, x))
        with patched(owner, name, value):
            later = compile(lambda y: use(y))
            seen.append(ask(later, x))
        return [*seen, ask(later, x)]

    return scenario


@pytest.mark.parametrize("name, value, use", OF_TENSORS)
def test_an_attribute_of_tensors(name, value, use, as_plain):
    as_plain(run(Tensor, name, value, use, lambda: torch.tensor([1.0, 2.0])))


@pytest.mark.parametrize("owner", [Tensor, nn.Parameter])
@pytest.mark.parametrize("name, value, use", OF_PARAMETERS)
def test_an_attribute_of_parameters(owner, name, value, use, as_plain):
    as_plain(run(owner, name, value, use, lambda: nn.Parameter(torch.ones(2), requires_grad=False)))


@pytest.mark.parametrize("owner, name, value, use", [
    (torch, "relu", times(50), torch.nn.functional.relu), (torch, "relu", thrice(torch.relu), lambda x: torch.relu(x)), (torch, "relu", Decorated(torch.relu), lambda x: torch.relu(x)), (F, "relu", thrice(F.relu), nn.ReLU()), (F, "relu", Decorated(F.relu), nn.ReLU()),
    (F, "softmax", thrice(F.softmax), lambda x: F.softmax(x, 0)), (torch, "layer_norm", times(50), lambda x: F.layer_norm(x, (2,))), (F, "layer_norm", times(50), nn.LayerNorm(2)), (torch, "added", times(50), lambda x: getattr(torch, "added", torch.cos)(x)),
    (torch, "einsum", thrice(torch.einsum), lambda x: torch.einsum("i,i->i", x, x)), (torch, "zeros", lambda *_: torch.ones(2), lambda x: x + torch.zeros(2)), (torch.linalg, "norm", times(50), lambda x: torch.linalg.norm(x)),
])
def test_a_function_of_torch(owner, name, value, use, as_plain):
    as_plain(run(owner, name, value, use, lambda: torch.tensor([1.0, 2.0])))


@pytest.mark.parametrize("name", ["sin", "sum", "mean", "where", "full", "ones", "added"])
@pytest.mark.parametrize("wrap", [thrice, Decorated, lambda function: times(50)])
def test_a_function_of_numpy(name, wrap, as_plain):
    uses = {"where": lambda x: np.where(x > 1, x, x * 2), "full": lambda x: x + np.full(2, 1.0), "ones": lambda x: x + np.ones(2), "added": lambda x: getattr(np, "added", np.cos)(x)}
    use = uses.get(name, lambda x: getattr(np, name)(x))
    as_plain(run(np, name, wrap(getattr(np, name, np.tan)), use, lambda: np.array([1.0, 2.0])))


class Array(np.ndarray):
    def twice(self):
        return self * 2


@pytest.mark.parametrize("name, value, use", [
    ("twice", times(50), lambda x: np.asarray(x.twice())), ("added", times(50), lambda x: getattr(x, "added", lambda: 0)()), ("sum", lambda self: 50, lambda x: x.sum()), ("__add__", lambda self, other: 50, lambda x: x + 1),
    ("__array_ufunc__", lambda self, *_, **__: 50, lambda x: x + 1), ("__getitem__", lambda self, key: 50, lambda x: x[0]), ("shape", property(lambda self: (7,)), lambda x: x.shape),
])
def test_an_attribute_of_a_class_of_arrays(name, value, use, as_plain):
    def scenario(compile):
        return [np.asarray(each) for each in run(Array, name, value, use, lambda: np.array([1.0, 2.0]).view(Array))(compile)]

    as_plain(scenario)


def test_what_a_patch_reads_is_guarded(as_plain):
    def scenario(compile):
        setting, x = [1], torch.ones(1)
        with patched(Tensor, "scaled", lambda self: self * setting[0]), patched(Tensor, "doubled", property(lambda self: self * 2 + setting[0])):
            fn = compile(lambda x: (x.scaled(), x.doubled))
            seen = [fn(x)]
            setting[0] = 5
            return [*seen, fn(x)]

    as_plain(scenario)


def test_a_patch_made_and_taken_back_in_the_call(as_plain):
    def scenario(compile):
        def use(x):
            Tensor.cos = lambda self: self * 3
            try:
                return x.cos()
            finally:
                del Tensor.cos

        fn, x = compile(use), torch.ones(1)
        return [fn(x), fn(x), x.cos()]

    as_plain(scenario)
