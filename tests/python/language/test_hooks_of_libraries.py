"""Objects of the program's own classes that torch and NumPy ask for a value, or leave the work to: at every call, once each."""
import decimal
import fractions
import functools
import itertools
import math

import numpy as np
import pytest

import tenon

ASKED = []


class TakesArrayFunctions:
    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        ASKED.append(ufunc.__name__)
        return len(ASKED)

    def __array_function__(self, function, types, args, kwargs):
        ASKED.append(function.__name__)
        return len(ASKED)


class GivesArray:
    def __array__(self, dtype=None, copy=None):
        ASKED.append("array")
        return np.full(3, float(len(ASKED)))


class HasInterface:
    @property
    def __array_interface__(self):
        ASKED.append("interface")
        return np.arange(3.0).__array_interface__


class IsSequence:
    def __len__(self):
        ASKED.append("len")
        return 2

    def __getitem__(self, place):
        ASKED.append("item")
        if place > 1:
            raise IndexError(place)
        return float(place)


class GivesFloat:
    def __float__(self):
        ASKED.append("float")
        return 1.5


def same_as_plain(fn, value):
    compiled = tenon.compile(fn)
    ASKED.clear()
    want, asked = fn(value), list(ASKED)
    assert asked
    for _ in range(3):
        ASKED.clear()
        np.testing.assert_equal(compiled(value), want)
        assert ASKED == asked


X = np.ones(3)


@pytest.mark.parametrize(
    "fn, kind",
    [
        (lambda a: np.add(a, 1), TakesArrayFunctions),
        (lambda a: X + a, TakesArrayFunctions),
        (lambda a: np.concatenate([a, a]), TakesArrayFunctions),
        (lambda a: np.sum(a) + np.mean(a), TakesArrayFunctions),
        (lambda a: np.add(a, 1), GivesArray),
        (lambda a: X.dot(a), GivesArray),
        (lambda a: np.asarray(a) * 2, GivesArray),
        (lambda a: np.stack([a, X]), GivesArray),
        (lambda a: np.asarray(a) * 2, HasInterface),
        (lambda a: np.sum(a), IsSequence),
        (lambda a: np.array(a) + np.array([a]), IsSequence),
        (lambda a: np.sqrt(np.float64(a)), GivesFloat),
    ],
)
def test_numpy(fn, kind):
    same_as_plain(fn, kind())


def as_class_method():
    class Overriding:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            ASKED.append(function.__name__)
            return len(ASKED)

    return Overriding()


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, a: torch.relu(a),
        lambda torch, a: torch.nn.functional.gelu(a),
        lambda torch, a: torch.split(a, 1),
        lambda torch, a: torch.ops.aten.relu(a),
        lambda torch, a: torch.ones(3) + a,
        lambda torch, a: torch.cat([torch.ones(3), a]),
        lambda torch, a: torch.ones(3)[a],
        lambda torch, a: torch.ones(3).mul_(a),
    ],
)
def test_torch(call):
    torch = pytest.importorskip("torch")
    same_as_plain(lambda a: call(torch, a), as_class_method())


def test_fx_records_every_call():
    torch = pytest.importorskip("torch")

    def trace():
        graph = torch.fx.Graph()
        x = torch.fx.Proxy(graph.placeholder("x"))
        graph.output((torch.relu(x) + torch.neg(x)).node)
        graph.lint()
        return [str(node) for node in graph.nodes]

    compiled = tenon.compile(trace)
    for _ in range(3):
        assert compiled() == trace()


class AddsItself:
    def __radd__(self, other):
        ASKED.append("radd")
        return 7


class Equal:
    def __eq__(self, other):
        ASKED.append("eq")
        return True

    def __hash__(self):
        return 1


@pytest.mark.parametrize(
    "fn, kind",
    [
        (lambda a: math.prod(a), IsSequence),
        (lambda a: list(itertools.chain(a, [1])), IsSequence),
        (lambda a: list(itertools.accumulate(a)), IsSequence),
        (lambda a: functools.reduce(lambda x, y: x + y, a), IsSequence),
        (lambda a: list(reversed(a)), IsSequence),
        (lambda a: list(a), IsSequence),
        (lambda a: [1, 2].index(a), Equal),
        (lambda a: [1, 2].count(a), Equal),
        (lambda a: a in [1, 2], Equal),
        (lambda a: X + a, AddsItself),
        (lambda a: X == a, Equal),
    ],
)
def test_builtins_and_operators(fn, kind):
    same_as_plain(fn, kind())


@pytest.mark.parametrize("other", [object(), int, ..., {}, {1}, b"a", np.dtype("float64"), None, "a", decimal.Decimal(2), fractions.Fraction(1, 2)], ids=lambda other: type(other).__name__)
def test_an_array_beside_any_object(other):
    compiled = tenon.compile(lambda a: (X == a, a != X))
    for _ in range(2):
        np.testing.assert_equal(compiled(other), (X == other, other != X))


ITEMS = [2.0, 3.0]


def test_products_of_older_lists():
    compiled = tenon.compile(lambda: (math.prod(ITEMS), math.prod(ITEMS, start=2)))
    assert compiled() == (6, 12)
    ITEMS.append(4.0)
    assert compiled() == (24, 48)


class Iterates:
    def __iter__(self):
        print(end="")  # breaks the graph
        return iter([1.0, 2.0])


def test_a_builtin_that_calls_back_is_compiled_itself():
    with pytest.raises(TypeError, match="must be real number, not Iterates"):
        tenon.compile(math.sqrt)(Iterates())
    assert tenon.compile(sorted)(Iterates()) == [1, 2]
