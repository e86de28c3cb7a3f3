"""tenon.export, save, load: the program elsewhere gives what the function gives, and refuses what it was not exported for."""
import collections
import dataclasses
import functools
import json

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x, scale=2.0):
        return self.norm(self.lin(x)).relu() * scale


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: list


@pytest.fixture
def through_a_file(tmp_path):
    """Exports, saves and loads."""

    def run(fn, args, kwargs=None, **options):
        program = tenon.export(fn, args, kwargs, **options)
        program.save(tmp_path / "program.tnx")
        return tenon.load(tmp_path / "program.tnx")

    return run


def test_a_module_travels_with_its_parameters(check, through_a_file):
    net, x = Net().eval(), torch.randn(3, 8)
    want = net(x).detach()
    program = through_a_file(net, (x,))
    for p in net.parameters():
        p.data.zero_()
    for _ in range(2):
        check.same(program(x), want)
    with torch.no_grad():
        other = torch.randn(3, 8)
        assert not torch.equal(program(other), want)
    assert program.name == "Net" and program.input_names == ["x"] and program.output_names == ["output"]
    assert any("training" in line for line in program.assumptions)


def test_exporting_does_not_run_or_change_anything(check):
    calls = []

    def fn(x):
        return x * 2 + len(calls)

    x = torch.ones(3)
    program = tenon.export(fn, (x,))
    calls.append(1)
    check.same(program(x), torch.full((3,), 2.0))


def test_structures_come_back(check, through_a_file):
    def fn(x, options, *, extra):
        a, b = options["pair"]
        return {"sum": x + a, "parts": [b * 2, (extra, None)], "point": Point(x, a - b), "pair": Pair(x * 3, [1, "two", 2.5, True]), 7: -x}

    x, a, b, e = (torch.randn(2, 3) for _ in range(4))
    program = through_a_file(fn, (x, {"pair": (a, b)}), {"extra": e})
    for shift in (0, 1):
        args = [t + shift for t in (x, a, b, e)]
        got = program(args[0], {"pair": (args[1], args[2])}, extra=args[3])
        check.same(got, fn(args[0], {"pair": (args[1], args[2])}, extra=args[3]))
    assert program.input_names == ["x", "options.pair.0", "options.pair.1", "extra"]
    assert got["parts"][1][0] is args[3]


def test_arguments_by_name_and_defaults(check, through_a_file):
    net, x = Net().eval(), torch.randn(3, 8)
    program = through_a_file(net, (x, 3.0))
    with torch.no_grad():
        check.same(program(x, scale=3.0), net(x, 3.0))
        check.same(program(x=x, scale=3.0), net(x, 3.0))
        with pytest.raises(tenon.Error, match="argument scale is 4.0; the program was exported with 3.0"):
            program(x, 4.0)
        with pytest.raises(tenon.Error, match="exported with 2 positional arguments; given: 1"):
            program(x)
        with pytest.raises(tenon.Error, match="keywords"):
            program(x, 3.0, other=1)


@pytest.mark.parametrize(
    "bad, words",
    [
        (lambda x: x[:2], r"\[2, 8\]"),
        (lambda x: x.double(), "float64|f64"),
        (lambda x: x.numpy(), "exported with a torch.Tensor"),
        (lambda x: x[0], "1 dimensions"),
        (lambda x: [x], "argument x"),
        (lambda x: None, "argument x"),
        (lambda x: x.requires_grad_(), "no_grad"),
        (lambda x: x.to_sparse(), "sparse"),
    ],
)
def test_what_does_not_fit_is_refused(through_a_file, bad, words):
    program = through_a_file(lambda x: x.sin(), (torch.randn(3, 8),))
    with pytest.raises(tenon.Error, match=words):
        program(bad(torch.randn(3, 8)))


def test_other_layouts_are_taken(check, through_a_file):
    program = through_a_file(lambda x: (x * 2).sum(0), (torch.randn(3, 8),))
    x = torch.randn(8, 3).t()
    check.same(program(x), (x * 2).sum(0))
    wide = torch.randn(6, 16)[::2, ::2]
    check.same(program(wide), (wide * 2).sum(0))


def test_transposed_and_viewed_results(check, through_a_file):
    def fn(x):
        y = x + 1
        return y.t(), x.view(-1), y[0], x.t().contiguous()

    x = torch.randn(3, 4)
    got = through_a_file(fn, (x,))(x)
    for one, want in zip(got, fn(x)):
        torch.testing.assert_close(one, want)
    got[1].zero_()
    assert x.abs().sum() > 0


def test_numpy(check, through_a_file):
    def fn(a, k):
        return np.sqrt(a * a + 1), a.sum(), {"k": k}

    a = np.linspace(0, 1, 12).reshape(3, 4)
    program = through_a_file(fn, (a, 3))
    check.same(program(a + 1, 3), fn(a + 1, 3))


def test_one_tensor_given_twice(check, through_a_file):
    x, y = torch.randn(3), torch.randn(3)
    program = through_a_file(lambda a, b: a * b + 1, (x, x))
    check.same(program(y, y), y * y + 1)
    with pytest.raises(tenon.Error, match="were one tensor"):
        program(x, y)


def test_unused_arguments_stay_arguments(check, through_a_file):
    program = through_a_file(lambda x, unused: x + 1, (torch.zeros(2), torch.zeros(5)))
    check.same(program(torch.ones(2), torch.ones(5)), torch.full((2,), 2.0))
    with pytest.raises(tenon.Error):
        program(torch.ones(2), torch.ones(4))


def test_names_of_inputs():
    program = tenon.export(lambda x, y: x + y, (torch.zeros(2), torch.zeros(2)), input_names=["left", "right"])
    assert program.input_names == ["left", "right"] and "%left" in program.tir()
    for names in (["one"], ["a", "a"], ["a", "b c"], [1, 2]):
        with pytest.raises(tenon.ConfigError, match="input_names must be 2 different names"):
            tenon.export(lambda x, y: x + y, (torch.zeros(2), torch.zeros(2)), input_names=names)


def test_breaks_and_foreign_parts_are_refused():
    def fn(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(tenon.GraphBreakError, match=r'if x.sum\(\) > 0:') as e:
        tenon.export(fn, (torch.ones(3),))
    assert __file__ in str(e.value)
    with pytest.raises(tenon.GraphBreakError, match="(?s)code of another library.*rfft.*torch.fft.rfft"):
        tenon.export(lambda x: torch.fft.rfft(x).abs(), (torch.ones(8),))
    with pytest.raises(tenon.Error, match="argument|object"):
        tenon.export(lambda x, o: x, (torch.ones(3), object()))
    with pytest.raises(tenon.ConfigError, match="must be a tuple"):
        tenon.export(lambda x: x, torch.ones(3))
    with pytest.raises(tenon.ConfigError, match="takes a function"):
        tenon.export(3, ())


def test_a_write_to_what_is_no_argument_is_refused():
    with pytest.raises(tenon.Error):
        tenon.export(Net().train(), (torch.randn(3, 8),))


def test_a_compiled_module_exports_as_the_plain_one(check):
    net, x = Net().eval(), torch.randn(3, 8)
    program = tenon.export(tenon.compile(net), (x,))
    with torch.no_grad():
        check.same(program(x), net(x))


def test_saving_twice_and_copies_of_files(check, tmp_path):
    program = tenon.export(lambda x: x.cos(), (torch.zeros(2),))
    program.save(str(tmp_path / "a.tnx"))
    program.save(tmp_path / "a.tnx")
    again = tenon.load(str(tmp_path / "a.tnx"))
    again.save(tmp_path / "b.tnx")
    assert (tmp_path / "a.tnx").read_bytes() == (tmp_path / "b.tnx").read_bytes()
    x = torch.randn(2)
    check.same(tenon.load(tmp_path / "b.tnx", backend="reference")(x), x.cos())
    with pytest.raises(tenon.Error, match="cannot write"):
        program.save(tmp_path / "missing" / "a.tnx")
    with pytest.raises(tenon.Error, match="cannot read"):
        tenon.load(tmp_path / "missing.tnx")


def test_damaged_files_name_the_section(tmp_path):
    path = tmp_path / "net.tnx"
    tenon.export(Net().eval(), (torch.randn(3, 8),)).save(path)
    good = path.read_bytes()
    where = good.index(b'"parameters"')
    for bad, words in [
        (b"", "cut off"),
        (good[: len(good) // 2], "header|the end is missing|lies outside"),
        (good[:where] + b"X" + good[where + 1 :], "'signature' is damaged"),
        (good[:-1] + bytes([good[-1] ^ 1]), "'constants' is damaged"),
        (b"not a program at all" * 10, "does not begin like one"),
    ]:
        path.write_bytes(bad)
        with pytest.raises(tenon.Error, match=words):
            tenon.load(path)


def test_classes_that_are_not_loaded(tmp_path, monkeypatch):
    program = tenon.export(lambda x: (Point(x + 1, x), Pair(x - 1, [])), (torch.zeros(2),))
    program.save(tmp_path / "a.tnx")
    loaded = tenon.load(tmp_path / "a.tnx")
    monkeypatch.setitem(globals(), "Point", None)
    monkeypatch.setitem(globals(), "Pair", None)
    with pytest.raises(tenon.Error, match="Pair: import that module first"):
        loaded(torch.zeros(2))


def test_a_decorated_function_is_exported_and_explained_with_its_decorator():
    def tenfold(fn):
        @functools.wraps(fn)
        def scaled(x):
            return fn(x) * 10

        return scaled

    function = tenfold(lambda x: x + 1)
    assert tenon.export(function, (torch.ones(1),))(torch.ones(1)).item() == 20
    assert tenon.export(tenon.compile(function), (torch.ones(1),))(torch.ones(1)).item() == 20
    assert tenon.explain(function)(torch.ones(1)).op_count == 2
