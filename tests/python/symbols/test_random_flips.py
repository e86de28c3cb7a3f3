"""Random flips of random parts: what is flipped lies in row-major order, and what is not lies within its image."""
import itertools
import random

import pytest

import tenon
from tests.python.symbols.test_random_parts import IMAGE, check

torch = pytest.importorskip("torch")

IMAGES = torch.linspace(-1, 1, 4 * 3 * 40 * 48).reshape(4, 3, 40, 48)


def part_by_random(x, size):
    i, j = random.randint(0, x.shape[-2] - size), random.randint(0, x.shape[-1] - size)
    x = x[..., i : i + size, j : j + size]
    return x.flip(-1) if random.random() < 0.5 else x


def part_by_torch(x, size):
    i, j = torch.randint(0, x.shape[-2] - size + 1, (1,)).item(), torch.randint(0, x.shape[-1] - size + 1, (1,)).item()
    x = x[..., i : i + size, j : j + size]
    if torch.rand(1) < 0.5:
        x = x.flip(-1)
    return x


def test_samples_of_a_batch():
    """Which of them lie with gaps is no variant each: they are taken with strides that vary."""
    check(lambda x: torch.stack([part_by_random(sample, 32) for sample in x]) * 2, lambda draw: (IMAGES,), 8, calls=24)


def test_a_row_of_parts():
    def row(x):
        for size in (36, 32, 28, 24, 20):
            x = part_by_torch(x, size)
        return x.exp() * 2

    check(row, lambda draw: (IMAGE,), 10, calls=60)


def test_two_flips():
    def flipped(x):
        x = part_by_random(x, 32)
        if random.random() < 0.5:
            x = torch.flip(x, (-2,))
        return (x - 0.5) / 0.25

    check(flipped, lambda draw: (IMAGE,), 6)


def test_a_number_of_the_program_s_generator_is_a_symbol_at_once():
    def part(x):
        i = random.randint(0, 8)
        return x[:, i : i + 32] * random.random()

    check(part, lambda draw: (IMAGE,), 2, calls=20)
    assert tenon.stats()["recompiles"] == 0, tenon.stats()


def test_what_lies_in_either_way_is_taken_with_strides_where_variants_mount_up():
    """Until then each way has its own code, which is quicker for what lies in row-major order."""
    tenon.reset()
    fn = lambda x, y, z, w: (x * 2 + y * z - w, x.sum() + y.sum(0) + z.amax(1))
    compiled = tenon.compile(fn)
    wide = torch.arange(24.0).reshape(4, 6)
    for gaps in itertools.product([True, False], repeat=4):
        args = [wide[:, :4] if gap else wide[:, :4].contiguous() for gap in gaps]
        torch.testing.assert_close(compiled(*args), fn(*args))
    assert tenon.stats()["graphs"] <= 7, tenon.stats()
