"""Counters, logs, and what happens past a limit."""
import numpy as np
import pytest

import tenon

UP = np.arange(1.0, 6.0)
ROWS = np.tile(UP, (1000, 1))


def test_a_break_is_counted_once_and_its_call_does_not_fall_back():
    def fn(x):
        y = x + 1
        print(end="")
        return y * 2

    compiled = tenon.compile(fn)
    for _ in range(5):
        np.testing.assert_allclose(compiled(UP), fn(UP))
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"], stats["recompiles"], stats["calls"]) == (2, 1, 0, 0, 5)


def test_variants_of_a_continuation_have_a_limit(caplog):
    def fn(x, n):
        y = x + 1
        print(end="")
        return y * n.count("a")

    compiled = tenon.compile(fn)
    for n in range(40):
        np.testing.assert_allclose(compiled(UP, "a" * n), (UP + 1) * n)
    assert caplog.text.count("recompile limit") == 1
    assert 0 < tenon.stats()["eager_fallbacks"] < 40


@pytest.mark.parametrize("steps", [tuple(UP.tolist() * 8), {n: n + 0.5 for n in range(40)}, [UP * n for n in range(40)]], ids=["tuple", "dict", "arrays"])
def test_a_loop_that_breaks_and_reads_at_its_counter_has_few_variants(steps):
    def fn(x):
        for step in range(40):
            x = x * 0.5 + steps[step]
            print(end="")
        return x

    compiled = tenon.compile(fn)
    for _ in range(2):
        np.testing.assert_allclose(compiled(ROWS), fn(ROWS))
    first = tenon.stats()
    assert first["eager_fallbacks"] == 0 and first["recompiles"] <= 10
    np.testing.assert_allclose(compiled(ROWS), fn(ROWS))
    assert tenon.stats()["graphs"] == first["graphs"]


def little_between_breaks(x, log):
    total = 0
    for i in range(len(x)):
        if x[i] > 2:
            total += i
        log.append(total)
    return total


def much_between_breaks(x, log):
    total = 0
    for i in range(len(x)):
        y = np.exp(ROWS * x[i]) + np.sin(ROWS)
        if y.sum() > 2:
            total += i
        log.append(total)
    return total


def a_callee_with_little(x, log):
    found = little_between_breaks(x, log)
    print(end="")
    return np.cos(ROWS + found) * 2


@pytest.mark.parametrize("fn, left", [(little_between_breaks, True), (much_between_breaks, False), (a_callee_with_little, True)])
def test_a_loop_with_little_between_its_breaks_is_left_to_python(fn, left, capfd):
    tenon.set_logs(graph_breaks=True)
    compiled = tenon.compile(fn)
    x = np.arange(100.0) % 5
    for call in range(4):
        mine, theirs = [], []
        np.testing.assert_allclose(compiled(x, mine), fn(x, theirs))
        assert mine == theirs
        if call == 1:
            before = tenon.stats()
    after = tenon.stats()
    assert after["graphs"] == before["graphs"] and after["left_to_python"] == left, after
    assert after["eager_fallbacks"] == 4 * left and capfd.readouterr().err.count("is left to plain Python") == left
    # What follows in the callers of the loop's function stays compiled.
    assert fn is not a_callee_with_little or after["graph_breaks"] >= 3


def test_an_exception_in_a_loop_that_is_left_to_python_reaches_its_handler():
    def inner(x):
        for i in range(200):
            print(end="")
            if i == 150:
                raise KeyError(i)
        return x

    def fn(x):
        try:
            inner(x)
        except KeyError as error:
            return x + error.args[0]

    compiled = tenon.compile(fn)
    for _ in range(3):
        np.testing.assert_allclose(compiled(UP), fn(UP))
    assert tenon.stats()["left_to_python"] == 1


def test_numbers_that_differ_in_each_round_are_not_compiled_each():
    def fn(x):
        number = 1
        for b in x:
            if b > 3:
                number = (number >> 1) ^ 40961
            else:
                number = (number << 1) & 65535
        return number

    x = (np.arange(300) * 7 % 11).astype(np.uint8)
    compiled = tenon.compile(fn)
    assert compiled(x) == fn(x) and compiled(x) == fn(x)
    stats = tenon.stats()
    assert stats["left_to_python"] >= 1 and stats["recompiles"] <= 10, stats


def test_past_the_limit_the_rest_runs_natively_with_its_handlers():
    def fn(x, n):
        y = x + 1
        try:
            print(end="")
            y = y * len(n)
            if len(n) % 3 == 0:
                raise KeyError(n)
        except KeyError as error:
            y = y - len(error.args)
        return y

    compiled = tenon.compile(fn)
    for n in range(40):
        np.testing.assert_allclose(compiled(UP, "b" * n), fn(UP, "b" * n))


def test_past_the_limit_a_loop_longer_than_an_argument_of_one_byte_runs_natively():
    # Its jumps need wider arguments: the units that widen them come before the instruction.
    body = "\n".join(f"        y = y * 0.5 + table[i] * {k} - 1" for k in range(40))
    source = f"def fn(x, table):\n    y = x\n    for i in range(len(table)):\n{body}\n        if y.sum() == 7:\n            break\n    return y"
    scope = {}
    exec(source, scope)
    compiled = tenon.compile(scope["fn"], options={"recompile_limit": 2})
    for n in range(2, 6):
        table = [float(n + k) for k in range(n)]
        np.testing.assert_allclose(compiled(UP, table), scope["fn"](UP, table))
    assert tenon.stats()["eager_fallbacks"] > 0


def test_fullgraph_refuses_before_anything_has_run(capsys):
    def fn(x):
        seen.append(1)
        print("half way")
        return x * 2

    seen = []
    with pytest.raises(tenon.GraphBreakError, match="print"):
        tenon.compile(fn, fullgraph=True)(UP)
    assert seen == [] and capsys.readouterr().out == ""


def test_fullgraph_lets_the_programs_own_exceptions_out():
    def fn(x):
        y = x + 1
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        tenon.compile(fn, fullgraph=True)(UP)


def test_explain_reports_all_segments():
    def inner(x):
        print(end="")
        return x - 1

    def fn(x):
        y = inner(x + 1)
        if y.sum() > 0:
            y = y * 2
        return y

    report = tenon.explain(fn)(UP)
    assert (report.graph_count, report.graph_break_count) == (3, 2)
    np.testing.assert_allclose(report.result, fn(UP))
    first, second = report.break_reasons
    assert [frame.name for frame in first.user_stack] == ["fn", "inner"] and first.user_stack[-1].line == 'print(end="")'
    assert second.user_stack[-1].line == "if y.sum() > 0:" and second.hint


def test_breaks_are_logged_with_their_line(capfd):
    tenon.set_logs(graph_breaks=True)

    def fn(x):
        y = x + 1
        print(end="")
        return y

    compiled = tenon.compile(fn)
    compiled(UP), compiled(UP)
    text = capfd.readouterr().err
    assert text.count("graph break") == 1 and 'print(end="")' in text and __file__ in text


def test_a_failing_backend_in_a_continuation_is_seen_by_cleanup():
    def backend(graph, inputs):
        if any("multiply" in op for op in graph.op_names):
            raise RuntimeError("no products")
        return graph.forward

    def fn(x):
        try:
            y = x + 1
            print(end="")
            return y * 2
        finally:
            log.append("cleaned")

    log = []
    with pytest.raises(tenon.CompileError, match="no products|failed to compile"):
        tenon.compile(fn, backend=backend)(UP)
    assert log == ["cleaned"]


def test_sizes_that_change_after_a_break():
    def fn(x):
        y = x + 1
        print(end="")
        return y[: len(y) // 2] * 2

    compiled = tenon.compile(fn)
    for n in (4, 6, 8, 4, 6, 10):
        x = np.arange(float(n))
        np.testing.assert_allclose(compiled(x), fn(x))


def test_a_loop_over_the_elements_of_a_matrix_is_left_to_python():
    def fn(a):
        out = np.zeros_like(a)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = a[i, j] * 2 if a[i, j] > 0 else 0
        return out

    compiled = tenon.compile(fn)
    for seed in range(3):
        a = np.random.default_rng(seed).standard_normal((15, 15))
        np.testing.assert_array_equal(compiled(a), fn(a))
    assert tenon.stats()["left_to_python"] == 1


def test_what_errors_make_useless_is_not_captured_at_each_call():
    def fn(x):
        with np.errstate(divide="raise"):
            return x / 2 + 1

    compiled = tenon.compile(fn)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(UP), fn(UP))
    breaks = tenon.stats()["graph_breaks"]
    compiled(UP)
    assert tenon.stats()["graph_breaks"] == breaks + 1  # the refusal, and no capture that ends in a break


def test_the_limit_of_places_names_a_place(tmp_path, caplog):
    lines = ["def many(x):"] + ["    print(end=''); x = np.sin(x) * np.cos(x) + np.exp(-x * x)"] * 260 + ["    return x"]
    file = tmp_path / "many.py"
    file.write_text("\n".join(lines) + "\n")
    namespace = {"np": np}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    x = np.linspace(0, 1, 4096)
    np.testing.assert_allclose(tenon.compile(namespace["many"])(x), namespace["many"](x), rtol=1e-9)
    said = [line for line in caplog.text.splitlines() if "recompile limit reached" in line]
    assert len(said) == 1 and "at more than 256 places" in said[0] and f"of many, in {file}" in said[0]
