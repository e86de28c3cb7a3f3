"""One program on what this machine has: an NVIDIA card where there is one, else the host."""
import time

import torch

import tenon


def attend(q, k, v):
    """A head of attention with a residual connection and a norm behind it, as one writes it anywhere."""
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    return torch.nn.functional.layer_norm(q + torch.nn.functional.gelu(weights @ v), q.shape[-1:])


device = "cuda" if torch.cuda.is_available() else "cpu"
# What `cuda` has no kernel for (large products among it) torch's own functions run there; without a card `cuda` claims nothing.
compiled = tenon.compile(attend, backend=["cuda", "llvm"])
torch.manual_seed(0)
q, k, v = (torch.randn(8, 256, 64, device=device) for _ in range(3))


def milliseconds(fn, calls=50):
    """A call, with the work on the card that it began."""
    fn(q, k, v)
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        fn(q, k, v)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls * 1e3


difference = (compiled(q, k, v) - attend(q, k, v)).abs().max().item()
where = torch.cuda.get_device_name() if device == "cuda" else "the host (tenon plugins why cuda says why)"
print(f"on {where}: {milliseconds(attend):.3f} ms plain, {milliseconds(compiled):.3f} ms compiled, difference {difference:.1e}")
print({name: counts["nodes"] for name, counts in tenon.stats()["backends"].items() if counts["nodes"]})
