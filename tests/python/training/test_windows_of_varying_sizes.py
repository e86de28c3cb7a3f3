"""Gradients of convolutions and pooling over pictures and sounds whose sizes vary: one graph for all of them."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

NETWORKS = {
    "stride 1": lambda: nn.Sequential(nn.Conv2d(3, 40, 3, padding=1), nn.ReLU(), nn.Conv2d(40, 32, 3, padding=1)),
    "stride 2": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.Conv2d(4, 4, 3, stride=2, padding=1)),
    "even kernels": lambda: nn.Sequential(nn.Conv2d(3, 8, 4, stride=2, padding=1), nn.GELU(), nn.Conv2d(8, 4, 1, stride=2)),
    "stem": lambda: nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 6, 3, padding=1)),
    "transposed": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose2d(4, 2, 2, stride=2)),
    "dilated": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, dilation=2, stride=3), nn.Conv2d(8, 8, 3, padding="same", dilation=3)),
    "groups": lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8, stride=2), nn.Conv2d(8, 16, 5, padding=2, groups=4)),
    "other paddings": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"), nn.Conv2d(8, 8, 3, padding=2, padding_mode="reflect", stride=2)),
    "one average": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
}
SIZES = [(24, 24), (17, 31), (30, 18), (33, 40), (19, 19), (45, 22)]


def step_of(network, forward=None):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = (forward or network)(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize("whole", [False, True], ids=["model", "whole step"])
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_two_graphs_train_on_all_sizes(make, whole):
    torch.manual_seed(0)
    plain, twin = make().double(), make().double()
    twin.load_state_dict(plain.state_dict())
    eager, compiled = step_of(plain), tenon.compile(step_of(twin)) if whole else step_of(twin, tenon.compile(twin))
    for height, width in SIZES:
        x = torch.randn(2, 3, height, width, dtype=torch.float64)
        torch.testing.assert_close(compiled(x), eager(x))
    torch.testing.assert_close(twin.state_dict(), plain.state_dict())
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 0)


def test_sounds_and_volumes(gradients, leaf):
    for weight, stride in (((4, 2, 5), 3), ((4, 2, 2, 3, 3), 2)):
        tenon.reset()
        kind = torch.nn.functional.conv1d if len(weight) == 3 else torch.nn.functional.conv3d
        fn = tenon.compile(lambda x, w: kind(x, w, stride=stride, padding=1))
        for n in (13, 16, 21, 18):
            x, w, x2, w2 = leaf(2, 2, *[n + d for d in range(len(weight) - 2)]), leaf(*weight, seed=1), leaf(2, 2, *[n + d for d in range(len(weight) - 2)]), leaf(*weight, seed=1)
            fn(x, w).cos().sum().backward()
            kind(x2, w2, stride=stride, padding=1).cos().sum().backward()
            torch.testing.assert_close((x.grad, w.grad), (x2.grad, w2.grad))
        assert (tenon.stats()["graphs"], tenon.stats()["eager_fallbacks"]) == (2, 0)


def test_gradients_of_gradients(leaf):
    def penalty(x, w):
        y = torch.nn.functional.conv2d(x, w, padding=1)
        (g,) = torch.autograd.grad(y.tanh().sum(), x, create_graph=True)
        return g.square().sum()

    compiled = tenon.compile(penalty)
    for n in (8, 11, 9, 14):
        x, w, x2, w2 = leaf(2, 3, n, n + 1), leaf(4, 3, 3, 3, seed=1), leaf(2, 3, n, n + 1), leaf(4, 3, 3, 3, seed=1)
        compiled(x, w).backward()
        penalty(x2, w2).backward()
        torch.testing.assert_close((x.grad, w.grad), (x2.grad, w2.grad))
    assert tenon.stats()["eager_fallbacks"] == 0
