"""Steps with functions that have gradients of their own: the program's (torch.autograd.Function) and torch's (recurrent layers, scaled losses)."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd.function import once_differentiable  # noqa: E402

from tests.python.training.functions import Several  # noqa: E402

D = torch.float64


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.alpha * gradient, None


class Unmaterialised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        return second * 30 if first is None else first * 2


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(y := x.exp())
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.power * x ** (ctx.power - 1), None


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def domain(net, x, y):
    return F.cross_entropy(net[1](Reversed.apply(net[0](x), 0.5)), y)


def several(net, x, y):
    product, total, places = Several.apply(net[0](x), net[0].bias, 2.0)
    return F.cross_entropy(net[1](product), y) + total * 0.01 + places.double().mean()


def one_of_several(net, x, y):
    return F.cross_entropy(net[1](Several.apply(net[0](x), net[0].bias, 2.0)[0]), y)


def unmaterialised(net, x, y):
    return F.cross_entropy(net[1](Unmaterialised.apply(net[0](x))[1]), y)


def after_each_other(net, x, y):
    h = net[0](x)
    return F.cross_entropy(net[1](Exponential.apply(Reversed.apply(Exponential.apply(h * 0.1), 0.3)) + h), y)


def beside_each_other(net, x, y):
    h = net[0](x)
    return F.cross_entropy(net[1](Exponential.apply(h) + Reversed.apply(h, 0.3)), y)


def context_set_up(net, x, y):
    return F.cross_entropy(net[1](Cube.apply(net[0](x), 3)), y)


def of_a_parameter(net, x, y):
    return F.cross_entropy(F.linear(net[0](x), Exponential.apply(net[1].weight)), y)


def penalised(net, x, y):
    x = x.detach().requires_grad_()
    out = net[1](Exponential.apply(net[0](x)))
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return F.cross_entropy(out, y) + slope.pow(2).mean()


def in_place(net, x, y):
    return F.cross_entropy(net[1](Doubled.apply(net[0](x) * 1)), y)


def network():
    torch.manual_seed(1)
    return nn.ModuleList([nn.Linear(6, 8), nn.Linear(8, 3)]).double()


def classes(seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(5, 6, dtype=D, generator=g), torch.randint(0, 3, (5,), generator=g)


def sequences(seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(4, 7, 6, dtype=D, generator=g), torch.randint(0, 3, (7,), generator=g)


def train(net, loss_of, data, check, one_graph=True, calls=3):
    """Steps of SGD by a plain and a compiled twin."""
    twins = []
    for wrap in (lambda step: step, tenon.compile):
        twin = net()
        optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)

        def step(x, y, twin=twin, optimizer=optimizer):
            optimizer.zero_grad()
            loss = loss_of(twin, x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        twins.append((twin, wrap(step)))
    for seed in range(calls):
        losses = []
        for _, step in twins:
            torch.manual_seed(seed)
            losses.append(step(*data(seed)))
        torch.testing.assert_close(losses[1], losses[0])
        for p, q in zip(twins[0][0].parameters(), twins[1][0].parameters()):
            torch.testing.assert_close(q, p)
            assert (q.grad is None) == (p.grad is None)
    stats = tenon.stats()
    assert not one_graph or (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 0)


@pytest.mark.parametrize("loss", [domain, several, one_of_several, unmaterialised, after_each_other, beside_each_other, context_set_up, of_a_parameter, penalised])
def test_backward_of_the_programs_functions_is_a_part_of_the_graph(loss, check):
    train(network, loss, classes, check)


def test_a_function_that_writes_its_input_is_torchs(check):
    train(network, in_place, classes, check, one_graph=False)


def test_a_function_of_a_compiled_module_is_in_its_graph(check):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = network()

        def forward(self, x):
            return self.layers[1](Exponential.apply(self.layers[0](x)))

    plain, twin = Module(), Module()
    fast = tenon.compile(twin)
    for seed in range(3):
        for model, net in ((plain, plain), (fast, twin)):
            net.zero_grad()
            model(classes(seed)[0]).pow(2).sum().backward()
        for p, q in zip(plain.parameters(), twin.parameters()):
            torch.testing.assert_close(q.grad, p.grad)
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)


def written_between(x):
    h = x * 1
    z = Cube.apply(h, 3)
    h.mul_(2)
    return z.sum() + h.sum()


def too_few(x):
    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return Short.apply(x, x + 1).sum()


@pytest.mark.parametrize("loss_of", [written_between, too_few])
def test_what_torch_refuses_of_functions_is_refused_in_its_words(loss_of):
    def step(x):
        loss_of(x).backward()

    messages = []
    for run in (step, tenon.compile(step)):
        with pytest.raises(RuntimeError) as refused:
            run(torch.ones(2, 2, dtype=D, requires_grad=True))
        messages.append(str(refused.value).split(", which is output")[0].split(" at ")[0])
    assert messages[0] == messages[1]


class Recurrent(nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.core = getattr(nn, kind)(6, 5, **settings)
        self.head = nn.Linear(5 * (2 if settings.get("bidirectional") else 1), 3)
        self.first = settings.get("batch_first", False)

    def forward(self, x):
        out, _ = self.core(x)
        return self.head(out.mean(1 if self.first else 0))


@pytest.mark.parametrize(
    "kind,settings",
    [
        ("LSTM", {}),
        ("LSTM", {"num_layers": 2, "bidirectional": True, "dropout": 0.3}),
        ("GRU", {"num_layers": 2, "batch_first": True}),
        ("GRU", {"bias": False, "bidirectional": True}),
        ("RNN", {"nonlinearity": "relu"}),
        ("RNN", {}),
    ],
)
def test_recurrent_layers(kind, settings, check):
    def make():
        torch.manual_seed(1)
        return Recurrent(kind, **settings).double()

    def data(seed):
        x, y = sequences(seed)
        return (x.transpose(0, 1).contiguous(), y) if settings.get("batch_first") else (x, y)

    train(make, lambda net, x, y: F.cross_entropy(net(x), y), data, check)


def test_recurrent_cells(check):
    def make():
        torch.manual_seed(1)
        return nn.ModuleList([nn.GRUCell(6, 6), nn.RNNCell(6, 6), nn.RNNCell(6, 6, nonlinearity="relu"), nn.LSTMCell(6, 6, bias=False)]).double()

    def loss(net, x, y):
        h = torch.zeros(5, 6, dtype=D)
        for _ in range(2):
            for cell in (net[0], net[1], net[2]):
                h = cell(x, h)
            h, _ = net[3](x, (h, h))
        return h.pow(2).mean()

    train(make, loss, classes, check)


def test_weight_norm(check):
    def make():
        torch.manual_seed(1)
        return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 4), dim=1), nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=None)).double()

    train(make, lambda net, x, y: F.cross_entropy(net(x), y), classes, check)


def test_a_scaler_skips_steps_whose_gradients_are_infinite():
    twins = []
    for wrap in (lambda step: step, tenon.compile):
        torch.manual_seed(1)
        net = nn.Linear(6, 3)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

        def step(x, y, net=net, optimizer=optimizer, scaler=scaler):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            return loss.detach(), norm

        twins.append((net, optimizer, scaler, wrap(step)))
    scales = []
    for call in range(9):
        g = torch.Generator().manual_seed(call)
        x, y = torch.randn(5, 6, generator=g), torch.randint(0, 3, (5,), generator=g)
        if call in (3, 4):
            x[0, 0] = float("inf")
        (_, _, _, plain), (_, _, _, fast) = twins
        torch.testing.assert_close(fast(x, y), plain(x, y), equal_nan=True)
        for p, q in zip(twins[0][0].parameters(), twins[1][0].parameters()):
            torch.testing.assert_close(q, p)
        assert twins[0][2].state_dict() == twins[1][2].state_dict()
        scales.append(twins[1][2].get_scale())
    assert scales == [8.0, 16.0, 16.0, 8.0, 4.0, 4.0, 8.0, 8.0, 16.0]
    assert tenon.stats()["graph_breaks"] == 0


def test_a_scaler_and_its_optimizer_may_be_arguments():
    """The scaler asks for the optimizer's address: another optimizer has another state there."""
    def step(net, optimizer, scaler, x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    def objects():
        torch.manual_seed(1)
        net = nn.Linear(6, 3)
        return net, [torch.optim.SGD(net.parameters(), lr=rate) for rate in (0.1, 0.3)], torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    (net, optimizers, scaler), (twin, twins, twin_scaler) = objects(), objects()
    fast = tenon.compile(step)
    for call in range(6):
        x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
        which = call // 3
        torch.testing.assert_close(fast(twin, twins[which], twin_scaler, x, y), step(net, optimizers[which], scaler, x, y))
        for p, q in zip(net.parameters(), twin.parameters()):
            torch.testing.assert_close(q, p)
        assert scaler.state_dict() == twin_scaler.state_dict()
    assert tenon.stats()["graph_breaks"] == 0


def test_gradients_are_changed_through_data(check):
    def make():
        return network()

    def loss_of(net, x, y):
        return F.cross_entropy(net[1](net[0](x)), y)

    twins = []
    for wrap in (lambda step: step, tenon.compile):
        net = make()

        def step(x, y, net=net):
            loss = loss_of(net, x, y)
            loss.backward()
            for p in net.parameters():
                p.grad.data.clamp_(-0.01, 0.01)
                p.data.sub_(p.grad.data, alpha=0.5)
                p.grad.detach_()
                p.grad.zero_()
            return loss.detach()

        twins.append((net, wrap(step)))
    for seed in range(4):
        losses = [step(*classes(seed)) for _, step in twins]
        torch.testing.assert_close(losses[1], losses[0])
        for p, q in zip(twins[0][0].parameters(), twins[1][0].parameters()):
            torch.testing.assert_close(q, p)
            assert (q._version, q.grad._version) == (p._version, p.grad._version)
    assert tenon.stats()["graph_breaks"] == 0


def test_hooks_on_what_a_step_computes(check):
    seen = []

    def loss(net, x, y):
        h = net[0](x)
        handle = h.register_hook(lambda g: g * 3)
        gone = h.register_hook(lambda g: g * 100)
        gone.remove()
        t = h.tanh()
        t.register_hook(lambda g: seen.append(g.shape))
        with t.register_hook(lambda g: g.clamp(-0.01, 0.01)):
            first = F.cross_entropy(net[1](t), y)
        handle.remove()
        return first

    def kept(net, x, y):
        h = net[0](x)
        h.register_hook(lambda g: g * 3)
        t = h.tanh()
        t.register_hook(lambda g: seen.append(g.shape))
        t.register_hook(lambda g: g.clamp(-0.01, 0.01))
        return F.cross_entropy(net[1](t), y)

    train(network, kept, classes, check)
    assert seen == [(5, 8)] * 6
    tenon.reset()
    train(network, loss, classes, check)


def test_a_hook_that_comes_late_is_torchs(check):
    def loss(net, x, y):
        h = net[0](x)
        t = h.tanh()
        h.register_hook(lambda g: g * 3)
        return F.cross_entropy(net[1](t + h), y)

    train(network, loss, classes, check, one_graph=False)
