"""Hooks that are told of gradients, of tensors, parameters and modules: a whole step asks them and stays one graph."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

D = torch.float64


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3)).to(D)


class Counting:
    calls = 0

    def __call__(self, gradient):
        self.calls += 1
        return gradient * (1 + self.calls)


def counted(net, log):
    return net[0].weight.register_hook(Counting())


def on_each_parameter(hook):
    return lambda net, log: [p.register_hook(lambda g, p=p: hook(g, p, log)) for p in net.parameters()]


def after_each_parameter(hook):
    return lambda net, log: [p.register_post_accumulate_grad_hook(lambda p: hook(p, log)) for p in net.parameters()]


def several(net, log):
    weight = net[0].weight
    return [weight.register_hook(lambda g: g + 1), weight.register_hook(lambda g: g * 2), weight.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))]


def halve(parameter, log):
    parameter.grad.mul_(0.5)


def step_at_once(net, log):
    optimizers = {p: torch.optim.SGD([p], 0.05) for p in net.parameters()}

    def take(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    return [p.register_post_accumulate_grad_hook(take) for p in net.parameters()]


def written_in_place(gradient, parameter, log):
    gradient.mul_(3)


HOOKS = {
    "forward": lambda net, log: net[0].register_forward_hook(lambda module, args, out: out * 2),
    "forward, for the record": lambda net, log: net[1].register_forward_hook(lambda module, args, out: log.append(out.detach().mean())),
    "before forward": lambda net, log: net[3].register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    "backward": lambda net, log: net[3].register_full_backward_hook(lambda module, incoming, outgoing: (incoming[0] * 0.5,)),
    "backward, for the record": lambda net, log: net[2].register_full_backward_hook(lambda module, incoming, outgoing: log.append((incoming[0].sum(), outgoing[0].norm()))),
    "before backward": lambda net, log: net[3].register_full_backward_pre_hook(lambda module, outgoing: (outgoing[0] * 2,)),
    "of all modules": lambda net, log: [m.register_full_backward_hook(lambda module, incoming, outgoing: log.append(outgoing[0].norm())) for m in net[1:]],
    "parameter": on_each_parameter(lambda g, p, log: g.clamp(-0.01, 0.01)),
    "parameter, nothing": on_each_parameter(lambda g, p, log: None),
    "parameter, for the record": on_each_parameter(lambda g, p, log: log.append((g.norm(), tuple(p.shape)))),
    "parameter, in place": on_each_parameter(written_in_place),
    "parameter, a counter": counted,
    "several": several,
    "after": after_each_parameter(halve),
    "after, for the record": after_each_parameter(lambda p, log: log.append(p.grad.sum())),
    "after, a step": step_at_once,
}


def trained(put, level, steps=4, between=lambda handles, step: None, zero=True):
    net, log = network(), []
    handles = put(net, log)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    model = tenon.compile(net) if level == "model" else net

    def step(x, y):
        optimizer.zero_grad(set_to_none=zero)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if level == "step" else step
    generator = torch.Generator().manual_seed(3)
    losses = []
    for number in range(steps):
        losses.append(run(torch.randn(5, 6, dtype=D, generator=generator, requires_grad=True), torch.randint(0, 3, (5,), generator=generator)).detach())
        between(handles, number)
    return [losses, list(net.parameters()), [p.grad for p in net.parameters()], log]


def compare(put, level, **settings):
    want = trained(put, None, **settings)
    before = tenon.stats()
    got = trained(put, level, **settings)
    assert [type(x) for x in got[3]] == [type(x) for x in want[3]]
    torch.testing.assert_close(got, want)
    return tuple(tenon.stats()[name] - before[name] for name in ("graphs", "graph_breaks", "eager_fallbacks"))


@pytest.mark.parametrize("put", HOOKS.values(), ids=HOOKS)
def test_a_whole_step_is_one_graph(put):
    graphs = {step_at_once: 1, counted: 3}.get(put, 2)  # its optimizer finds no gradient, and makes no state; a count varies once it was another one
    assert compare(put, "step") == (graphs, 0, 0)


@pytest.mark.parametrize("put", HOOKS.values(), ids=HOOKS)
def test_a_compiled_model(put):
    compare(put, "model")


@pytest.mark.parametrize("name", ["parameter", "several", "backward"])
def test_gradients_that_add_up(name):
    compare(HOOKS[name], "step", zero=False)


@pytest.mark.parametrize("name", ["forward", "backward", "parameter, a counter"])
def test_a_hook_is_taken_off(name):
    compare(HOOKS[name], "step", steps=6, between=lambda handle, step: handle.remove() if step == 2 else None)


def test_a_hook_is_put_on_between_steps():
    found = []
    for compiled in (False, True):
        net, seen = network(), []

        def step(x, net=net):
            net.zero_grad()
            net(x).sum().backward()

        run = tenon.compile(step) if compiled else step
        for number in range(4):
            if number == 2:
                net[0].bias.register_hook(lambda g, seen=seen: seen.append(g.sum()) or g * 2)
            run(torch.ones(2, 6, dtype=D))
        found.append((seen, [p.grad for p in net.parameters()]))
    assert len(found[1][0]) == 2
    torch.testing.assert_close(found[1], found[0])


def test_what_a_hook_kept_is_not_the_gradient():
    for compiled in (False, True):
        net, kept = network(), []
        net[0].weight.register_hook(lambda g, kept=kept: kept.append(g))

        def step(x, net=net):
            net(x).sum().backward()

        (tenon.compile(step) if compiled else step)(torch.ones(2, 6, dtype=D))
        before = kept[0].clone()
        assert net[0].weight.grad is not kept[0]
        net[0].weight.grad.zero_()
        torch.testing.assert_close(kept[0], before)


@pytest.mark.parametrize("hook", [lambda g: g[0], lambda g: g.float(), lambda g: 1])
def test_what_torch_refuses_is_refused(hook):
    net = network()
    net[0].weight.register_hook(hook)
    compiled = tenon.compile(lambda x: net(x).sum().backward())
    for _ in range(2):
        with pytest.raises((RuntimeError, TypeError)):
            compiled(torch.ones(2, 6, dtype=D))


@pytest.mark.parametrize("given", [lambda p: p.grad.mul_(2), lambda p: p.grad, lambda p: 3], ids=["what is written", "the gradient", "a number"])
def test_a_hook_after_accumulation_gives_something(given):
    """torch calls the next one with that, and says at the end what it thinks of it."""
    def step(weight, x):
        handle = weight.register_post_accumulate_grad_hook(given)
        try:
            (weight * x).sum().backward()
        except (RuntimeError, AttributeError, TypeError) as error:
            return type(error), str(error), weight.grad.clone()
        finally:
            if x.sum() > 3:
                handle.remove()

    def calls(step):
        weight = torch.ones(3, dtype=D, requires_grad=True)
        return [step(weight, torch.full((3,), float(k), dtype=D)) for k in range(5)]

    for found, expected in zip(calls(tenon.compile(step)), calls(step)):
        assert found[:2] == expected[:2]
        torch.testing.assert_close(found[2], expected[2])


def test_gradients_by_name_pass_the_hooks_of_leaves():
    weight = torch.ones(3, dtype=D, requires_grad=True)
    weight.register_hook(lambda g: g * 3)
    weight.register_post_accumulate_grad_hook(lambda p: 1 / 0)

    def slope(x):
        return torch.autograd.grad((weight * x).sin().sum(), weight)

    x = torch.arange(3, dtype=D)
    compiled = tenon.compile(slope)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), slope(x))
    assert tenon.stats()["graph_breaks"] == 0


def test_gradients_by_name_are_given_in_their_order():
    found = []
    for compiled in (False, True):
        net = network()
        net[0].weight.register_hook(lambda g: g * 3)

        def slopes(x, net=net):
            return torch.autograd.grad(net(x).sum(), list(net.parameters()))

        found.append((tenon.compile(slopes) if compiled else slopes)(torch.ones(2, 6, dtype=D)))
    torch.testing.assert_close(found[1], found[0])


LAYERS = {
    "linear": lambda: nn.Linear(4, 4), "linear without bias": lambda: nn.Linear(4, 4, bias=False), "layer norm": lambda: nn.LayerNorm(4), "batch norm": lambda: nn.BatchNorm1d(4),
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.GroupNorm(2, 2), nn.Flatten()), "twice": lambda: nn.Sequential(*[nn.Linear(4, 4)] * 2),
    "recurrent": lambda: nn.Sequential(nn.Unflatten(1, (2, 2)), Last(nn.LSTM(2, 4, batch_first=True))), "of two": lambda: Last(nn.Sequential(nn.Linear(4, 4), Pair())),
}


class Last(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0].flatten(1)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x * self.gain + self.shift, x


@pytest.mark.parametrize("level", ["step", "model"])
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_hooks_are_called_in_torchs_order(make, kind, level):
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net, names = nn.Sequential(nn.Linear(4, 4), make(), nn.Tanh()).to(D), []
        for name, parameter in net.named_parameters():
            put = parameter.register_hook if kind == "before" else parameter.register_post_accumulate_grad_hook
            put(lambda _, name=name, names=names: names.append(name))
        model = tenon.compile(net) if compiled and level == "model" else net

        def step(x, model=model):
            model(x).sum().backward()

        (tenon.compile(step) if compiled and level == "step" else step)(torch.randn(3, 4, dtype=D))
        found.append(names)
    assert found[1] == found[0]
    assert tenon.stats()["graph_breaks"] == 0


def test_gradients_are_retained():
    found = []
    for compiled in (False, True):
        net = network()

        def step(x, net=net):
            net.zero_grad()
            hidden = net[0](x)
            hidden.retain_grad()
            net[1:](hidden).sum().backward(retain_graph=True)
            first = hidden.grad.norm()
            (hidden * 2).sum().backward()
            return first, hidden.grad.sum()

        run = tenon.compile(step) if compiled else step
        found.append([run(torch.ones(2, 6, dtype=D)) for _ in range(3)])
    torch.testing.assert_close(found[1], found[0])
    assert tenon.stats()["graph_breaks"] == 0


def test_a_retained_gradient_is_seen_from_outside():
    for compiled in (False, True):
        net = network()

        def step(x, net=net):
            hidden = net[0](x)
            hidden.retain_grad()
            hidden.sin().sum().backward()
            return hidden

        run = tenon.compile(step) if compiled else step
        for _ in range(2):
            hidden = run(torch.ones(2, 6, dtype=D))
            torch.testing.assert_close(hidden.grad, hidden.detach().cos())


def test_a_module_may_not_write_what_a_hook_shows_it():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
    net[1].register_full_backward_hook(lambda module, incoming, outgoing: None)
    compiled = tenon.compile(lambda x: net(x).sum().backward())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="modified inplace"):
            compiled(torch.ones(2, 3))


def added_again(x, y):
    seen = y.sin()
    y.register_hook(lambda g: g + 1)
    return seen


def taken_off(x, y):
    first = y.register_hook(lambda g: g * 5)
    y.register_hook(lambda g: g - 2)
    first.remove()
    y.register_hook(lambda g: g * 7)
    return y.sin()


HOOKED = {
    "two": lambda x, y: (y.register_hook(lambda g: g + 1), y.sin())[1],
    "retained after": lambda x, y: (y.retain_grad(), y.sin())[1],
    "retained twice": lambda x, y: (y.retain_grad(), y.retain_grad(), y.sin())[2],
    "retained between": lambda x, y: (y.retain_grad(), y.register_hook(lambda g: g + 1), y.sin())[2],
    "added when it has been read": added_again,
    "taken off and added": taken_off,
    "one that gives nothing": lambda x, y: (y.register_hook(lambda g: None), y.register_hook(lambda g: g.clamp(max=1)), y.sin())[2],
    "what is behind": lambda x, y: ((z := y * 5).register_hook(lambda g: g - 1), z.sin())[1],
}


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_of_a_tensor_are_called_in_the_order_in_which_they_came(name):
    def step(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        HOOKED[name](x, y).sum().backward()
        return y.grad if name.startswith("retained") else None

    found = []
    for run in (step, tenon.compile(step)):
        for _ in range(2):
            x = torch.linspace(0, 2, 5).requires_grad_()
            found.append([run(x), x.grad])
    torch.testing.assert_close(found[2:], found[:2])
    assert tenon.stats()["graph_breaks"] == 0


WALKS = {
    "it alone": lambda z, x, y, w: torch.autograd.grad(z, y),
    "it and what is behind": lambda z, x, y, w: torch.autograd.grad(z, (y, x)),
    "what is before": lambda z, x, y, w: torch.autograd.grad(z, w),
    "it and what is before": lambda z, x, y, w: torch.autograd.grad(z, (w, y)),
    "all": lambda z, x, y, w: torch.autograd.grad(z, (x, w, y)),
    "what is behind": lambda z, x, y, w: torch.autograd.grad(z, x),
    "it twice": lambda z, x, y, w: (*torch.autograd.grad(z, y, retain_graph=True), *torch.autograd.grad(z, y)),
    "with a gradient": lambda z, x, y, w: torch.autograd.grad(z * 2, y, torch.tensor(3.0)),
    "to be differentiated": lambda z, x, y, w: torch.autograd.grad(torch.autograd.grad(z, y, create_graph=True)[0].sum(), x),
}


@pytest.mark.parametrize("way", WALKS)
@pytest.mark.parametrize("name", ["none", "two", "taken off and added", "what is behind"])
def test_the_gradient_of_a_hooked_tensor_by_name(name, way):
    def step(x):
        called = []
        y = x * 2
        y.register_hook(lambda g: called.append(g.sum().detach()))
        y.register_hook(lambda g: g * 3)
        if name != "none":
            HOOKED[name](x, y)
        w = y * 5
        w.register_hook(lambda g: g + x.detach())
        return [g.detach() for g in WALKS[way]((w.sin() + y.cos()).sum(), x, y, w)], called

    found = []
    for run in (step, tenon.compile(step)):
        for _ in range(2):
            found.append(run(torch.linspace(0, 2, 5).requires_grad_()))
    torch.testing.assert_close(found[2:], found[:2])
    assert tenon.stats()["graph_breaks"] == 0


def test_what_is_not_on_the_way_retains_nothing():
    def step(x):
        y = x * 2
        y.retain_grad()
        w = y * 5
        gradient, = torch.autograd.grad((w.sin() + y).sum(), w)
        return gradient, y.grad is None

    found = [run(torch.linspace(0, 2, 5).requires_grad_()) for run in (step, tenon.compile(step))]
    torch.testing.assert_close(found[1][0], found[0][0])
    assert found[0][1] and found[1][1]


def written_when_retained(x):
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sin().sum().backward()
    return x.grad, y.grad


def written_when_hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.mul_(3)
    y.register_hook(lambda g: g + 1)
    y.sin().sum().backward()
    return (x.grad,)


@pytest.mark.parametrize("function", [written_when_retained, written_when_hooked])
def test_writes_beside_hooks(function):
    found = []
    for run in (function, tenon.compile(function)):
        for _ in range(2):
            found.append(run(torch.linspace(0, 2, 5).requires_grad_()))
    torch.testing.assert_close(found[2:], found[:2])
