"""What many compiled functions cost in memory. Usage: functions.py churn COUNT | functions.py alive COUNT | functions.py plain COUNT"""
import gc
import subprocess
import sys
import time

import numpy as np

A = np.linspace(0.1, 1.0, 100)
START = 1_000_000_000  # apart from the functions that are counted


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def mappings():
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


def made(k):
    names = {"np": np}
    exec(f"def fn(a): return np.sin(a) * {k + 0.25} + {k * 3 + 0.5}", names)
    return names["fn"]


def wait_for_background():
    """Until the better code of all kernels is there."""
    while True:
        before = time.process_time()
        time.sleep(0.3)
        if time.process_time() - before < 0.02:
            return


def alive(count, wrap):
    """Bytes and mappings of each of so many functions that have been called."""
    for k in range(300):
        f = made(START + k)
        wrap(f)(A)
        del f
    wait_for_background()
    gc.collect()
    bytes_before, mappings_before = resident(), mappings()
    functions = []
    for k in range(count):
        f = wrap(made(k))
        f(A)
        functions.append(f)
    wait_for_background()
    gc.collect()
    return (resident() - bytes_before) / count, (mappings() - mappings_before) / count


def alive_in_own_process(kind, count):
    out = subprocess.run([sys.executable, __file__, kind, str(count)], check=True, capture_output=True, text=True).stdout
    return [float(word) for word in out.split()]


def churn(count, between=1000):
    """Resident bytes and mappings after each thousand functions and the reset that follows."""
    import tenon

    seen = []
    for k in range(count):
        tenon.compile(made(k))(A)
        if k % between == between - 1:
            tenon.reset()
            seen.append((resident(), mappings()))
    return seen


def main(arguments):
    kind, count = arguments[0], int(arguments[1])
    if kind == "plain":
        print(*alive(count, lambda f: f))
    elif kind == "compiled":
        import tenon

        print(*alive(count, tenon.compile))
    elif kind == "alive":
        plain, compiled = alive_in_own_process("plain", count), alive_in_own_process("compiled", count)
        print(f"{count} functions: {compiled[0] - plain[0]:.0f} bytes and {compiled[1] - plain[1]:.4f} mappings each beyond plain ones")
        return 1 if compiled[0] - plain[0] > 16 * 1024 or compiled[1] - plain[1] > 0.05 else 0
    else:
        seen = churn(count)
        for i in range(0, len(seen), max(1, len(seen) // 20)):
            print(f"{(i + 1) * 1000} functions: {seen[i][0] / 2**20:.1f} MB, {seen[i][1]} mappings", flush=True)
        print(f"at the end: {seen[-1][0] / 2**20:.1f} MB, {seen[-1][1]} mappings")
        settled = seen[min(2, len(seen) - 1)]
        return 1 if seen[-1][0] > settled[0] + (16 << 20) or seen[-1][1] > settled[1] + 32 else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
