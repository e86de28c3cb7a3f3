"""What people do with modules: compiled ones do it too, and calls see what was done. Each case compares with a twin that runs eagerly."""
import copy
import gc
import io
import pickle
import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
nn = torch.nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.lin(x))


def wrapped(module):
    return tenon.compile(module)


def in_place(module):
    made = tenon.compile(module, in_place=True)
    assert made is module
    return made


@pytest.fixture(params=[wrapped, in_place], ids=["wrapped", "in_place"])
def way(request):
    return request.param


@pytest.fixture
def agree(check, way):
    """Compiles a module, and gives a function that compares it with its eager twin after doing the same to both."""

    def make(module):
        twin = copy.deepcopy(module)
        compiled = way(module)

        def run(do=None, x=None):
            for one in (compiled, twin) if do else ():
                do(one)
            x = torch.randn(3, 4) if x is None else x
            with torch.no_grad():
                for _ in range(2):
                    check.same(compiled(x), twin(x))

        run.compiled, run.twin = compiled, twin
        return run

    return make


def test_parameters_change_and_are_replaced(agree):
    run = agree(Net())
    run()
    run(lambda m: [p.data.mul_(2) for p in m.parameters()])
    run(lambda m: m.load_state_dict({k: torch.full_like(v, 0.5) for k, v in m.state_dict().items()}))
    run(lambda m: setattr(m.lin, "weight", nn.Parameter(torch.ones(4, 4))))
    run(lambda m: setattr(m.lin, "bias", None))
    run(lambda m: setattr(m, "lin", nn.Linear(4, 4, bias=False).requires_grad_(False)) or nn.init.ones_(m.lin.weight))
    run(lambda m: setattr(m, "act", nn.Tanh()))
    run(lambda m: m.double(), x=torch.randn(3, 4, dtype=torch.float64))
    run(lambda m: m.to(torch.float32))


def test_containers(agree):
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.list = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.dict = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
            self.parameters_ = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
            self.by_name = nn.ParameterDict({"k": nn.Parameter(torch.full((4,), 2.0))})

        def forward(self, x):
            for i, layer in enumerate(self.list):
                x = layer(x) + self.parameters_[i % 2]
            for name, act in self.dict.items():
                x = act(x) if name != "skip" else x
            return x * self.by_name["k"]

    run = agree(Many())
    run()
    run(lambda m: m.list.append(nn.Identity()))
    run(lambda m: m.dict.update({"c": nn.Sigmoid()}))
    run(lambda m: m.dict.pop("a"))
    run(lambda m: m.parameters_.append(nn.Parameter(torch.zeros(4))))
    run(lambda m: m.by_name.update({"k": nn.Parameter(torch.zeros(4))}))


def test_shared_parameters_and_modules(agree):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.c = self.a

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    run = agree(Shared())
    run()
    run(lambda m: m.a.weight.data.zero_())
    run(lambda m: setattr(m.b, "weight", nn.Parameter(torch.ones(4, 4))))


def test_buffers(agree):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor(2.0))
            self.register_buffer("late", None)

        def forward(self, x):
            return x * self.scale if self.late is None else x * self.scale + self.late

    run = agree(Scaled())
    run()
    run(lambda m: m.scale.fill_(3.0))
    run(lambda m: m.register_buffer("late", torch.ones(4)))
    run(lambda m: m.register_buffer("scale", torch.tensor(0.5)))
    assert list(run.compiled.state_dict()) == ["scale", "late"]


def test_training_flag(agree):
    run = agree(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).eval())
    run()
    run(lambda m: m[1].eval())
    assert run.compiled.train() is run.compiled and run.compiled[1].training
    run(lambda m: m.eval())


def test_hooks_of_every_kind(agree):
    seen = []

    def watch(tag):
        return lambda module, *rest: seen.append((tag, type(module).__name__))

    run = agree(Net())
    run()
    handles = []
    run(lambda m: handles.append(m.lin.register_forward_pre_hook(watch("pre"))))
    assert len(seen) == 4
    run(lambda m: handles.append(m.act.register_forward_hook(lambda module, args, out: out + 1)))
    run(lambda m: handles.append(m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))))
    run(lambda m: handles.append(m.register_forward_hook(lambda module, args, kwargs, out: out * 3, with_kwargs=True)))
    seen.clear()
    run(lambda m: [h.remove() for h in handles if h.id in m._forward_hooks] and None)
    for handle in handles:
        handle.remove()
    seen.clear()
    run()
    assert seen == []


def test_attributes_pass_through():
    net = Net()
    compiled = tenon.compile(net)
    compiled.note = "x"
    assert net.note == "x"
    net.other = 3
    assert compiled.other == 3
    del compiled.note
    assert not hasattr(net, "note")
    compiled.extra = nn.Linear(1, 1)
    assert "extra" in dict(net.named_children())
    with pytest.raises(AttributeError, match="missing"):
        compiled.missing
    assert compiled.training is net.training and len(list(compiled.named_parameters())) == len(list(net.named_parameters()))
    assert compiled.get_submodule("lin") is net.lin and "Linear" in repr(compiled)
    assert compiled.zero_grad() is None and compiled.requires_grad_(False) is compiled
    assert not any(p.requires_grad for p in net.parameters())


def test_a_compiled_module_inside_another(check, way):
    class Outer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.head = inner, nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.inner(x))

    net, x = Net(), torch.randn(3, 4)
    outer = Outer(way(net))
    twin = Outer(copy.deepcopy(net))
    twin.head.load_state_dict(outer.head.state_dict())
    assert [k for k, _ in outer.named_parameters()] == [k for k, _ in twin.named_parameters()]
    with torch.no_grad():
        for _ in range(2):
            check.same(outer(x), twin(x))
            check.same(tenon.compile(outer, fullgraph=True)(x), twin(x))


def test_copies(check, way):
    net, x = Net(), torch.randn(3, 4)
    compiled = way(net)
    deep, shallow = copy.deepcopy(compiled), copy.copy(compiled)
    assert deep.lin.weight is not net.lin.weight and shallow.lin is net.lin and shallow is not compiled
    with torch.no_grad():
        want = net.act(net.lin(x))
        check.same(compiled(x), want)
        net.lin.weight.zero_()
        check.same(deep(x), want)
        check.same(shallow(x), net.act(net.lin(x)))


def test_pickles_are_of_the_module_as_it_was_compiled(check, way):
    net, x = Net(), torch.randn(3, 4)
    compiled = way(net)
    with torch.no_grad():
        want = compiled(x)
        plain = pickle.loads(pickle.dumps(compiled))
        assert isinstance(plain, Net) and type(plain) is type(compiled)
        check.same(plain(x), want)
        file = io.BytesIO()
        torch.save(compiled, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert isinstance(loaded, Net) and type(loaded) is type(compiled)
        check.same(loaded(x), want)
        torch.save(compiled.state_dict(), file := io.BytesIO())
        file.seek(0)
        other = Net()
        other.load_state_dict(torch.load(file))
        check.same(other(x), want)


def test_jit_sees_the_plain_module(check):
    net, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)
    compiled = tenon.compile(net)
    with torch.no_grad():
        check.same(torch.jit.trace(compiled, (x,))(x), net(x))


def test_lazily_built_modules(check, way):
    net, x = nn.Sequential(nn.LazyLinear(3), nn.ReLU()), torch.randn(2, 5)
    compiled = way(net)
    with torch.no_grad():
        first = compiled(x)
        assert net[0].weight.shape == (3, 5)
        for _ in range(2):
            check.same(compiled(x), first)
        check.same(first, net[1](net[0](x)))


def test_methods_of_a_compiled_module_are_the_plain_ones(check):
    class Two(Net):
        def twice(self, x):
            return self(self(x))

    net, x = Two(), torch.randn(3, 4)
    compiled = tenon.compile(net)
    with torch.no_grad():
        check.same(compiled.twice(x), net.forward(net.forward(x)))
        check.same(compiled.forward(x), net.forward(x))
        check.same(compiled(x=x), net(x=x))


def test_a_class_can_be_compiled_by_decorating_forward(check):
    class Marked(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @tenon.compile
        def forward(self, x):
            return x * self.k

    a, b, x = Marked(2.0), Marked(3.0), torch.randn(3)
    with torch.no_grad():
        for _ in range(2):
            check.same(a(x), x * 2.0)
            check.same(b(x), x * 3.0)


def test_nothing_keeps_a_compiled_module_alive(way):
    net = Net()
    compiled = way(net)
    with torch.no_grad():
        compiled(torch.randn(3, 4))
    alive = weakref.ref(net)
    del net, compiled
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("in_place", [False, True])
def test_explain_takes_what_a_module_was_compiled_with(in_place):
    module = tenon.compile(torch.nn.Linear(3, 2), backend="reference", in_place=in_place)
    with torch.no_grad():
        assert set(tenon.explain(module)(torch.rand(4, 3)).nodes_by_backend) == {"reference"}
