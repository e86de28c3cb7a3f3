"""The nodes of compiled segments in torch's autograd graph, of both kinds: what a program can see of them is what it sees of torch's own."""
import gc
import threading
import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("tier")


def product(x, w):
    return torch.tanh(x @ w).sum(0)


def chain(a, b, c):
    return torch.tanh(torch.tanh(a @ b) @ c)


def told(error):
    return f"{type(error).__name__}: {error}"


@pytest.fixture
def both(leaf):
    """Runs a situation with the function and with the function compiled, on the same leaves, and compares what it tells."""

    def run(fn, situation, *shapes):
        results = []
        for f in (fn, tenon.compile(fn)):
            leaves = [leaf(*shape, seed=seed) for seed, shape in enumerate(shapes)]
            results.append(situation(f, *leaves))
        torch.testing.assert_close(results[1], results[0], equal_nan=True)

    return run


def gradients_of(*leaves):
    return [torch.zeros(()) if p.grad is None else p.grad for p in leaves]


def test_only_what_is_given_is_differentiated(both):
    def situation(f, x, w):
        seen = []
        for at in range(3):
            x.grad = w.grad = None
            f(x * 0, w)[at].sum().backward()
            seen += gradients_of(x, w)
        return seen

    both(lambda x, w: ((x @ w) * 2, (x @ w).sqrt(), x @ w), situation, (3, 3), (3, 3))


def test_only_what_is_asked_for_is_given(both):
    def situation(f, x, w):
        y = f(x, w).sum()
        alone = torch.autograd.grad(y, w, retain_graph=True)
        y.backward(inputs=[x])
        return *alone, x.grad, torch.tensor(w.grad is None)

    both(product, situation, (4, 4), (4, 4))


def test_an_input_that_is_given_twice(both):
    both(lambda a, b: a * b + a, lambda f, x: torch.autograd.grad(f(x, x).sum(), x), (3,))


def test_a_gradient_that_is_none_is_handed_on_as_none(both):
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return None

    def situation(f, x):
        Nothing.apply(f(x)).sum().backward()
        return torch.tensor(x.grad is None)

    both(torch.exp, situation, (3,))


def test_hooks_of_the_node_see_and_change_gradients(both):
    def situation(f, a, b):
        seen, y = [], f(a, b)
        y.grad_fn.register_prehook(lambda given: (given[0] * 3,))
        y.grad_fn.register_hook(lambda made, given: seen.extend([*made, *given]))
        y.sum().backward()
        return seen, gradients_of(a, b)

    both(lambda a, b: a * b, situation, (3, 3), (3, 3))


def test_hooks_of_leaves_run_in_torchs_order(both):
    def situation(f, *leaves):
        order, accumulators = [], []
        for at, p in enumerate(leaves):
            p.register_hook(lambda g, at=at: order.append(at))
            p.register_post_accumulate_grad_hook(lambda p, at=at: order.append(10 + at))
            accumulators.append(torch.autograd.graph.get_gradient_edge(p).node)
            accumulators[-1].register_hook(lambda *g, at=at: order.append(20 + at))
        f(*leaves).sum().backward()
        return torch.tensor(order), gradients_of(*leaves)

    both(chain, situation, (3, 3), (3, 3), (3, 3))


def test_hooks_of_accumulators_alone(both):
    def situation(f, *leaves):
        order, accumulators = [], [torch.autograd.graph.get_gradient_edge(p).node for p in leaves]
        for at, accumulator in enumerate(accumulators):
            accumulator.register_hook(lambda *g, at=at: order.append(at))
        f(*leaves).sum().backward()
        return torch.tensor(sorted(order)), gradients_of(*leaves)

    both(chain, situation, (3, 3), (3, 3), (3, 3))


def test_a_hook_that_raises_stops_the_backward(leaf):
    x = leaf(3)

    def refuse(g):
        raise ValueError("no")

    x.register_hook(refuse)
    with pytest.raises(ValueError, match="no"):
        tenon.compile(torch.tanh)(x).sum().backward()
    assert x.grad is None


def test_results_may_be_written_and_viewed(both):
    def situation(f, a):
        y = f(a)
        y.mul_(3)
        y[0].mul_(2)
        y.t().sum().backward()
        return a.grad

    both(lambda a: a * 2, situation, (3, 3))


def test_errors_are_torchs(leaf):
    def errors(f):
        x, w = leaf(4, 4), leaf(4, 4, seed=1)
        y = f(x, w).sum()
        with torch.no_grad():
            w.add_(1)
        with pytest.raises(RuntimeError) as written:
            y.backward()
        y = f(x, w).sum()
        y.backward()
        with pytest.raises(RuntimeError) as twice:
            y.backward()
        with pytest.raises(RuntimeError) as shape:
            f(x, w).backward(torch.ones(3).double())
        return [told(e.value) for e in (written, twice, shape)]

    fn = lambda x, w: x @ w  # noqa: E731
    assert errors(tenon.compile(fn)) == errors(fn)


def test_nothing_is_kept_where_nothing_is_read(both):
    def situation(f, x, w):
        y = f(x, w).sum()
        y.backward(retain_graph=True)
        y.backward()
        return gradients_of(x, w)

    both(lambda x, w: x + w, situation, (3,), (3,))


def test_anomaly_mode_names_the_node(leaf):
    x = (leaf(2) * 0).detach().requires_grad_()
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SegmentBackward.* returned nan values in its 0th output"):
        (tenon.compile(torch.sqrt)(x) * 0).sum().backward()


@pytest.mark.parametrize("tangent", [lambda t: t.t(), lambda t: t[:1, :1].expand(4, 4), lambda t: t.repeat(2, 2)[::2, ::2], lambda t: t[0].expand(4, 4), lambda t: t.flip(0)])
def test_gradients_that_lie_otherwise(both, tangent):
    def situation(f, x, t):
        return [g.contiguous() for g in torch.autograd.grad(f(x), x, (tangent(t.detach()), tangent(t.detach() * 2)))]

    both(lambda x: (x * x, x.t().exp()), situation, (4, 4), (4, 4))


def test_what_sum_hands_on_is_not_copied(leaf, tier):
    compiled, x = tenon.compile(product), leaf(4, 4)
    compiled(x, x).sum().backward()
    assert tenon.stats()["autograd"]["copied_gradients"] == 0
    assert tenon.stats()["autograd"]["backward_graphs"] == 1


def test_gradients_of_leaves_lie_as_the_leaves(both):
    def situation(f, x, w):
        x, w = (t.detach().contiguous(memory_format=torch.channels_last).requires_grad_() for t in (x, w))
        f(x, w).sum().backward()
        return x.grad, w.grad, torch.tensor([*x.grad.stride(), *w.grad.stride()])

    both(F.conv2d, situation, (2, 3, 6, 6), (4, 3, 3, 3))


def penalty(f, *leaves):
    first, = torch.autograd.grad(f(*leaves).sum(), leaves[0], create_graph=True)
    (first**2).sum().backward()
    return gradients_of(*leaves)


def test_gradients_of_gradients_of_one_of_several_results(both):
    for at in range(3):
        both(lambda x, w: ((x @ w).sin(), (x @ w).abs().sqrt(), x @ w), lambda f, *leaves, at=at: penalty(lambda *a: f(*a)[at], *leaves), (3, 3), (3, 3))


def test_gradients_of_gradients_of_a_network(both):
    network = lambda x, w, g, b: F.relu(F.batch_norm(F.conv2d(x, w), None, None, g, b, training=True)).pow(2)  # noqa: E731
    both(network, penalty, (2, 2, 5, 5), (3, 2, 3, 3), (3,), (3,))


def test_gradients_of_gradients_read_a_random_value_again(leaf):
    fn, results = lambda x: F.dropout(x, 0.5) * x, []  # noqa: E731
    for f in (fn, tenon.compile(fn)):
        torch.manual_seed(0)
        x = leaf(50)
        results.append(penalty(f, x))
    torch.testing.assert_close(results[1], results[0])


def test_gradcheck(leaf):
    leaves = leaf(3, 3), leaf(3, 3, seed=1)
    assert torch.autograd.gradcheck(tenon.compile(product), leaves) and torch.autograd.gradgradcheck(tenon.compile(product), leaves)


@pytest.mark.parametrize("rows", [(2, 3, 5, 7)])
def test_sizes_and_numbers_that_vary(leaf, rows):
    fn, results = lambda x, w, s: torch.tanh(x @ w * s) * s, []  # noqa: E731
    for f in (fn, tenon.compile(fn)):
        results.append([penalty(lambda *a, s=n + 0.5: f(*a, s), leaf(n, 4), leaf(4, 4, seed=1)) for n in rows])
    torch.testing.assert_close(results[1], results[0])


def test_batches_of_gradients(leaf):
    fn, x = lambda x: x.exp() * x.sum(), leaf(3)  # noqa: E731
    compiled, eye = tenon.compile(fn), torch.eye(3).double()
    want = torch.autograd.functional.jacobian(fn, x)
    y = compiled(x)
    torch.testing.assert_close(torch.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)[0], want)
    torch.testing.assert_close(torch.func.vmap(lambda g: torch.autograd.grad(y, x, g, retain_graph=True)[0])(eye), want)
    torch.testing.assert_close(torch.autograd.functional.jacobian(compiled, x, vectorize=True), want)
    torch.testing.assert_close(torch.autograd.functional.hessian(lambda x: compiled(x).sum(), x), torch.autograd.functional.hessian(lambda x: fn(x).sum(), x))


def test_an_input_that_nothing_reads_is_not_held(leaf, tier):
    compiled = tenon.compile(lambda h, w: torch.tanh(h) + w)
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    for _ in range(2):
        h, other = x.sin(), w * 2
        memory = [weakref.ref(t.untyped_storage()) for t in (h, other)]
        y = compiled(h, other).sum()
        del h, other
        gc.collect()
        if tier == "native":
            assert memory[1]() is None
        g, = torch.autograd.grad(y, w, create_graph=True)
        torch.testing.assert_close(g, 2 * torch.ones_like(w))


def test_threads_share_a_function_and_a_graph(leaf):
    compiled, results = tenon.compile(product), []
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    shared = compiled(x, w).sum()

    def work(seed):
        p = leaf(4, 4, seed=seed)
        for _ in range(20):
            p.grad = None
            compiled(p, w.detach()).sum().backward()
        shared.backward(retain_graph=True)
        results.append((p, p.grad))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(x.grad, 4 * torch.autograd.grad(product(x, w).sum(), x)[0])
    assert len(results) == 4
    for p, got in results:
        torch.testing.assert_close(got, torch.autograd.grad(product(p, w.detach()).sum(), p)[0])


def test_a_long_chain_of_nodes_ends(leaf):
    compiled, x = tenon.compile(lambda x: x * 1.0001), leaf(1)
    y = x
    for _ in range(20000):
        y = compiled(y)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x.detach(), 1.0001**20000))
    y = compiled(x)
    for _ in range(20000):
        y = compiled(y)
    del y
    gc.collect()


def test_a_function_may_end_before_its_nodes(leaf):
    x = leaf(3)
    y = tenon.compile(lambda x: x.exp() * 2)(x)
    tenon.reset()
    gc.collect()
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())


def test_a_walk_that_comes_to_what_was_walked_through_adds_no_gradients(leaf):
    def step(x, w, state):
        state = torch.tanh(x @ w + state)
        state.sum().backward()
        return state

    def outcome(f):
        w = leaf(3, 3)
        state = f(leaf(2, 3, seed=1, grad=False), w, torch.zeros(2, 3, dtype=torch.float64))
        w.grad = None
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            f(leaf(2, 3, seed=2, grad=False), w, state)
        return w.grad

    compiled = tenon.compile(step)
    for _ in range(2):
        assert outcome(step) is None and outcome(compiled) is None


@pytest.mark.parametrize("leaf", [lambda: torch.ones(1, 3).double().expand(4, 3), lambda: torch.ones(8).double().unfold(0, 4, 2)], ids=["expanded", "windows"])
@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.t(), lambda x: x[:, ::2].unsqueeze(0)], ids=["a part", "turned", "every second"])
def test_a_view_of_a_leaf_whose_elements_share_memory(view, leaf):
    found = []
    for function in (view, tenon.compile(view)):
        x = leaf().detach().requires_grad_()
        y = function(x)
        (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
        found.append((y, x.grad))
    torch.testing.assert_close(found[1], found[0])
