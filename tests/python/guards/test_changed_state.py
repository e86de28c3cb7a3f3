"""Whatever a capture has read is noticed when it changes between two calls, also after many calls in which nothing changed."""
import collections
import types

import pytest

import tenon
from tests.python.guards.settling import settled

torch = pytest.importorskip("torch")
nn = torch.nn
CALMS = [1, 2, 5]  # calls before the change: guards are compared in other ways once they have held


class Scaled(nn.Module):
    """Reads attributes of several kinds."""

    factor = 2.0

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("shift", torch.ones(4))
        self.options = {"power": 2, "steps": [1.0, 2.0]}
        self.pair = (3.0, [4.0])
        self.extra = None

    def scaled(self, x):
        return x * self.factor

    def forward(self, x):
        y = self.scaled(self.norm(self.lin(x))) + self.shift
        y = y ** self.options["power"] + self.options["steps"][0] * self.pair[1][0]
        return y if self.extra is None else y + self.extra


class Shifted(Scaled):
    """The same with another method."""

    def scaled(self, x):
        return x - 7


def _replace_dict(net):
    net.__dict__ = dict(net.__dict__, options={"power": 3, "steps": [5.0]})


def _patch_forward(net):
    net.lin.forward = types.MethodType(lambda self, x: x * 9, net.lin)


def _shrink(net):
    net.options["steps"].pop()
    net.options["steps"][0] = 8.0


def _replace_defaults(net):
    net.extra = 1.5


CHANGES = {
    "attribute": lambda net: setattr(net, "extra", 3.0),
    "attribute of the class on the object": lambda net: setattr(net, "factor", 5.0),
    "module": lambda net: setattr(net, "lin", nn.Linear(4, 4, bias=False)),
    "parameter": lambda net: setattr(net.lin, "weight", nn.Parameter(torch.full((4, 4), 0.5))),
    "parameter dropped": lambda net: setattr(net.lin, "bias", None),
    "dtype": lambda net: net.double(),
    "buffer": lambda net: setattr(net, "shift", torch.zeros(4)),
    "buffer's data": lambda net: setattr(net.shift, "data", torch.full((1,), 6.0)),
    "buffer resized": lambda net: net.shift.resize_(2, 2, 1, 1).fill_(3),
    "buffer set": lambda net: net.shift.set_(torch.full((3, 1), 2.0)),
    "buffer's strides": lambda net: net.shift.set_(torch.tensor([1.0, 5, 2, 5, 3, 5, 4, 5])[::2]),
    "buffer without elements in memory": lambda net: net.shift.copy_(torch.arange(4.0) + 5).as_strided_((4,), (0,)),
    "training flag": lambda net: net.train(),
    "training flag of a child": lambda net: net.norm.train(),
    "momentum": lambda net: (net.norm.train(), setattr(net.norm, "momentum", 0.9)),
    "hook": lambda net: net.lin.register_forward_hook(lambda module, inputs, output: output + 1),
    "hook before": lambda net: net.norm.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,)),
    "method on the object": _patch_forward,
    "item of a dict": lambda net: net.options.update(power=3),
    "dict": lambda net: setattr(net, "options", {"power": 1, "steps": [3.0]}),
    "item of a list": lambda net: net.options["steps"].__setitem__(0, 4.0),
    "list made shorter": _shrink,
    "list in a tuple": lambda net: net.pair[1].__setitem__(0, 0.25),
    "tuple": lambda net: setattr(net, "pair", (3.0, [1.0])),
    "instance dict": _replace_dict,
    "class": lambda net: setattr(net, "__class__", Shifted),
    "hooks replaced": lambda net: setattr(net.lin, "_forward_hooks", collections.OrderedDict({0: lambda module, inputs, output: output - 3})),
    "parameter's class": lambda net: setattr(net.lin.weight, "__class__", torch.Tensor),
}


@pytest.mark.parametrize("calms", CALMS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda name: name.replace(" ", "-"))
def test_a_change_of_a_module(check, change, calms):
    net, x = Scaled().eval(), torch.randn(3, 4)
    with torch.no_grad():
        compiled = settled(net, x, calms=calms)
        before = net(x)
        CHANGES[change](net)
        x = x.to(net.lin.weight.dtype) if change == "dtype" else x
        want = net(x) if not net.norm.training else None
        if want is not None:
            check.same(compiled(x), want)
            check.same(compiled(x), want)
            assert change == "parameter's class" or want.dtype != before.dtype or not torch.equal(want, before)
        else:
            norm = net.norm
            saved = {name: value.clone() for name, value in norm.state_dict().items()}
            got, after = compiled(x), {name: value.clone() for name, value in norm.state_dict().items()}
            norm.load_state_dict(saved)
            check.same(got, net(x))
            check.same(after, dict(norm.state_dict()))


def _with(patch, owner, name, value):
    patch.setattr(owner, name, value)


@pytest.mark.parametrize("calms", CALMS)
def test_a_patched_class(check, monkeypatch, calms):
    net, x = Scaled().eval(), torch.randn(3, 4)
    with torch.no_grad():
        compiled = settled(net, x, calms=calms)
        monkeypatch.setattr(Scaled, "factor", 11.0)
        check.same(compiled(x), net(x))
        monkeypatch.setattr(Scaled, "scaled", lambda self, x: x + 100)
        check.same(compiled(x), net(x))
        monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x + 1)
        check.same(compiled(x), net(x))
        monkeypatch.setattr(nn.Linear, "bias", 3.0, raising=False)
        check.same(compiled(x), net(x))


def _plus_one(x):
    return x + 1


def _minus_two(x):
    return x - 2


step, amount = _plus_one, 1.0


@pytest.mark.parametrize("calms", CALMS)
def test_a_rebound_global(check, monkeypatch, calms):
    def f(x):
        return step(x) * amount

    x = torch.randn(3)
    compiled = settled(f, x, calms=calms)
    monkeypatch.setitem(globals(), "step", _minus_two)
    check.same(compiled(x), f(x))
    monkeypatch.setitem(globals(), "amount", 4.0)
    check.same(compiled(x), f(x))
    monkeypatch.setattr(_minus_two, "__code__", _plus_one.__code__)
    check.same(compiled(x), f(x))


@pytest.mark.parametrize("calms", CALMS)
def test_defaults_and_closures(check, calms):
    amount, box = 2.0, [1.0]

    def inner(x, by=1.0, *, plus=0.0):
        return x * by + plus + amount + box[0]

    def f(x):
        return inner(x)

    x = torch.randn(3)
    compiled = settled(f, x, calms=calms)
    inner.__defaults__ = (3.0,)
    check.same(compiled(x), f(x))
    inner.__kwdefaults__ = {"plus": 5.0}
    check.same(compiled(x), f(x))
    inner.__kwdefaults__["plus"] = 6.0
    check.same(compiled(x), f(x))
    amount = 7.0
    check.same(compiled(x), f(x))
    box[0] = -1.0
    check.same(compiled(x), f(x))


def test_a_compiled_module_of_another_class(check):
    class Other(nn.Linear):
        def forward(self, x):
            return x * 3

    net, x = nn.Linear(4, 4), torch.randn(2, 4)
    with torch.no_grad():
        compiled = settled(net, x)
        net.__class__ = Other
        check.same(compiled(x), net(x))


def test_a_counter_beside_what_is_read(check):
    """A dict that changes at every call costs no recompile, and what it holds besides is still looked at."""
    net, x = Scaled().eval(), torch.randn(3, 4)
    with torch.no_grad():
        compiled = settled(net, x)
        for at in range(40):
            net.calls = at
            if at == 25:
                net.factor = 3.0
            if at == 30:
                net.lin.bias.data = torch.zeros(4)
            if at == 35:
                net.options["power"] = 3
            check.same(compiled(x), net(x))
    assert tenon.stats()["recompiles"] == 2 and tenon.stats()["eager_fallbacks"] == 0


def test_two_modules_take_turns(check):
    def f(net, x):
        return net(x)

    nets, x = [Scaled().eval() for _ in range(2)], torch.randn(3, 4)
    with torch.no_grad():
        compiled = tenon.compile(f)
        for at in range(20):
            check.same(compiled(nets[at % 2], x), nets[at % 2](x))
        nets[1].shift = torch.full((4,), 4.0)
        nets[0].extra = 2.0
        for at in range(6):
            check.same(compiled(nets[at % 2], x), nets[at % 2](x))
    assert tenon.stats()["recompiles"] == 1


def test_a_parameter_given_twice(check):
    """Two sources that were different objects become one, and an argument becomes a parameter."""
    net, x = Scaled().eval(), torch.randn(4)
    other = nn.Linear(4, 4).eval()

    def f(y):
        net.shift.add_(1)
        return net.shift * y + other.weight.sum()

    with torch.no_grad():
        compiled = settled(f, x)
        net.shift.zero_()
        want = (net.shift + 1) * x + other.weight.sum()
        check.same(compiled(x), want)
        net.shift.zero_()
        check.same(compiled(net.shift), torch.ones(4) + other.weight.sum())
        check.same(compiled(x), net.shift * x + other.weight.sum())


def test_swapped_tensors(check):
    a, b, x = nn.Parameter(torch.ones(3)), nn.Parameter(torch.full((4,), 2.0)), torch.randn(1)
    held = [a, b]

    def f(x):
        return held[0].sum() + x

    with torch.no_grad():
        compiled = settled(f, x)
        torch.utils.swap_tensors(a, b)
        check.same(compiled(x), f(x))
        a.requires_grad_(False)
        check.same(compiled(x), f(x))


@pytest.mark.parametrize("calm", CALMS)
def test_a_flag_that_the_program_reads(calm):
    def reads(x):
        exact = torch.are_deterministic_algorithms_enabled()
        with_library = torch.backends.mkldnn.enabled
        return x * (2 if exact else 1) * (5 if with_library else 3)

    compiled, x = tenon.compile(reads, fullgraph=True), torch.ones(2)
    for _ in range(calm):
        assert compiled(x)[0] == 5
    torch.use_deterministic_algorithms(True)
    try:
        assert compiled(x)[0] == 10
        with torch.backends.mkldnn.flags(enabled=False):
            assert compiled(x)[0] == 6
    finally:
        torch.use_deterministic_algorithms(False)
    assert compiled(x)[0] == 5


def test_deterministic_algorithms():
    def run(x):
        return torch.empty(3), torch.empty_like(x), x.new_empty(2, dtype=torch.int32)

    compiled = tenon.compile(run)
    x = torch.zeros(2)
    compiled(x)
    torch.use_deterministic_algorithms(True)
    try:
        for found, wanted in zip(compiled(x), run(x)):
            torch.testing.assert_close(found, wanted, equal_nan=True)
        with pytest.raises(RuntimeError, match="deterministic"):
            tenon.compile(lambda x: x.put_(torch.tensor([0]), x[:1] + 1))(x)
    finally:
        torch.use_deterministic_algorithms(False)


def doubled_sum(x, dim=None):
    return x * 2


def sum_of_sines(x):
    return x.sin().sum()


def replacing_inside(x):
    library = torch.library.Library("aten", "IMPL")
    library.impl("sum", doubled_sum, "CPU")
    replaced = torch.sum(x + 1)
    library._destroy()
    return replaced, torch.sum(x + 1)


@pytest.mark.parametrize("calm", CALMS)
def test_kernels_that_a_library_replaces(calm):
    fast = tenon.compile(sum_of_sines)
    x = torch.tensor([1.0, 2.0])
    for _ in range(calm):
        torch.testing.assert_close(fast(x), sum_of_sines(x))
    library = torch.library.Library("aten", "IMPL")
    library.impl("sum", doubled_sum, "CPU")
    try:
        assert fast(x).shape == x.shape
        torch.testing.assert_close(fast(x), sum_of_sines(x))
    finally:
        library._destroy()
    before = tenon.stats()["eager_fallbacks"]
    torch.testing.assert_close(fast(x), sum_of_sines(x))
    assert fast(x).shape == () and tenon.stats()["eager_fallbacks"] == before


def test_a_kernel_that_the_call_replaces():
    x = torch.tensor([1.0, 2.0])
    for _ in range(3):
        replaced, own = tenon.compile(replacing_inside)(x)
        torch.testing.assert_close(replaced, (x + 1) * 2)
        torch.testing.assert_close(own, torch.tensor(5.0))
