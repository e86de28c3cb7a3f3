"""The first captures of a process may come from several threads at once."""
import subprocess
import sys

PROGRAM = """
import collections, functools, sys, threading
import numpy as np, tenon

sys.setswitchinterval(1e-6)
a, start = np.ones(3), threading.Barrier(4)

def work(k):
    def fn(x, items):
        with np.errstate(over="ignore"):
            y = np.exp(x + k) * len(items)
        return functools.partial(np.add, y)(x), [pair for pair in zip(items, items)], max(items), str(k), collections.deque([k])

    compiled = tenon.compile(fn)
    start.wait()
    got, want = compiled(a, [1, 2]), fn(a, [1, 2])
    np.testing.assert_allclose(got[0], want[0])
    assert got[1:] == want[1:]
    done.append(k)

done = []
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert sorted(done) == [0, 1, 2, 3]
"""


def test_first_calls_of_several_threads_end():
    for _ in range(3):  # without an order among captures most runs never ended
        assert subprocess.run([sys.executable, "-c", PROGRAM], timeout=120).returncode == 0
