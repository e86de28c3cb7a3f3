"""What a break, a fullgraph error and a recompile say: the stack with carets, a hint, what differs, and where."""
import asyncio
import time
import weakref

import numpy as np
import pytest

import tenon

A = np.arange(3.0)


@pytest.fixture(autouse=True)
def no_logs_afterwards():
    yield
    tenon.set_logs()


def marked(text):
    """The parts of lines that have carets below them."""
    lines = text.splitlines()
    return [line[below.index("^"):len(below)] for line, below in zip(lines, lines[1:]) if below.strip() and set(below) == {" ", "^"}]


def broken(a):
    naïve = a + 1; print(end=""); return naïve * 2  # noqa: E702


def middle(a):
    return 1 + broken(
        a
    )


def outer(a):
    return middle(a) - 1


def test_carets_are_under_what_runs():
    (reason,) = tenon.explain(outer)(A).break_reasons
    want = ["middle(a)", "broken(", 'print(end="")']
    assert [frame.line[frame.colno:frame.end_colno] for frame in reason.user_stack] == want
    assert marked(str(reason)) == want
    with pytest.raises(tenon.GraphBreakError) as failure:
        tenon.compile(outer, fullgraph=True)(A)
    assert marked(str(failure.value)) == want


def test_a_logged_break_has_the_callers_too(capfd):
    def caller():
        return tenon.compile(outer)(A)

    tenon.set_logs(graph_breaks=True)
    caller()
    text = capfd.readouterr().err
    assert marked(text)[-4:] == ["tenon.compile(outer)(A)", "middle(a)", "broken(", 'print(end="")']
    assert "tenon/_" not in text


def test_code_without_columns_has_no_carets():
    names = {}
    code = compile("def fn(a):\n  print(end='')\n  return a", "<made>", "exec")
    exec(code.replace(co_consts=tuple(c.replace(co_linetable=b"") if hasattr(c, "co_linetable") else c for c in code.co_consts)), names)
    (reason,) = tenon.explain(names["fn"])(A).break_reasons
    assert reason.user_stack[-1].colno == -1 and "^" not in str(reason)


def prints(a):
    print(end="")
    return a * 2


def asks_the_time(a):
    return a * time.time()


def opens(a):
    open("/dev/null").close()
    return a * 2


@tenon.disable
def disabled(a):
    return a * 2


def calls_a_disabled_one(a):
    return disabled(a) * 2


def breaks_itself(a):
    tenon.graph_break()
    return a * 2


def changes_errstate(a):
    with np.errstate(divide="call", call=lambda *_: None):
        return a * 2


class Node:
    pass


NODE = Node()
REFERENCE = weakref.ref(NODE)


GONE = weakref.ref(Node())


def follows_a_weak_reference(a):
    GONE()
    return a * 2


def waits(a):
    async def later():
        return a * 2

    return asyncio.run(later())


def branches(a):
    b = a * 2
    return b if b.sum() > 0 else -b


def compiles(a):
    return tenon.compile(np.sin)(a)


@pytest.mark.parametrize("fn, advice", [
    (prints, "print outside of the compiled function"),
    (asks_the_time, "take the time around the call"),
    (opens, "read and write files outside"),
    (calls_a_disabled_one, "take tenon.disable off it"),
    (breaks_itself, "take the call of tenon.graph_break() out"),
    (changes_errstate, "enter np.errstate around the call"),
    (follows_a_weak_reference, "hold the object itself, not a weak reference to it"),
    (waits, "outside of the compiled function"),
    (branches, "tenon.cond"),
    (compiles, "compile it once"),
], ids=lambda value: getattr(value, "__name__", None))
def test_a_break_says_what_to_do(fn, advice):
    reasons = tenon.explain(fn)(A).break_reasons
    assert any(advice in reason.hint for reason in reasons), reasons
    assert all(reason.hint for reason in reasons)


def test_an_exchange_between_processes_says_what_to_do():
    torch = pytest.importorskip("torch")
    distributed = pytest.importorskip("torch.distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:

        def shares(x):
            y = x * 2
            distributed.all_reduce(y)
            return y + 1

        report = tenon.explain(shares, torch.ones(3))
        assert torch.equal(report.result, torch.full((3,), 3.0))
        assert report.break_reasons and any("communicate outside of the compiled function" in reason.hint for reason in report.break_reasons), report
    finally:
        distributed.destroy_process_group()


def recompile_text(fn, calls, capfd):
    compiled = tenon.compile(fn)
    tenon.set_logs(recompiles=True)
    for arguments in calls:
        compiled(*arguments)
    return capfd.readouterr().err


def scaled(a, by):
    return a * by


def test_a_recompile_names_the_function_and_who_calls_it(capfd):
    text = recompile_text(scaled, [(A, 2), (np.ones((2, 2)), 2)], capfd)
    assert f"recompiling scaled ({__file__}:{scaled.__code__.co_firstlineno}): " in text
    assert "compiled(*arguments)" in marked(text)
    assert "in test_a_recompile_names_the_function_and_who_calls_it" in text


def takes_two(a, b):
    return (a is b), a * 2


def test_two_objects_that_became_one_are_named(capfd):
    text = recompile_text(takes_two, [(A, A + 1), (A, A)], capfd)
    assert "b is not a: b was another object than a, is the same: " in text or "a is not b: a was another object than b, is the same: " in text, text


class Same:
    def __init__(self):
        self.by = 2

    def __repr__(self):
        return "Same()"


FIRST, SECOND = Same(), Same()


def chosen(a, one):
    return a * 2 if one is FIRST else a * 3


def test_objects_of_one_text_are_told_apart(capfd):
    text = recompile_text(chosen, [(A, FIRST), (A, SECOND)], capfd)
    assert "recompiling chosen" in text
    if "Same() at 0x" not in text:
        assert "another" in text, text


def test_a_limit_names_its_place(caplog):
    compiled = tenon.compile(scaled, dynamic=False, options={"recompile_limit": 1})
    for size in range(2, 8):
        compiled(np.ones(size), 2)
    (record,) = caplog.records
    assert f"reached for scaled ({__file__}:{scaled.__code__.co_firstlineno})" in record.message
    assert "compiled(np.ones(size), 2)" in marked(record.message)


def test_results_have_the_names_that_the_program_gives(graphs):
    def named(a):
        scale = a * 2
        shifted = scale + 1
        return np.sin(shifted) - scale

    tenon.compile(named, backend=graphs)(A)
    code = graphs.seen[0].code()
    assert 'scale: "f64[3]" = ' in code and 'shifted: "f64[3]" = ' in code, code


def test_a_printed_program_is_its_graph():
    program = tenon.export(scaled, (A, 2))
    assert str(program).startswith("graph @") and "mul" in str(program) and len(max(str(program).splitlines(), key=len)) < 500


def test_a_log_that_is_none_has_a_suggestion():
    with pytest.raises(tenon.ConfigError, match="no log 'graph_brakes'; did you mean 'graph_breaks'?"):
        tenon.set_logs(graph_brakes=True)


def test_the_logs_are_listed(capfd):
    tenon.set_logs(help=True)
    text = capfd.readouterr().err
    assert "graph_breaks  where and why a capture ended early" in text and len(text.splitlines()) == 16
