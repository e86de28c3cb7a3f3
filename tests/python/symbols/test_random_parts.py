"""Crops, flips, masks and other parts of arrays whose place and size are drawn anew in each call."""
import copy
import itertools
import math
import random

import numpy as np
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")

IMAGE = torch.linspace(-1, 1, 3 * 40 * 48).reshape(3, 40, 48)
PICTURE = np.linspace(-1, 1, 40 * 48 * 3).reshape(40, 48, 3)
LINE = torch.linspace(-1, 1, 40)
ROW = np.linspace(-1, 1, 40)


def seed(number):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def check(fn, arguments, most, calls=100, breaks=True):
    """`arguments(draw)` gives those of one call; `draw` is a generator of its own."""
    tenon.reset()
    compiled = tenon.compile(fn)
    draw = random.Random(7)
    with torch.no_grad():
        for call in range(calls):
            args = arguments(draw)
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            seed(call)
            want = fn(*theirs)
            seed(call)
            same(compiled(*mine), want)
            same(list(mine), list(theirs))
    stats = tenon.stats()
    assert stats["graphs"] <= most and stats["eager_fallbacks"] == 0, stats
    assert breaks or stats["graph_breaks"] == 0, stats


def torch_crop(x):
    i, j = torch.randint(0, 9, (1,)).item(), torch.randint(0, 17, (1,)).item()
    x = x[:, i : i + 32, j : j + 32]
    if torch.rand(1) < 0.5:
        x = x.flip(-1)
    return (x - 0.5) / 0.25


def plain_crop(x):
    i, j = random.randint(0, 8), random.randint(0, 16)
    x = x[..., i : i + 32, j : j + 32]
    if random.random() < 0.5:
        x = x.flip(-1)
    return (x - 0.5) / 0.25


def view_of_crop(x):
    i, j = random.randint(0, 8), random.randint(0, 16)
    return x[..., i : i + 32, j : j + 32]


def padded_crop(x):
    x = torch.nn.functional.pad(x, (4, 4, 4, 4))
    i, j = random.randint(0, 8), random.randint(0, 8)
    return x[:, i : i + 40, j : j + 48]


def erased(x):
    height, width = random.randint(2, 12), random.randint(2, 12)
    i, j = random.randint(0, 40 - height), random.randint(0, 48 - width)
    x[:, i : i + height, j : j + width] = 0
    return x + 1


@pytest.mark.parametrize("fn", [torch_crop, plain_crop, view_of_crop, padded_crop, erased])
def test_parts_of_images_of_torch(fn):
    check(fn, lambda draw: (IMAGE,), 6)


def numpy_crop(x):
    i, j = np.random.randint(0, 9), np.random.randint(0, 17)
    x = x[i : i + 32, j : j + 32]
    if np.random.rand() < 0.5:
        x = x[:, ::-1]
    return (x - 0.5) / 0.25


def numpy_cutout(x):
    size, i, j = np.random.randint(2, 12), np.random.randint(0, 40), np.random.randint(0, 48)
    mask = np.ones_like(x)
    mask[max(0, i - size) : min(40, i + size), max(0, j - size) : min(48, j + size)] = 0
    return x * mask


@pytest.mark.parametrize("fn, most", [(numpy_crop, 6), (numpy_cutout, 8)])
def test_parts_of_pictures_of_numpy(fn, most):
    check(fn, lambda draw: (PICTURE,), most)


def several_crops(x):
    parts = []
    for _ in range(5):
        i, j = torch.randint(0, 9, (1,)).item(), torch.randint(0, 17, (1,)).item()
        parts.append(x[:, i : i + 32, j : j + 32])
    return torch.stack(parts)


def several_plain_crops(x):
    places = [(random.randint(0, 8), random.randint(0, 16)) for _ in range(5)]
    return torch.stack([x[:, i : i + 32, j : j + 32] for i, j in places])


@pytest.mark.parametrize("fn", [several_crops, several_plain_crops])
def test_several_crops_of_one_size(fn):
    check(fn, lambda draw: (IMAGE,), 6)


@pytest.mark.parametrize("joined", [
    lambda x, y, s: torch.stack([x[s], y]), lambda x, y, s: torch.stack([y, x[s]]), lambda x, y, s: x[s] + y, lambda x, y, s: torch.where(y > 0, x[s], y),
    lambda x, y, s: torch.cat([x[s], y], 2), lambda x, y, s: y.copy_(x[s]) * 2,
])
def test_a_slice_of_a_length_that_stays_lies_anywhere(joined):
    """What must be as long says how long it is: its bounds vary together."""
    def arguments(draw):
        i, j = draw.randint(0, 8), draw.randint(0, 16)
        return IMAGE, torch.linspace(-2, 2, 3 * 32 * 30).reshape(3, 32, 30), (slice(None), slice(i, i + 32), slice(j, j + 30))

    check(joined, arguments, 2, breaks=False)


def resized_crop(x):
    area = 40 * 48 * random.uniform(0.1, 0.9)
    ratio = math.exp(random.uniform(-0.3, 0.3))
    height, width = min(40, round(math.sqrt(area / ratio))), min(48, round(math.sqrt(area * ratio)))
    i, j = random.randint(0, 40 - height), random.randint(0, 48 - width)
    return torch.nn.functional.interpolate(x[None, :, i : i + height, j : j + width], size=(16, 16), mode="bilinear")[0]


def test_a_crop_of_varying_size_that_is_resized():
    check(resized_crop, lambda draw: (IMAGE,), 8)


@pytest.mark.parametrize("shaped", [lambda y, h, w: y.reshape(-1, 3, h, w) * 2, lambda y, h, w: y.reshape(3, h, w) + 1, lambda y, h, w: y.reshape(1, 3, 1, h, w).sum(-1)],
                         ids=["batch", "same", "between"])
def test_parts_given_the_sizes_that_they_have_by_name(shaped):
    """The size of `x[i : i + h]` is clamped to x; a shape says h."""
    def part(x, i, j, h, w):
        return shaped(x[..., i : i + h, j : j + w], h, w)

    check(part, lambda draw: (IMAGE, draw.randint(0, 9), draw.randint(0, 9), draw.randint(4, 30), draw.randint(4, 30)), 3, breaks=False)


def test_a_size_in_two_numbers_is_one_condition():
    """That (h, w) is none of these is one variant, whichever number it is that differs."""
    sizes = [(20, 24), (24, 24), (20, 20), (24, 20), (32, 20), (20, 32), (31, 17)]
    places = itertools.cycle(sizes)

    def fn(x):
        return x + 1 if tuple(x.shape[-2:]) == (24, 20) or list(x.shape[-2:]) == [20, 32] else x * 2

    check(fn, lambda _: (lambda h, w: (IMAGE[:, :h, :w].contiguous(),))(*next(places)), most=5, breaks=False)


def test_draws_between_bounds_that_are_tensors():
    bounds = torch.log(torch.tensor([0.75, 1.25]))

    def fn(x):
        return x * torch.exp(torch.empty(1).uniform_(bounds[0], bounds[1])) + torch.empty(3, 1, 1).normal_(0, bounds[1])

    check(fn, lambda _: (IMAGE,), most=1, breaks=False)


def placed(x):
    width, height = int(48 * (1 + torch.rand(1))), int(40 * (1 + torch.rand(1)))
    canvas = torch.zeros(3, height, width)
    canvas[:, :40, :48] = x
    return canvas * 2


def test_numbers_read_of_elements_vary_from_the_first():
    """Each of two breaks has a graph behind it, and none a variant for the first number that was read."""
    check(placed, lambda draw: (IMAGE,), 5)


@pytest.mark.parametrize("flat", [lambda y: y.reshape(-1) * 2, lambda y: y.reshape(y.shape[0], -1) + 1, lambda y: y.reshape(-1, y.shape[-1]).sum(0)], ids=["whole", "behind", "before"])
@pytest.mark.parametrize("data", [IMAGE, PICTURE[:, :, 0].copy()], ids=["torch", "numpy"])
def test_parts_of_varying_size_made_flat(data, flat):
    def part(x, i, j, h, w):
        return flat(x[..., i : i + h, j : j + w])

    check(part, lambda draw: (data, draw.randint(0, 9), draw.randint(0, 9), draw.randint(4, 30), draw.randint(4, 30)), 6)


@pytest.mark.parametrize("data", [LINE, ROW], ids=["torch", "numpy"])
def test_slices_whose_bounds_vary(data):
    def places(low, high):
        return lambda draw: (data, draw.randint(low, high), draw.randint(low, high))

    def add_to_part(v, a, b):
        v[a:b] += 1
        return v * 2

    check(lambda v, a, b: v[a : a + b + 2] * 2, places(0, 15), 3, breaks=False)
    check(lambda v, a, b: v[max(0, a - 5) : min(40, a + 5, b + 7)] * 2, places(3, 38), 10, breaks=False)
    check(lambda v, a, b: v[a:b], places(0, 45), 6, breaks=False)
    check(lambda v, a, b: v[a:b], places(-45, 45), 8, breaks=False)
    check(lambda v, a, b: v[a:b] * 2, places(-45, 45), 8, breaks=False)
    check(add_to_part, places(0, 45), 8, breaks=False)
    check(add_to_part, places(-45, 45), 8, breaks=False)
    check(lambda v, a, b: v[a << 1] + v[b >> 1] + v[a & 7] + v[b % 5] + v[a // 3] + v[-(-b // 2)], places(0, 19), 3, breaks=False)
    check(lambda v, a, b: v[abs(a)] * v[a] + v[b], places(-12, 12), 8, breaks=False)


@pytest.mark.parametrize("data", [LINE, ROW], ids=["torch", "numpy"])
def test_steps_that_vary(data):
    def write(v, a, n):
        v[a::n] = 0
        return v + 1

    arguments = lambda draw: (data, draw.randint(0, 12), draw.randint(1, 12))
    check(lambda v, a, n: v[::n], arguments, 6, breaks=False)
    check(lambda v, a, n: v[a::n] * 2, arguments, 6, breaks=False)
    check(write, arguments, 6, breaks=False)


def test_a_step_of_zero_and_backward_steps():
    compiled = tenon.compile(lambda v, n: v[::n] * 2)
    for n in (3, 5, 1, -1, -4, -2, 7):
        np.testing.assert_array_equal(compiled(ROW, n), ROW[::n] * 2)
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        compiled(ROW, 0)


def test_rolls_widths_fills_and_divisors():
    draws = lambda low, high: lambda draw: (LINE, draw.randint(low, high), draw.randint(low, high))
    check(lambda v, a, b: torch.roll(v.view(5, 8), (a, b), (0, 1)) * 2, draws(-9, 9), 5, breaks=False)
    check(lambda v, a, b: torch.nn.functional.pad(v, (a, b)) * 2, draws(0, 6), 5, breaks=False)
    check(lambda v, a, b: torch.full((3,), a) + torch.arange(3) * b, draws(-5, 5), 4, breaks=False)
    check(lambda v, a, b: torch.tril(v.view(5, 8), a) + torch.triu(v.view(5, 8), b), draws(-6, 8), 4, breaks=False)
    check(lambda v, a, b: (torch.arange(10) // (a or 3), torch.arange(10) % (b or 3)), draws(-5, 5), 12, breaks=False)


def test_a_divisor_that_comes_to_zero_raises():
    compiled = tenon.compile(lambda n: torch.arange(4) // n)
    for n in (3, 4, 1, -2):
        same(compiled(n), torch.arange(4) // n)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(0)


def test_sizes_that_a_caller_gives():
    compiled = tenon.compile(lambda x, n: (x.reshape(n) + 1 if n in (-1, 40) else x.reshape(n, -1) + 1))
    for n in (4, 8, -1, 40, 2, 1, 20):
        same(compiled(LINE, n), LINE.reshape(n) + 1 if n in (-1, 40) else LINE.reshape(n, -1) + 1)
    compiled = tenon.compile(lambda x, n: x.expand(n, 40) + 1)
    for n in (4, 8, 2, 1, 0):
        same(compiled(LINE, n), LINE.expand(n, 40) + 1)
    with pytest.raises(RuntimeError):
        compiled(LINE, -1)
    compiled = tenon.compile(lambda x, n: x.narrow(0, n, 3) * 2)
    for n in (4, 8, -5, -9, 0, 1):
        same(compiled(LINE, n), LINE.narrow(0, n, 3) * 2)


@pytest.mark.parametrize("part", [
    lambda x: x[:, (x.shape[1] - 24) // 2:(x.shape[1] - 24) // 2 + 24, (x.shape[2] - 24) // 2:][..., :24] * 2,
    lambda x: x.narrow(1, (x.shape[1] - 24) // 2, 24) * 2,
    lambda x: x[:, x.shape[1] // 4:3 * x.shape[1] // 4, :-(x.shape[2] // 3)] + 1,
    lambda x: x[:, (x.shape[1] - 60) // 2:] + 1,
    lambda x: x[:, (x.shape[1] + 1) // 2 - 2:(x.shape[1] + 1) // 2 + 2, x.shape[2] // 3:] - 1,
], ids=["center crop", "narrow", "quarters", "from the end", "middle rows"])
def test_parts_by_sizes_divided(part):
    check(part, lambda r: (IMAGE[:, :r.randint(26, 40), :r.randint(26, 48)].contiguous(),), most=3, breaks=False)


def drawn_place(x, size, padded):
    """As torchvision's RandomCrop: what is outside of the image is padded, which no drawn place is."""
    h, w = x.shape[-2:]
    top = int(torch.randint(0, h - size + 1, size=())) if h > size else 0
    left = int(torch.randint(w - size + 1, ())) if w > size else 0
    if left < 0 or top < 0 or left + size > w or h < top + size or 0 > top:
        padded.append(1)
        x = x[..., max(top, 0):top + size, max(left, 0):left + size] - 100
    return x[..., top:top + size, left:left + size] * 2


def test_no_branch_on_where_a_drawn_place_cannot_be():
    sizes = [(30, 31), (26, 40), (27, 27), (40, 33), (24, 29), (28, 48)]
    places = itertools.cycle(sizes)
    padded = []
    check(lambda x: drawn_place(x, 24, padded), lambda _: ((lambda h, w: IMAGE[:, :h, :w].contiguous())(*next(places)),), most=6)
    assert not padded and tenon.stats()["graph_breaks"] <= 4, tenon.stats()


@pytest.mark.parametrize("low, high", [(3, 6), (-2, 3), (0, 1), (5, 9)])
def test_branches_that_a_drawn_number_may_take(low, high):
    def fn(x):
        n = int(torch.randint(low, high, ()))
        more = n + 2
        if n < 2 or more >= 7:
            x = x + 1
        if n - more == -2 and n != 9 and n <= 8:
            x = x * 2
        return x * (n >= low) if more > n else x - 5

    check(fn, lambda _: (LINE,), most=12)


def crop_of_drawn_place(x, height, width):
    i, j = torch.randint(0, 41 - height, (1,)).item(), torch.randint(0, 49 - width, (1,)).item()
    return x[..., i : i + height, j : j + width] * 2


def writes_at_drawn_place(x, height, width):
    i, j = torch.randint(0, 41 - height, (1,)).item(), torch.randint(0, 49 - width, (1,)).item()
    x[..., i : i + height, j : j + width] = 0
    return x + 1


@pytest.mark.parametrize("fn", [crop_of_drawn_place, writes_at_drawn_place])
def test_a_part_of_varying_size_at_a_drawn_place(fn):
    """The call's own numbers are constants first: two graphs up to the part, and one from there on."""
    check(fn, lambda draw: (IMAGE, draw.randint(2, 39), draw.randint(2, 47)), 3)


def test_a_keyword_of_a_call_that_the_library_makes_with_a_drawn_number():
    def fn(x):
        return x.narrow(dim=1, start=torch.randint(0, 9, (1,)).item(), length=torch.randint(1, 9, (1,)).item()) * 2

    check(fn, lambda _: (IMAGE,), 4)


def parts(draw):
    """Parts of an image: in some the rows have no gap between them, in some the planes, in some neither."""
    height, width = draw.choice([(40, 48), (40, 20), (17, 48), (11, 13), (25, 31), (39, 47)])
    return (IMAGE[:, :height, :width],)


def test_one_graph_serves_parts_with_gaps_and_without_where_they_do_not_matter():
    for fn in (lambda x: x * 2 + 1, lambda x: x[None, :, 1:].exp().sqrt(), lambda x: x.transpose(1, 2)[:, 2:] + x.sin().mT[:, 2:]):
        check(fn, parts, 2, breaks=False)


@pytest.mark.parametrize("made", [
    lambda x: torch.nn.functional.interpolate(x[None], size=(16, 16), mode="bilinear", antialias=True)[0] * 2,
    lambda x: torch.special.bessel_j0(x) + 1, lambda x: torch.special.airy_ai(x[:, None]),
])
def test_one_graph_serves_parts_with_gaps_for_calls_that_the_library_makes(made):
    check(made, parts, 2, breaks=False)
    for height, width in ((40, 48), (40, 20), (17, 48), (11, 13)):
        part = IMAGE[:, :height, :width]
        assert tenon.compile(made)(part).stride() == made(part).stride()


def test_a_call_that_the_library_makes_of_a_part_in_another_order():
    made = lambda x: torch.special.bessel_j0(x.permute(1, 2, 0))
    tenon.reset()
    compiled, draw = tenon.compile(made), random.Random(9)
    for _ in range(20):
        part, = parts(draw)
        same(compiled(part), made(part))
        assert compiled(part).stride() == made(part).stride()


def written(x):
    x.mul_(2)
    return x


@pytest.mark.parametrize("fn", [
    lambda x: x.contiguous().mul_(2), lambda x: written(x.reshape(3, -1)), lambda x: written(x.flatten(1)), lambda x: (x.is_contiguous(), x + 1), lambda x: written(x.to(memory_format=torch.contiguous_format)),
    lambda x: torch.empty_like(x).fill_(1), lambda x: x.permute(1, 2, 0).clone(), lambda x: written(x.unsqueeze(0).reshape(-1, x.shape[-1])), lambda x: (x[None].is_contiguous(memory_format=torch.channels_last), x * 2),
    lambda x: written(x.permute(1, 2, 0)[None].permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)), lambda x: x.transpose(1, 2) + 1, lambda x: x.ravel(),
])
def test_whether_a_part_has_gaps_decides_what_is_a_view_of_it(fn):
    tenon.reset()
    compiled, draw = tenon.compile(fn), random.Random(5)
    for _ in range(40):
        whole = IMAGE.clone(), IMAGE.clone()
        size = draw.choice([(40, 48), (40, 20), (17, 48), (11, 13), (25, 31), (39, 47)])
        mine, theirs = (image[:, : size[0], : size[1]] for image in whole)
        same(compiled(mine), fn(theirs))
        same(*whole)


@pytest.mark.parametrize("fn", [lambda x: np.ascontiguousarray(x), lambda x: x.reshape(-1), lambda x: x.ravel(), lambda x: (x.flags.c_contiguous, x + 1), lambda x: np.asarray(x, order="C"), lambda x: x.copy(order="K"), lambda x: x.T + 1,
                                lambda x: torch.from_numpy(x).reshape(-1), lambda x: torch.from_numpy(x).contiguous() * 2])
def test_whether_a_part_of_an_array_has_gaps(fn):
    tenon.reset()
    compiled, draw = tenon.compile(fn), random.Random(6)
    for _ in range(40):
        size = draw.choice([(40, 48), (40, 20), (17, 48), (11, 13), (25, 31), (39, 47)])
        part = IMAGE.numpy()[0, : size[0], : size[1]]
        got, want = compiled(part), fn(part)
        same(got, want)
        if isinstance(want, np.ndarray):
            assert np.shares_memory(got, part) == np.shares_memory(want, part)


def test_a_gradient_lies_as_its_tensor_where_that_has_no_gaps():
    def gradient(x):
        (x * x).sum().backward()
        return x.grad

    tenon.reset()
    compiled, draw = tenon.compile(gradient), random.Random(8)
    for _ in range(20):
        height, width = draw.choice([(40, 48), (40, 20), (17, 48), (11, 13)])
        part = lambda: IMAGE[:, :height, :width].permute(2, 0, 1).detach().requires_grad_()
        got, want = compiled(part()), gradient(part())
        same(got, want)
        assert got.stride() == want.stride(), (got.stride(), want.stride())
