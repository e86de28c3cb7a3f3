"""Texts made of numbers that vary, or that the graph computes, and texts that vary themselves: made when the graph has run."""

import io
import logging
import re

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.arange(60.0).reshape(20, 3)
SIZES = range(2, 14)


def outcome(fn, *args):
    try:
        return repr(fn(*args))
    except Exception as error:
        return type(error), str(error)


def check(fn, arguments, captures, breaks=0):
    tenon.reset()
    compiled = tenon.compile(fn)
    for args in arguments:
        assert outcome(compiled, *args) == outcome(fn, *args)
    stats = tenon.stats()
    assert stats["recompiles"] < captures and stats["graph_breaks"] <= breaks and stats["eager_fallbacks"] == 0, stats


LATE = {
    "f-string": lambda n: f"{n} {n:>5}|{n:05d}|{n:x}|{n!r}|{n!s:>4} {-n} {n - 100} {n % 3} {n * n}",
    "float": lambda n: f"{n / 3:.3f} {n * 0.5}",
    "nested": lambda n: f"{f'{n}a':>10}" + "b" + str(n),
    "percent": lambda n: "%d %s %5.2f" % (n, n, n / 2),
    "format": lambda n: "{} {:>4}".format(n, n + 1),
    "join": lambda n: "-".join(["a", str(n), "b"]) + repr(n),
    "type": lambda n: (isinstance(str(n), str), type(f"{n}"), isinstance(str(n), int)),
    "containers": lambda n: (str(n), [f"{n}"], {"a": f"{n}"}),
    "items of containers": lambda n: f"{[n, 'a', 2]} {[n]!r} {(n,)} {({'k': (n, [])}, n)} " + str([n, None]) + repr({"n": [n / 2], 3: "'"}) + str({}),
    "a list that changes": lambda n: ((a := [n, 1]), str(a), a.append(n), f"{a}")[1:],
    "a list that holds itself": lambda n: ((a := [n, 1]), a.append(a), str(a[:2]))[2],
    "size": lambda n: f"{X[:n].shape} {X[:n].size()} {X.dtype}" + "%s" % (X[:n].shape,),
    "bad specification": lambda n: f"{n:zz}",
    "too few": lambda n: "%d %d" % n,
    "added to an int": lambda n: str(n) + n,
}


@pytest.mark.parametrize("fn", LATE.values(), ids=LATE.keys())
def test_a_text_of_numbers_that_vary_is_made_at_the_end(fn):
    check(fn, [(n,) for n in SIZES], 3)
    check(lambda n, x: (fn(n), x * n), [(n, X) for n in SIZES], 3)


TABLE = {"n=3": 1}


class Named:
    a3 = 5


# What needs the text itself takes the numbers as constants.
NEEDED = {
    "character": lambda n: f"{n:c}%c" % n,
    "equality": lambda n: (str(n) == "3", "3" != f"{n}", str(n) < "5", (str(n),) == ("3",)),
    "membership": lambda n: ("3" in f"{n}", f"{n}" in "12345", str(n) in ["3", "4"], f"n={n}" in TABLE, TABLE.get(f"n={n}", "no")),
    "parts": lambda n: (len(str(n)), str(n)[0], f"abc{n}"[1:], [c for c in str(n)], [*f"{n}"]),
    "methods": lambda n: (f"a{n}".upper(), "a3b".startswith("a" + str(n)), "a3".replace("3", str(n)), str(n).encode(), str.isdigit(str(n))),
    "truth": lambda n: (bool(str(n)), not str(n), 1 if f"{n}" else 2),
    "numbers": lambda n: (int(str(n)) + 1, float(str(n)), ord(str(n)[0])),
    "keys": lambda n: ({str(n)}, {f"k{n}": 1}, dict.fromkeys([str(n)]), frozenset((str(n),))),
    "order": lambda n: (sorted([str(n), "2"]), max(str(n), "2"), [str(n)].count("3"), ["3", str(n)].index("3")),
    "names": lambda n: (getattr(Named, "a" + str(n), None), hasattr(Named, "a" + str(n))),
    "expressions": lambda n: (re.match(r"a(\d)", f"a{n}").group(1), re.sub("a", str(n), "banana")),
    "repeated": lambda n: str(n) * 2,
}


@pytest.mark.parametrize("fn", NEEDED.values(), ids=NEEDED.keys())
def test_a_text_that_is_read_is_known(fn):
    check(fn, [(n,) for n in (3, 4, 5, 7, 3, 9)], 8)


def test_a_text_of_what_the_graph_computes_breaks_nothing():
    check(lambda x: (x * 2, f"loss {x.sum().item():.3f} max {x.max().item()} n {x.shape[0]} {x[0].long()[0].item():d}"), [(X[:n],) for n in SIZES], 3)
    check(lambda x: (x * 2, f"{(x / 0).max().item():.2f}"), [(X[1:n],) for n in SIZES], 4)
    check(lambda x: (x * 2, f"{x.sum().item():.1f}" == "15.0"), [(X[:n],) for n in SIZES], 5, breaks=2)


def test_texts_that_vary():
    check(lambda x, name: (x * 2, f"{name}_{x.shape[0]}", name + "!", "%s" % name), [(X[:n], f"a{n}") for n in SIZES], 3)
    check(lambda x, mode: x * 2 if mode == "twice" else x - 1, [(X, mode) for mode in ("twice", "once", "twice", "other", "once")], 4)
    check(lambda mode, x: torch.nn.functional.interpolate(x[None, None], scale_factor=2, mode=mode), [(mode, X) for mode in ("nearest", "bilinear", "area", "nearest")], 4)

    def with_breaks(x):
        text = f"{x.shape[0]}"
        tenon.graph_break()
        y, more = x * 2, text + "!"
        tenon.graph_break()
        return y, text, more

    check(with_breaks, [(X[:n],) for n in SIZES], 5, breaks=4)


def test_texts_that_objects_keep():
    class Model:
        def __init__(self):
            self.log, self.last = [], ""

        def __call__(self, x):
            self.last = f"{x.shape[0]} {x.sum().item():.1f}"
            self.log.append(self.last)
            return x * 2

    plain, model = Model(), Model()
    tenon.reset()
    compiled = tenon.compile(model)
    for n in SIZES:
        compiled(X[:n])
        plain(X[:n])
    assert model.log == plain.log and model.last == plain.last
    assert tenon.stats()["recompiles"] == 1 and tenon.stats()["graph_breaks"] == 0


def test_logging_of_numbers_that_vary():
    stream, log = io.StringIO(), logging.getLogger("tenon.test_texts")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        for write in (lambda x: log.info(f"batch of {x.shape[0]}"), lambda x: log.info("%d", x.shape[0]), lambda x: print("n", f"{x.sum().item():.1f}", file=stream)):

            def step(x, write=write):
                y = x * 2
                write(x)
                return y + 1

            check(step, [(X[:n],) for n in SIZES], 4, breaks=3)
            stream.seek(0)
            lines = stream.read().split("\n")[:-1]
            assert lines[0::2] == lines[1::2] and len(lines) == 2 * len(SIZES)
            stream.seek(0)
            stream.truncate()
    finally:
        log.removeHandler(handler)


class Counted:
    """Its texts are made of a number that varies."""

    def __init__(self, number):
        self.number = number

    def __str__(self):
        return f"<{self.number}>"

    def __repr__(self):
        return "Counted " + str(self.number)

    def __format__(self, spec):
        return f"{self.number} as {spec}"


@pytest.mark.parametrize("text", [str, repr, format, "{:x}".format, "{!r}".format, lambda counted: f"{counted:wide}", lambda counted: f"{counted!s}!"])
def test_texts_that_methods_of_objects_make(text):
    def fn(x, n):
        return x[:n] * 2, text(Counted(n))

    compiled = tenon.compile(fn)
    for n in SIZES:
        assert outcome(compiled, X, n) == outcome(fn, X, n)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "bool"])
def test_tensors_of_one_element_are_formatted_as_numbers(check, dtype):
    def fn(x):
        most = x.max()
        return f"{most} {most:>8}" if dtype == "bool" else f"{most:.3f} {most} {most:>12} {most:e}", x[0]

    compiled = tenon.compile(fn)
    for values in ([1.5, 2.25, 0.1], [3.1, -1.0], [0.0, 0.3, 7.0, 2.0]):
        x = torch.tensor(values).to(getattr(torch, dtype))
        check.same(compiled(x), fn(x))
    assert dtype == "bool" or tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_numbers_of_numpy_are_formatted(check, dtype):
    def fn(a):
        most, least = a.max(), a.min()
        return f"{most:.3f} of {least:>9}", f"{np.asarray(most):.1f}", a + 1

    compiled = tenon.compile(fn)
    for values in ([1.5, 2.25, 0.1], [3.1, -1.0], [0.0, 0.3, 7.0, 2.0]):
        a = np.array(values, dtype)
        check.same(compiled(a), fn(a))


def test_formats_that_are_refused(check):
    def fn(x, spec):
        try:
            return format(x.sum(), spec), x + 1
        except (TypeError, ValueError) as error:
            return str(error)

    compiled = tenon.compile(fn)
    for spec in (".2f", "d", "z!", "", ".1%"):
        for x in (torch.ones(3), torch.nn.Parameter(torch.ones(2), requires_grad=False), torch.ones(4)):
            check.same(compiled(x, spec), fn(x, spec))
