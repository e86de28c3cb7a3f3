"""Gradients that are asked for a second time: torch has let go of what it saved for them, or has saved nothing."""
import itertools
import sys
from pathlib import Path

import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

# Calls that torch makes with its own history, of which a graph lets go as a whole.
REFUSED_ANYWAY = {"gradient", "lu_unpack", "_upsample_bilinear2d_aa", "fft.hfft", "fft.hfft2", "fft.hfftn", "fft.irfft", "fft.irfft2", "fft.irfftn", "linalg.matrix_power"}


def line(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape).requires_grad_()


def tensors(of, kind):
    if isinstance(of, torch.Tensor):
        return [of] if kind(of) else []
    items = of.values() if isinstance(of, dict) else of if isinstance(of, (list, tuple)) else ()
    return [found for item in items for found in tensors(item, kind)]


def asked_twice(fn, args, kwargs):
    """"refused" or "allowed"; None where there is nothing to ask for, or torch has other objections."""
    try:
        ends = tensors(fn(*args, **kwargs), lambda t: t.requires_grad)
        leaves = tensors([args, kwargs], lambda t: t.requires_grad)
        gradients = torch.autograd.grad(ends, leaves, [torch.ones_like(end) for end in ends], allow_unused=True)
    except Exception:  # noqa: BLE001
        return None
    try:
        again = torch.autograd.grad(ends, leaves, [torch.ones_like(end) for end in ends], allow_unused=True)
    except RuntimeError as refusal:
        return "refused" if "backward through the graph a second time" in str(refusal) else str(refusal)
    for one, other in zip(gradients, again):
        torch.testing.assert_close(one, other)
    return "allowed"


@pytest.mark.parametrize("fn, shapes", [
    (lambda a: a * 2 + 1, [(3,)]),
    (lambda a: a / 2, [(3,)]),
    (lambda a: a + 1, [(3,)]),
    (lambda a, b: torch.add(a, b, alpha=2), [(3,), (3,)]),
    (lambda a, b: torch.lerp(a, b, 0.3), [(3,), (3,)]),
    (lambda a, b: torch.lerp(a, b, torch.tensor(0.3)), [(3,), (3,)]),
    (lambda a: a[torch.tensor([0, 2])], [(3,)]),
    (lambda a: a[1:].view(-1, 1).expand(2, 4), [(3,)]),
    (lambda a, b: torch.where(torch.tensor([True, False, True]), a, b), [(3,), (3,)]),
    (lambda a: a.gather(0, torch.tensor([0, 1])), [(3,)]),
    (lambda a, b: a.index_add(0, torch.tensor([0, 1, 2]), b), [(3,), (3,)]),
    (lambda a: a.mean() * 3, [(3,)]),
    (lambda a: a**1, [(3,)]),
    (lambda a: F.avg_pool2d(a, 2), [(1, 1, 4, 4)]),
    (lambda a: F.affine_grid(a, (1, 1, 4, 4), align_corners=False), [(1, 2, 3)]),
    (lambda a, b: (a + 1, b * b), [(3,), (3,)]),
    (lambda a: a.detach().requires_grad_() + a, [(3,)]),
])
def test_torch_refuses_what_it_has_let_go_of(fn, shapes, tier):
    leaves = [line(*shape) for shape in shapes]
    want = asked_twice(fn, leaves, {})
    compiled = tenon.compile(fn)
    for _ in range(2):
        assert asked_twice(compiled, leaves, {}) == want


def test_a_walk_within_the_call_lets_go_too():
    def walked(fn):
        def call(x):
            y = fn(x)
            y.sum().backward()
            return y

        return call

    for fn in (lambda x: x * 2, lambda x: x + 2, lambda x: x.exp() + 2):
        compiled = tenon.compile(walked(fn))
        for call in (walked(fn), compiled, compiled):
            x = line(3)
            y = call(x)
            if asked_twice(fn, [line(3)], {}) == "refused":
                with pytest.raises(RuntimeError, match="a second time"):
                    y.sum().backward()
            else:
                y.sum().backward()
                torch.testing.assert_close(x.grad, torch.full((3,), 2.0))


@pytest.mark.timeout(600)
def test_of_every_function_as_torch():
    """The first sample of each entry of torch's operator database."""
    pytest.importorskip("expecttest")  # torch.testing._internal wants it
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.opinfo.samples import entries

    compared = 0
    for name, entry in entries().items():
        if not entry.supports_autograd or torch.float32 not in entry.dtypes:
            continue
        for sample in itertools.islice(entry.sample_inputs("cpu", torch.float32, requires_grad=True), 1):
            torch.manual_seed(0)
            args = (sample.input, *sample.args)
            want = asked_twice(entry.op, args, sample.kwargs)
            if want not in ("refused", "allowed"):
                continue
            tenon.reset()
            torch.manual_seed(0)
            got = asked_twice(tenon.compile(lambda *args, op=entry.op, **kwargs: op(*args, **kwargs)), args, sample.kwargs)
            compared += 1
            assert got == want or (name in REFUSED_ANYWAY and got == "refused"), (name, want, got)
    assert compared > 400, compared
