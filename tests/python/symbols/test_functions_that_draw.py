"""Functions that draw numbers at which a graph would end, and give nothing else: they are called as they are."""
import math

import pytest

import tenon
from tests.python.symbols.test_random_parts import IMAGE, check

torch = pytest.importorskip("torch")


def place_that_fits(height, width):
    """As torchvision's RandomResizedCrop.get_params: draws until what is drawn fits into the image."""
    for _ in range(10):
        area = height * width * torch.empty(1).uniform_(0.1, 1.0).item()
        ratio = torch.exp(torch.empty(1).uniform_(-0.3, 0.3)).item()
        w, h = int(round(math.sqrt(area * ratio))), int(round(math.sqrt(area / ratio)))
        if 0 < w <= width and 0 < h <= height:
            return torch.randint(0, height - h + 1, (1,)).item(), torch.randint(0, width - w + 1, (1,)).item(), h, w
    return 0, 0, height, width


def resized_part(x):
    i, j, h, w = place_that_fits(*x.shape[-2:])
    part = x[..., i : i + h, j : j + w]
    if part.shape[-2:] == (16, 16):
        return part
    return torch.nn.functional.interpolate(part[None], size=(16, 16), mode="bilinear", antialias=True)[0]


def test_numbers_drawn_until_they_fit():
    """How often that takes, and where it stops, is no variant: the function that draws is called as it is."""
    check(resized_part, lambda draw: (IMAGE,), 5)
    assert tenon.stats()["left_to_python"] == 1, tenon.stats()


def drawn_angle():
    return float(torch.empty(1).uniform_(-20.0, 20.0).item())


def rotated(x, angle):
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    grid = torch.nn.functional.affine_grid(torch.tensor([[[cos, sin, 0.0], [-sin, cos, 0.0]]], dtype=x.dtype), [1, *x.shape], align_corners=False)
    return torch.nn.functional.grid_sample(x[None], grid, align_corners=False)[0]


def row_of_transforms(x):
    i, j, h, w = place_that_fits(*x.shape[-2:])
    x = torch.nn.functional.interpolate(x[None, ..., i : i + h, j : j + w], size=(24, 24), mode="bilinear")[0]
    if torch.rand(1) < 0.5:
        x = x.flip(-1)
    x = rotated(x, drawn_angle())
    if torch.rand(1) < 0.5:
        i, j, h, w = place_that_fits(*x.shape[-2:])
        x[..., i : i + h, j : j + w] = 0
    return (x - 0.5) / 0.25


def test_a_row_of_random_transforms():
    """What draws numbers at which the graph would end is called as it is from the first call on: no graph computes these numbers alone."""
    check(row_of_transforms, lambda draw: (IMAGE.double(),), 7, calls=200)
    assert tenon.stats()["left_to_python"] == 2, tenon.stats()


def angle_as_a_parameter():
    return {"angle": float(torch.empty(1).uniform_(-20.0, 20.0).item())}


def turned_behind_work(x):
    y = (x - 0.5).exp()
    return rotated(y, angle_as_a_parameter()["angle"] % 360)


def test_a_function_that_has_returned_with_a_number_is_called_as_it_is():
    """Also behind work on arrays: the number, and not what was computed before it, is what the graph would end for."""
    check(turned_behind_work, lambda draw: (IMAGE.double(),), 2, calls=20)
    assert tenon.stats()["left_to_python"] == 1, tenon.stats()


def scale_of(x):
    return torch.rand(1) * x.mean()


def test_a_number_of_arrays_leaves_no_function_that_draws():
    def fn(x):
        y = x * scale_of(x)
        return y[: int(y.sum().item() ** 2) % 2 + 1] * 2

    check(fn, lambda draw: (IMAGE,), 5, calls=20)
    assert tenon.stats()["left_to_python"] == 0, tenon.stats()


def work_at_drawn_places(x):
    size = int(torch.randint(2, 9, (1,)).item() ** 0.5 * 3)
    return torch.nn.functional.pad(x, (size, size)).exp().sin() * 2


def test_what_draws_numbers_and_computes_on_arrays_is_compiled():
    check(lambda x: work_at_drawn_places(x) + 1, lambda draw: (IMAGE,), 5, calls=30)
    assert tenon.stats()["left_to_python"] == 0, tenon.stats()
