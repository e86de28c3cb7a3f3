"""The strides of what attention gives, and what it takes to know them."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
attention = torch.nn.functional.scaled_dot_product_attention


def heads(batch, length, count, size, gap=1):
    """Heads as a network cuts them out of a wider product."""
    return torch.randn(batch, length, gap * count * size)[..., : count * size].view(batch, length, count, size).transpose(1, 2)


@pytest.mark.parametrize(
    "query",
    [
        torch.randn(2, 3, 5, 8),
        heads(2, 5, 3, 8),
        heads(2, 5, 3, 8, gap=3),
        heads(1, 5, 3, 8, gap=3),
        heads(2, 1, 3, 8),
        heads(2, 5, 1, 8),
        torch.randn(3, 5, 8),
        torch.randn(5, 8),
        torch.randn(2, 3, 8, 5).transpose(2, 3),
    ],
    ids=lambda q: f"{tuple(q.shape)} at {q.stride()}",
)
def test_strides_of_the_result(check, query):
    with torch.no_grad():
        check(lambda q: attention(q, q, q), (query,))
        check(lambda q: attention(q, q, q, is_causal=True), (query,))
        check(lambda q, mask: attention(q, q, q, attn_mask=mask), (query, torch.randn(query.shape[-2], query.shape[-2])))


def test_values_of_another_size_and_kernels_switched_off(check):
    q, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 4)
    with torch.no_grad():
        check(lambda q, v: attention(q, q, v), (q, v))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            check(lambda q: attention(q, q, q), (heads(2, 5, 3, 8),))


def test_a_program_with_attention_imports_no_symbolic_mathematics():
    program = """
import sys, torch, tenon
def fn(q):
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
with torch.no_grad():
    tenon.compile(fn, fullgraph=True)(torch.randn(2, 5, 3, 8).transpose(1, 2))
assert "sympy" not in sys.modules
"""
    paths = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
