"""What explain, reports, traces and torch's profiler tell of kernels on the card: python3 seen.py [NAME…]"""
from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

import tenon
from card_times import back_to_back
from judged import D, differences, run

X, W = torch.randn(2048, 1024), torch.randn(1024, 1024) / 32  # larger products are left to a library


def softmax(x):
    return torch.softmax(torch.sin(x) * 2 + 1, -1)


def layers(x, w):
    return F.layer_norm(F.gelu(x @ w) + x, (1024,)).sum(0)


PROGRAMS = {"softmax": (softmax, X), "layers": (layers, X[:512].contiguous(), W), "a transposition": (lambda x: x.t().contiguous() * 2, X), "small": (lambda x: (x + 1).relu(), X[:4, :4].contiguous())}


def on_card(values):
    return [value.to(D) for value in values]


def told(fn, *values):
    """Names and times of steps: of kernels of the card, above zero, together about what a call takes."""
    args = on_card(values)
    explained = tenon.explain(fn, profile=True)(*args)
    if said := differences(explained.result, fn(*args)):
        return said
    steps = [step for step in explained.steps if step.kind == "kernel"]
    if not steps or any(not step.microseconds > 0 or not step.bytes > 0 or not step.nodes for step in steps):
        return f"steps without times: {explained.steps}"
    compiled = tenon.compile(fn)
    compiled(*args)
    call = min(back_to_back(lambda: compiled(*args), 20, 5))
    print("    ", f"a call {call:.1f} us;", ", ".join(f"{step.name} {step.microseconds:.1f} us" for step in steps))
    total = sum(step.microseconds for step in steps)
    return "" if 0.3 * call < total < 4 * call + 20 * len(steps) else f"the steps take {total:.1f} us, a call {call:.1f}"


def reported(fn, *values):
    """A page with two times and the PTX of each kernel, under the name that the step has."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "page.html"
        tenon.report(fn, path=path, runs=3)(*on_card(values))
        script = re.search(r"<script[^>]*>([A-Za-z0-9+/=\s]+)</script>", path.read_text())
    data = json.loads(zlib.decompress(base64.b64decode(script[1])))
    kernels = [step for step in data["steps"] if step["kind"] == "kernel"]
    for step in kernels:
        if f".entry {step['name']}_" not in step["code"]:
            return f"{step['name']} has no PTX: {step['code'][:200]!r}"
        if not (step["us"] or 0) > 0 or not (step["warm"] or 0) > 0:
            return f"{step['name']}: {step['us']} us, later {step['warm']}"
    return "" if kernels else "no kernels"


def profiled(fn, *values):
    """torch's profiler sees the call on the host, and on the card kernels by the names that explain gives their steps."""
    args = on_card(values)
    names = {step.name for step in tenon.explain(fn, profile=True)(*args).steps}
    compiled = tenon.compile(fn)
    for _ in range(3):
        compiled(*args)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        compiled(*args)
        torch.cuda.synchronize()
    kernels = [event.name for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("tenon:", "Mem"))]
    if not any(event.key.startswith("tenon: call ") for event in seen.key_averages()):
        return "the call is no range"
    strangers = [name for name in kernels if not any(name.startswith(step + "_") for step in names)]
    return f"kernels {strangers} are none of {sorted(names)}" if strangers or not kernels else ""


TRACED = """
import sys, torch, tenon
def wave(x):
    return torch.sin(x) + torch.cos(x) * 2
x = torch.randn(1000, device="{}")
compiled = tenon.compile(wave)
for _ in range(3):
    assert torch.allclose(compiled(x), wave(x), atol=1e-5)
torch.cuda.synchronize()
"""


def traced():
    """The first call, with its capture and compile, is in the trace; each call has the range of the group that runs on the card."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "program.py").write_text(TRACED.format(D))
        done = subprocess.run([sys.executable, "program.py"], cwd=folder, env={**os.environ, "TENON_TRACE": "trace.json"}, capture_output=True, text=True, timeout=120)
        if done.returncode:
            return done.stderr[-400:]
        events = json.loads((pathlib.Path(folder) / "trace.json").read_text())
    names = [event["name"] for event in events]
    return "" if names.count("call wave") == 3 and "capture wave" in names and any(name.startswith("compile by cuda") for name in names) else f"the trace has {sorted(set(names))}"


def trained():
    """The steps of a backward are told with the forward's."""
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)).to(D)
    x, y = torch.randn(256, 64, device=D), torch.randint(0, 10, (256,), device=D)

    def loss(x, y):
        return F.cross_entropy(net(x), y)

    explained = tenon.explain(loss, profile=True)(x, y)
    explained.result.backward()
    return "" if any(step.name.startswith("fused_") and step.microseconds > 0 for step in explained.steps) else f"{explained.steps}"


def situations():
    found = {f"{what.__name__}: {name}": (lambda what=what, program=program: what(*program)) for what in (told, reported, profiled) for name, program in PROGRAMS.items()}
    return {**found, "traced": traced, "trained": trained}


if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(run(situations()))
