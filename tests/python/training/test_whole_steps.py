"""Compiled training steps: forward, backward and optimizer as one graph, and all that a training loop sees of it afterwards."""
import copy
import gc
import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

D = torch.float64


def mlp():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def batch(seed, n=5):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, dtype=D, generator=g), torch.randint(0, 3, (n,), generator=g)


def loss_of(net, x, y):
    return F.cross_entropy(net(x), y)


class Situation:
    """A program of one step over modules and optimizers; `step` is given a batch."""

    def __init__(self, *modules, optimizers=()):
        self.modules, self.optimizers = modules, optimizers

    def state(self):
        seen = [dict(m.named_parameters()) | dict(m.named_buffers()) for m in self.modules]
        return seen, [[p.grad for p in m.parameters()] for m in self.modules], [o.state_dict() for o in self.optimizers]


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        assert (got.dtype, got.shape, got.requires_grad, got.is_leaf, got.grad_fn is None) == (want.dtype, want.shape, want.requires_grad, want.is_leaf, want.grad_fn is None)
        assert [s for s, n in zip(got.stride(), got.shape) if n > 1] == [s for s, n in zip(want.stride(), want.shape) if n > 1]
        torch.testing.assert_close(got.detach(), want.detach(), rtol=1e-9, atol=1e-11)
    elif isinstance(want, dict):
        assert [k for k in got if isinstance(k, str)] == [k for k in want if isinstance(k, str)]
        same(list(got.values()), list(want.values()))
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-9, nan_ok=True)
    else:
        assert got == want


def run(make, calls=4, graphs=2):
    """Plain and compiled, from the same state on the same batches. `graphs`: at most so many captures; None where the graph breaks."""
    plain, twin = make(), make()
    fast = tenon.compile(twin.step)
    for seed in range(calls):
        results = []
        for step in (plain.step, fast):
            torch.manual_seed(seed)
            results.append(step(*batch(seed)))
        same(results[1], results[0])
        same(twin.state(), plain.state())
    if graphs is not None:
        assert tenon.stats()["graphs"] <= graphs
        assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0)
    return twin, fast


def sgd(net, **options):
    return torch.optim.SGD(net.parameters(), **{"lr": 0.1} | options)


class Step(Situation):
    """zero_grad, loss, backward, step."""

    def __init__(self, net=None, optimizer=None, loss=loss_of):
        net = net or mlp()
        super().__init__(net, optimizers=[optimizer(net) if optimizer else sgd(net, momentum=0.9)])
        self.net, self.opt, self.loss = net, self.optimizers[0], loss

    def step(self, x, y):
        self.opt.zero_grad()
        loss = self.loss(self.net, x, y)
        loss.backward()
        self.opt.step()
        return loss


class Net(Situation):
    """A network of which a step is said by a function of it and a batch."""

    def __init__(self, body, net=None):
        super().__init__(net or mlp())
        self.body = body

    def step(self, x, y):
        return self.body(self.modules[0], x, y)


def test_a_step_is_one_graph_and_its_loss_was_walked_through():
    twin, fast = run(Step)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        fast(*batch(0)).backward()


def frozen():
    net = mlp()
    net[0].requires_grad_(False)
    return net


def with_norm():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, 3)).double()


def with_constraint():
    torch.manual_seed(3)
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8)), nn.ReLU(), nn.Linear(8, 3)).double()


@pytest.mark.parametrize("net", [frozen, with_norm, with_constraint])
def test_networks(net):
    run(lambda: Step(net()))


def twice_over_parts(net, x, y):
    out = net(x)
    first, second = F.cross_entropy(out, y), out.pow(2).mean()
    first.backward(retain_graph=True)
    second.backward()
    return first, second


def several_roots(net, x, y):
    out = net(x)
    torch.autograd.backward([out.sum(), out.pow(2).mean()], [None, torch.tensor(0.5, dtype=D)])
    return out


def vector_jacobian(net, x, y):
    out = net(x)
    out.backward(torch.ones_like(out) * 2)
    return out


def inputs_only(net, x, y):
    loss_of(net, x, y).backward(inputs=[net[2].weight])


def grad_of_some(net, x, y):
    unused = torch.zeros(2, dtype=D).requires_grad_()
    return torch.autograd.grad(loss_of(net, x, y), [net[0].weight, unused], allow_unused=True)


def hessian_vector(net, x, y):
    parameters = list(net.parameters())
    gradients = torch.autograd.grad(loss_of(net, x, y), parameters, create_graph=True)
    return torch.autograd.grad(sum((g * g.detach().sin()).sum() for g in gradients), parameters)


def adversarial(net, x, y):
    for _ in range(3):
        x = x.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(loss_of(net, x, y), x)
        x = x + 0.1 * slope.sign()
    return x.detach()


def adversarial_in_place(net, x, y):
    x = x.clone().requires_grad_()
    for _ in range(3):
        loss_of(net, x, y).backward()
        with torch.no_grad():
            x += 0.1 * x.grad.sign()
        x.grad.zero_()
    return x.detach().clone()


def updates_by_hand(net, x, y):
    loss = loss_of(net, x, y)
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss


def three_steps(net, x, y):
    losses = []
    for _ in range(3):
        net.zero_grad()
        loss = loss_of(net, x, y)
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(p.grad, alpha=0.1)
        losses.append(loss.detach())
    return losses


def views_of_parameters(net, x, y):
    w = net[0].weight
    before = (x @ w[:3].t()).pow(2).mean() + (w.t()[1] ** 3).sum()
    before.backward()
    with torch.no_grad():
        w.sub_(w.grad, alpha=0.1)
    after = (w[:2] * 2).sum() + (w.t() @ w).diagonal().sum()
    after.backward()
    return before.detach(), after.detach()


def halved_and_put_by_hand(net, x, y):
    for p, g in zip(net.parameters(), torch.autograd.grad(loss_of(net, x, y), list(net.parameters()))):
        p.grad = g * 0.5
    return [p.grad for p in net.parameters()]


def what_has_no_slope(net, x, y):
    (net[0].weight.sign().sum() + net[0].weight.round().mean()).backward()


def sums_twice(net, x, y):
    loss = net[0].weight.sum() + (net[0].bias + 1).mean()
    loss.backward()
    loss.backward()
    return loss


def without_grad_mode(net, x, y):
    loss = loss_of(net, x, y)
    with torch.no_grad():
        loss.backward()
    return loss


def gradients_deleted(net, x, y):
    loss_of(net, x, y).backward()
    kept = [p.grad for p in net.parameters()]
    del net[0].weight.grad
    return kept, net[0].weight.grad


def leaves_and_nodes(net, x, y):
    x = x.detach().requires_grad_()
    out = net(x)
    said = x.is_leaf, x.grad_fn, x.grad, out.is_leaf, net[0].weight.is_leaf, net[0].weight.grad_fn
    out.sum().backward()
    return said, x.grad


@pytest.mark.parametrize(
    "body",
    [twice_over_parts, several_roots, vector_jacobian, inputs_only, grad_of_some, hessian_vector, adversarial, adversarial_in_place, updates_by_hand, three_steps,
     views_of_parameters, halved_and_put_by_hand, what_has_no_slope, sums_twice, without_grad_mode, gradients_deleted, leaves_and_nodes],
)
def test_walks_back(body):
    run(lambda: Net(body), graphs=3)


def second_time(net, x, y):
    loss = loss_of(net, x, y)
    loss.backward()
    loss.backward()


def of_many_elements(net, x, y):
    net(x).backward()


def of_no_history(net, x, y):
    with torch.no_grad():
        loss = loss_of(net, x, y)
    loss.backward()


def by_what_is_not_used(net, x, y):
    return torch.autograd.grad(loss_of(net, x, y), [net[0].weight, torch.zeros(2, dtype=D, requires_grad=True)])


def gradient_of_another_shape(net, x, y):
    net[0].weight.grad = torch.zeros(3, dtype=D)


@pytest.mark.parametrize("body", [second_time, of_many_elements, of_no_history, by_what_is_not_used, gradient_of_another_shape])
def test_what_torch_refuses_is_refused_in_its_words(body):
    plain, twin = Net(body), Net(body)
    fast = tenon.compile(twin.step)
    for seed in range(2):
        with pytest.raises((RuntimeError, TypeError)) as want:
            plain.step(*batch(seed))
        with pytest.raises(want.type) as got:
            fast(*batch(seed))
        assert str(got.value) == str(want.value)
        same(twin.state(), plain.state())


def returns_its_leaf(net, x, y):
    x = x.clone().requires_grad_()
    loss_of(net, x, y).backward()
    return x, x.grad


def loss_to_come(net, x, y):
    loss = updates_by_hand(net, x, y)
    after = loss_of(net, x, y)
    return loss, after


def gradients_with_gradients(net, x, y):
    loss_of(net, x, y).backward(create_graph=True)
    penalty = sum((p.grad**2).sum() for p in net.parameters())
    net.zero_grad()
    penalty.backward()
    return penalty


@pytest.mark.parametrize("body", [returns_its_leaf, loss_to_come, gradients_with_gradients])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
def test_what_ends_the_graph(body):
    run(lambda: Net(body), graphs=None)


class Adding(Situation):
    """Gradients add up over calls, and are emptied in place."""

    def __init__(self):
        super().__init__(mlp())

    def step(self, x, y):
        loss = loss_of(self.modules[0], x, y)
        loss.backward()
        return loss


def test_gradients_that_are_there_are_added_to_in_place():
    twin, fast = run(Adding)
    kept = [(p.grad, p.grad.data_ptr(), p.grad._version) for p in twin.modules[0].parameters()]
    fast(*batch(9))
    for p, (grad, place, version) in zip(twin.modules[0].parameters(), kept):
        assert (p.grad is grad, p.grad.data_ptr() == place, p.grad._version) == (True, True, version + 1)


def test_hooks_that_come_and_go_are_run():
    plain, twin = Step(), Step()
    fast, seen = tenon.compile(twin.step), []
    handles = {}
    for call in range(8):
        for which, (situation, step) in enumerate([(plain, plain.step), (twin, fast)]):
            weight = situation.net[0].weight
            if call == 2:
                handles[which] = weight.register_hook(lambda g: g * 2)
            if call == 4:
                handles[which].remove()
                handles[which] = weight.register_post_accumulate_grad_hook(lambda p, which=which: seen.append(which))
            if call == 6:
                handles[which].remove()
                node = weight.view_as(weight).grad_fn.next_functions[0][0]
                handles[which] = node, node.register_hook(lambda *_, which=which: seen.append(which))
            step(*batch(call))
        same(twin.state(), plain.state())
    assert seen == [0, 1] * 4


def test_kept_tensors_that_are_hooked_are_packed():
    log, twin = [], Step()
    fast = tenon.compile(twin.step)
    for hooked in (False, True):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(t.shape), t)[1], lambda t: t) if hooked else torch.enable_grad():
            fast(*batch(0))
    assert log


def test_an_error_half_way_leaves_what_plain_execution_leaves():
    class Failing(Step):
        def step(self, x, y):
            self.opt.zero_grad()
            loss_of(self.net, x, y).backward()
            if x.shape[0] == 4:
                raise ValueError("a bad batch")
            self.opt.step()

    plain, twin = Failing(), Failing()
    fast = tenon.compile(twin.step)
    for n in (5, 5, 4, 5):
        for step in (plain.step, fast):
            try:
                step(*batch(n, n))
            except ValueError as error:
                assert (n, str(error)) == (4, "a bad batch")
        same(twin.state(), plain.state())


def test_a_smaller_last_batch_costs_one_more_capture():
    plain, twin = Step(), Step()
    fast = tenon.compile(twin.step)
    for call, n in enumerate([5, 5, 5, 3, 5, 5, 4, 2]):
        same(fast(*batch(call, n)), plain.step(*batch(call, n)))
        same(twin.state(), plain.state())
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (3, 0)


def test_a_second_round_of_training_and_evaluation_captures_nothing():
    net = with_norm()
    step = Step(net)
    other = copy.deepcopy(step)
    train, check = tenon.compile(other.step), tenon.compile(lambda x: other.net(x).argmax(1))
    for turn in range(4):
        for mode in (True, False):
            for seed in range(2):
                for situation, run_step, evaluate in ((step, step.step, lambda x: net(x).argmax(1)), (other, train, check)):
                    situation.net.train(mode)
                    if mode:
                        run_step(*batch(seed))
                    else:
                        with torch.no_grad():
                            evaluate(batch(seed)[0])
        if turn == 0:
            graphs = tenon.stats()["graphs"]
    assert tenon.stats()["graphs"] == graphs
    same(other.state(), step.state())


def test_nothing_is_kept_of_a_step():
    twin, fast = run(Step)
    fast(*batch(0))
    grads = [weakref.ref(p.grad) for p in twin.net.parameters()]
    loss = weakref.ref(fast(*batch(1)))
    gc.collect()
    assert loss() is None and all(g() is None for g in grads)


def test_the_graph_of_a_step_says_where_gradients_are_computed():
    step = Step()
    report = tenon.explain(step.step)(*batch(0))
    assert (report.graph_count, report.graph_break_count) == (1, 0)
    assert "torch.autograd.grad((cross_entropy_loss,)" in str(report)
