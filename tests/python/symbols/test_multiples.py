"""Sizes that must be multiples of a number: one graph for all multiples, and another one for others."""
import pytest

import tenon

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
F = torch.nn.functional


def windows(x):
    n, h, w, c = x.shape
    return x.view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 4, 4, c).mean((1, 2))


def windows_and_back(x):
    n, h, w, c = x.shape
    parts = x.view(n, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
    return (parts * 2).view(n, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c) + x


def twice_divided(x):
    return x.unflatten(1, (2, -1)).unflatten(2, (2, -1)).sum((1, 2))


IDIOMS = {
    "windows": windows,
    "windows and back": windows_and_back,
    "twice divided": twice_divided,
    "pairs": lambda x: x.flatten(1).view(x.shape[0], -1, 2).flip(-1),
    "halves": lambda x: x.unflatten(1, (2, -1)).sum(1),
    "chunks": lambda x: torch.stack(x.chunk(2, 1)),
    "glu": lambda x: F.glu(x, 2),
    "space to depth": lambda x: x.permute(0, 3, 1, 2).reshape(x.shape[0], 3, x.shape[1] // 2, 2, x.shape[2] // 2, 2).amax((3, 5)),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x.permute(0, 3, 1, 2), 2),
    "pooled": lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 2).unflatten(3, (-1, 2)).sum(4),
    "padded": lambda x: F.pad(x, (0, 0, 0, (4 - x.shape[2] % 4) % 4)).unflatten(2, (-1, 4)).sum(3),
    "two ways": lambda x: (x.view(2, -1, 4, 3).sum(2), x.view(2, -1, 8, 3).sum(2))[1],
    "by a half": lambda x: x.reshape(x.shape[0], -1, x.shape[2] // 2),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", IDIOMS)
def test_two_graphs_serve_all_multiples(check, name, grad):
    fn = IDIOMS[name]
    compiled = tenon.compile(fn)
    for i in range(12):
        x = torch.randn(2, 8 * (1 + i % 5), 8 * (2 + i % 7), 3, requires_grad=grad)
        got, want = compiled(x), fn(x)
        check.same(got, want)
        if grad:
            ours, gradient = (torch.autograd.grad((y * torch.arange(y.numel()).view(y.shape).cos()).sum(), x)[0] for y in (got, want))
            torch.testing.assert_close(ours, gradient)
    stats = tenon.stats()
    assert stats["graphs"] <= 2 and stats["graph_breaks"] == stats["eager_fallbacks"] == 0, stats


def test_blocks_of_arrays(check):
    def fn(a):
        return a.reshape(a.shape[0] // 8, 8, -1, 8).mean((1, 3))

    compiled = tenon.compile(fn)
    for i in range(12):
        a = np.arange(64.0 * (1 + i) * (2 + i % 3)).reshape(8 * (1 + i), -1)
        check.same(compiled(a), fn(a))
    assert tenon.stats()["graphs"] <= 2


def test_what_is_no_multiple_goes_another_way(check):
    def fn(x):
        if x.shape[0] % 4:
            x = F.pad(x, (0, 0, 0, 4 - x.shape[0] % 4))
        return x.view(x.shape[0] // 4, 4, 3).sum(1)

    compiled = tenon.compile(fn)
    for n in [8, 12, 20, 9, 10, 11, 13, 16, 14, 15, 40, 41, 42, 43]:
        x = torch.randn(n, 3)
        check.same(compiled(x), fn(x))
    assert tenon.stats()["graphs"] <= 6 and tenon.stats()["eager_fallbacks"] == 0


def test_others_raise_as_plain_execution():
    def fn(x):
        return x.view(-1, 4)

    compiled = tenon.compile(fn)
    for n in (8, 12, 16, 20):
        assert compiled(torch.ones(n)).shape == (n // 4, 4)
    with pytest.raises(RuntimeError, match="is invalid for input of size 10"):
        compiled(torch.ones(10))
    assert compiled(torch.ones(24)).shape == (6, 4)


def test_sizes_that_are_padded_to_multiples_are_halved_and_doubled(check):
    torch.manual_seed(0)
    down, up = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ConvTranspose2d(8, 3, 2, 2)

    def fn(x):
        height, width = x.shape[2:]
        padded = F.pad(x, (0, (8 - width % 8) % 8, 0, (8 - height % 8) % 8), mode="replicate")
        return (up(F.max_pool2d(down(padded), 2)) + padded)[:, :, :height, :width]

    compiled = tenon.compile(fn)
    for height, width in [(48, 64), (40, 40), (61, 45), (72, 33), (56, 80), (37, 51), (5, 3)] * 2:
        x = torch.randn(2, 3, height, width)
        torch.testing.assert_close(compiled(x), fn(x))
    stats = tenon.stats()
    assert stats["graph_breaks"] == stats["eager_fallbacks"] == 0, stats
