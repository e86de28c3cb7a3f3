"""Operators whose index wraps, mirrors or is split into rows: vectors of lanes that are one run, and those that are not."""
from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import tenon  # noqa: E402

MOVES = {
    "roll": lambda x: torch.roll(x, 5, 1),
    "roll both ways": lambda x: torch.roll(x, (-3, 2), (0, 1)),
    "roll of roll": lambda x: torch.roll(torch.roll(x, 1, 1) + torch.roll(x, -1, 1), 7, 1),
    "flip": lambda x: x.flip(1),
    "flip of roll": lambda x: torch.roll(x, 4, 1).flip(0, 1),
    "repeat": lambda x: x.repeat(2, 3),
    "circular": lambda x: F.pad(x[None], (3, 2), mode="circular"),
    "reflect": lambda x: F.pad(x[None], (3, 4), mode="reflect"),
    "masked": lambda x: F.pad(torch.roll(x, 3, 1), (5, 1, 2, 0), value=7),
    "masked flip": lambda x: F.pad(x.flip(1), (2, 6, 0, 1), value=7),
    "rows": lambda x: x.t().reshape(x.shape[0], x.shape[1]).flip(1),
    "sum": lambda x: torch.roll(x, 3, 1).to(torch.float64).sum(1),
    "sum over rows": lambda x: torch.roll(x, (1, 3), (0, 1)).to(torch.float64).sum(0),
}
WIDTHS = (6, 17, 64, 131, 300)


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.bfloat16, torch.uint8, torch.float64))
@pytest.mark.parametrize("name", MOVES)
def test_elements_are_eagers(name, dtype, dynamic):
    compiled = tenon.compile(lambda x: MOVES[name](x).clone(), dynamic=dynamic)
    for width in WIDTHS:
        x = torch.arange(9 * width).reshape(9, width).remainder(251).to(dtype)
        got, want = compiled(x), MOVES[name](x).clone()
        assert got.dtype == want.dtype and torch.equal(got, want), f"width {width}"
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["eager_fallbacks"] == 0


def only_looks(x, i):
    x[i]
    return x + 1


def looks_in_vain(x, i):
    try:
        x[:, i]
    except IndexError as error:
        return x, str(error)
    return x + 1


@pytest.mark.parametrize("use", (only_looks, looks_in_vain))
@pytest.mark.parametrize("library", (np, torch))
def test_indices_into_what_is_not_read(use, library):
    def outcome(fn, at):
        try:
            return fn(library.ones((3, 3)), library.asarray([at]))
        except IndexError as error:
            return str(error)

    compiled = tenon.compile(use)
    for at in (1, 7, -3, -4, 1):
        got, want = outcome(compiled, at), outcome(use, at)
        assert str(got) == str(want)
