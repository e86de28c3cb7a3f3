"""What torch's functions do against expectation, compiled: defaults of its C functions, numbers that are none, dtypes that do not go together."""
import math

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional
nan = float("nan")


def x(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) + 0.1


with_nan = x(4, 6).index_fill(1, torch.tensor([2]), nan)
signs = torch.tensor([1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize(
    "fn, args",
    [
        (torch.kl_div, (x(4, 6), x(4, 6, seed=1))),
        (torch.hinge_embedding_loss, (x(4), signs)),
        (torch.binary_cross_entropy_with_logits, (x(4, 6), x(4, 6, seed=1))),
        (torch.margin_ranking_loss, (x(4), x(4, seed=1), signs)),
        (torch.cosine_embedding_loss, (x(4, 6), x(4, 6, seed=1), signs)),
        (torch.triplet_margin_loss, (x(4, 6), x(4, 6, seed=1), x(4, 6, seed=2))),
        (torch._C._nn.mse_loss, (x(4, 6), x(4, 6, seed=1))),
        (lambda a, b: F.kl_div(a, b, reduction="batchmean"), (x(4, 6), x(4, 6, seed=1))),
        (lambda a, b: F.soft_margin_loss(a, b, reduction="none"), (x(4, 3), torch.tensor([[0, 1, 2]] * 4, dtype=torch.uint8))),
        (lambda a, b: F.multi_margin_loss(a, b, reduction="none"), (with_nan, torch.tensor([0, 2, 3, 5]))),
        (lambda a: torch.addmm(torch.ones(4, 4), a, a.T, alpha=nan), (x(4, 0),)),
        (lambda a: torch.baddbmm(torch.ones(2, 4, 4), a, a.mT, alpha=nan), (x(2, 4, 0),)),
        (lambda a: torch.addbmm(torch.ones(3, 3), a, a.mT, alpha=math.inf), (x(2, 3, 4),)),  # of one sign: elsewhere it depends on the processor where the library multiplies
        (lambda a: F.group_norm(a * 1000, 6), (x(4, 6, 1, 1),)),
        (lambda a: torch.combinations(a * 2, 2), (x(5),)),
        (lambda a: torch.histogram(a, 5)[0] + 1, (x(4, 6),)),
        (lambda a, n: a.repeat_interleave(n) * 2, (x(4), torch.tensor([1, 2, 0, 3]))),
        (lambda n: torch.bincount(n) + 1, (torch.tensor([1, 2, 0, 3, 3]),)),
        (lambda a: (a * 2).as_strided((2, 3), (6, 2), 1) + 1, (x(4, 6),)),
        (lambda a: a.as_strided((2, 3), (6, 2)), (x(4, 6),)),
        (lambda a: (a * 2).view(2, 12).as_strided(size=[2, 3], stride=[6, 1]) + 1, (x(4, 6),)),
        (lambda a: (a * 2)[1:].as_strided([2, 3], [6, 1]) + 1, (x(4, 6),)),
        (lambda a: a.t().as_strided((6, 2), (2, 1)) + a.t().mul(2).as_strided((6, 2), (2, 1)), (x(4, 6),)),
        (lambda a: (torch.all(a, dim=[]), torch.any(a > 0.5, dim=())), (x(2, 3),)),
        (lambda a: (F.elu(a, math.inf), F.celu(a, math.inf), F.elu(a, nan)), (torch.tensor([0.0, 1.0, 0.0, 2.0]),)),
        (lambda a: (a.std(True), a.var(False), torch.max(a), a.prod()), (x(2, 3),)),
    ],
)
def test_calls(check, fn, args):
    with torch.no_grad():
        check(fn, args)
    assert tenon.stats()["graph_breaks"] == 0


def test_writes_beside_a_view_by_strides(check):
    def fn(a):
        y = (a * 2).view(2, 12)
        z = y.as_strided([2, 3], [6, 1])
        y.add_(1)
        w = z * 2
        z.mul_(3)
        return y, z, w

    with torch.no_grad():
        check(fn, (x(4, 6),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("step", [0.3, float("inf")])
def test_a_running_trapezoid_sums_what_is_scaled(check, dtype, step):
    check(lambda a: torch.cumulative_trapezoid(a, dx=step), ((x(5) * 10 - 4).to(dtype),))


@pytest.mark.parametrize("shape, dim", [((0, 3), 0), ((3, 0), 1), ((3, 0), (0, 1))], ids=str)
def test_logsumexp_of_nothing(check, shape, dim):
    check(lambda a: torch.logsumexp(a, dim), (torch.zeros(shape),))
    assert tenon.stats()["graph_breaks"] == tenon.stats()["eager_fallbacks"] == 0


def test_sizes_found_by_a_kernel_of_torch_stay_a_break(check):
    with torch.no_grad():
        check(lambda i: F.one_hot(i) * 2, (torch.tensor([1, 2, 0]),))
        check(lambda a, i: [part * 2 for part in a.tensor_split(i)], (x(4, 6), torch.tensor([1, 2])))


def test_elements_beside_a_tensor_are_not_shown(check):
    whole = x(8)
    with torch.no_grad():
        check(lambda a: a.as_strided((4,), (1,), 0) * 2, (whole[4:],))
        check(lambda a: a.as_strided((3,), (3,)) * 2, (whole[:4],))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: torch.add(a, b, alpha=0.587),
        lambda a, b: torch.sub(a, b, alpha=0.587),
        lambda a, b: torch.rsub(a, b, alpha=0.587),
        lambda a, b: torch.add(a, 2.7, alpha=0.3),
        lambda a, b: torch.sub(a, 2.7, alpha=0.3),
        lambda a, b: torch.addcmul(a, b, b, value=0.3),
        lambda a, b: torch.lerp(a, b, 0.3),
        lambda a, b: torch.lerp(a, b, 0.7),
        lambda a, b: a.mul(1.4).add_(b, alpha=-0.4).clamp_(0, 255).to(torch.uint8),
    ],
    ids=["add", "sub", "rsub", "add_number", "sub_number", "addcmul", "lerp", "lerp_to_the_end", "blend"],
)
def test_products_that_are_added_are_rounded_once(fn, dtype):
    a, b = (x(515, seed=seed).abs().to(dtype) * 255 for seed in (1, 2))
    with torch.no_grad():
        assert torch.equal(tenon.compile(fn)(a, b), fn(a, b))



@pytest.mark.parametrize("fn", [torch.var, torch.std, torch.var_mean, torch.std_mean], ids=lambda fn: fn.__name__)
def test_a_variance_without_degrees_of_freedom_is_warned_of(check, fn):
    compiled = tenon.compile(lambda a, **settings: fn(a, **settings))
    with torch.no_grad():
        for shape, settings in [((1,), {}), ((1, 3), {"dim": 0}), ((2, 3), {"dim": 1, "correction": 3}), ((0, 3), {"dim": 1}), ((2, 0), {"dim": 1})]:
            for _ in range(3):
                with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
                    check.same(compiled(x(*shape), **settings), fn(x(*shape), **settings))
        tenon.reset()
        check(lambda a: fn(a, dim=1), (x(1, 2),), (x(2, 7),))
    assert tenon.stats()["opaque_nodes"] == 0


def test_what_the_library_fills_when_deterministic_algorithms_are_asked_for():
    fills = [torch.empty_like, lambda a: a.new_empty(3), lambda a: torch.empty(3) + 0 * a]
    writes = tenon.compile(lambda a, i: a.put_(i, a[:1] * 2))
    with torch.no_grad():
        compiled = [tenon.compile(fill) for fill in fills]
        for fill in compiled:
            fill(x(3))
        assert writes(x(3), torch.tensor([1])).shape == (3,)
        torch.use_deterministic_algorithms(True)
        try:
            for fill in compiled:
                assert fill(x(3)).isnan().all()
            with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
                writes(x(3), torch.tensor([1]))
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.new_zeros(2, requires_grad=True),
        lambda a: a.new_full((2,), 1.0, requires_grad=True),
        lambda a: a.new_tensor([1.0], requires_grad=True),
        lambda a: torch.ones_like(a, requires_grad=True),
        lambda a: torch.zeros(2, requires_grad=True),
    ],
)
def test_a_tensor_is_made_that_requires_grad(make):
    with torch.no_grad():
        made = tenon.compile(make)(x(3))
    assert made.requires_grad and made.is_leaf


def test_a_shared_mapping_of_a_file_shows_what_is_in_it_now(tmp_path):
    def fn(path):
        return torch.from_file(path, shared=True, size=4, dtype=torch.float32)

    compiled, path = tenon.compile(fn), str(tmp_path / "elements")
    for number in (1.0, 2.0, 3.0):
        fn(path).fill_(number)
        assert torch.equal(compiled(path), torch.full((4,), number))


@pytest.mark.parametrize(
    "fn, args, words",
    [
        (lambda a, b: torch.meshgrid(a, b), (x(2), x(3)), "indexing argument"),
        (lambda a, b: torch.cross(a, b), (x(2, 3), x(2, 3, seed=1)), "without specifying the dim"),
        (lambda a, b: torch.where(b, a, 0), (x(3), torch.tensor([1, 0, 1], dtype=torch.uint8)), "uint8 condition"),
    ],
)
def test_old_ways_to_call_warn(check, fn, args, words):
    compiled = tenon.compile(fn)
    torch.set_warn_always(True)
    try:
        for _ in range(3):
            with torch.no_grad(), pytest.warns(UserWarning, match=words):
                got = compiled(*args)
    finally:
        torch.set_warn_always(False)
    check.same(got, fn(*args))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("number", [0.3, 0.1, 0.29, 257])
@pytest.mark.parametrize(
    "fn",
    [
        lambda a, n: (a > n, a >= n, a == n, n > a),
        lambda a, n: (a % n, a.fmod(n), n % a),
        lambda a, n: (a + n, a - n, a * n, a / n, a // n, n - a, a.div(n, rounding_mode="trunc")),
        lambda a, n: (a.clamp(-n, n), F.hardshrink(a, n), F.threshold(a, n, n), torch.lerp(a, a * 2, n)),
    ],
    ids=["comparisons", "remainders", "arithmetic", "limits"],
)
def test_numbers_beside_small_floats(fn, number, dtype):
    a = torch.tensor([1, 0.5, 0.3, 0.6, 0.1, -0.5, 0.29, 256, 258]).to(dtype)
    with torch.no_grad():
        for got, want in zip(tenon.compile(fn)(a, number), fn(a, number)):
            assert got.dtype == want.dtype and torch.equal(got, want)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (torch.ops.aten.slice.Tensor(x, 1, 1, -1), torch.ops.aten.slice(x, 0, -3, None, 2) * 2),
        lambda x: (x[0, 0].unfold(0, 1, 1), x[0, 0].unfold(0, 0, 2), x.unfold(1, 2, 2)),
    ],
)
def test_views_by_rare_names_are_in_the_graph(check, fn):
    check(fn, (x(4, 6),))
    assert " on python" not in str(tenon.explain(fn)(x(4, 6)))


@pytest.mark.parametrize(
    "fn, args, message",
    [
        (lambda a, v: a.clone().fill_(v), (x(4, 3), x(3)), "0-dimension value tensor"),
        (lambda a, v: torch.fill(a, v), (x(4, 3), x(1)), "0-dimension value tensor"),
        (lambda a, n, v: (a.add(a, alpha=n), a.add(a, alpha=v)), (x(3), torch.tensor(2.0), torch.tensor(2.0, requires_grad=True)), "must be Number, not Tensor"),
        (lambda a: (a.unsqueeze(0), a.unsqueeze(2**70)), (x(3),), "Overflow"),
        (lambda a: F.celu(a, 0.0), (x(3),), "alpha cannot be 0"),
        (lambda a: torch.celu_(a.clone(), 0.0), (x(3),), "alpha cannot be 0"),
        (lambda a: F.softshrink(a, float("inf")), (x(3),), "must be in range"),
        (lambda a: F.rrelu(a, 0.1, float("inf")), (x(3),), "upper bound must be finite"),
        (lambda a: F.batch_norm(a, torch.zeros(3), torch.ones(3), eps=-1.0), (x(4, 3),), "eps must be non-negative"),
        (lambda a: torch.addr(torch.ones(3, 3), a, a, alpha=True), (x(3),), "Boolean alpha"),
        (lambda a: a.clone().sub_(a > 0), (x(3),), "Subtraction"),
        (lambda a: a.clone().__isub__(True), (x(3),), "Subtraction"),
        (lambda a, i: torch.take_along_dim(a, i), (x(4, 3), torch.tensor([[-1]])), "out of bounds"),
        (lambda a: F.hardtanh(a, 0, float("inf")), (torch.arange(3),), "without overflow"),
        (lambda a: torch.addmv(a[0], a, a[0], alpha=float("inf")), (torch.ones(3, 3, dtype=torch.int64),), "without overflow"),
    ],
    ids=["fill_", "fill", "a number that requires grad", "a large number", "celu", "celu_", "softshrink", "rrelu", "batch_norm", "addr", "sub_", "-=", "take_along_dim", "hardtanh", "addmv"],
)
def test_what_torch_refuses_is_refused(fn, args, message):
    """Also after it has taken a call of the same function."""
    for way in (fn, tenon.compile(fn), tenon.compile(fn, backend="reference")):
        with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
            way(*args)


def is_refused_alike(fn):
    """Checks that compiled code raises eager execution's TypeError, word for word."""
    with pytest.raises(TypeError) as refused:
        fn(x(4, 6))
    for way in (tenon.compile(fn), tenon.compile(fn, backend="reference")):
        with pytest.raises(TypeError) as error:
            way(x(4, 6))
        assert str(error.value) == str(refused.value)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: a.cumsum(True),
        lambda a: a.softmax(True),
        lambda a: a.mean(True, keepdim=True),
        lambda a: torch.diagonal_copy(a, True),
        lambda a: a.round(decimals=True),
        lambda a: F.group_norm(a, True),
        lambda a: a.mean(1, keepdim=2),
        lambda a: a.var(1, keepdim=None),
        lambda a: torch.isclose(a, a, equal_nan=2),
        lambda a: F.avg_pool1d(a, 2, ceil_mode=None),
        lambda a: torch.argsort(a, -1, 2),
        lambda a: torch.std(a, dim=True),
        lambda a: a.var(dim=False),
    ],
)
def test_bools_and_integers_are_not_each_other(fn):
    is_refused_alike(fn)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: torch.add(a, a, alpha=None),
        lambda a: torch.addmm(a[:4, :4], a, a.mT, beta=None),
        lambda a: torch.addcmul(a, a, a, value=None),
        lambda a: torch.cumsum(a, None),
        lambda a: torch.flip(a, None),
        lambda a: torch.isclose(a, a, rtol=None),
        lambda a: F.layer_norm(a, (6,), eps=None),
        lambda a: F.group_norm(a, 2, eps=None),
        lambda a: torch.constant_pad_nd(a, (1, 1), None),
        lambda a: F.avg_pool2d(a[None], 2, 1, None),
        lambda a: F.conv1d(a[None], a[None, :, :3], padding=None),
        lambda a: F.conv1d(a[None], a[None, :, :3], groups=None),
        lambda a: F.conv_transpose1d(a[None], a[:, :1, None], output_padding=None),
        lambda a: torch.diagonal_copy(a, offset=None),
        lambda a: torch.unique(a, sorted=0),
        lambda a: torch.argsort(a, dim=-1, stable=0.5),
        lambda a: torch.max(a, None),
        lambda a: torch.min(a, other=None),
        lambda a: torch.max(a, dim=None),
        lambda a: torch.prod(a, dim=None),
        lambda a: torch.std(a, 0, unbiased=None),
    ],
)
def test_none_and_other_kinds_where_torch_has_a_number_or_a_flag(fn):
    is_refused_alike(fn)


@pytest.mark.parametrize("order, dim", [("fro", 0), ("fro", ()), ("nuc", -1), (2.0, ()), (nan, None), ("fro", (0, 1)), (3, 1)], ids=str)
def test_norms_of_matrices_and_orders_that_are_none(order, dim):
    def given(way):
        try:
            return way(x(4, 6))
        except RuntimeError as error:
            return str(error)

    def fn(a):
        return torch.linalg.norm(a, order, dim)

    want, got = given(fn), given(tenon.compile(fn))
    assert got == want if isinstance(want, str) else torch.allclose(got, want)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_empty_stride_is_the_window_of_a_pool_and_nothing_to_a_convolution(check, rank):
    image, weight = x(*(1, 2, 6, 6, 6)[: rank + 2]), x(*(3, 2, 3, 3, 3)[: rank + 2])
    pool, convolve = getattr(F, f"avg_pool{rank}d"), getattr(F, f"conv{rank}d")
    with torch.no_grad():
        check(lambda a: pool(a, 2, stride=()), (image,))
        with pytest.raises(RuntimeError, match="expected stride to be a single integer value"):
            tenon.compile(lambda a, w: convolve(a, w, stride=()))(image, weight)


LARGE = {
    "leaky_relu": lambda a, n: F.leaky_relu(a, n),
    "elu": lambda a, n: F.elu(a, n),
    "celu": lambda a, n: F.celu(a, n),
    "softplus": lambda a, n: F.softplus(a, n),
    "hardshrink": lambda a, n: F.hardshrink(a, n),
    "hardtanh": lambda a, n: F.hardtanh(a, -abs(n), 1.0),
    "threshold": lambda a, n: F.threshold(a, 0.5, n),
    "addmm": lambda a, n: torch.addmm(a, a, a, alpha=n),
    "baddbmm": lambda a, n: torch.baddbmm(a[None], a[None], a[None], beta=n),
    "addcdiv": lambda a, n: torch.addcdiv(a, a, a, value=n),
    "add": lambda a, n: torch.add(a, a, alpha=n),
    "pad": lambda a, n: F.pad(a, (1, 1), value=n),
    "fill_": lambda a, n: a.clone().fill_(n),
    "item": lambda a, n: a.clone().__setitem__(0, n),
    "items under a mask": lambda a, n: a.clone().__setitem__(a > 0.5, n),
    "masked_fill": lambda a, n: a.masked_fill(a > 0.5, n),
    "index_fill": lambda a, n: a.index_fill(0, torch.tensor([0]), n),
    "full_like": lambda a, n: torch.full_like(a, n),
    "new_full": lambda a, n: a.new_full((2,), n),
}


@pytest.mark.parametrize("dtype, number", [(torch.float32, 1e300), (torch.float32, -1e39), (torch.bfloat16, 3.4e38), (torch.float64, 1e300), (torch.float32, float("inf"))], ids=str)
@pytest.mark.parametrize("fn", LARGE.values(), ids=LARGE)
def test_finite_numbers_beyond_the_dtype_of_a_tensor(fn, dtype, number):
    def given(way):
        try:
            return way(x(4, 4).to(dtype), number)
        except RuntimeError as error:
            return str(error)

    want = given(fn)
    for way in (tenon.compile(fn), tenon.compile(fn, backend="reference")):
        got = given(way)
        assert got == want if isinstance(want, str) or want is None else torch.allclose(got, want, equal_nan=True), (got, want)


def test_numbers_beyond_float32_are_infinite_beside_tensors():
    fn = tenon.compile(lambda a: (a + 1e300, a * -1e300, a < 1e300))
    a = x(4)
    got = fn(a)
    assert torch.equal(got[0], torch.full((4,), float("inf"))) and torch.equal(got[1], -got[0]) and got[2].all()
    assert tenon.stats()["graph_breaks"] == 0


def test_a_row_of_an_embedding_that_does_not_exist_is_no_padding():
    for row in (4, -5):
        with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
            tenon.compile(lambda w, i: F.embedding(i, w, padding_idx=row))(x(4, 3), torch.tensor([0, 1]))


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, i: a.clone().index_fill_(1, i.int(), 2.0),
        lambda a, i: a.clone().index_copy_(1, i.int(), a),
        lambda a, i: a.clone().put_(i.int(), a[0, :3]),
        lambda a, i: a.clone().masked_fill_(i > 0.5, 2.0).masked_fill_(i, 2.0),
        lambda a, i: a.clone().index_add_(1, i, a.double()),
        lambda a, i: a.clone().addcdiv_(i, i),
        lambda a, i: a.clone().addmm_(a, a.double()),
        lambda a, i: a.clone().lerp_(a.double(), 0.5),
        lambda a, i: i.repeat(3, 1).bitwise_and_(a),
        lambda a, i: i.repeat(3, 1).add_(a),
    ],
)
def test_writes_with_operands_of_dtypes_that_torch_refuses(fn):
    a, i = x(3, 3), torch.tensor([0, 1, 2])
    with pytest.raises((RuntimeError, IndexError, NotImplementedError)) as refused:
        fn(a, i)
    for way in (tenon.compile(fn), tenon.compile(fn, backend="reference")):
        with pytest.raises(refused.type) as error:
            way(a, i)
        assert str(error.value) == str(refused.value)


@pytest.mark.parametrize("name", ["__rsub__", "__rpow__", "__rmod__", "__rfloordiv__", "__rlshift__", "__rrshift__", "__rand__", "__ror__", "__radd__", "__rmul__", "__rtruediv__"])
def test_strides_of_reflected_methods(name):
    """Some compute with the operands in the other order, in which the first has the first say."""
    a, b = (x(5, 6, 7) * 3 + 1).transpose(1, 2), x(7, 6) * 3 + 1
    if name.strip("_") in ("rand", "ror", "rlshift", "rrshift"):
        a, b = a.int(), b.int()

    def fn(a, b):
        return getattr(a, name)(b)

    want, got = fn(a, b), tenon.compile(fn)(a, b)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -float("inf"), 0.0])
@pytest.mark.parametrize("beta", [1.0, -0.5])
def test_softplus_with_an_odd_threshold(threshold, beta):
    a = torch.tensor([-50, -3, 0, 1, 30, float("inf"), -float("inf"), float("nan")], dtype=torch.float64)
    compiled = tenon.compile(lambda a: F.softplus(a, beta, threshold))
    with torch.no_grad():
        torch.testing.assert_close(compiled(a), F.softplus(a, beta, threshold), equal_nan=True)
    gradients = [torch.autograd.grad(f(x := a[:5].clone().requires_grad_()).sum(), x)[0] for f in (compiled, lambda a: F.softplus(a, beta, threshold))]
    torch.testing.assert_close(*gradients)
