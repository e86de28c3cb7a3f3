"""Backends that are Python functions train: forward, backward and whole steps are graphs that they compile. Eager in float64 is the judge."""
import copy
import gc
import pickle
import threading
import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Seen:
    """A backend that notes its graphs, and runs what their code says."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, example_inputs):
        graph = graph.tenon_graph
        self.graphs.append(graph)
        names = {}
        exec(graph.code(), names)
        return next(value for name, value in names.items() if name != "__builtins__")

    @property
    def backwards(self):
        return [graph.is_backward for graph in self.graphs]


@pytest.fixture
def seen():
    return Seen()


def forward(graph, example_inputs):
    return graph.tenon_graph.forward


def as_fx(graph, example_inputs):
    return graph.forward


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)).double()


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2),
                         nn.AdaptiveAvgPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(16, 3)).double()


def assert_same_state(module, twin):
    for (name, got), (_, want) in zip(module.state_dict().items(), twin.state_dict().items(), strict=True):
        torch.testing.assert_close(got, want, msg=lambda text: f"{name}: {text}")


def train(model, parameters, data, target, steps=4):
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    losses = []
    for at in range(steps):
        torch.manual_seed(at)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def data_for(net):
    torch.manual_seed(1)
    data = torch.randn(5, 6) if isinstance(net[0], nn.Linear) else torch.randn(4, 2, 16, 16)
    return data.double(), torch.arange(len(data)) % 3


@pytest.mark.parametrize("backend", [forward, as_fx, Seen()], ids=["forward", "fx", "code"])
@pytest.mark.parametrize("make", [mlp, convolutional])
def test_a_module_trains_with_an_eager_optimizer(make, backend):
    net, twin = make(), make()
    data, target = data_for(net)
    got = train(tenon.compile(net, backend=backend, fullgraph=True), net.parameters(), data, target)
    torch.testing.assert_close(got, train(twin, twin.parameters(), data, target))
    assert_same_state(net, twin)
    assert (tenon.stats()["graphs"], tenon.stats()["eager_fallbacks"]) == (1, 0)


def test_the_backend_is_asked_once_for_each_graph(seen, capsys):
    net = mlp()
    data, target = data_for(net)
    compiled = tenon.compile(net, backend=seen)
    loss = F.cross_entropy(compiled(data), target)
    assert seen.backwards == [False]  # the backward is compiled when it is asked for
    loss.backward()
    train(compiled, net.parameters(), data, target)
    assert seen.backwards == [False, True] and [graph.name for graph in seen.graphs] == ["Sequential", "Sequential.backward"]
    assert "torch.mm" in seen.graphs[0].op_names and "torch.mm" in seen.graphs[1].op_names
    seen.graphs[1].print_tabular()
    assert "call_function" in capsys.readouterr().out


def test_evaluation_keeps_the_calls_of_the_program(seen):
    net = mlp()
    data, _ = data_for(net)
    compiled = tenon.compile(net, backend=seen)
    with torch.no_grad():
        compiled(data)
    compiled(data)
    assert "torch.nn.functional.layer_norm" in seen.graphs[0].op_names and seen.backwards == [False, False]


@pytest.mark.parametrize("optimizer", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.01),
                                       lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)], ids=["sgd", "adam", "adamw"])
@pytest.mark.parametrize("make", [mlp, convolutional])
def test_a_whole_step_is_one_graph(seen, make, optimizer):
    net, twin = make(), make()
    data, target = data_for(net)

    def step_of(module):
        chosen = optimizer(module.parameters())

        def step(data, target):
            chosen.zero_grad()
            loss = F.cross_entropy(module(data), target)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            chosen.step()
            return loss.detach(), loss.item()

        return step

    step, plain = tenon.compile(step_of(net), backend=seen, fullgraph=True), step_of(twin)
    for at in range(4):
        torch.manual_seed(at)
        got = step(data, target)
        torch.manual_seed(at)
        want = plain(data, target)
        torch.testing.assert_close(got, want)
    assert_same_state(net, twin)
    for p, q in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(p.grad, q.grad)
    assert seen.backwards == [False, False]  # the first call makes the gradients and the optimizer's state, the second finds them


def test_gradients_of_gradients(seen):
    def fn(x, w):
        return torch.tanh(x @ w).sin().sum(1)

    compiled = tenon.compile(fn, backend=seen)
    x, w = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (4, 2)))
    assert torch.autograd.gradcheck(compiled, (x, w)) and torch.autograd.gradgradcheck(compiled, (x, w))
    assert seen.graphs[-1].is_backward and seen.graphs[-1].name.endswith("fn.backward.backward")

    def third(f):
        (first,) = torch.autograd.grad(f(x, w).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), w, create_graph=True)
        return torch.autograd.grad(second.sum(), x)[0]

    torch.testing.assert_close(third(compiled), third(fn))


def test_a_failure_names_the_graph_and_can_be_cured():
    failing = True

    def backend(graph, example_inputs):
        if graph.tenon_graph.is_backward and failing:
            raise ValueError("no backwards here")
        return graph.forward

    compiled, x = tenon.compile(lambda x: x.exp(), backend=backend), torch.ones(3, requires_grad=True)
    y = compiled(x).sum()
    for _ in range(2):
        with pytest.raises(tenon.CompileError, match=r"'backend' failed to compile .*\.backward") as error:
            y.backward(retain_graph=True)
        assert isinstance(error.value.__cause__, ValueError)
    failing = False
    y.backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_what_a_backward_gives_must_fit():
    def backend(graph, example_inputs):
        return (lambda *inputs: (inputs[0].sum(),)) if graph.tenon_graph.is_backward else graph.forward

    with pytest.raises(tenon.CompileError, match=r"f32\[\] instead of .*\[3\]|float32\[\] instead of float32\[3\]"):
        tenon.compile(lambda x: x.exp(), backend=backend)(torch.ones(3, requires_grad=True)).sum().backward()
    with pytest.raises(tenon.CompileError, match="2 results instead of"):
        tenon.compile(lambda x: x.exp(), backend=lambda graph, inputs: lambda x: (x, x, x)[: 1 + len(graph.tenon_graph.traced.calls)])(torch.ones(3, requires_grad=True))


def test_graphs_run_without_gradients_whatever_the_callable_does():
    modes = []

    def backend(graph, example_inputs):
        modes.append(torch.is_grad_enabled())

        def run(*inputs):
            modes.append(torch.is_grad_enabled())
            with torch.enable_grad():
                return graph.forward(*inputs)

        return run

    compiled, x = tenon.compile(lambda x: (x * 2, x.exp()), backend=backend), torch.ones(3, requires_grad=True)
    y, z = compiled(x)
    assert y.grad_fn.name() == z.grad_fn.name() and y.is_leaf is z.is_leaf is False and torch.is_grad_enabled()
    (y.sum() + z.sum()).backward()
    torch.testing.assert_close(x.grad, 2 + x.detach().exp())
    assert modes and not any(modes)


def test_results_share_no_memory_with_what_the_callable_keeps():
    def backend(graph, example_inputs):
        places = [torch.empty_like(result) for result in graph.forward(*example_inputs)]

        def run(*inputs):
            for place, result in zip(places, graph.forward(*inputs)):
                place.copy_(result)
            return tuple(places)  # the same tensors at each call

        return run

    compiled = tenon.compile(lambda x: x.exp(), backend=backend)
    x, y = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    first, second = compiled(x), compiled(y)
    first.sum().backward()
    second.sum().backward()
    assert torch.equal(first, torch.ones(3)) and torch.equal(x.grad, torch.ones(3))
    torch.testing.assert_close(y.grad, torch.ones(3).exp())


def test_results_that_are_views_of_inputs_get_memory_of_their_own():
    compiled, x = tenon.compile(lambda x: (x + 0).T.reshape(6), backend=forward), torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = compiled(x)
    tangent = torch.arange(6.0)
    y.backward(tangent)
    assert not y._is_view() and torch.equal(x.grad, tangent.reshape(3, 2).T)
    x.grad.zero_()
    assert torch.equal(tangent, torch.arange(6.0))


PLACES = torch.tensor([[0, 2, 1], [3, 0, 2]])
PICTURE = (1, 2, 6, 6)
# Functions of which the graphs of gradients hold what torch has no function of its own for.
BY_OPS = {
    "slices": ((3, 4), lambda x: x[1:, ::2] * x[:-1, 1::2]),
    "indices": ((4, 3), lambda x: x[PLACES, torch.tensor([0, 1, 2])] ** 2),
    "embedding": ((4, 3), lambda x: F.embedding(PLACES, x) ** 2),
    "pad_reflect": ((2, 5), lambda x: F.pad(x, (2, 3), mode="reflect") ** 2),
    "pad_circular": ((2, 5), lambda x: F.pad(x, (2, 3), mode="circular") ** 2),
    "pad_replicate": ((2, 5), lambda x: F.pad(x, (2, 3), mode="replicate") ** 2),
    "pad_constant": ((2, 5), lambda x: F.pad(x, (2, -1), value=2) ** 2),
    "mean_of_all": ((3, 4), lambda x: x.mean() * x.sum() * x.amax() * x.median()),
    "places": ((3, 4), lambda x: x**3 * (x.argmax() + x.argmin(1, keepdim=True) + x.argmax(0))),
    "median": ((3, 5), lambda x: x.median(1).values * x.kthvalue(2, 1).values * x.max(1).values),
    "norm": ((3, 4), lambda x: torch.linalg.vector_norm(x, 3, dim=1)),
    "scans": ((3, 4), lambda x: x.cumsum(0) * x.cumprod(1) + x.logcumsumexp(1)),
    "scatter_reduce": ((4, 3), lambda x: x.scatter_reduce(0, PLACES, x[:2].exp(), "amax") ** 2),
    "scatter": ((4, 3), lambda x: x.scatter(0, PLACES[:1], x[:1].exp()) ** 2),
    "index_put": ((4, 3), lambda x: x.exp().index_put((torch.tensor([0, 2]),), x[1:3], accumulate=True) ** 2),
    "max_pool": (PICTURE, lambda x: F.max_pool2d(x, 3, 2, padding=1) ** 2),
    "average_pool": (PICTURE, lambda x: F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False, ceil_mode=True) ** 2),
    "adaptive_pool": (PICTURE, lambda x: F.adaptive_avg_pool2d(x, (4, 5)) ** 2),
    "unfold": (PICTURE, lambda x: F.unfold(x, (2, 3), padding=1) ** 2),
    "resize": (PICTURE, lambda x: F.interpolate(x, size=(9, 4), mode="bilinear") ** 2),
    "transposed_convolution": (PICTURE, lambda x: F.conv_transpose2d(x, x.reshape(2, 1, 6, 6)[..., :3, :3], stride=2, padding=1)),
    "stack_and_cat": ((3, 4), lambda x: torch.stack([x, x.exp()]).sum(0) * torch.cat([x, x])[:3]),
    "remainder": ((3, 4), lambda x: torch.fmod(x, 0.7) * torch.addcmul(x, x, x.exp(), value=0.5)),
}


@pytest.mark.parametrize("name", BY_OPS)
def test_ops_for_which_torch_has_no_function(seen, name):
    shape, fn = BY_OPS[name]
    leaf = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    compiled = tenon.compile(fn, backend=seen, fullgraph=True)

    def derivatives(f):
        y = f(leaf)
        (first,) = torch.autograd.grad((y * torch.arange(1.0, y.numel() + 1).reshape(y.shape).cos()).sum(), leaf, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), leaf)
        return y, first, second

    torch.testing.assert_close(derivatives(compiled), derivatives(fn))
    torch.testing.assert_close(torch.autograd.grad(compiled(leaf).sum(), leaf), torch.autograd.grad(fn(leaf).sum(), leaf))
    assert not seen.graphs[0].is_backward and seen.graphs[-1].is_backward


def test_errors_of_torch_stay_torchs():
    compiled, x = tenon.compile(lambda x: x.exp(), backend=forward), torch.ones(3, requires_grad=True)
    y = compiled(x)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = compiled(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_accumulation_and_frozen_parameters():
    net, twin = mlp(), mlp()
    data, target = data_for(net)
    compiled, met = tenon.compile(net, backend=forward), []
    for module, model in ((net, compiled), (twin, twin)):
        module[0].weight.requires_grad_(False)
        module[3].weight.register_hook(lambda gradient: met.append(gradient.clone()))
        for _ in range(2):
            F.cross_entropy(model(data), target).backward()
    assert net[0].weight.grad is None
    for p, q in zip(list(net.parameters())[1:], list(twin.parameters())[1:]):
        torch.testing.assert_close(p.grad, q.grad)
    torch.testing.assert_close(met[:2], met[2:])


def test_numbers_and_shapes_that_vary_are_variants(seen):
    compiled = tenon.compile(lambda x, by: (x * by).sin().sum(), backend=seen)
    for size, by in ((3, 2.0), (4, 2.0), (4, 3.0)):
        x, y = (torch.arange(float(size), requires_grad=True) for _ in range(2))
        compiled(x, by).backward()
        (y * by).sin().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert seen.backwards == [False, True] * 3


def test_what_no_graph_of_ops_can_say_runs_as_plain_python():
    def fn(x):
        return x[x > 1] * 2

    compiled, x = tenon.compile(fn, backend=forward), torch.arange(4.0, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2]
    with pytest.raises(tenon.GraphBreakError, match="sizes that depend on data"):
        tenon.compile(fn, backend=forward, fullgraph=True)(x)


def test_through_a_graph_break(seen):
    def fn(x):
        y = x.exp()
        tenon.graph_break()
        return (y * x).sum()

    compiled = tenon.compile(fn, backend=seen)
    x, y = (torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    compiled(x).backward()
    fn(y).backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert sorted(seen.backwards) == [False, False, True, True]


def test_autocast_is_in_the_graphs(check):
    net = nn.Linear(4, 4)
    twin, x = copy.deepcopy(net), torch.randn(3, 4)
    compiled = tenon.compile(net, backend=forward)
    for module, model in ((net, compiled), (twin, twin)):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).float().square().sum()
            loss.backward()  # asked for under autocast
        assert module.weight.grad.dtype == torch.float32
    torch.testing.assert_close(net.weight.grad, twin.weight.grad, rtol=2e-2, atol=2e-2)


def test_reset_copies_and_threads():
    compiled, x = tenon.compile(lambda x: x.exp(), backend=forward), torch.ones(3, requires_grad=True)
    y = compiled(x).sum()
    tenon.reset()  # what is under way goes on
    y.backward()
    for again in (compiled, copy.copy(compiled), copy.deepcopy(compiled)):
        again(x).sum().backward()
    torch.testing.assert_close(x.grad, 4 * x.detach().exp())

    def work(leaf):
        for _ in range(10):
            compiled(leaf).sum().backward()

    leaves = [torch.full((3,), float(n), requires_grad=True) for n in range(4)]
    threads = [threading.Thread(target=work, args=(leaf,)) for leaf in leaves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for leaf in leaves:
        torch.testing.assert_close(leaf.grad, 10 * leaf.detach().exp())


def test_a_compiled_module_is_pickled_with_its_backend():
    net = mlp()
    data, target = data_for(net)
    loaded = pickle.loads(pickle.dumps(tenon.compile(net, backend=forward)))
    F.cross_entropy(loaded(data), target).backward()
    F.cross_entropy(net(data), target).backward()
    for p, q in zip(loaded.parameters(), net.parameters()):
        torch.testing.assert_close(p.grad, q.grad)


def test_what_a_callable_holds_goes_with_the_function():
    class Holder:
        pass

    holder = Holder()

    def backend(graph, example_inputs):
        def run(*inputs):
            assert holder.compiled is not None
            return graph.forward(*inputs)

        return run

    holder.compiled = tenon.compile(lambda x: x.exp(), backend=backend)
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(holder.compiled(x).sum(), x, create_graph=True)
    gradient.sum().backward()
    gone = weakref.ref(holder)
    del holder, backend, gradient
    gc.collect()
    assert gone() is None


def test_backends_of_torch_compile_train():
    from torch._dynamo.backends.registry import lookup_backend

    net, twin = mlp(), mlp()
    data, target = data_for(net)
    compiled = tenon.compile(net, backend=lookup_backend("aot_eager"), fullgraph=True)
    torch.testing.assert_close(train(compiled, net.parameters(), data, target), train(twin, twin.parameters(), data, target))
    assert_same_state(net, twin)


@pytest.mark.parametrize("backend", [None, Seen()], ids=["plugin", "callable"])
@pytest.mark.parametrize("make", [mlp, convolutional])
def test_torch_compile_trains_by_tenon(make, backend):
    torch._dynamo.reset()
    net, twin = make(), make()
    data, target = data_for(net)
    compiled = torch.compile(net, backend="tenon", options=backend and {"backend": backend})
    torch.testing.assert_close(train(compiled, net.parameters(), data, target), train(twin, twin.parameters(), data, target))
    assert_same_state(net, twin)
    assert tenon.stats()["eager_fallbacks"] == 0 and (backend is None or True in backend.backwards)
