"""How many variants of a function are compiled, and which of the functions that it calls are left as they are."""
import itertools
import random

import numpy as np
import pytest

import tenon

UP = np.arange(1.0, 6.0)


def drawn(states, calls, seed=0):
    """A function whose state is drawn anew in each call: the graphs after each of them."""
    def fn(x, a, b, c, d, e, f):
        y = x * 2
        y = y + 1 if a else y * 2
        y = y - 3 if b else y
        y = abs(y) if c else -y
        y = y * 0.5 if d else y
        y = y + x if e else y
        return y - 7 if f else y

    compiled, draw, graphs = tenon.compile(fn), random.Random(seed), []
    for _ in range(calls):
        state = draw.choice(states)
        np.testing.assert_array_equal(compiled(UP, *state), fn(UP, *state))
        graphs.append(tenon.stats()["graphs"])
    return graphs


FLAGS = list(itertools.product([False, True], repeat=6))


def test_nothing_new_is_compiled_for_states_that_are_drawn_from_many(caplog):
    graphs = drawn(FLAGS, 400)
    assert graphs[-1] == graphs[100] <= 30, graphs
    assert "limit" not in caplog.text


def test_states_drawn_from_some_are_all_compiled():
    graphs = drawn(FLAGS[:12], 200)
    assert graphs[-1] == graphs[100] == 12 and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


def test_the_same_calls_compile_the_same():
    first = drawn(FLAGS, 120, seed=7)
    tenon.reset()
    assert drawn(FLAGS, 120, seed=7) == first


def test_what_waits_is_logged_with_what_has_changed(capfd):
    tenon.set_logs(recompiles=True)
    drawn(FLAGS, 80)
    said = capfd.readouterr().err
    assert "one more waits until it is needed more often" in said and "is False" in said, said[-500:]


def test_a_limit_that_was_asked_for_is_kept(caplog):
    compiled = tenon.compile(lambda x, n: x * n, options={"recompile_limit": 3}, dynamic=False)
    for n in (1, 2, 3, 4, 5, 6) * 3:
        np.testing.assert_array_equal(compiled(UP, n), UP * n)
    assert caplog.text.count("recompile limit of 3 reached") == 1 and tenon.stats()["graphs"] == 3


def draws(log):
    values = {}
    for name in ("top", "left", "height"):
        log.append(name)  # what nobody can see the end of
        print(end="")
        values[name] = len(log) % 3 + 1
    return values


@pytest.mark.parametrize("nested", [False, True])
def test_a_function_that_breaks_often_is_called_as_it_is(nested, capfd):
    def choose(log):
        return draws(log) if nested else draws(log)

    def fn(x, log):
        y = np.cos(x) + 1
        p = choose(log)
        return np.exp(y[p["top"] :]) * p["left"] + p["height"]

    tenon.set_logs(graph_breaks=True)
    compiled, ours, plain = tenon.compile(fn), [], []
    x = np.linspace(0, 1, 5000)
    for call in range(30):
        np.testing.assert_allclose(compiled(x, ours), fn(x, plain))
        assert ours == plain
        if call == 10:
            graphs = tenon.stats()["graphs"]
    stats = tenon.stats()
    assert stats["graphs"] == graphs <= 6 and stats["eager_fallbacks"] == 0 and stats["left_to_python"] == 1, stats
    assert capfd.readouterr().err.count("is called as plain Python from now on") == 1


def number_of_ways(log):
    """Goes one of several ways, and computes nothing."""
    log.append(0)
    print(end="")  # what nobody can see the end of
    n = len(log) % 5
    if n == 0:
        return 3
    return n + 1 if n < 3 else n - 1


def array_one_way(x, log):
    log.append(0)
    print(end="")
    return np.exp(x) * np.cos(x) if len(log) % 3 == 2 else 1.0


@pytest.mark.parametrize("called, left", [(lambda x, log: number_of_ways(log), 1), (array_one_way, 0)], ids=["numbers", "arrays"])
def test_a_function_that_goes_several_ways_is_called_as_it_is_unless_it_works_on_arrays(called, left):
    def fn(x, log):
        return np.sin(x) * called(x, log)

    compiled, ours, plain, x = tenon.compile(fn), [], [], np.linspace(0, 1, 5000)
    for _ in range(20):
        np.testing.assert_allclose(compiled(x, ours), fn(x, plain))
        assert ours == plain
    stats = tenon.stats()
    assert stats["left_to_python"] == left and stats["eager_fallbacks"] == 0, stats


def passing_on(function):
    def passes_on(*args, **kwargs):
        print(end="")
        return function(*args, **kwargs)

    return passes_on


def test_what_passes_on_its_arguments_is_not_left_for_one_function_that_it_calls():
    torch = pytest.importorskip("torch")
    place = passing_on(lambda: torch.randint(0, 9, (1,)).item())
    wave = passing_on(lambda x: x.sin() * x.cos() + x.exp())

    def fn(x):
        at = place()
        return wave(x[at : at + 500])

    compiled, x = tenon.compile(fn), torch.linspace(0, 1, 600)
    for call in range(10):
        torch.manual_seed(call)
        want = fn(x)
        torch.manual_seed(call)
        torch.testing.assert_close(compiled(x), want)
    assert tenon.stats()["left_to_python"] == 1, tenon.stats()  # what draws the number


def test_what_raises_in_a_function_that_is_called_as_it_is_reaches_the_caller():
    def noisy(n):
        for k in range(4):
            print(end="")
            if k + n > 5:
                raise LookupError(k)
        return n

    def fn(x, n):
        try:
            return x * noisy(n)
        except LookupError as error:
            return x - error.args[0]

    compiled = tenon.compile(fn)
    for n in (0, 1, 2, 3, 4, 5, 6, 2, 3):
        np.testing.assert_array_equal(compiled(UP, n), fn(UP, n))


def test_a_function_that_works_on_arrays_between_its_breaks_stays_compiled():
    def works(x):
        for _ in range(3):
            x = np.exp(np.sin(x) * 0.1) + np.cos(x)
            print(end="")
        return x

    def fn(x):
        return works(x * 2) + 1

    compiled, x = tenon.compile(fn), np.linspace(0, 1, 50_000)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), fn(x))
    assert tenon.stats()["left_to_python"] == 0 and tenon.stats()["graphs"] >= 3, tenon.stats()
