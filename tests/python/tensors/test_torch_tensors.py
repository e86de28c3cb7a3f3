"""Torch tensors through compiled code: layouts, views, modes, refusals."""
import re
import subprocess
import sys

import pytest

import tenon

torch = pytest.importorskip("torch")


def foo(x, y):
    a = torch.sin(x)
    b = torch.cos(y)
    return a + b


def test_function(check):
    assert len(check(foo, (torch.randn(10, 10), torch.randn(10, 10)))) == 1


def test_new_shape_dtype_and_stride(check):
    base = torch.randn(6, 6)
    calls = [(base,), (base[:3],), (base.double(),), (base.t(),), (base[::2],), (torch.zeros(0, 6),), (torch.arange(6).reshape(2, 3),)]
    check(lambda x: (x * 2).sum(0), *calls)


def test_new_tensors_take_the_dtype_of_their_maker(check):
    x = torch.randn(3, dtype=torch.float64)
    check(lambda x: (x.new_tensor([1, 2]), x.new_tensor([1.5], dtype=torch.int32), x.new_tensor(x.shape[0]), x.type(torch.float16)), (x,))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_dtypes(check, dtype):
    check(lambda x: (x + 1, x * 2.5, x > 0), (torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype)),))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[1:, 1:],
        lambda x: x[:1].expand(4, 6),
        lambda x: x.as_strided((3, 3), (1, 1)),
        lambda x: x.reshape(2, 2, 3, 2).permute(3, 1, 0, 2),
        lambda x: x.reshape(1, 2, 1, 2, 3, 2, 1).transpose(1, 4),
        lambda x: x.reshape(2, 3, 2, 2).to(memory_format=torch.channels_last),
        lambda x: x[0, 0],
        lambda x: x[:0],
    ],
    ids=["transposed", "stepped", "offset", "broadcast", "overlapping", "permuted", "rank 7", "channels last", "0-d", "empty"],
)
def test_layouts(check, make):
    x = make(torch.randn(4, 6))
    check(lambda x: (x + 1, x * x, torch.relu(x), x.exp() + x[..., :1] if x.ndim else x, torch.where(x > 0, x, -x)), (x,))


def test_strides_of_many_pointwise_results(check):
    g = torch.Generator().manual_seed(1)
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        x = torch.randn(3, 4, 5, generator=g).permute(order)
        y = torch.randn(x.shape, generator=g)
        check(lambda x, y: (x + y, y + x, x * y[:1], x + 1, x.sum(0), x.amax(1), x.mean((0, 2)), torch.nn.functional.logsigmoid(x)), (x, y))
    # A dimension of size 1 has a say in where the others lie.
    check(lambda x, y: x.permute(2, 1, 0) + y, (torch.randn(1, 1, 17), torch.randn(8, 1)))


@pytest.mark.parametrize("dropout", [
    torch.nn.Dropout(0.5).eval(), torch.nn.Dropout2d(0.5).eval(), torch.nn.AlphaDropout(0.5).eval(), torch.nn.FeatureAlphaDropout(0.5).eval(),
    lambda x: torch.nn.functional.dropout(x, 0.0, True), lambda x: torch.nn.functional.dropout(x, 0.5, False, True), lambda x: torch.dropout(x, 0.5, False),
])
def test_dropout_outside_training_gives_its_argument(dropout):
    def fn(x):
        y = dropout(x)
        y.add_(1)
        return y, x * 2

    x, plain = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)
    y, twice = tenon.compile(fn)(x)
    assert (y is x) == (fn(plain)[0] is plain)
    torch.testing.assert_close((x, twice), (plain, plain * 2))


def test_grad_mode_is_guarded(graphs):
    x = torch.randn(3, requires_grad=True)
    compiled = tenon.compile(lambda x: x * 2, backend=graphs)
    with torch.no_grad():
        assert not compiled(x).requires_grad
    compiled(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))
    with torch.no_grad():
        compiled(x)
    assert [graph.is_backward for graph in graphs.seen] == [False, False, True]


def test_inference_mode(check):
    with torch.inference_mode():
        check(foo, (torch.randn(3), torch.randn(3)))
        assert tenon.compile(foo)(torch.ones(2), torch.ones(2)).is_inference()


def test_modes_run_eagerly():
    compiled, x = tenon.compile(lambda x: x @ x), torch.randn(4, 4)
    compiled(x)
    with torch.autocast("cpu"):
        assert compiled(x).dtype == torch.bfloat16
    with torch.device("meta"):
        assert compiled(x).device.type == "cpu"

    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        compiled(x)
    assert seen


def test_default_dtype_is_guarded():
    compiled = tenon.compile(lambda x: x / 2)
    x = torch.arange(3)
    assert compiled(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


class Sub(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "odd",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.zeros(3, dtype=torch.complex64),
        lambda: torch._neg_view(torch.ones(3)),
        lambda: torch.zeros(3, dtype=torch.complex64).conj(),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize().to(torch.complex128),
        lambda: torch.ones(3).as_subclass(Sub),
        lambda: torch.zeros(3, device="meta"),
    ],
    ids=["sparse", "complex", "negated", "conjugated", "complex128", "subclass", "meta"],
)
def test_odd_tensors_run_eagerly(odd):
    x = odd()
    compiled = tenon.compile(lambda x: x + x)
    got, want = compiled(x), x + x
    assert type(got) is type(want) and got.dtype == want.dtype and got.device == want.device and got.layout == want.layout
    if want.device.type == "cpu":
        assert torch.equal(got.to_dense() if got.is_sparse else got, want.to_dense() if want.is_sparse else want)


def test_an_odd_tensor_is_named_under_fullgraph():
    with pytest.raises(tenon.GraphBreakError, match="sparse"):
        tenon.compile(lambda x: x + x, fullgraph=True)(torch.eye(3).to_sparse())
    with pytest.raises(tenon.GraphBreakError, match="meta"):
        tenon.compile(lambda x: x + x, fullgraph=True)(torch.zeros(3, device="meta"))


def test_in_place_writes_are_seen():
    def fn(x, y):
        x.add_(1)
        y[0] = x.sum()
        return x * 2

    compiled = tenon.compile(fn)
    a, b = [torch.zeros(3), torch.zeros(2)], [torch.zeros(3), torch.zeros(2)]
    for _ in range(2):
        assert torch.equal(compiled(*a), fn(*b))
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def test_shape_errors_are_eagers():
    def fn(x, y):
        return (x + 1) @ y

    with pytest.raises(RuntimeError) as want:
        fn(torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(RuntimeError) as got:
        tenon.compile(fn)(torch.zeros(2, 3), torch.zeros(2, 3))
    assert str(got.value) == str(want.value)


def test_a_tensor_from_outside_is_an_input():
    table = torch.arange(3.0)
    compiled = tenon.compile(lambda x: x + table, fullgraph=True)
    assert torch.equal(compiled(torch.ones(3)), torch.tensor([1.0, 2.0, 3.0]))
    table.fill_(5)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 6.0))
    assert tenon.stats()["graphs"] == 1


def test_metadata_reads(check):
    def fn(x):
        n, m = x.shape
        return x * n + m + x.ndim + x.size(0) + x.numel(), x.dtype, x.device, x.is_contiguous(), x.stride(), len(x), torch.is_tensor(x)

    check(fn, (torch.randn(3, 4),), (torch.randn(2, 5).t(),))


def test_several_results(check):
    def fn(x):
        values, indices = x.max(1)
        a, b = x.split(2, 1)
        return values, indices, a + 1, b, x.unbind(0)[0], torch.var_mean(x, 1)

    check(fn, (torch.randn(3, 4),))


def test_graph_as_fx_module():
    seen = []

    def backend(graph, example_inputs):
        assert isinstance(graph, torch.fx.GraphModule)
        seen.append([n.target for n in graph.graph.nodes if n.op == "call_function"])
        return graph.forward

    x = torch.randn(4)
    assert torch.equal(tenon.compile(foo, backend=backend)(x, x), foo(x, x))
    assert len(seen[0]) == 3


def test_reflected_operators(check):
    check(lambda x: (1 / x, 2 - x, 2**x, 3 * x, 1 + x, 7 % x.abs(), 3 // x), (torch.rand(3, 4) + 1,))


def test_movedim_of_a_0_d_tensor_and_of_a_repeated_dimension(check):
    check(lambda x: x.movedim(0, -1) + 1, (torch.tensor(2.0),))
    for wrong in (lambda x: x.movedim((0, 0), (0, 1)), lambda x: x.movedim((0, 1), (0, 0))):
        with pytest.raises(RuntimeError, match="repeated dim"):
            tenon.compile(wrong)(torch.zeros(2, 3))


@pytest.mark.parametrize("strided", [False, True])
def test_products_need_no_question_to_torch(strided):
    """torch's own shape functions import a symbolic algebra system at their first use, which takes a second."""
    program = (
        "import sys, torch, tenon\n"
        "w = torch.randn(6, 6)\n"
        f"w = w.t() if {strided} else w\n"
        "net = lambda x: torch.softmax(torch.nn.functional.layer_norm(torch.nn.functional.linear(x, w) @ w, (6,)), -1) + torch.softmax(x, -1)\n"
        "x = torch.randn(2, 3, 6)\n"
        f"x = torch.randn(6, 3, 2).permute(2, 1, 0) if {strided} else x\n"
        "got = tenon.compile(net, fullgraph=True)(x)\n"
        "assert got.stride() == net(x).stride()\n"
        "assert 'sympy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_sizes_that_depend_on_data_need_no_question_to_torch():
    program = (
        "import sys, torch, tenon\n"
        "x = torch.tensor([1.0, -2.0, 3.0])\n"
        "for fn in (lambda x: x[x > 0] * 2, lambda x: torch.nonzero(x)[:, 0] + 1, lambda x: torch.masked_select(x, x > 0) * 2):\n"
        "    with torch.no_grad():\n"
        "        got, want = tenon.compile(fn)(x), fn(x)\n"
        "    assert torch.equal(got, want)\n"
        "assert tenon.stats()['graph_breaks'] == 0, tenon.stats()\n"
        "assert 'sympy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_elements_of_constants_need_no_break(check):
    def fn(x):
        sizes = torch.tensor([1, 2]).tolist()
        sizes.append(3)
        return x * sizes[1], sizes, x + torch.tensor(2.5).item(), x + len(range(torch.tensor(2)))

    graphs = check(fn, (torch.arange(4.0),))
    assert len(graphs) == 1


def test_elements_of_a_written_constant(check):
    def fn(x):
        t = torch.tensor([1, 2])
        t += 1
        return x * 2, t.tolist()

    check(fn, (torch.arange(4.0),))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.float16])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 2),
        lambda x: torch.nn.functional.adaptive_max_pool2d(x, 2),
        lambda x: torch.nn.functional.avg_pool3d(x, 2),
        lambda x: torch.nn.functional.avg_pool2d(x, 2),
        lambda x: torch.nn.functional.max_pool1d(x[0], 2),
        lambda x: torch.nn.functional.softsign(x),
        lambda x: torch.cdist(x, x),
        lambda x: torch.cumsum(x, 1),
    ],
)
def test_dtypes_that_eager_kernels_lack_raise_as_eagerly(fn, dtype):
    x = (torch.arange(128).reshape(2, 4, 4, 4) % 3).to(dtype)
    compiled = tenon.compile(fn)
    try:
        want = fn(x)
    except (RuntimeError, NotImplementedError) as refusal:
        with pytest.raises(type(refusal), match=re.escape(str(refusal)[:60])):
            compiled(x)
    else:
        torch.testing.assert_close(compiled(x), want)


def test_nothing_unbound_is_an_empty_tuple(check):
    check(lambda x: (x.unbind(0), x.sum()), (torch.zeros(0, 4),))


@pytest.mark.parametrize("loss", [torch.nn.functional.huber_loss, torch.nn.functional.binary_cross_entropy_with_logits])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_losses_of_two_dtypes(check, loss, dtype):
    x, y = torch.linspace(-2, 2, 6), torch.linspace(0, 1, 6).to(dtype)
    with torch.no_grad():
        check(lambda x, y: loss(x, y), (x, y), fallbacks=None)  # the meta device gives another dtype than the CPU


def test_methods_of_one_tensor_are_equal_after_a_break():
    def run(x):
        y, other = x * 2, x * 3
        method, name = y.data_ptr, other.data_ptr
        before = method == y.data_ptr
        tenon.graph_break()
        return before, method == y.data_ptr, method != y.data_ptr, method == name, method == y.numel, name == other.data_ptr

    compiled = tenon.compile(run)
    with torch.no_grad():
        for _ in range(3):
            assert compiled(torch.ones(3)) == run(torch.ones(3))


def test_attributes_as_a_dict():
    def read(x):
        x.__dict__["more"] = len(x.__dict__)
        return x.more, vars(x), vars(x) is x.__dict__, "more" in (x + 1).__dict__

    def given():
        x = torch.ones(2)
        x.kept = 5
        return x

    compiled = tenon.compile(read)
    for _ in range(2):
        x = given()
        found = compiled(x)
        assert found == read(given()) and found[1] is x.__dict__

    def swap(x, y):
        torch.utils.swap_tensors(x, y)
        return x.kept, hasattr(y, "kept"), x.shape, y.shape

    assert tenon.compile(swap)(torch.ones(3), given()) == swap(torch.ones(3), given())


def test_how_many_hold_a_tensor():
    def counts(x):
        y = x.add(1)
        before = y._use_count()
        view = y.view(-1)
        return before, y._use_count(), view._use_count(), x._use_count()

    assert tenon.compile(counts)(torch.ones(2)) == counts(torch.ones(2))

    def swapped(x):
        doubled = x * 2
        torch.utils.swap_tensors(x, torch.zeros(3))
        with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
            doubled.sum().backward()
        return x.shape

    assert tenon.compile(swapped)(torch.ones(2, requires_grad=True)) == (3,)


def test_an_empty_tensor_flattened_beside_its_reduction(check):
    check(lambda x: (x.all(), x.flatten().cumsum(0), x.sum(), x.flatten() * 2), (torch.empty(0, 3),))
