"""torch.nn.functional.affine_grid and its gradient: in the graph, with eager as the judge."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

SIZES = [(4, 3, 24, 20), (2, 3, 5, 6, 7), (1, 1, 1, 4), (3, 2, 2, 1)]


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_places_and_gradients(size, corners):
    rank = len(size) - 2
    theta = torch.randn(size[0], rank, rank + 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weight = torch.rand(size[0], *size[2:], rank, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = []
    for call in (lambda t: F.affine_grid(t, size, align_corners=corners), tenon.compile(lambda t: F.affine_grid(t, size, align_corners=corners), fullgraph=True)):
        given = theta.clone().requires_grad_()
        grid = call(given)
        found.append((grid.detach(), grid.stride(), torch.autograd.grad(grid, given, weight)[0]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_another_number_of_matrices_is_refused():
    with pytest.raises(RuntimeError):
        tenon.compile(lambda t: F.affine_grid(t, (3, 1, 4, 4), align_corners=False))(torch.ones(2, 2, 3))


def test_a_spatial_transformer_is_one_graph():
    theta = torch.eye(2, 3).repeat(2, 1, 1).requires_grad_()
    pictures = torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(0))
    warp = lambda theta: F.grid_sample(pictures, F.affine_grid(theta, pictures.shape, align_corners=False), align_corners=False)
    eager, = torch.autograd.grad(warp(theta).square().sum(), theta)
    compiled, = torch.autograd.grad(tenon.compile(warp, fullgraph=True)(theta).square().sum(), theta)
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-4)
