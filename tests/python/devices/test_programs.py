"""Programs on tensors of a device: the same results, in the same places, as torch's own."""
import pytest
import torch
import torch.nn.functional as F

import tenon

X, Y = torch.randn(3, 4), torch.randn(4)


@pytest.mark.parametrize("fn", [
    lambda x, y: torch.relu(x + 1) * 2,
    lambda x, y: (x * y, (x - y).sum()),
    lambda x, y: x.softmax(-1),
    lambda x, y: (x.sum(0), x.mean(1), x.max(1)),
    lambda x, y: (x[1:, ::2], x.t()),
    lambda x, y: x @ y,
    lambda x, y: torch.cat([x, x + 1]),
    lambda x, y: (x.float(), x.to(torch.int32), x.half()),
    lambda x, y: torch.where(x > 0, x, 0.0),
    lambda x, y: x.cumsum(0),
    lambda x, y: x.argsort(-1),
    lambda x, y: x,
], ids=str)
def test_arithmetic(whole, fn):
    whole(fn, (X, Y))


def test_writes_in_place(whole):
    def fn(x):
        x += 1
        x[0].mul_(2)
        x[x > 0] = 0.5
        x[:, 1] = 7
        return x.sum()

    whole(fn, (X,))


def test_writes_are_seen_by_views(device):
    @tenon.compile
    def fn(x):
        x.add_(1)

    base = X.to(device)
    part = base[1:]
    fn(base)
    torch.testing.assert_close(part.cpu(), (X + 1)[1:])


def test_what_a_program_asks_of_the_device(whole):
    whole(lambda x: (x.device, x.is_cpu, x.is_meta, x.is_cuda, x.get_device(), x.device.type, x.device.index), (X,))


@pytest.mark.parametrize("fn", [
    lambda x: torch.zeros(3, 4, device=x.device) + x,
    lambda x: (torch.zeros_like(x) + x, x.new_zeros(2, 2), x.new_ones(3) * x.sum(), torch.full_like(x, 2.0)),
    lambda x: torch.arange(4, device=x.device) * x,
    lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device) * x,
    lambda x: torch.eye(4, device=x.device) @ x.t(),
    lambda x: x.new_tensor([1.0, 2.0]) + 1,
], ids=str)
def test_what_is_made_on_the_device(whole, fn):
    whole(fn, (X,))


@pytest.mark.parametrize("fn", [
    lambda x: x.cpu() + 1,
    lambda x: x.to("cpu"),
    lambda x: x.t().to("cpu"),
    lambda x: x.to("cpu", torch.float64),
    lambda x: x.to("cpu").sigmoid().to(x.device) + x,
    lambda x: x.to(torch.zeros(())),
    lambda x: x.to(x.device),
], ids=str)
def test_copies_from_device_to_device(whole, fn):
    whole(fn, (X,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(device, whole, dtype):
    if not device.startswith("cuda"):
        pytest.skip("autocast is guarded for the CPU and CUDA")

    def fn(x, w, classes):
        with torch.autocast("cuda", dtype=dtype):
            y = x @ w
            return y, F.cross_entropy(y, classes), F.layer_norm(y, y.shape[1:]), F.linear(y, w), (y * 2).softmax(-1)

    whole(fn, (X, torch.randn(4, 4), torch.tensor([0, 3, 1])))


HOST, OTHER = torch.randn(3), torch.randn(3)


@pytest.mark.parametrize("fn", [
    lambda t: torch.full((2,), t),
    lambda t: torch.full((2,), t, device=t.device),
    lambda t: (torch.full_like(HOST, t), HOST.new_full((2,), t), torch.full_like(HOST, t, device=t.device)),
    lambda t: (torch.add(HOST, OTHER, alpha=t), HOST.sub(OTHER, alpha=t), torch.rsub(HOST, OTHER, alpha=t)),
    lambda t: torch.add(HOST.sum(), OTHER.sum(), alpha=t),
    lambda t: (torch.addcmul(HOST, HOST, OTHER, value=t), torch.addcdiv(HOST, HOST, OTHER, value=t)),
    lambda t: F.leaky_relu(HOST, t) + F.threshold(HOST, t, 1.0),
    lambda t: torch.add(t, t, alpha=t),
], ids=str)
def test_a_tensor_that_is_taken_as_the_number_that_it_holds_says_nothing_about_the_device(whole, fn):
    whole(fn, (torch.tensor(2.0),))
    assert tenon.stats()["eager_fallbacks"] == 0


def set_masked(z):
    z = z * 1
    z[z.abs() < 1] = 3j
    return z * 2


@pytest.mark.parametrize("fn, count", [(lambda z: z.cpu(), 8), (lambda z: z.cpu() + 1, 5000), (set_masked, 8)], ids=str)
def test_complex_numbers_come_from_the_host_and_go_there(whole, fn, count):
    with torch.no_grad():
        whole(fn, (torch.randn(count, dtype=torch.complex128),))


def test_a_number_of_the_host_beside_the_device(whole):
    whole(lambda x: (x * torch.tensor(2.0), torch.tensor(1.0) - x), (X,))


def test_mixing_devices_raises_what_torch_raises(device):
    def fn(x):
        return x + torch.ones(3, 4)

    with pytest.raises(RuntimeError, match="same device") as want:
        fn(X.to(device))
    with pytest.raises(RuntimeError) as got:
        tenon.compile(fn)(X.to(device))
    assert str(got.value) == str(want.value)


@pytest.mark.parametrize("fn", [
    lambda x: x + x.max().item(),
    lambda x: x.max().item(),
    lambda x: float(x[0, 0]) * x,
    lambda x: x + 1 if x.sum() > 100 else x - 1,
    lambda x: x[x > 0],
    lambda x: torch.nonzero(x > 0),
    lambda x: [i + 1 for i in x.tolist()[0]],
    lambda x: x.cpu().numpy() + 1,
], ids=str)
def test_what_is_read_of_the_elements(check, fn):
    check(fn, (X,), (X + 1,))


def test_an_array_of_the_device_raises_what_torch_raises(device):
    with pytest.raises(TypeError, match="can't convert"):
        tenon.compile(lambda x: (x + 1).numpy())(X.to(device))


def test_calls_that_no_op_describes(whole):
    whole(lambda x: torch.fft.rfft(x).abs(), (X,))
    whole(lambda x: torch.linalg.inv(x @ x.t() + torch.eye(3, device=x.device)), (X,))


def test_convolution(whole):
    whole(lambda x, w: F.conv2d(x, w, padding=1).relu(), (torch.randn(1, 3, 8, 8), torch.randn(2, 3, 3, 3)))


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_convolutions_of_many_channels(whole, device, format, monkeypatch):
    """Pictures lie with their channels last between them: other kernels of the library, which round alike without TF32 alone."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    def fn(x, stem, wide, short, bias):
        x = torch.max_pool2d(F.conv2d(x, stem, padding=1).relu(), 3, 2, 1)
        y = F.conv2d(F.conv2d(x, wide, bias, padding=1).relu(), wide[:, :24].repeat(1, 4, 1, 1), padding=1)
        return (y + F.conv2d(x, short)).relu().mean((2, 3)), y.sum()

    x, stem = torch.randn(2, 3, 9, 8).contiguous(memory_format=format), torch.randn(24, 3, 3, 3)
    whole(fn, (x, stem, torch.randn(96, 24, 3, 3) / 15, torch.randn(96, 24, 1, 1) / 5, torch.randn(96)))


def test_a_module(device):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval().to(device)
    compiled = tenon.compile(model)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(X.to(device)), model(X.to(device)))


def test_devices_are_guarded(device):
    compiled = tenon.compile(lambda x: x + 1)
    for x in (X, X.to(device), X, X.to(device)):
        got = compiled(x)
        assert got.device == x.device
        torch.testing.assert_close(got.cpu(), X + 1)
    assert tenon.stats()["graphs"] == 2


def test_the_precision_of_float32_products_is_guarded(device, monkeypatch):
    compiled, x = tenon.compile(lambda x: x @ x.t()), X.to(device)
    flags = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    for products, convolutions, recompiles in ((*flags, 0), (not flags[0], flags[1], 1), (not flags[0], not flags[1], 2), (*flags, 2), (not flags[0], flags[1], 2)):
        monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", products)
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", convolutions)
        torch.testing.assert_close(compiled(x).cpu(), X @ X.t(), rtol=2e-2, atol=2e-2)
        assert tenon.stats()["recompiles"] == recompiles, (products, convolutions)


def test_gradients_are_as_exact_as_the_flags_say_when_they_are_asked_for(device, monkeypatch):
    compiled, x = tenon.compile(lambda x: (x @ x.t()).sum()), X.to(device).requires_grad_()
    for allowed, graphs in ((False, 1), (True, 2), (False, 2)):
        loss = compiled(x)
        monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", allowed)
        (gradient,) = torch.autograd.grad(loss, x)
        monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
        torch.testing.assert_close(gradient.cpu(), 2 * X.sum(0).expand_as(X), rtol=2e-2, atol=2e-2)
        assert tenon.stats()["autograd"]["backward_graphs"] == graphs


def test_a_break_goes_on(check):
    def fn(x):
        y = x + 1
        print(end="")
        return y * 2

    check(fn, (X,))


def test_a_device_without_a_number_runs_eagerly():
    x = torch.ones(2, device="meta")
    assert tenon.compile(lambda x: x + 1)(x).device == x.device
    assert tenon.stats()["graphs"] == 0
    assert "'meta'" in str(tenon.explain(lambda x: x + 1)(x).break_reasons[0])


def test_leaves(check):
    def fn(x):
        w = x.clone().requires_grad_()
        y = w * 2
        return w.is_leaf, y.is_leaf, y.requires_grad, y.detach() + 1

    check(fn, (X,))


def test_work_is_given_to_the_current_stream(device):
    compiled = tenon.compile(lambda x: torch.relu(x + 1) * 2)
    x = X.to(device)
    torch.accelerator.synchronize()
    before = torch.accelerator.current_stream()
    stream = torch.Stream(device)
    torch.accelerator.set_stream(stream)
    try:
        got = [compiled(x) for _ in range(3)]
        stream.synchronize()
    finally:
        torch.accelerator.set_stream(before)
    for one in got:
        torch.testing.assert_close(one.cpu(), torch.relu(X + 1) * 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_dtypes(whole, dtype):
    whole(lambda x: (x + x, x == x, x.t()), ((X * 3).to(dtype),))
