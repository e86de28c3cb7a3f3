"""Gradients at kinks, ties, ends of ranges and infinities, first and second: eager's, through compiled functions."""
import math

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


def of(fn, values, twice):
    leaves = [torch.tensor(v, dtype=torch.float64).requires_grad_() for v in values]
    y = fn(*leaves)
    first = torch.autograd.grad((y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum(), leaves, create_graph=twice)
    if not twice:
        return [y.detach(), *first]
    second = torch.autograd.grad(sum((g * torch.arange(2.0, g.numel() + 2).reshape(g.shape)).sum() for g in first), leaves, allow_unused=True)
    return [y.detach(), *(g.detach() for g in first), *(torch.zeros_like(x) if s is None else s for s, x in zip(second, leaves))]


@pytest.fixture
def rule():
    def run(fn, *values, orders=(1, 2)):
        for order in orders:
            tenon.reset()
            want = of(fn, values, order == 2)
            torch.testing.assert_close(of(tenon.compile(fn), values, order == 2), want, equal_nan=True)
            assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0)

    return run


GRID = [-1.0, -0.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("image", [0.0, 1.0], ids=["zeros", "values"])
def test_places_at_the_border_of_an_image(rule, mode, padding, align, image):
    x = [[[[image * math.sin(3 * i + j) for j in range(5)] for i in range(5)]]]
    grid = [[[[a, b] for a in GRID] for b in GRID]]
    rule(lambda x, g: F.grid_sample(x, g, mode, padding, align), x, grid, orders=(1, 2) if mode == "bilinear" else (1,))


ZEROS = {
    "choice": lambda x, w: torch.where(w > 0, x * x * w, x.exp() * w),
    "abs": lambda x, w: torch.where(w > 1, (x * w).tanh(), w) * x,
    "relu": lambda x, w: F.relu(w) * x * x * w,
    "maximum": lambda x, w: torch.maximum(x, w) * x,
    "attention": lambda x, w: torch.softmax(torch.where(w > 0, x * w, -1e9), -1) * x,
    "norm": lambda x, w: (x * w).norm(dim=-1) * w.sum(-1),
}


@pytest.mark.parametrize("fn", ZEROS.values(), ids=ZEROS)
def test_a_gradient_that_is_0_has_a_gradient(rule, fn):
    rule(fn, [[0.0, 1.0, 0.0], [2.0, 0.0, -1.0]], [[1.0, 2.0, -3.0], [0.5, 4.0, 1.5]])


INDEX = torch.tensor([0, 1, 0, 2, 1, 0])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_ties_and_zeros_of_scattered_reductions(rule, reduce, include_self):
    orders = (1,) if reduce == "prod" else (1, 2)  # torch refuses the second order where a place gets several zeros
    source = [2.0, 1.0, 2.0, 0.0, 1.0, 0.0]
    for self in ([2.0, 1.0, 0.0, 5.0], [0.0, 0.0, 0.0, 0.0]):
        rule(lambda x, s: x.scatter_reduce(0, INDEX, s, reduce, include_self=include_self).square(), self, source, orders=orders)
        if reduce != "sum":
            rule(lambda x, s: x.index_reduce(0, INDEX, s, reduce, include_self=include_self).square(), self, source, orders=orders)
    rule(lambda x, s: x.scatter_reduce(0, INDEX, s, reduce, include_self=include_self).square(), [1.0, 0.0, 3.0, 5.0], [2.0, 1.0, 3.0, 0.0, 1.5, 4.0])


INFINITE = [1.0, math.inf, 2.0, -math.inf, 0.5, math.nan, 0.0, -2.0]


@pytest.mark.parametrize("fn", [
    lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), lambda x, y: F.huber_loss(x, y, reduction="none", delta=0.7), lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.0),
    lambda x, y: F.prelu(x, y[:1]),
], ids=["smooth_l1", "huber", "l1", "prelu"])
def test_distances_that_are_infinite_or_no_number(rule, fn):
    rule(fn, INFINITE, [0.5] * len(INFINITE), orders=(1,))


@pytest.mark.parametrize("fn", [torch.sqrt, torch.rsqrt], ids=["sqrt", "rsqrt"])
def test_roots_of_0(rule, fn):
    rule(lambda x: fn(x) + fn(x + 1) * fn(x), [4.0, 0.0, 1.0])


def numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).tolist()


STRIDES = {
    "even": ((2, 3, 8, 9), (4, 3, 3, 3), dict(stride=2, padding=1)),
    "one weight": ((2, 3, 7, 8), (4, 3, 1, 1), dict(stride=(2, 3))),
    "patches": ((1, 2, 8, 9), (3, 2, 4, 3), dict(stride=(4, 3))),
    "dilated": ((1, 4, 11, 12), (4, 2, 3, 2), dict(stride=(2, 4), dilation=(2, 2), padding=(2, 1), groups=2)),
    "apart": ((1, 2, 9, 10), (2, 2, 2, 3), dict(stride=(5, 2), padding=(1, 2), dilation=(1, 3))),
    "not to the end": ((1, 2, 10, 7), (3, 2, 3, 3), dict(stride=4)),
    "depthwise": ((2, 4, 6, 6), (4, 1, 3, 3), dict(stride=2, padding=1, groups=4)),
}


@pytest.mark.parametrize("x, w, options", STRIDES.values(), ids=STRIDES)
def test_steps_of_convolutions(rule, x, w, options):
    rule(lambda x, w: F.conv2d(x, w, **options), numbers(*x, seed=1), numbers(*w, seed=2))


def test_steps_of_other_dimensions(rule):
    rule(lambda x, w: F.conv1d(x, w, stride=3, padding=2, dilation=2), numbers(2, 3, 11, seed=1), numbers(2, 3, 4, seed=2))
    rule(lambda x, w: F.conv3d(x, w, stride=(2, 1, 3), padding=1), numbers(1, 2, 5, 4, 6, seed=1), numbers(2, 2, 3, 2, 3, seed=2))


def test_weights_meet_only_elements_that_they_were_multiplied_with(rule):
    weight = numbers(2, 2, 3, 3, seed=2)
    weight[0][0][1][1] = math.inf
    rule(lambda x, w: F.conv2d(x, w, stride=2), numbers(1, 2, 5, 5, seed=1), weight, orders=(1,))


POOLS = {
    "overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "dilated": lambda x: F.max_pool2d(x, (3, 2), (1, 2), 1, (2, 3)),
    "ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "apart": lambda x: F.max_pool2d(x, 2, 3),
    "padded and apart": lambda x: F.max_pool2d(x, (3, 2), (4, 3), 1),
    "dilated by more than a step": lambda x: F.max_pool2d(x, 2, 2, 0, 3),
    "one window": lambda x: F.max_pool2d(x, (9, 8)),
    "three dimensions": lambda x: F.max_pool3d(x[None], 2, 2, 1),
    "with places": lambda x: F.max_pool2d(x, 2, return_indices=True)[0],
    "adaptive": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "one dimension": lambda x: F.max_pool1d(x[:, 0], 3, 1, 1),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("ties", [False, True])
def test_the_largest_of_windows(rule, pool, ties):
    x = torch.tensor(numbers(2, 2, 9, 8, seed=3))
    rule(pool, (x.clamp(-0.5, 0.5) if ties else x).tolist())


def product_by_place(x, s, include_self):
    """What a scattered product gives, element by element."""
    found = []
    for place in range(x.numel()):
        factors = [s[i] for i in range(s.numel()) if INDEX[i] == place]
        found.append(math.prod(factors, start=x[place] if include_self or not factors else torch.ones((), dtype=x.dtype)))
    return torch.stack(found)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("by", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("source", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0, 2.0, 3.0, 0.0, 5.0, 6.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0, 0.0, 3.0]])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_second_gradients_of_products_with_several_zeros_at_a_place(by, source, include_self):
    """torch refuses them."""
    getattr(torch.ones(4), by)(0, INDEX, torch.ones(6), "prod")  # torch warns of index_reduce once, in the first call of a process
    for values in ([1.0, 2.0, 3.0, 5.0], [0.0, 2.0, 0.0, 5.0]):
        want = of(lambda x, s: product_by_place(x, s, include_self).pow(3), [values, source], True)
        got = of(tenon.compile(lambda x, s: getattr(x, by)(0, INDEX, s, "prod", include_self=include_self).pow(3)), [values, source], True)
        torch.testing.assert_close(got, want)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("shape, groups", [((1, 6, 3), 2), ((2, 6, 3), 2), ((1, 6, 7), 2), ((1, 12, 3), 4), ((2, 6, 5), 3)])
def test_a_value_of_few_points_beside_sums_of_many_is_written_over_by_none_of_those(shape, groups):
    """It is stored at each of the many points; where it lies over what it was computed from, the second one would read what the first has stored."""
    def step(x, weight, bias):
        torch.nn.functional.group_norm(x, groups, weight, bias, 0.5).sum().backward()

    def leaves():
        torch.manual_seed(0)
        return [torch.randn(*size, dtype=torch.float64).requires_grad_() for size in (shape, shape[1:2], shape[1:2])]

    want, got = leaves(), leaves()
    step(*want)
    tenon.compile(step)(*got)
    torch.testing.assert_close([t.grad for t in got], [t.grad for t in want])
