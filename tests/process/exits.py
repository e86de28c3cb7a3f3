"""Ends processes while threads are at work in compiled functions. Usage: exits.py [COUNT] [NAMES...]"""
import subprocess
import sys
import time

START = """
import sys, threading, time
import numpy as np
import tenon
a = np.linspace(0.1, 1.0, 2000)
def run(target, count=3, daemon=True):
    threads = [threading.Thread(target=target, args=(i,), daemon=daemon) for i in range(count)]
    for thread in threads: thread.start()
    time.sleep(float(sys.argv[1]))
def made(text):
    names = {"np": np, "tenon": tenon, "time": time}
    exec(text, names)
    return names["fn"]
"""

# Each leaves threads behind that go on while the process ends.
PROGRAMS = {
    "compile": """
def work(i):
    k = 0
    while True:
        k += 1
        tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"))(a)
run(work)
""",
    "call": """
f = tenon.compile(lambda a: np.tanh(a) * 2 + np.sin(a))
b = np.ones(100_000)
def work(i):
    while True: f(b)
run(work)
""",
    "small calls": """
f = tenon.compile(lambda a: a * 2 + 1)
b = np.ones(10)
def work(i):
    while True: f(b)
run(work)
""",
    "break": """
def work(i):
    f = tenon.compile(made("def fn(a):\\n  b = np.sin(a)\\n  time.sleep(0)\\n  c = np.cos(b)\\n  time.sleep(0.001)\\n  return c + b"))
    while True: f(a)
run(work)
""",
    "recompile": """
def work(i):
    f = tenon.compile(lambda a, k: np.exp(a) * k.__len__() + i)
    n = 0
    while True:
        n += 1
        f(a[:1 + n % 7], "x" * (n % 50))
        if n % 20 == 0: f = tenon.compile(lambda a, k: np.exp(a) * k.__len__() + n)
run(work)
""",
    "opaque": """
m = np.random.rand(60, 60) + np.eye(60) * 60
def work(i):
    f = tenon.compile(made("def fn(m): return np.linalg.inv(m) @ np.sin(m)"))
    while True: f(m)
run(work)
""",
    "long opaque": """
m = np.random.rand(600, 600) + np.eye(600) * 600
def work(i):
    f = tenon.compile(made("def fn(m): return np.linalg.inv(m) + np.sin(m)"))
    while True: f(m)
run(work, 2)
""",
    "first opaque": """
m = np.random.rand(30, 30) + np.eye(30) * 60
def work(i):
    k = 0
    while True:
        k += 1
        tenon.compile(made(f"def fn(m): return np.linalg.solve(m, np.sin(m)) * {k}"))(m)
run(work)
""",
    "generators and exceptions": """
def work(i):
    f = tenon.compile(made("def fn(a):\\n  def g():\\n    for k in range(3):\\n      yield np.sin(a) * k\\n  try:\\n    s = sum(g())\\n    {}['x']\\n  except KeyError:\\n    return s"))
    while True: f(a)
run(work)
""",
    "not daemons": """
stop = []
def work(i):
    k = 0
    while not stop:
        k += 1
        tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"))(a)
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for thread in threads: thread.start()
time.sleep(float(sys.argv[1]))
stop.append(1)
""",
    "reset meanwhile": """
def work(i):
    k = 0
    while True:
        k += 1
        tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"))(a)
        if k % 5 == 0: tenon.reset()
run(work)
""",
    "sys.exit below a call": """
def stop(a): sys.exit(0)
def work(i):
    k = 0
    while True:
        k += 1
        tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"))(a)
run(work)
tenon.compile(lambda a: tenon.disable(stop)(np.sin(a)))(a)
""",
    "calls while it ends": """
import atexit
f = tenon.compile(lambda a: np.sin(a) * 2)
class Last:
    def __del__(self): f(a)
last = Last()
atexit.register(lambda: tenon.compile(lambda a: np.cos(a) + 1)(a))
def work(i):
    k = 0
    while True:
        k += 1
        tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"))(a)
run(work)
""",
    "torch": """
import torch
f = tenon.compile(lambda x: torch.fft.rfft(torch.sin(x)).abs() + 1)
x = torch.ones(4096)
def work(i):
    k = 0
    while True:
        k += 1
        f(x)
        tenon.compile(lambda x: torch.tanh(x) * k)(x)
run(work)
""",
    "backend in Python": """
tenon.register_backend("plain", lambda graph, inputs: graph.forward)
def work(i):
    k = 0
    while True:
        k += 1
        f = tenon.compile(made(f"def fn(a): return np.sin(a) * {k} + {i}"), backend="plain")
        f(a), f(a)
run(work)
""",
}


def end(name, delay):
    """The status with which such a process ends, and what it said."""
    try:
        done = subprocess.run([sys.executable, "-c", START + PROGRAMS[name], str(delay)], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "it hangs", ""
    return done.returncode, done.stderr


def main(arguments):
    count = int(arguments[0]) if arguments else 5
    wrong = 0
    for name in arguments[1:] or PROGRAMS:
        died = {}
        start = time.time()
        for n in range(count):
            status, text = end(name, 0.02 + 0.11 * (n % 9))
            if status != 0:
                died[status] = died.get(status, 0) + 1
                last = text.strip().splitlines()[-1:] or [""]
        print(f"{name}: {count} exits, {sum(died.values())} wrong {died or ''} {last[0][:150] if died else ''} ({time.time() - start:.0f} s)", flush=True)
        wrong += bool(died)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
