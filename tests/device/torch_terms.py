"""What torch promises of its tensors on a card, beside and around compiled functions: streams, threads, captures, memory, errors: python3 torch_terms.py [NAME…]"""
from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import tenon
from judged import D, differences, outcome, placed, run, same_as_eager


def chain(x):
    return torch.relu(x * 2 + 1).softmax(-1) + x.sum(0)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 32)).to(D)


def matches(got, want) -> str:
    return differences(got, want)


def on_a_stream() -> str:
    compiled, x = tenon.compile(chain), torch.randn(512, 512, device=D)
    want, side = chain(x), torch.cuda.Stream()
    compiled(x)
    for _ in range(20):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(300_000)
            late = x * 1
            got = compiled(late)
        torch.cuda.current_stream().wait_stream(side)
        if said := matches(got, want):
            return said
        got.record_stream(side)
    return ""


def between_streams() -> str:
    """Calls of one function on several streams, in turn, each behind other work of its stream."""
    compiled, streams = tenon.compile(chain), [torch.cuda.Stream() for _ in range(4)]
    inputs = [torch.randn(256, 512, device=D) for _ in streams]
    wants = [chain(x) for x in inputs]
    torch.cuda.synchronize()
    for turn in range(30):
        results = []
        for stream, x in zip(streams, inputs):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000 * (turn % 3))
                results.append(compiled(x + 0))
        torch.cuda.synchronize()
        for at, (got, want) in enumerate(zip(results, wants)):
            if said := matches(got, want):
                return f"turn {turn}, stream {at}: {said}"
    return ""


def threads(own_streams: bool, training: bool = False) -> str:
    net, wrong = network(), []
    compiled = tenon.compile(net)

    def work(number: int) -> None:
        try:
            generator = torch.Generator(D).manual_seed(number)
            stream = torch.cuda.Stream() if own_streams else torch.cuda.default_stream()
            with torch.cuda.stream(stream), torch.set_grad_enabled(training):
                for turn in range(25):
                    x = torch.randn(16 + number, 64, device=D, generator=generator)
                    want, got = net(x), compiled(x)
                    if training:
                        want, got = (torch.autograd.grad(y.square().sum(), list(net.parameters())) for y in (want, got))
                        want, got = list(want), list(got)
                    stream.synchronize()
                    if said := differences(got, want):
                        return wrong.append(f"thread {number}, turn {turn}: {said}")
        except Exception as problem:
            wrong.append(f"thread {number}: {problem!r}")

    running = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return "; ".join(wrong)[:400]


def captured() -> str:
    """A compiled call within a graph that the program captures, and replays over other values."""
    net, x = network(), torch.randn(32, 64, device=D)
    compiled = tenon.compile(net)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                compiled(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x * 2) + 1
        for seed in range(4):
            torch.manual_seed(seed)
            x.copy_(torch.randn(32, 64, device=D))
            graph.replay()
            scratch = [torch.full((1 << 20,), 7.0, device=D) for _ in range(4)]  # goes over what was given back
            graph.replay()
            if said := matches(y, net(x * 2) + 1):
                return f"replay {seed}: {said}"
            del scratch
            if said := matches(compiled(x), net(x)):
                return f"a call beside replay {seed}: {said}"
    return ""


def captured_step() -> str:
    """A whole training step, compiled, in a captured graph."""
    def step(net, optimizer, x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    nets = [network(), network()]
    optimizers = [torch.optim.SGD(net.parameters(), 0.05, momentum=0.9) for net in nets]
    compiled, x = tenon.compile(step), torch.randn(32, 64, device=D)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            compiled(nets[1], optimizers[1], x)
    torch.cuda.current_stream().wait_stream(side)
    for _ in range(4):
        step(nets[0], optimizers[0], x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = compiled(nets[1], optimizers[1], x)
    for number in range(4):
        x.normal_()
        graph.replay()
        want = step(nets[0], optimizers[0], x)
        if said := differences([loss, *nets[1].parameters()], [want, *nets[0].parameters()]):
            return f"replay {number}: {said}"
    return ""


def asynchronous() -> str:
    """Calls return before the work that is before them has ended."""
    compiled, net, x = tenon.compile(chain), network(), torch.randn(512, 512, device=D)
    fast, y = tenon.compile(net), torch.randn(32, 64, device=D)
    with torch.no_grad():
        for _ in range(3):
            compiled(x), fast(y)
    torch.cuda.synchronize()
    said = []
    for name, call in (("kernels", lambda: compiled(x)), ("network", lambda: fast(y)), ("training", lambda: fast(y).sum().backward())):
        call(), call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda._sleep(400_000_000)
        call()
        returned = time.perf_counter() - start
        torch.cuda.synchronize()
        if returned > 0.5 * (time.perf_counter() - start):
            said.append(f"{name} returned after {returned:.3f} s of {time.perf_counter() - start:.3f}")
    return "; ".join(said)


def memory() -> str:
    """What is allocated after many calls is what was before; `empty_cache` between calls changes nothing; peaks are not far over eager's."""
    net, x = network(), torch.randn(4096, 64, device=D)
    compiled, said = tenon.compile(net), []
    with torch.no_grad():
        for _ in range(3):
            compiled(x)
        before = torch.cuda.memory_allocated()
        for turn in range(20):
            torch.cuda.empty_cache()
            if what := matches(compiled(x), net(x)):
                said.append(what)
        if torch.cuda.memory_allocated() != before:
            said.append(f"{torch.cuda.memory_allocated() - before} bytes more after 20 calls")
    peaks = []
    for call in (lambda f: f(x).sum().backward(), lambda f: torch.no_grad()(f)(x)):
        for way in (net, compiled):
            call(way), call(way)
            torch.cuda.synchronize()
            net.zero_grad()
            torch.cuda.reset_peak_memory_stats()
            base = torch.cuda.memory_allocated()
            call(way)
            peaks.append(torch.cuda.max_memory_allocated() - base)
    print("       peaks in bytes, eager and compiled: training", peaks[:2], "inference", peaks[2:])
    if peaks[1] > 1.25 * peaks[0] or peaks[3] > 1.25 * peaks[2]:
        said.append(f"peaks {peaks}")
    del compiled
    return "; ".join(said)


def forgotten() -> str:
    """Compiled code that is dropped gives its memory back."""
    gc.collect(), torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for size in range(20):
        tenon.compile(lambda x: x.softmax(-1) * 2)(torch.randn(300 + size, 1000, device=D))
        tenon.reset()
    gc.collect(), torch.cuda.synchronize()
    after = torch.cuda.memory_allocated()
    return "" if after - before < 1 << 20 else f"{after - before} bytes are kept"


def out_of_memory() -> str:
    total = torch.cuda.get_device_properties(0).total_memory
    compiled, x = tenon.compile(lambda x: (x + 1).softmax(-1) * x.sum()), torch.ones(1 << 28, device=D)
    small = tenon.compile(chain)
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + (1 << 29)) / total))
    try:
        got = outcome(lambda: compiled(x))
        if not isinstance(got, tuple) or got[0] != "OutOfMemoryError":
            return f"{got} instead of OutOfMemoryError"
        y = torch.randn(64, 64, device=D)
        if said := matches(small(y), chain(y)):
            return said
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return "" if abs(compiled(x)[0].item() - 1) < 1e-3 else "wrong afterwards"


def in_another_process(text: str, said: str) -> str:
    """Runs a program that is to end with an error, and looks for a word in what it says."""
    ran = subprocess.run([sys.executable, "-c", "import torch, tenon\nD = 'cuda:0'\n" + text], capture_output=True, text=True, timeout=120)
    return "" if said in ran.stdout + ran.stderr else f"{(ran.stdout + ran.stderr)[-600:]}"


def forked() -> str:
    return in_another_process("""
import os
f = tenon.compile(lambda x: x + 1)
x = torch.ones(3, device=D)
f(x)
if (child := os.fork()) == 0:
    try: f(x); print("ran", flush=True)
    except Exception as e: print("raised", type(e).__name__, str(e).split(chr(10))[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(f(x).sum().item())
""", "raised")


def index_out_of_range() -> str:
    return in_another_process("""
f = tenon.compile(lambda x, i: x[i] * 2)
x, i = torch.ones(30, device=D), torch.tensor([1, 40], device=D)
f(x, i.clamp(max=9))
try: print(f(x, i).sum().item())
except Exception as e: print("raised", type(e).__name__, str(e).split(chr(10))[0])
try: print(torch.ones(3, device=D) + 1)
except Exception as e: print("raised", type(e).__name__)
""", "raised")


def many_elements() -> str:
    x = torch.ones((1 << 31) + 4097, dtype=torch.int8, device=D)
    x[-3:] = 5
    y = tenon.compile(lambda x: x * 2 + 1)(x)
    if y[-4:].tolist() != [3, 11, 11, 11] or y[: 1 << 20].ne(3).any():
        return f"ends with {y[-4:].tolist()}"
    total = tenon.compile(lambda x: x.sum())(x)
    return differences(total, x.sum())


def two_cards() -> str:
    if torch.cuda.device_count() < 2:
        print("       left out: there is one card")
        return ""
    net, compiled = network(), None
    compiled = tenon.compile(chain)
    for turn in range(6):
        x = torch.randn(64, 64, device=f"cuda:{turn % 2}")
        if said := matches(compiled(x), chain(x)):
            return f"turn {turn}: {said}"
        with torch.cuda.device(1 - turn % 2):
            if said := matches(compiled(x), chain(x)):
                return f"turn {turn}, the other card current: {said}"
    both = tenon.compile(lambda x, y: (x * 2).to(y.device) + y * 3)
    x, y = torch.randn(64, device="cuda:0"), torch.randn(64, device="cuda:1")
    return differences(both(x, y), (x * 2).to("cuda:1") + y * 3) or differences(outcome(lambda: tenon.compile(lambda x, y: x + y)(x, y)), outcome(lambda: x + y))


def host_numbers() -> str:
    """Numbers of the host that change after the call, before the card has read them."""
    compiled, x, n = tenon.compile(lambda x, n: x * n), torch.ones(1 << 20, device=D), torch.tensor(2.0)
    compiled(x, n)
    torch.cuda._sleep(50_000_000)
    got = compiled(x, n)
    n.fill_(100.0)
    return differences(got, x * 2)


def pinned() -> str:
    compiled = tenon.compile(lambda h, x: h.to(x.device, non_blocking=True) * 2 + x)
    x = torch.randn(1 << 20, device=D)
    for _ in range(5):
        h = torch.randn(1 << 20).pin_memory()
        if said := matches(compiled(h, x), h.to(D) * 2 + x):
            return said
    back = tenon.compile(lambda x: (x + 1).to("cpu", non_blocking=True))
    got = back(x)
    torch.cuda.synchronize()
    return differences(got, (x + 1).cpu())


def warned() -> str:
    """No synchronisation of torch's own, in its own words."""
    compiled, x = tenon.compile(network()), torch.randn(16, 64, device=D)
    for _ in range(2):
        compiled(x).sum().backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        compiled(x).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return ""


def recycled() -> str:
    """Many calls whose results are kept, dropped and overwritten in between."""
    compiled, kept = tenon.compile(lambda x: (x + 1, (x * 2).softmax(-1))), []
    generator = torch.Generator().manual_seed(0)
    for turn in range(200):
        x = torch.full((64, 65), float(turn), device=D)
        a, b = compiled(x)
        kept.append((turn, a, b))
        x.fill_(-1)
        if turn % 3 == 0:
            del kept[int(torch.randint(len(kept), (), generator=generator))]
    for turn, a, b in kept:
        if not bool((a == turn + 1).all()) or not torch.allclose(b, torch.full_like(b, 1 / 65)):
            return f"result of turn {turn} was written over"
    return ""


def random_programs() -> str:
    """Chains of ops drawn at random, over shapes drawn at random, moved in memory and shifted by an element from call to call."""
    ops = [torch.sin, torch.exp, torch.relu, lambda x: x.t().contiguous().t(), lambda x: x.softmax(-1), lambda x: x - x.mean(0), lambda x: x * x.sum(1, keepdim=True), lambda x: x.flip(0),
           lambda x: torch.cat([x[1:], x[:1]]), lambda x: x.half().float(), lambda x: x.cumsum(0) / 100, lambda x: x.sort(0).values, lambda x: x.roll(3, 1), lambda x: F.layer_norm(x, x.shape[1:]),
           lambda x: x[torch.arange(x.shape[0], device=x.device).flip(0)], lambda x: torch.where(x > 0, x, x * 0.1), lambda x: x / (1 + x.abs().amax(1, keepdim=True)), lambda x: x.tanh().mm(x.t().tanh()).mm(x) / x.numel()]
    draw = torch.Generator().manual_seed(0)
    for number in range(60):
        chosen = [ops[i] for i in torch.randint(len(ops), (6,), generator=draw).tolist()]
        rows, columns = (int(n) for n in torch.randint(1, 200, (2,), generator=draw))

        def fn(x, chosen=chosen):
            for op in chosen:
                x = op(x).clamp(-10, 10)
            return x

        compiled = tenon.compile(fn, dynamic=False)
        for call in range(3):
            x = torch.randn(rows * columns + call, generator=draw).to(D)[call:].view(rows, columns)
            if said := differences(compiled(x), fn(x), 5e-3, 5e-3):
                return f"program {number} {torch.Generator().manual_seed(0) and [ops.index(o) for o in chosen]} of {rows}x{columns}, call {call}: {said}"
        tenon.reset()
    return ""


SITUATIONS = {
    "a stream": on_a_stream, "four streams": between_streams, "threads": lambda: threads(False), "threads with streams": lambda: threads(True), "threads that train": lambda: threads(False, True),
    "threads with streams that train": lambda: threads(True, True), "captured": captured, "captured step": captured_step, "asynchronous": asynchronous, "memory": memory, "forgotten": forgotten,
    "out of memory": out_of_memory, "forked": forked, "index out of range": index_out_of_range, "many elements": many_elements, "two cards": two_cards, "numbers of the host": host_numbers,
    "pinned": pinned, "no synchronisation": warned, "recycled": recycled, "random programs": random_programs,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(run(SITUATIONS))
