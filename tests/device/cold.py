"""The first call in a process where torch has the card already: python3 cold.py; twice, over one TENON_CACHE_DIR, for the second process."""
from __future__ import annotations

import time

import torch

x = torch.randn(4096, 4096, device="cuda")
torch.relu(x + 1) * 2
torch.cuda.synchronize()

import tenon  # noqa: E402


def first_call(name, fn):
    compiled = tenon.compile(fn)
    start = time.perf_counter()
    y = compiled(x)
    torch.cuda.synchronize()
    taken = (time.perf_counter() - start) * 1000
    want = fn(x)
    assert torch.allclose(y, want, rtol=1e-3, atol=1e-4), (y - want).abs().max()
    linked = "nvJitLink" in open("/proc/self/maps").read()
    print(f"first call of {name}: {taken:.1f} ms; compiling took {tenon.stats()['backends']['cuda']['compile_ms']:.1f} ms until here; nvJitLink is {'there' if linked else 'not there'}", flush=True)


first_call("relu(x + 1) * 2", lambda x: torch.relu(x + 1) * 2)
first_call("softmax", lambda x: x.softmax(-1) * 3)
first_call("sum of columns", lambda x: x.sum(0))
