"""Convolutions and matrix products are as accurate as eager's: judged by float64, with eager's own error as the bound."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def errors(program, *args):
    """The largest errors of the compiled program and of eager, and the bound: twice eager's, or 4 ulp of the result's scale."""
    with torch.no_grad():
        wide = [a.double() for a in args]
        judge = type(program).forward(program.double(), *wide) if isinstance(program, torch.nn.Module) else program(*wide)
        if isinstance(program, torch.nn.Module):
            program.float()
        ours, eager = tenon.compile(program)(*args), program(*args)
    scale = float(judge.abs().max())
    largest = [float((t.double() - judge).abs().max()) for t in (ours, eager)]
    return largest[0], max(2 * largest[1], 4 * np.finfo(np.float32).eps * scale)


@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions(seed):
    draw = np.random.default_rng(seed)
    groups = int(draw.choice([1, 1, 1, 2]))
    channels, outputs = (int(draw.choice([1, 3, 8, 16, 40, 64, 130])) * groups for _ in range(2))
    kernel, stride, dilation = int(draw.choice([1, 3, 3, 5])), int(draw.integers(1, 3)), int(draw.integers(1, 3))
    reach = (kernel - 1) * dilation + 1
    torch.manual_seed(seed)
    x = torch.randn(int(draw.integers(1, 6)), channels, *(int(reach + draw.integers(0, 17)) for _ in range(2)))
    conv = torch.nn.Conv2d(channels, outputs, kernel, stride, int(draw.integers(0, kernel)), dilation, groups).eval()
    torch.nn.init.normal_(conv.weight)
    ours, bound = errors(conv, x)
    assert ours <= bound, f"seed {seed}: {tuple(x.shape)}, {conv}: {ours} > {bound}"


@pytest.mark.parametrize(("m", "k", "n"), [(1, 4096, 64), (3, 1000, 33), (40, 5000, 70), (128, 2049, 130), (7, 300, 1)])
def test_long_sums(m, k, n):
    torch.manual_seed(m)
    ours, bound = errors(lambda a, b: a @ b, torch.randn(m, k), torch.randn(k, n))
    assert ours <= bound
    ours, bound = errors(lambda a, b: a @ b.t(), torch.randn(m, k), torch.randn(n, k))
    assert ours <= bound
