"""tenon.compile as users call it. NumPy only."""
import gc
import inspect
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import tenon

A = np.linspace(-2, 2, 12).reshape(3, 4)


def wave(a, scale=2.0):
    """Doc of wave."""
    return np.sin(a) * scale


def test_bare_decorator_and_decorator_with_arguments():
    @tenon.compile
    def one(a):
        return np.sin(a) + 1

    @tenon.compile(fullgraph=True)
    def two(a):
        return np.sin(a) + 1

    np.testing.assert_allclose(one(A), np.sin(A) + 1)
    np.testing.assert_allclose(two(A), np.sin(A) + 1)
    assert tenon.stats()["eager_fallbacks"] == 0


def test_a_compiled_function_looks_like_the_function():
    compiled = tenon.compile(wave)
    assert compiled.__name__ == "wave" and compiled.__doc__ == "Doc of wave." and compiled.__wrapped__ is wave
    assert compiled.__module__ == wave.__module__ and inspect.signature(compiled) == inspect.signature(wave)
    assert compiled.__defaults__ == (2.0,)
    compiled.note = 1
    assert compiled.note == 1 and "wave" in repr(compiled)


def test_keyword_arguments_and_defaults():
    compiled = tenon.compile(wave, fullgraph=True)
    for args, kwargs in [((A,), {}), ((A, 3.0), {}), ((A,), {"scale": 3.0}), ((), {"a": A, "scale": 0.5}), ((), {"scale": 0.5, "a": A})]:
        np.testing.assert_allclose(compiled(*args, **kwargs), wave(*args, **kwargs))


def test_wrong_arguments_raise_what_the_function_raises():
    compiled = tenon.compile(wave)
    for args, kwargs in [((), {}), ((A, 1, 2), {}), ((A,), {"size": 1}), ((A,), {"a": A})]:
        with pytest.raises(TypeError) as want:
            wave(*args, **kwargs)
        with pytest.raises(TypeError) as got:
            compiled(*args, **kwargs)
        assert str(got.value) == str(want.value)


def test_methods_bind_and_callable_objects_are_called():
    class Scaler:
        def __init__(self, k):
            self.k = k

        @tenon.compile
        def run(self, a):
            return a * self.k

        def __call__(self, a):
            return a + self.k

    s = Scaler(3.0)
    np.testing.assert_allclose(s.run(A), A * 3)
    np.testing.assert_allclose(Scaler(4.0).run(A), A * 4)
    np.testing.assert_allclose(tenon.compile(s)(A), A + 3)
    np.testing.assert_allclose(tenon.compile(s.__call__)(A), A + 3)


def test_disabled_gives_the_function_itself():
    assert tenon.compile(wave, disable=True) is wave


def test_calls_are_counted_and_do_not_recompile():
    compiled = tenon.compile(wave)
    for _ in range(20):
        compiled(A)
    stats = tenon.stats()
    assert (stats["graphs"], stats["recompiles"], stats["calls"], stats["eager_fallbacks"]) == (1, 0, 20, 0)


def test_reset_forgets(graphs):
    compiled = tenon.compile(wave, backend=graphs)
    compiled(A)
    tenon.reset()
    assert tenon.stats()["calls"] == 0
    compiled(A)
    assert len(graphs.seen) == 2


def test_a_changed_shape_recompiles_and_the_log_says_why(capfd):
    tenon.set_logs(recompiles=True)
    compiled = tenon.compile(wave, dynamic=False)
    compiled(np.ones(3))
    compiled(np.ones(5))
    assert tenon.stats()["recompiles"] == 1
    text = capfd.readouterr().err
    assert "recompiling wave" in text and "f64[3]" in text and "f64[5]" in text and "a" in text


def test_the_recompile_limit_is_loud_and_right(caplog):
    compiled = tenon.compile(wave, dynamic=False)
    for n in range(1, 30):
        np.testing.assert_allclose(compiled(np.ones(n)), wave(np.ones(n)))
    assert tenon.stats()["eager_fallbacks"] > 0
    assert caplog.text.count("recompile limit") == 1


def run_on_threads(count, work):
    """Calls `work` with the numbers below `count`, each on a thread."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_four_threads_through_one_function():
    compiled, wrong = tenon.compile(wave), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for n in range(60):
            a = rng.standard_normal(n % 4 + 1)
            if not np.allclose(compiled(a), wave(a)):
                wrong.append((seed, n))

    run_on_threads(4, work)
    assert not wrong


def test_what_threads_call_at_once_is_compiled_once():
    together, compiles = threading.Barrier(24), []

    def slow(graph, example_inputs):
        compiles.append(graph)
        time.sleep(0.1)  # the others come in meanwhile
        return lambda a: [np.sin(a) * 2]

    compiled = tenon.compile(wave, backend=slow)

    def work(seed):
        together.wait()
        np.testing.assert_allclose(compiled(A + seed), wave(A + seed))

    run_on_threads(24, work)
    assert len(compiles) == 1


def test_a_child_waits_for_no_compile_of_its_parent():
    done = subprocess.run([sys.executable, "-c", """
import os, threading, numpy as np, tenon
parent, began, ends = os.getpid(), threading.Event(), threading.Event()
def slow(graph, example_inputs):
    began.set()
    if os.getpid() == parent:
        ends.wait()
    return lambda a: [a * 2 + 1]
compiled = tenon.compile(lambda a: a * 2 + 1, backend=slow)
first = threading.Thread(target=compiled, args=(np.arange(3.0),), daemon=True)
first.start()
began.wait()
child = os.fork()
if child == 0:
    os._exit(0 if compiled(np.arange(3.0)).tolist() == [1, 3, 5] else 1)
assert os.waitpid(child, 0)[1] == 0
ends.set()
first.join()
"""], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_compiled_function_is_collected():
    def cycle(a):
        return a + 1

    compiled = tenon.compile(cycle)
    compiled(A)
    cycle.me = compiled
    reference = weakref.ref(compiled)
    del compiled, cycle
    gc.collect()
    assert reference() is None


def test_what_does_not_compile():
    with pytest.raises(tenon.ConfigError, match="int"):
        tenon.compile(3)
    with pytest.raises(tenon.ConfigError, match="reduce-overhead"):
        tenon.compile(wave, mode="reduce-overheat")
    with pytest.raises(tenon.ConfigError, match="options"):
        tenon.compile(wave, options=3)


@pytest.mark.parametrize("write_first", [True, False])
def test_what_is_written_may_become_what_is_read(write_first):
    def fn(items, box):
        if write_first:
            box["w"].append(0)
        before = list(items)
        if not write_first:
            box["w"].append(0)
        return before, sum(items)

    def calls(run):
        items, box = [2, 4], {"w": [1, 2]}
        results = []
        for _ in range(3):
            results.append((run(items, box), list(items)))
            box["w"] = items
        return results

    assert calls(tenon.compile(fn)) == calls(fn)


def test_static_and_class_methods_below_the_decorator():
    class Scaled:
        factor = 3

        @tenon.compile
        @staticmethod
        def twice(x):
            return x * 2

        @tenon.compile(dynamic=True)
        @classmethod
        def scaled(cls, x):
            return x * cls.factor

    x = np.ones(3)
    for scaled in (Scaled, Scaled()):
        assert scaled.twice(x).tolist() == [2] * 3 and scaled.scaled(x).tolist() == [3] * 3
    assert tenon.stats()["graphs"] == 2
