"""Annotations that are evaluated inside, and questions about what a callable is."""
import functools
import inspect
import typing

import numpy as np

import tenon

T = typing.TypeVar("T")


def same(fn, *argument_lists):
    compiled = tenon.compile(fn, fullgraph=True)
    for arguments in argument_lists * 2:
        assert repr(compiled(*arguments)) == repr(fn(*arguments))


def test_annotations_of_inner_functions():
    def fn(x):
        def inner(
            a: typing.Optional[int],
            b: typing.Callable[[int, T], str] = None,
            c: typing.Union[int, typing.List[typing.Dict[str, typing.Any]]] = 3,
            d: typing.Callable[..., typing.Tuple[int, ...]] = None,
        ) -> typing.Optional[T]:
            return x + a

        return inner(1), typing.List[T][int]

    same(fn, (np.ones(2),))


def test_unions_of_classes():
    def fn(x):
        return isinstance(x, int | str), list[int | None], typing.cast(dict[str, float | np.ndarray], x), int | str == str | int

    same(fn, (1,), ("a",), (2.5,), (3,), (4,))


def test_a_variable_that_is_replaced():
    def fn():
        return typing.List[T]

    global T
    compiled, first = tenon.compile(fn), T
    assert compiled() == typing.List[first]
    T = typing.TypeVar("T")
    try:
        assert compiled() == typing.List[T] != typing.List[first]
    finally:
        T = first


def generator():
    yield 1


class Class:
    def method(self):
        pass


def test_kinds_of_callables():
    def fn(f):
        return inspect.isfunction(f), inspect.isclass(f), inspect.ismethod(f), inspect.isgeneratorfunction(f), inspect.iscoroutinefunction(f), inspect.isbuiltin(f), inspect.isroutine(f)

    compiled = tenon.compile(fn)
    for f in (generator, fn, Class, Class().method, functools.partial(generator), len):
        assert compiled(f) == fn(f) == compiled(f)


def test_a_decorator_for_a_grad_mode():
    import pytest

    torch = pytest.importorskip("torch")

    def fn(x):
        @torch.no_grad()
        def inner(y):
            return y.sin() if not torch.is_grad_enabled() else y

        return inner(x) + 1

    compiled = tenon.compile(fn, fullgraph=True)
    for _ in range(2):
        assert torch.allclose(compiled(torch.ones(2)), torch.ones(2).sin() + 1)
