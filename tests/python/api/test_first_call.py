"""The first compiled call of a process finds out how torch lays out its tensors, in whatever mode the program is."""
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import torch, tenon
net = torch.nn.Linear(4, 8).eval()
compiled, x = tenon.compile(net), torch.randn(3, 4)
with {mode}:
    compiled(x)
with torch.no_grad():
    y = compiled(x)
    assert torch.allclose(y, net(x), atol=1e-5) and not y.requires_grad
    compiled, graphs = tenon.compile(lambda x: x * 2 + 1, fullgraph=True), tenon.stats()["graphs"]
    assert torch.equal(compiled(x), x * 2 + 1) and tenon.stats()["graphs"] == graphs + 1
"""


@pytest.mark.parametrize("mode", ["torch.inference_mode()", "torch.no_grad()", "torch.enable_grad()", "torch.autocast('cpu')", "torch.device('meta')"])
def test_the_mode_of_the_first_call_does_not_matter(mode):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(mode=mode)], env=dict(os.environ), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
