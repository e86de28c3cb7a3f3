"""torch.inference_mode as a block, a decorator, and around the call: what it makes are inference tensors, and nothing else is."""
import pytest
import tenon

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def state_is_left_alone():
    yield
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def whole(fn, *args, **options):
    compiled = tenon.compile(fn, fullgraph=True, **options)
    want = fn(*args)
    for _ in range(2):
        agree(compiled(*args), want)
    return want


def agree(got, want):
    if isinstance(want, torch.Tensor):
        assert (got.is_inference(), got.requires_grad, got.dtype) == (want.is_inference(), want.requires_grad, want.dtype)
        torch.testing.assert_close(got, want)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            agree(one, other)
    else:
        assert got == want


def test_a_block():
    def run(x):
        a = x + 1
        with torch.inference_mode():
            b = a * 2
            c = b[1:]
            d = x[1:]
            inside = torch.is_inference_mode_enabled(), torch.is_grad_enabled(), a.is_inference(), b.is_inference(), d.is_inference()
        return a, b, c, d, b + 1, c + a[1:], c.is_inference(), inside

    whole(run, torch.randn(4))


def test_inside_of_an_outer_one():
    def run(x):
        with torch.inference_mode(False):
            a = x + 1
            with torch.inference_mode():
                b = x + 2
        return a, b, x + 3, a.is_inference()

    with torch.inference_mode():
        x = torch.randn(3)
        compiled = tenon.compile(run)
        for _ in range(2):
            agree(compiled(x), run(x))
    whole(run, torch.randn(3))


def test_as_a_decorator():
    @torch.inference_mode()
    def inner(x):
        return x * 2

    def run(x):
        return inner(x), x + 1

    whole(run, torch.randn(3))
    whole(inner, torch.randn(3))


def test_a_parameter_in_a_block():
    weight = torch.nn.Parameter(torch.randn(3))

    def run(x):
        with torch.inference_mode():
            return x * weight

    whole(run, torch.randn(3))


def test_a_write_in_a_block():
    def run(x):
        with torch.inference_mode():
            x.add_(1)
            y = x * 2
            y.mul_(3)
        return y

    x, other = torch.zeros(3), torch.zeros(3)
    compiled = tenon.compile(run, fullgraph=True)
    for _ in range(2):
        agree(compiled(x), run(other))
        assert torch.equal(x, other) and x._version == other._version and not x.is_inference()


def test_a_write_outside_of_it_raises():
    def run(x):
        with torch.inference_mode():
            y = x * 2
        y.add_(1)
        return y

    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        tenon.compile(run)(torch.zeros(3))


def test_a_break_in_a_block():
    def run(x):
        a = x + 1
        with torch.inference_mode():
            b = a * 2
            tenon.graph_break()
            c = b * 3
        return a, b, c, a + 4

    compiled, x = tenon.compile(run), torch.randn(3)
    for _ in range(3):
        agree(compiled(x), run(x))


def test_an_exception_leaves_it():
    def run(x):
        try:
            with torch.inference_mode():
                y = x * 2
                raise ValueError
        except ValueError:
            return y, x + 1, torch.is_inference_mode_enabled()

    whole(run, torch.randn(3))


def test_with_grad_mode():
    def run(x):
        with torch.no_grad():
            with torch.inference_mode():
                with torch.no_grad():
                    a = x + 1
            b = x + 2
        return a, b, torch.is_grad_enabled()

    whole(run, torch.randn(3))

    def enable(x):
        with torch.inference_mode():
            with torch.enable_grad():
                a = x + 1
        return a, torch.is_grad_enabled()

    compiled, x = tenon.compile(enable), torch.randn(3)
    for _ in range(2):
        agree(compiled(x), enable(x))


def test_a_user_backend():
    def run(x):
        with torch.inference_mode():
            a = x + 1
        return a, x + 2

    whole(run, torch.randn(3), backend=lambda graph, inputs: graph.forward)
