"""Whole programs over many sizes: a transformer over sequence lengths, an image pipeline over image sizes."""

import importlib.util
import pathlib

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(torch.relu(self.up(self.norm2(x))))


def test_sequence_lengths_of_a_transformer():
    torch.manual_seed(0)
    net = torch.nn.Sequential(Block(16, 2), Block(16, 2)).eval()
    tenon.reset()
    compiled = tenon.compile(net, fullgraph=True)
    with torch.no_grad():
        for length in (5, 8, 13, 2, 21, 34, 3, 40):
            x = torch.randn(2, length, 16)
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)
        for batch in (3, 4, 7):
            x = torch.randn(batch, 10 + batch, 16)
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] <= 3, tenon.stats()


def photo_program():
    spec = importlib.util.spec_from_file_location("photo", ROOT / "demo" / "photo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.develop


def test_image_sizes_of_a_photo_pipeline():
    develop = photo_program()
    rng = np.random.default_rng(0)
    tenon.reset()
    compiled = tenon.compile(develop, fullgraph=True)
    for i in range(20):
        photo = rng.integers(0, 256, (20 + 3 * i, 30 + 5 * (i * 7 % 11), 3), dtype=np.uint8)
        got, want = compiled(photo), develop(photo)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] <= 3, tenon.stats()


def test_numpy_programs_over_sizes():
    programs = [
        lambda a: np.sin(a) * 2 + a.shape[0], lambda a: a.sum(axis=0) / len(a), lambda a: a[1:] - a[:-1], lambda a: a.reshape(-1) + a.size,
        lambda a: (a - a.mean(axis=1, keepdims=True)) / a.std(axis=1, keepdims=True), lambda a: a.T @ a, lambda a: a[::-1] + 1, lambda a: a[:, None] * 2,
        lambda a: a[: len(a) // 2] + 1, lambda a: a[1:], lambda a: a.T, lambda a: np.concatenate([a, a * 2]), lambda a: np.zeros(a.shape) + a,
    ]
    for program in programs:
        tenon.reset()
        compiled = tenon.compile(program, fullgraph=True)
        for n in (4, 6, 9, 15, 5):
            a = np.random.default_rng(n).normal(size=(n, 3))
            got, want = compiled(a), program(a)
            assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape and got.strides == want.strides
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        assert tenon.stats()["recompiles"] == 1, tenon.stats()


def test_views_of_arguments_and_results():
    for program in (lambda x: x[1:], lambda x: x.T, lambda x: x.view(-1), lambda x: x[:, 1:3], lambda x: x.unsqueeze(1), lambda x: x[-1],
                    lambda x: (x + 1)[1:-1], lambda x: (x * 2).transpose(0, 1), lambda x: x[::2], lambda x: x.reshape(x.shape[0], 2, 3)[:, 1]):
        tenon.reset()
        compiled = tenon.compile(program, fullgraph=True)
        for n in (4, 6, 9, 15, 5):
            x = torch.randn(n, 6)
            got, want = compiled(x), program(x)
            assert got.shape == want.shape and got.stride() == want.stride() and got.storage_offset() == want.storage_offset()
            torch.testing.assert_close(got, want)
            if want.data_ptr() in range(x.data_ptr(), x.data_ptr() + 4 * x.numel()):
                assert got.data_ptr() == want.data_ptr()
        assert tenon.stats()["recompiles"] == 1, tenon.stats()
