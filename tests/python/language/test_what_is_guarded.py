"""Programs whose second way through a continuation must not take what the first one found: numbers, keys, parts of classes."""
import collections
import enum
import functools
import itertools
import operator
import types
import warnings

import numpy as np
import pytest

import tenon


def test_variables_of_the_same_name_in_a_recursion_are_not_one_number():
    def numbers(count):
        memo = {}

        def fibonacci(n):
            tenon.graph_break()
            if n in memo:
                return memo[n]
            memo[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
            return memo[n]

        return [fibonacci(n) for n in range(count)], memo

    assert tenon.compile(numbers)(10) == numbers(10)


def test_keys_made_of_numbers_that_vary():
    def looked_up(memo, n):
        key = ("n", n)
        found = key in memo
        memo[key] = n * 2
        return found, sorted(memo.items())

    compiled = tenon.compile(looked_up)
    mine, plain = {}, {}
    for n in (5, 6, 7, 6, 8, 5):
        assert compiled(mine, n) == looked_up(plain, n)
    assert mine == plain and all(type(key[1]) is int for key in mine)


@pytest.mark.parametrize("make", [lambda: lambda x: x, lambda: [].append, lambda: (lambda x: x, 1), object], ids=["function", "bound", "in_a_tuple", "object"])
@pytest.mark.parametrize(
    "look",
    [
        lambda known, key: known.get(key, "none"),
        lambda known, key: key in known,
        lambda known, key: {**known}.pop(key, "none"),
        lambda known, key: {key: 5}.get(next(iter(known)), "none"),
    ],
    ids=["get", "in", "pop", "built"],
)
def test_keys_that_are_found_by_their_address(make, look):
    compiled = tenon.compile(look)
    first = [make(), make()]
    for _ in range(3):
        keys = [make(), make()]
        known, before = {key: at for at, key in enumerate(keys)}, {key: at for at, key in enumerate(first)}
        for held, key in ((known, keys[0]), (known, keys[1]), (before, keys[1]), (before, first[0]), (known, first[1])):
            assert compiled(held, key) == look(held, key)


class Plain:
    pass


@pytest.mark.parametrize("make", [Plain, ValueError, lambda: lambda x: x, lambda: [].append, lambda: Plain().__class__.__init__.__get__(Plain())], ids=["object", "exception", "function", "bound", "wrapper"])
@pytest.mark.parametrize(
    "compare",
    [
        lambda a, b, items: a in items,
        lambda a, b, items: items.index(a) if a in items else -1,
        lambda a, b, items: items.count(a),
        lambda a, b, items: ((a, 1) == (b, 1), [[a]] == [[b]], {1: a} == {1: b}),
        lambda a, b, items: frozenset([a]) == frozenset([b]),
        lambda a, b, items: (len(set(items)), len(dict.fromkeys([a, b])), len(dict([(a, 1), (b, 2)])), len({1}.union([a, b]))),
        lambda a, b, items: len(list(itertools.groupby([a, b]))),
        lambda a, b, items: (operator.is_(a, b), list(map(operator.is_not, items, items[1:]))),
        lambda a, b, items: a in collections.deque(items),
        lambda a, b, items: a in dict(enumerate(items)).values(),
    ],
    ids=["in", "index", "count", "equal", "sets", "keys", "groups", "is_", "deque", "values"],
)
def test_objects_that_are_compared_by_their_address(make, compare):
    compiled = tenon.compile(compare)
    before = make()
    for _ in range(2):
        x, y = make(), make()
        for a, b, items in ((x, x, [x, y]), (x, y, [y, y]), (y, x, [x, y]), (x, before, [before, y]), (before, before, [x, y]), (x, x, [x, x])):
            assert compiled(a, b, items) == compare(a, b, items)


def test_functions_made_in_a_call_find_themselves_behind_breaks():
    def followed():
        def first(): ...
        def second(): ...
        def third(): ...

        after, names = {first: second, second: third, third: None}, []
        step = first
        while step is not None and len(names) < 5:
            tenon.graph_break()
            names.append(step.__name__)
            step = after[step]
        return names

    assert [tenon.compile(followed)() for _ in range(2)] == [followed()] * 2


def test_a_submodule_imported_from_its_package(tmp_path, monkeypatch):
    package = tmp_path / "package_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    import package_of_test  # noqa: F401

    def imports():
        from package_of_test import part

        return part.value

    compiled = tenon.compile(imports)
    assert [compiled(), compiled()] == [3, 3]


def test_a_cached_function_that_writes_runs_once():
    def calls(seen):
        @functools.lru_cache
        def cached(n):
            seen.append(n)
            return n

        seen.append("first")
        return [cached(1), cached(1), cached(2)], seen

    assert tenon.compile(calls)([]) == calls([])


def test_an_object_that_a_cache_keeps_is_the_same_at_each_call():
    class Recipe:
        def __init__(self, pattern):
            self.axes = pattern.split()

    @functools.lru_cache
    def recipe(pattern, names=()):
        return Recipe(pattern)

    def reads(x, pattern):
        found = recipe(pattern, names=tuple({"b": 2}))
        return x * len(found.axes), found

    compiled, x = tenon.compile(reads, fullgraph=True), np.ones(3)
    results = [compiled(x, "a b") for _ in range(3)] + [compiled(x, "a b c")]
    assert [value[0] for value, _ in results] == [2, 2, 2, 3]
    assert all(found is recipe("a b", names=("b",)) for _, found in results[:3])
    recipe("a b", names=("b",)).axes.append("more")
    assert compiled(x, "a b")[0][0] == 3


def test_what_a_cache_keeps_is_not_computed_twice():
    @functools.lru_cache
    def table(n):
        return {"noise": np.arange(n) * 2.0}

    @functools.lru_cache
    def pair(n):
        return np.arange(n) * 2.0, n

    def reads(x):
        return x + table(3)["noise"] + pair(3)[0], table(3), pair(3)[0]

    compiled, x = tenon.compile(reads), np.ones(3)
    (first, *kept), (second, *again) = compiled(x), compiled(x)
    assert kept[0] is again[0] is table(3) and kept[1] is again[1] is pair(3)[0]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, [1, 5, 9])


def test_an_enumeration_is_found_by_its_member():
    class Mode(str, enum.Enum):
        fast = "fast"

    def finds(x, name):
        return x * len(Mode(Mode(name)).value)

    assert tenon.compile(finds, fullgraph=True)(np.ones(2), "fast")[0] == 4


def test_what_a_class_holds_is_older_than_the_call():
    def annotated():
        class Local:
            __annotations__ = {"a": [1], "b": [2]}

        seen = []
        for name, value in Local.__dict__.get("__annotations__").items():
            tenon.graph_break()
            seen.append((name, value is Local.__annotations__[name], value))
        return seen

    compiled = tenon.compile(annotated)
    assert [compiled(), compiled()] == [annotated(), annotated()]


def test_dataclasses_and_patterns_made_in_a_call():
    def made():
        import dataclasses
        import re
        import typing

        @dataclasses.dataclass
        class Local:
            x: int
            shared: typing.ClassVar[int] = 1000
            _: dataclasses.KW_ONLY
            y: int = 2

        re.purge()
        return [field.name for field in dataclasses.fields(Local)], repr(Local(1, y=3)), re.compile("^ *x{2}[ab]\n").pattern

    compiled = tenon.compile(made)
    assert [compiled(), compiled()] == [made(), made()]


def test_hashes_that_vary_are_no_symbols():
    class Key(list):
        def __init__(self, items):
            self[:] = items
            self.value = hash(items)

        def __hash__(self):
            return self.value

    def numbers(count):
        memo = {}

        def fibonacci(n):
            key = Key(("n", n))
            tenon.graph_break()
            found = memo.get(key)
            if found is None:
                tenon.graph_break()
                found = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
                tenon.graph_break()
                memo[key] = found
            return found

        return [fibonacci(n) for n in range(count)]

    assert tenon.compile(numbers)(12) == numbers(12)


def test_objects_of_classes_of_c_code_are_made_for_real():
    def ordered():
        key = functools.cmp_to_key(lambda a, b: b - a)
        tenon.graph_break()
        return sorted([1, 3, 2], key=key)

    compiled = tenon.compile(ordered)
    assert [compiled(), compiled()] == [[3, 2, 1]] * 2


def test_relative_imports(tmp_path, monkeypatch):
    inner = tmp_path / "relative_of_test" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "relative_of_test" / "__init__.py").write_text("")
    (tmp_path / "relative_of_test" / "part.py").write_text("value = 3\n")
    (inner / "__init__.py").write_text("")
    (inner / "near.py").write_text("value = 4\n")
    (inner / "asks.py").write_text(
        "def asks():\n    from . import near\n    from .near import value as one\n    from ..part import value as two\n    return near.value, one, two\n"
        "def asks_beyond():\n    from ....part import value\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import relative_of_test.inner.asks as module
    import relative_of_test.inner.near as near
    import relative_of_test.part  # noqa: F401

    compiled = tenon.compile(module.asks, fullgraph=True)
    assert [compiled(), compiled()] == [(4, 4, 3)] * 2
    near.value = 5
    assert compiled() == (5, 5, 3)
    with pytest.raises(ImportError, match="beyond top-level package"):
        tenon.compile(module.asks_beyond)()


def test_addresses_of_what_stays():
    class Holder:
        pass

    holder = Holder()
    holder.part = Holder()

    def fn():
        seen = {id(holder): 1, id(holder.part): 2}
        return seen[id(holder)], id(holder), id(holder.part), id(Holder)

    compiled = tenon.compile(fn, fullgraph=True)
    assert compiled() == fn() == compiled()
    before = holder.part
    holder.part = Holder()
    assert compiled() == fn() and id(before) not in compiled()


def test_modules_that_warn_of_their_attributes():
    module = types.ModuleType("warns_of_old_names")
    exec("import warnings\ndef __getattr__(name):\n    if name == 'old': warnings.warn('is old', DeprecationWarning)\n    return len(name)", module.__dict__)

    def run():
        return module.old, module.other

    compiled = tenon.compile(run)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert compiled() == (3, 5)
        assert [str(each.message) for each in seen] == ["is old"]
