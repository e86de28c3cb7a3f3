"""Sends signals while compiled functions are captured, compiled and run: what the handler raises must arrive. Usage: interrupts.py [COUNT] [NAMES...]"""
import os
import signal
import sys
import threading
import time

import numpy as np

import tenon


class Arrived(Exception):
    """What the handler raises: an ordinary exception, which a careless `except Exception` would take for the program's."""


def handler(number, frame):
    raise Arrived


def made(text):
    names = {"np": np, "time": time}
    exec(text, names)
    return names["fn"]


N = 260
SQUARE = np.random.default_rng(0).random((N, N)) + np.eye(N) * N
LONG = np.linspace(0.1, 1.0, 300_000)
serial = 0


def fresh(body):
    """A function that nothing has been compiled of: the number makes its kernels its own."""
    global serial
    serial += 1
    return tenon.compile(made(f"def fn(a):\n  k = {serial}.5\n" + "\n".join("  " + line for line in body.split("\n"))))


MANY = "\n".join(f"b = np.sin(a) * {i}.25 + k\nc = np.mean(np.exp(-b * b))\na = a + c" for i in range(8)) + "\nreturn a"

PROGRAMS = {
    "first call": lambda: (fresh(MANY), LONG[:1000]),
    "long first call": lambda: (fresh("return np.tanh(np.exp(np.sin(a))) * k"), np.resize(LONG, 3_000_000)),
    "product": lambda: (fresh("return np.tanh(a @ a) @ a * k"), SQUARE),
    "opaque": lambda: (fresh("return np.linalg.inv(a) @ np.linalg.inv(a + k)"), SQUARE),
    "opaque in Python": lambda: (fresh("return np.linalg.matrix_power(a, 5) + np.gradient(a)[0] + np.median(a) * k"), SQUARE),
    "breaks": lambda: (fresh("b = np.sin(a)\ntime.sleep(0.0005)\nc = np.cos(b) * k\ntime.sleep(0.0005)\nd = np.exp(c)\ntime.sleep(0.0005)\nreturn d + b"), LONG[:1000]),
    "loops": lambda: (fresh("t = 0.0\nfor i in range(400):\n  t = t + i * k\nfor i in range(30):\n  a = np.sin(a) + t\nreturn a"), LONG[:500]),
    "tries": lambda: (fresh("try:\n  b = np.sin(a) * k\n  for i in range(20):\n    b = np.cos(b) + i\n  return b\nfinally:\n  a = None"), LONG[:500]),
}


def recompiling():
    f = fresh("return np.tanh(a * k) + np.sin(a)")
    f(LONG[:100].astype(np.float32))
    return f, LONG[:1000].reshape(10, 100)


def later():
    f = fresh("return np.linalg.inv(a) + np.tanh(a) * k")
    f(SQUARE)
    return f, SQUARE


def later_in_numpy_code():
    f = fresh("return np.median(a, axis=0) + np.gradient(a)[1] * k")
    f(SQUARE)
    return f, SQUARE


PROGRAMS |= {"recompile": recompiling, "later call": later, "later call in Python": later_in_numpy_code}


def alarm_after(seconds):
    """Sends the signal from another thread: a timer's would go by processor time of its own."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.daemon = True
    timer.start()
    return timer


def lost(make, share, seconds):
    """Whether a signal at that share of the call's time was lost; `seconds` is what a call takes."""
    f, a = make()
    signal.signal(signal.SIGUSR1, handler)
    arrived = False
    timer = None
    try:
        timer = alarm_after(share * seconds)
        f(a)
        deadline = time.time() + 5
        while timer.is_alive() and time.time() < deadline:
            time.sleep(0.0002)  # it came after the call
        for _ in range(100):
            pass
    except Arrived:
        arrived = True
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if timer:
            timer.join()
    return not arrived


def wrong_afterwards(make):
    """Whether a function that was interrupted gives something else later."""
    f, a = make()
    signal.signal(signal.SIGUSR1, handler)
    try:
        timer = alarm_after(0.002)
        f(a)
        timer.join()
        for _ in range(1000):
            pass
    except Arrived:
        pass
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    return not np.allclose(f(a), f.__wrapped__(a), rtol=1e-6)


def main(arguments):
    count = int(arguments[0]) if arguments else 20
    failed = 0
    for name in arguments[1:] or PROGRAMS:
        make = PROGRAMS[name]
        make()
        f, a = make()
        start = time.time()
        f(a)
        seconds = time.time() - start
        missing = sum(lost(make, (n + 0.5) / count, seconds) for n in range(count))
        wrong = sum(wrong_afterwards(make) for _ in range(2))
        print(f"{name}: a call takes {seconds * 1e3:.0f} ms; {count} signals, {missing} lost, {wrong} wrong results", flush=True)
        failed += missing + wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
