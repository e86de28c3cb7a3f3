"""What C code of NumPy and torch reads of an object itself, not of its class, is read at each call."""
import collections

import numpy as np
import pytest

import tenon

X = np.arange(3.0)
BUFFER = np.arange(3.0)


def shown(answer):
    if isinstance(answer, np.ndarray) and answer.dtype == object:
        return "an array of objects"
    return answer if isinstance(answer, (np.ndarray, np.generic, int, float, tuple, str)) else type(answer).__name__


def ask(question, o):
    try:
        return shown(question(o))
    except Exception as error:  # noqa: BLE001  compared
        return type(error).__name__


INTERFACE = ("__array_interface__", lambda: BUFFER.__array_interface__)
ARRAY = ("__array__", lambda: lambda *args, **keywords: BUFFER)
QUESTIONS = [
    np.asarray, np.array, np.copy, np.atleast_1d, np.transpose, np.sum, np.shape, lambda o: np.add(o, 1), lambda o: X + o, lambda o: o + X, lambda o: X == o, lambda o: np.where(X > 1, X, o), lambda o: np.concatenate([X, o]),
    lambda o: np.stack([o, o]), lambda o: np.full_like(X, o),
]


@pytest.mark.parametrize("name, value", [INTERFACE, ARRAY, ("__array_struct__", lambda: BUFFER.__array_struct__)], ids=["interface", "method", "struct"])
@pytest.mark.parametrize("kind", [object, list, tuple, float, dict])
@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_an_object_that_is_an_array_now_and_then(question, kind, name, value, as_plain):
    def scenario(compile):
        class Holder(kind):
            pass

        holder = Holder([1, 2]) if kind in (list, tuple) else Holder()
        fn = compile(lambda o: ask(question, o))
        seen = [fn(holder)]
        setattr(holder, name, value())
        seen.append(fn(holder))
        delattr(holder, name)
        return [*seen, fn(holder)]

    as_plain(scenario)


@pytest.mark.parametrize("name, value, question", [
    ("shape", (4,), lambda o: (np.shape(o), np.ndim(o), np.size(o))), ("ndim", 1, np.ndim), ("size", 4, np.size), ("sum", lambda **_: 5, np.sum), ("mean", lambda **_: 5, np.mean), ("reshape", lambda *_, **__: 5, lambda o: np.reshape(o, 1)),
    ("dtype", np.dtype("f4"), lambda o: np.zeros(2, dtype=o).dtype.str), ("__array_priority__", 99, lambda o: X + o), ("__array_ufunc__", None, lambda o: np.add(X, o)), ("__dlpack__", BUFFER.__dlpack__, np.from_dlpack),
])
def test_an_attribute_that_a_function_asks_for(name, value, question, as_plain):
    def scenario(compile):
        class Duck:
            pass

        class Other:
            pass

        duck, fn = Duck(), compile(lambda o: ask(question, o))
        seen = [fn(duck), fn(Other)]
        for owner in (duck, Duck, Other):
            setattr(owner, name, value)
            seen += [fn(duck), fn(Other)]
        return seen

    as_plain(scenario)


def test_memory_behind_an_interface_is_read_at_each_call(as_plain):
    def scenario(compile):
        class Holder:
            pass

        buffer, holder = np.ones(2), Holder()
        holder.__array_interface__ = buffer.__array_interface__
        fn = compile(lambda o: np.asarray(o) * 2)
        seen = [fn(holder)]
        buffer[:] = 9
        return [*seen, fn(holder)]

    as_plain(scenario)


def test_windows_by_strides_write_into_the_array(as_plain):
    def scenario(compile):
        def write(a):
            windows = np.lib.stride_tricks.as_strided(a, (2, 3), (24, 8))
            windows *= 2
            return a

        fn, read = compile(write), compile(lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (8, 8)).sum())
        a, seen = np.arange(8.0), []
        for _ in range(2):
            seen += [fn(a) is a, a.copy(), read(a)]
            a[:] = 1
        return seen

    as_plain(scenario)


def test_addresses_are_those_of_the_arguments():
    fn = tenon.compile(lambda a: a.__array_interface__["data"][0])
    for _ in range(3):
        a = np.ones(3)
        assert fn(a) == a.__array_interface__["data"][0]


def test_tuples_with_names(as_plain):
    def scenario(compile):
        Pair = collections.namedtuple("Pair", "a b")
        pair, fn = Pair(1, 2), compile(lambda o: (np.sum(o), np.shape(o)))
        seen = [fn(pair)]
        Pair.sum = lambda self, **_: 5
        seen.append(fn(pair))
        Pair.shape = (9,)
        return [*seen, fn(pair)]

    as_plain(scenario)


def test_torch_asks_objects_too(as_plain):
    torch = pytest.importorskip("torch")

    def scenario(compile):
        class Holder:
            pass

        holder = Holder()
        questions = [torch.as_tensor, torch.tensor, lambda o: torch.ones(3) + o, lambda o: torch.add(torch.ones(3), o), torch.from_dlpack]
        fns = [compile(lambda o, question=question: str(ask(lambda o: question(o).numpy(), o))) for question in questions]
        seen = [fn(holder) for fn in fns]
        for name, value in (INTERFACE, ARRAY, ("__dlpack__", lambda: BUFFER.__dlpack__), ("__torch_function__", lambda: lambda *_: torch.zeros(1))):
            setattr(holder, name, value())
            seen += [fn(holder) for fn in fns]
            delattr(holder, name)
        return [*seen, *(fn(holder) for fn in fns)]

    as_plain(scenario)


def test_what_decorators_copy_of_a_function(as_plain):
    def scenario(compile):
        def base(self):
            "first"

        fn = compile(lambda f: (property(f).__doc__, classmethod(f).__doc__, staticmethod(f).__name__))
        seen = [fn(base)]
        base.__doc__, base.__name__ = "second", "other"
        return [*seen, fn(base)]

    as_plain(scenario)
