"""Classes that are given, or lose, a method after a function that asks them was compiled: every later call answers as plain Python does."""
import abc
import collections.abc
import functools
import math
import operator
import types
import typing

import pytest


def ask(question, o):
    try:
        return question(o)
    except Exception as error:  # noqa: BLE001  compared
        return type(error).__name__


def in_place(o):
    o += 1
    return o


def set_item(o):
    o[1] = 2
    return "set"


def entered(o):
    with o as value:
        return value


def text(o):
    return "an address" if "object at" in str(o) else str(o)


class Gives:
    """A descriptor that gives a function when it is bound."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner):
        return lambda *_: self.value


QUESTIONS = [
    ("__call__", callable, [lambda self: 1]),
    ("__call__", lambda o: o(), [lambda self: 1, Gives(2), staticmethod(lambda: 3), classmethod(lambda cls: 4)]),
    ("__length_hint__", lambda o: operator.length_hint(o, 0), [lambda self: 9]),
    ("__len__", lambda o: operator.length_hint(o, 0), [lambda self: 9]),
    ("__len__", len, [lambda self: 3, Gives(4), staticmethod(lambda: 5), functools.partial(lambda: 6)]),
    ("__len__", bool, [lambda self: 0]),
    ("__bool__", lambda o: not o, [lambda self: False, Gives(False)]),
    ("__iter__", list, [lambda self: iter([1, 2])]),
    ("__iter__", lambda o: 2 in o, [lambda self: iter([1, 2])]),
    ("__iter__", lambda o: [*o], [lambda self: iter([1, 2])]),
    ("__iter__", sum, [lambda self: iter([1, 2])]),
    ("__contains__", lambda o: 2 in o, [lambda self, item: item == 2, None]),
    ("__getitem__", lambda o: o[1], [lambda self, key: key, Gives(5)]),
    ("__setitem__", set_item, [lambda self, key, value: None]),
    ("__eq__", lambda o: o == 3, [lambda self, other: other == 3]),
    ("__eq__", lambda o: o in [1, 3], [lambda self, other: other == 3]),
    ("__lt__", lambda o: 3 > o, [lambda self, other: True]),
    ("__add__", in_place, [lambda self, other: 2, lambda self, other: NotImplemented]),
    ("__radd__", lambda o: 1 + o, [lambda self, other: 2]),
    ("__rdivmod__", lambda o: divmod(1, o), [lambda self, other: 2]),
    ("__neg__", lambda o: -o, [lambda self: 2]),
    ("__hash__", lambda o: {5: "found"}.get(o), [lambda self: 5, None]),
    ("__str__", text, [lambda self: "text"]),
    ("__format__", lambda o: f"{o:>9}"[:3], [lambda self, how: "formatted"]),
    ("__int__", int, [lambda self: 3]),
    ("__index__", lambda o: [1, 2, 3][o], [lambda self: 1]),
    ("__complex__", complex, [lambda self: 3j]),
    ("__float__", math.sqrt, [lambda self: 4.0]),
    ("__round__", round, [lambda self: 3]),
    ("__reversed__", lambda o: list(reversed(o)), [lambda self: iter([3])]),
    ("__enter__", entered, [lambda self: 3]),
    ("__getattr__", lambda o: getattr(o, "missing", 0), [lambda self, name: name]),
    ("__getattribute__", lambda o: (getattr(o, "missing", 0), hasattr(o, "there")), [lambda self, name: name]),
    ("there", lambda o: o.there, [5, property(lambda self: 6)]),
    ("keys", dict, [lambda self: []]),
]


@pytest.mark.parametrize("name, question, values", QUESTIONS)
def test_a_method_of_a_class_or_of_its_base(name, question, values, as_plain):
    def scenario(compile):
        class Base:
            pass

        class Asked(Base):
            pass

        fn, o = compile(lambda o: ask(question, o)), Asked()
        seen = [fn(o)]
        for owner in (Base, Asked):
            for value in values:
                setattr(owner, name, value)
                seen.append(fn(o))
            delattr(owner, name)
            seen.append(fn(o))
        return [answer if not isinstance(answer, Asked) else "itself" for answer in seen]

    as_plain(scenario)


OF_METACLASSES = [
    ("__len__", len, [lambda cls: 3]),
    ("__bool__", bool, [lambda cls: False]),
    ("__iter__", list, [lambda cls: iter([1])]),
    ("__call__", lambda c: c() == 5, [lambda cls: 5]),
    ("__repr__", lambda c: str(c) == "shown", [lambda cls: "shown"]),
    ("__contains__", lambda c: 3 in c, [lambda cls, item: True]),
    ("__getattr__", lambda c: getattr(c, "missing", 0), [lambda cls, name: name]),
    ("__getattribute__", lambda c: getattr(c, "missing", 0), [lambda cls, name: name]),
    ("there", lambda c: getattr(c, "there", 0), [5, property(lambda cls: 6)]),
    ("__instancecheck__", lambda c: isinstance(3, c), [lambda cls, o: True, classmethod(lambda cls, o: True), staticmethod(lambda o: True), Gives(True)]),
    ("__subclasscheck__", lambda c: issubclass(int, c), [lambda cls, o: True, classmethod(lambda cls, o: True), staticmethod(lambda o: True), Gives(True)]),
]


@pytest.mark.parametrize("name, question, values", OF_METACLASSES)
def test_a_method_of_a_metaclass(name, question, values, as_plain):
    def scenario(compile):
        class Meta(type):
            pass

        class Asked(metaclass=Meta):
            pass

        fn = compile(lambda c: ask(question, c))
        seen = [fn(Asked)]
        for value in values:
            setattr(Meta, name, value)
            seen.append(fn(Asked))
        delattr(Meta, name)
        return [*seen, fn(Asked)]

    as_plain(scenario)


def test_a_protocol_finds_members_that_come_and_go(as_plain):
    def scenario(compile):
        @typing.runtime_checkable
        class Quacks(typing.Protocol):
            def quack(self): ...

        @typing.runtime_checkable
        class Named(typing.Protocol):
            name: str

        class Bird:
            pass

        class Duck(Bird):
            pass

        duck, fn = Duck(), compile(lambda o: (isinstance(o, Quacks), isinstance(o, Named)))
        seen = [fn(duck)]
        Bird.quack = lambda self: 1
        seen.append(fn(duck))
        Duck.quack = None
        seen.append(fn(duck))
        del Duck.quack, Bird.quack
        duck.name = duck.quack = "d"
        seen.append(fn(duck))
        del duck.name, duck.quack
        seen.append(fn(duck))
        Duck.__getattr__ = lambda self, name: len
        return [*seen, fn(duck)]

    as_plain(scenario)


def test_bases_that_are_changed(as_plain):
    def scenario(compile):
        class One:
            tag = 1

            def value(self):
                return 1

        class Two:
            tag = 2

            def value(self):
                return 2

        class Mixin:
            pass

        class Middle(One, Mixin):
            pass

        class Derived(Middle):
            def value(self):
                return super().value(), getattr(super(), "extra", 0)

        o, fn = Derived(), compile(lambda o: (o.value(), o.tag, isinstance(o, Two), issubclass(type(o), One), [c.__name__ for c in type(o).__mro__], type(o).__bases__[0].__name__))
        seen = [fn(o)]
        Mixin.extra = 5
        seen.append(fn(o))
        Middle.value = lambda self: 7
        seen.append(fn(o))
        del Middle.value
        seen.append(fn(o))
        Derived.__bases__ = (Two,)
        return [*seen, fn(o)]

    as_plain(scenario)


def test_classes_assigned_to_objects_classes_and_modules(as_plain):
    def scenario(compile):
        class Meta(type):
            def __len__(cls):
                return 1

        class Other(type):
            def __len__(cls):
                return 2

        class A(metaclass=Meta):
            size = 3

        class B(metaclass=Meta):
            size = 4

        class Module(types.ModuleType):
            @property
            def lazy(self):
                return 5

        a, module = A(), types.ModuleType("m")
        fn = compile(lambda: (a.size, type(a) is A, len(A), getattr(module, "lazy", 0)))
        seen = [fn()]
        a.__class__ = B
        seen.append(fn())
        A.__class__ = Other
        seen.append(fn())
        module.__getattr__ = lambda name: 6
        seen.append(fn())
        module.__class__ = Module
        return [*seen, fn()]

    as_plain(scenario)


def test_names_and_documents_of_a_class(as_plain):
    def scenario(compile):
        class Named:
            """First."""

        fn = compile(lambda c: (c.__name__, c.__qualname__[-5:], c.__doc__, c.__module__))
        seen = [fn(Named)]
        Named.__name__, Named.__qualname__, Named.__doc__, Named.__module__ = "Other", "x.Other", "Second.", "elsewhere"
        return [*seen, fn(Named)]

    as_plain(scenario)


def test_a_descriptor_that_becomes_one_of_data(as_plain):
    def scenario(compile):
        class Descriptor:
            def __get__(self, instance, owner):
                return 9

        class Owner:
            value = Descriptor()

        o, fn = Owner(), compile(lambda o: o.value)
        o.__dict__["value"] = 1
        seen = [fn(o)]
        Descriptor.__set__ = lambda self, instance, value: None
        return [*seen, fn(o)]

    as_plain(scenario)


def test_functions_chosen_by_class_see_later_registrations(as_plain):
    def scenario(compile):
        class Shape(abc.ABC):
            pass

        class Square:
            pass

        chosen = functools.singledispatch(lambda o: "any")
        chosen.register(Shape, lambda o: "shape")
        fn = compile(lambda o: (chosen(o), isinstance(o, Shape), isinstance(o, collections.abc.Sized)))
        seen = [fn(Square())]
        Shape.register(Square)
        seen.append(fn(Square()))
        chosen.register(Square, lambda o: "square")
        return [*seen, fn(Square())]

    as_plain(scenario)


def test_a_class_that_becomes_abstract(as_plain):
    def scenario(compile):
        class Made(abc.ABC):
            def value(self):
                return 1

        fn = compile(lambda c: ask(lambda c: c().value(), c))
        seen = [fn(Made)]
        Made.__abstractmethods__ = frozenset(["value"])
        return [*seen, fn(Made)]

    as_plain(scenario)
