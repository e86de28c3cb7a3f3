"""Sizes of tensors that vary from call to call: one more compile, then none; results, shapes and strides as eager's."""

import random

import pytest

import tenon

torch = pytest.importorskip("torch")


def compare(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        assert got.shape == want.shape and got.dtype == want.dtype
        # The stride of a dimension of size 1 says nothing.
        assert all(n == 1 or a == b for n, a, b in zip(want.shape, got.stride(), want.stride())), (got.stride(), want.stride())
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w)
    else:
        assert got == want


def check(fn, calls, most, **options):
    """Runs the calls through one compiled function, twice each, and counts what was compiled."""
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True, **options)
    with torch.no_grad():
        for args in calls:
            for _ in range(2):
                compare(compiled(*args), fn(*args))
    stats = tenon.stats()
    assert stats["recompiles"] + 1 <= most, stats
    assert stats["eager_fallbacks"] == 0, stats
    return compiled


SIZES = [5, 7, 2, 16, 33, 1, 64, 3, 100, 8]


def batches(*rest, sizes=SIZES):
    return [(torch.randn(n, *rest),) for n in sizes]


PROGRAMS = {
    "pointwise": (lambda x: torch.relu(x + 1) * 2, (6,)),
    "reduction": (lambda x: x.sum(), (6,)),
    "reduction_kept": (lambda x: x.mean(0), (6,)),
    "reduction_last": (lambda x: x.sum(-1, keepdim=True), (6,)),
    "softmax": (lambda x: torch.softmax(x, -1), (6,)),
    "softmax_varying": (lambda x: torch.softmax(x, 0), (6,)),
    "matmul": (lambda x: x @ x.T, (6,)),
    "matmul_inner": (lambda x: x.T @ x, (6,)),
    "transpose": (lambda x: x.T + 1, (6,)),
    "cat": (lambda x: torch.cat([x, x * 2]), (6,)),
    "stack": (lambda x: torch.stack([x, x * 2], 1), (6,)),
    "broadcast": (lambda x: x + x[:1], (6,)),
    "flatten": (lambda x: x.flatten() * 2, (2, 3)),
    "flatten_later": (lambda x: x.flatten(1) * 2, (2, 3)),
    "reshape": (lambda x: x.reshape(-1, 3) + 1, (2, 3)),
    "unsqueeze": (lambda x: x.unsqueeze(1) * x.unsqueeze(0), (3,)),
    "where": (lambda x: torch.where(x > 0, x, -x), (6,)),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, (3, 4)),
    "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, (6,)), (6,)),
    "two_results": (lambda x: (x + 1, x.sum(1)), (6,)),
    "cumsum": (lambda x: torch.cumsum(x, 1), (6,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_over_many_batch_sizes(name):
    fn, rest = PROGRAMS[name]
    check(fn, batches(*rest), 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_dynamic_from_the_start_compiles_once(name):
    fn, rest = PROGRAMS[name]
    check(fn, batches(*rest, sizes=[5, 7, 16, 33, 3]), 1, dynamic=True)


def test_dynamic_false_compiles_each_size():
    tenon.reset()
    compiled = tenon.compile(lambda x: x + 1, dynamic=False)
    for n in (3, 4, 5, 6):
        compiled(torch.randn(n))
    assert tenon.stats()["recompiles"] == 3


def test_forty_batch_sizes_of_a_perceptron():
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
    tenon.reset()
    compiled = tenon.compile(net, fullgraph=True)
    with torch.no_grad():
        for n in range(1, 41):
            x = torch.randn(n, 8)
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] <= 3


def test_equal_extents_of_two_inputs_become_one_symbol():
    def fn(x, y):
        return x + y

    compiled = check(fn, [(torch.randn(n, 3), torch.randn(n, 3)) for n in (4, 6, 9, 12)], 2)
    with torch.no_grad():
        with pytest.raises(RuntimeError, match="must match"):
            tenon.compile(fn)(torch.randn(4, 3), torch.randn(5, 3))
        with pytest.raises((RuntimeError, tenon.Error)):
            compiled(torch.randn(4, 3), torch.randn(5, 3))


def test_broadcasting_against_one_is_another_program():
    def fn(x, y):
        return x + y

    calls = [(torch.randn(n, 3), torch.randn(n, 3)) for n in (4, 6, 9)] + [(torch.randn(n, 3), torch.randn(1, 3)) for n in (4, 6, 11)]
    check(fn, calls, 3)


def test_an_extent_that_is_a_sum_of_others():
    def fn(x, y, z):
        return torch.cat([x, y]) * z

    calls = [(torch.randn(a, 3), torch.randn(b, 3), torch.randn(a + b, 3)) for a, b in ((2, 3), (4, 5), (7, 2), (9, 9))]
    check(fn, calls, 3)


def test_transposed_and_sliced_inputs():
    def fn(x):
        return x * 2 + 1

    check(fn, [(torch.randn(4, n).T,) for n in (3, 5, 8, 13)], 2)
    check(fn, [(torch.randn(n, 10)[:, 2:6],) for n in (3, 5, 8, 13)], 2)
    check(fn, [(torch.randn(4, n)[:, : n - 1],) for n in (4, 6, 9, 14)], 2)


def test_two_extents_vary():
    check(lambda x: torch.softmax(x * 2, -1).sum(0), [(torch.randn(a, b),) for a, b in ((3, 4), (5, 6), (7, 9), (12, 2), (30, 31))], 2)


def test_random_shapes_and_programs():
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    torch.manual_seed(seed)
    steps = [
        lambda x: x * 2, lambda x: x + x.mean(0), lambda x: torch.relu(x), lambda x: x.transpose(0, 1), lambda x: torch.cat([x, x], 0),
        lambda x: x - x.amax(1, keepdim=True), lambda x: x.unsqueeze(0).sum(0), lambda x: x[1:], lambda x: x[:, :-1],
    ]
    for _ in range(12):
        chosen = rng.sample(steps, 4)

        def fn(x):
            for step in chosen:
                x = step(x)
            return x + 0

        check(fn, [(torch.randn(rng.randint(4, 20), rng.randint(4, 20)),) for _ in range(6)], 4)


def test_a_loop_over_rows_whose_number_is_known():
    def fn(xs):
        state = xs.new_zeros(xs.size(1))
        for at, x in enumerate(xs):
            state = state + x * at
        return state

    compiled = tenon.compile(fn, dynamic=True)
    for rows, columns in ((4, 3), (4, 5), (6, 5)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), fn(x))


def test_parameters_have_the_sizes_of_their_module():
    """Modules of one class meet at one continuation: what differs between them are variants, not sizes that vary."""

    class Depthwise(torch.nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = torch.nn.Conv2d(channels, channels, 3, groups=channels)

        def forward(self, x):
            tenon.graph_break()
            return torch.relu(self.conv(x))

    nets, x = [Depthwise(channels) for channels in (4, 6, 8)], torch.randn(2, 8, 6, 6)
    compiled = tenon.compile(lambda net, x: net(x[:, : net.conv.in_channels]))
    with torch.no_grad():
        for net in nets + nets:
            compare(compiled(net, x), net(x[:, : net.conv.in_channels]))
    assert tenon.stats()["eager_fallbacks"] == 0


def test_a_write_into_a_tensor_of_a_fixed_size_leaves_other_numbers_alone():
    weight, state = torch.zeros(4), {"step": 2}

    def fn(grad):
        state["step"] += 1
        weight.sub_(grad, alpha=1 / state["step"])
        return weight * 2

    compiled = tenon.compile(fn, dynamic=True)
    for _ in range(6):
        before, step = weight.clone(), state["step"]
        torch.testing.assert_close(compiled(torch.ones(4)), (before - 1 / (step + 1)) * 2)
    assert tenon.stats()["recompiles"] <= 2


def test_numbers_made_of_sizes_in_a_tensor_that_is_made():
    def fn(x):
        return x + torch.tensor([2.0 ** (-8 * (k + 1) / x.shape[0]) for k in range(x.shape[0])])[:, None]

    compiled = tenon.compile(fn, dynamic=True)
    for rows, columns in ((3, 4), (3, 5), (3, 7), (4, 7)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), fn(x))
    assert tenon.stats()["recompiles"] <= 2


def test_the_last_element_of_a_vector():
    x = torch.arange(9.0)
    compiled = check(lambda x: x[-1], [(x[:n],) for n in (3, 5, 7, 4)], 2)
    assert compiled(x[:6]).data_ptr() == x[5].data_ptr()


def increased(x):
    y = x * 2
    y += 1
    return y


def masked(x):
    y = x.new_zeros(x.shape)
    y[:, 1:] = x[:, :-1]
    y[:, 0] += 3
    return y.masked_fill_(y > 1, 0)


def rectified(x):
    return torch.nn.functional.relu(x + 1, inplace=True).mul_(2)


@pytest.mark.parametrize("program", [increased, masked, rectified])
def test_writes_into_tensors_of_varying_sizes(program):
    check(program, [(torch.randn(a, b),) for a, b in ((3, 4), (5, 4), (6, 9), (12, 2), (30, 31))], 4)  # y[:, 1:] of two columns lies in one piece


def test_batches_of_a_network_that_trains():
    def make():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True), torch.nn.Flatten(), torch.nn.Linear(64, 5))

    net, plain = make(), make()
    compiled = tenon.compile(net, fullgraph=True)
    with torch.no_grad():
        for n in (4, 6, 9, 3, 20):
            x = torch.randn(n, 3, 6, 6)
            torch.testing.assert_close(compiled(x), plain(x), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(net.state_dict(), plain.state_dict(), rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] == 2


def test_an_input_that_comes_to_overlap_the_written_one():
    def run(x, total):
        total += x.sum()
        return x * 2

    compiled, memory = tenon.compile(run), torch.arange(20.0)
    twin = memory.clone()
    for n in (3, 5, 7, 10):  # the last reaches the element that is written
        for way, data in ((compiled, memory), (run, twin)):
            way(data[:n], data[9:10])
        torch.testing.assert_close(memory, twin)


@pytest.mark.parametrize("program", [
    lambda x, mask: x.repeat(4, 1) + mask.repeat(4, 1),
    lambda x, mask: (x[0] * mask[0]).sum() + x.flatten() * mask.flatten(),
    lambda x, mask: x * mask.view(x.shape[0], -1),
], ids=["multiples", "products", "divided"])
def test_sizes_of_two_inputs_that_are_alike(program):
    check(program, [(torch.randn(a, b), torch.randn(a, b)) for a, b in ((3, 4), (5, 4), (6, 9), (12, 2), (30, 31))], 4)  # y[:, 1:] of two columns lies in one piece


def test_a_write_into_a_view_whose_stride_alone_varies():
    def fn(y):
        column = y[:, 0]
        tenon.graph_break()
        first = column.split(2)[0]
        column *= 2
        return first

    compiled = tenon.compile(fn, dynamic=True)
    for columns in (5, 4, 2, 3, 7):
        y, plain = (torch.arange(2.0 * columns).reshape(2, columns) for _ in range(2))
        compare(compiled(y), fn(plain))
        compare(y, plain)


def rows_apart(size, gap):
    return torch.randn(size, 3 + gap)[:, :3]


def columns_apart(size, gap):
    return torch.randn(3, size + gap).t()[:size]


@pytest.mark.parametrize("program", [lambda x: x * 2, lambda x: x @ torch.ones(3), lambda x: x.numpy().sum(0), lambda x: x[1:].sum()],
                         ids=["pointwise", "matmul", "numpy", "view"])
@pytest.mark.parametrize("sizes", [(5, 5, 5), (5, 7, 9)], ids=["strides", "sizes_too"])
def test_row_major_order_among_strides_that_vary(program, sizes):
    tenon.reset()
    compiled = tenon.compile(program)
    for make in (columns_apart, rows_apart, columns_apart):
        for size in sizes:
            for gap in (0, 1, 2):
                x = make(size, gap)
                got, want = compiled(x), program(x)
                compare(torch.as_tensor(got), torch.as_tensor(want))
    assert tenon.stats()["recompiles"] <= 7 and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()
LISTS_OF_INTS = {
    "tensor": lambda x, sizes: torch.tensor(sizes) + x.sum(),
    "as_tensor": lambda x, sizes: torch.as_tensor(sizes, dtype=torch.float32) / x.sum(),
    "zeros": lambda x, sizes: torch.zeros(sizes) + x.sum(),
    "full": lambda x, sizes: torch.full(sizes, 2.0) + x.sum(),
    "pad": lambda x, sizes: torch.nn.functional.pad(x, sizes),
    "one_hot": lambda x, sizes: torch.nn.functional.one_hot(torch.tensor(sizes), 10) + x.sum(),
    "expand": lambda x, sizes: x[:1, :1].expand(sizes),
    "nested": lambda x, sizes: torch.tensor([sizes, sizes]) * x.sum(),
    "changed": lambda x, sizes: (x.sum() + torch.tensor(sizes), sizes.append(1), x.sum() + torch.tensor(sizes)),
}


@pytest.mark.parametrize("program", LISTS_OF_INTS.values(), ids=LISTS_OF_INTS)
def test_ints_in_lists_that_vary(program):
    compiled = tenon.compile(program)
    x = torch.randn(3, 4)
    for n in (2, 3, 4, 5, 6, 3):
        given, plain = [n, n + 1], [n, n + 1]
        got, want = compiled(x, given), program(x, plain)
        torch.testing.assert_close([t for t in got if t is not None] if isinstance(got, tuple) else got, [t for t in want if t is not None] if isinstance(want, tuple) else want)
        assert given == plain
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0) and stats["recompiles"] == 1, stats


def test_ints_in_lists_that_say_which_dimensions():
    def fn(x, dims):
        return x.sum(dims), x.permute([*dims, 3 - sum(dims)]), x[dims], x.flip(dims)

    compiled, x = tenon.compile(fn), torch.randn(3, 4, 5)
    for dims in ([0, 1], [1, 2], [2, 0], [0, 2], [1, 0]):
        compare(compiled(x, dims), fn(x, dims))


def test_an_index_as_long_as_its_source_is_one_size_with_it():
    weight = torch.nn.Parameter(torch.randn(4))

    def pooled(x, b):
        count = x.new_zeros(3).scatter_add_(0, b, x.new_ones(x.size(0))).clamp(min=1)
        return x.new_zeros(3, 4).scatter_add_(0, b.view(-1, 1).expand_as(x), x * weight) / count.view(-1, 1)

    def reduced(x, b):
        return torch.zeros_like(x).scatter_reduce(0, b.view(-1, 1).expand(-1, 4), x * weight, "amax")

    for fn in (pooled, reduced):
        tenon.reset()
        compiled = tenon.compile(fn)
        for n in (7, 12, 9, 31, 8):
            x, b = torch.randn(n, 4), torch.randint(0, 3, (n,))
            found = []
            for way in (compiled, fn):
                weight.grad = None
                y = way(x, b)
                y.square().sum().backward()
                found.append((y.detach(), weight.grad.clone()))
            torch.testing.assert_close(*found)
        assert (tenon.stats()["graphs"], tenon.stats()["eager_fallbacks"]) == (2, 0), fn.__name__
