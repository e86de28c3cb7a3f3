"""What is given wrongly: eager's own error, or one that says what is allowed."""
import asyncio
import functools
import os
import subprocess
import sys

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def test_callables_without_bytecode_run(check):
    x = torch.rand(3)
    assert tenon.compile(len)([1, 2]) == 2
    assert tenon.compile(dict)(a=1) == {"a": 1}
    for fn in (torch.sin, torch.Tensor.sin, torch.nn.functional.relu, functools.partial(torch.add, x), np.sin):
        value = x.numpy() if fn is np.sin else x
        check.same(tenon.compile(fn)(value), fn(value))


def test_generator_functions_run_lazily(check):
    seen = []

    def numbers(x):
        for i in range(3):
            seen.append(i)
            got = yield x + i
            seen.append(got)
        return "end"

    x = torch.ones(2)
    for fn in (numbers, tenon.compile(numbers)):
        seen.clear()
        made = fn(x)
        assert seen == []
        check.same(next(made), x)
        check.same(made.send("a"), x + 1)
        assert seen == [0, "a", 1]
        made.close()
        assert list(fn(x))[2].equal(x + 2)


def test_coroutines_run():
    async def fn(x):
        await asyncio.sleep(0)
        return x + 1

    async def steps(x):
        yield x
        yield x + 1

    async def gather():
        return [v async for v in tenon.compile(steps)(torch.ones(2))]

    assert asyncio.run(tenon.compile(fn)(torch.ones(2))).equal(torch.full((2,), 2.0))
    assert asyncio.run(gather())[1].equal(torch.full((2,), 2.0))


def test_a_class_makes_instances():
    class Box:
        def __init__(self, x):
            self.x = x + 1

    made = tenon.compile(Box)(torch.zeros(2))
    assert type(made) is Box and made.x.equal(torch.ones(2))


@pytest.mark.parametrize("args, kwargs", [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_wrong_arguments_raise_eagers_error(args, kwargs):
    def fn(x, y=2):
        return x + y

    with pytest.raises(TypeError) as eager:
        fn(*args, **kwargs)
    for _ in range(2):
        with pytest.raises(TypeError) as ours:
            tenon.compile(fn)(*args, **kwargs)
        assert str(ours.value) == str(eager.value)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"backend": "lvm"}, "'lvm'.*'llvm'|lvm.*llvm"),
        ({"backend": ["llvm", 3]}, "a list of backends must hold names"),
        ({"backend": []}, "a list of backends must hold names"),
        ({"backend": 3}, "a name, a list of names or a callable, got 3"),
        ({"mode": "fast"}, "'default', 'reduce-overhead', 'max-autotune'"),
        ({"mode": "max-autotun"}, "did you mean 'max-autotune'"),
        ({"options": [1]}, "options must be a dict, got list"),
        ({"options": {"recompile_limits": 1}}, "did you mean 'recompile_limit'"),
        ({"options": {"recompile_limit": 0}}, "a positive int, got 0"),
        ({"options": {"llvm": object()}}, "JSON"),
        ({"dynamic": "yes"}, "True, False or None, got 'yes'"),
        ({"fullgraph": "no"}, "fullgraph must be True or False, got 'no'"),
        ({"disable": "no"}, "disable must be True or False, got 'no'"),
        ({"in_place": 1}, "in_place must be True or False, got 1"),
        ({"backend": "inducter"}, "unknown backend 'inducter'; did you mean 'inductor'.*; Tenon's: .*llvm.*; torch's: "),
        ({"in_place": True}, "in_place=True compiles a torch.nn.Module"),
    ],
)
def test_settings_are_checked(arguments, words):
    with pytest.raises(tenon.ConfigError, match=words):
        tenon.compile(lambda x: x + 1, **arguments)(torch.ones(2))


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda: tenon.explain(5), "tenon.explain takes a function, a callable object or a module, got int"),
        (lambda: tenon.report(None), "tenon.report takes a function, a callable object or a module, got NoneType"),
        (lambda: tenon.register_backend(5, print), "the name of a backend is a text, got 5"),
        (lambda: tenon.register_backend("mine", 5), "the backend 'mine' must be a callable"),
        (lambda: tenon.export(print, torch.ones(2)), r"got Tensor: one argument x is written \(x,\)"),
    ],
)
def test_what_is_asked_wrongly_is_named(ask, words):
    with pytest.raises(tenon.ConfigError, match=words):
        ask()


@pytest.mark.parametrize("ask, words", [(tenon.explain, r"explain\(\) got an unexpected keyword argument 'bakend'; did you mean 'backend'"), (tenon.report, "report")])
def test_a_misspelt_argument_is_named(ask, words):
    with pytest.raises(TypeError, match=words):
        ask(lambda x: x, bakend="llvm")


@pytest.mark.parametrize("thing", [3, "text", None.__class__(), [1]])
def test_what_is_no_callable_is_refused(thing):
    if thing is None:
        assert callable(tenon.compile(thing))
        return
    with pytest.raises(tenon.ConfigError, match="takes a function"):
        tenon.compile(thing)


def test_the_recompile_limit_is_an_option(caplog):
    c = tenon.compile(lambda x, flag: x + 1 if flag is None else x + flag, options={"recompile_limit": 2}, dynamic=False)
    for flag in ("a", None, 1, 2.5, True):
        try:
            c(torch.zeros(2), flag)
        except TypeError:
            assert flag == "a"
    assert "recompile limit of 2 reached" in caplog.text


def test_the_recompile_limit_names_what_changed_and_a_way_out(caplog):
    def fn(x, n):
        for i in range(n):
            x = x + i
        return x

    compiled = tenon.compile(fn, options={"recompile_limit": 3})
    for n in range(2, 8):
        assert torch.equal(compiled(torch.zeros(2), n), fn(torch.zeros(2), n))
    said = caplog.text
    assert said.count("recompile limit of 3 reached for") == 1 and "range(0, 6), is range(0, 7)" in said and 'options={"recompile_limit": 12}' in said, said


def test_disable_takes_functions_and_modules(check):
    net, x = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), torch.ones(1, 2)
    with torch.no_grad():
        want = net(x)
        assert tenon.disable(net[0]) is net[0]
        c = tenon.compile(net)
        check.same(c(x), want)
    with pytest.raises(tenon.GraphBreakError, match="tenon.disable"), torch.no_grad():
        tenon.compile(net, fullgraph=True)(x)

    @tenon.disable()
    def plain(x):
        return x + 1

    assert plain.__name__ == "plain" and plain(x).equal(x + 1)
    for thing in (int, 3):
        with pytest.raises(tenon.ConfigError, match="tenon.disable takes"):
            tenon.disable(thing)


def run_python(text, **environment):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment})


def test_a_subinterpreter_is_refused_clearly():
    done = run_python(
        "import _xxsubinterpreters as i\n"
        "s = i.create()\n"
        "try:\n    i.run_string(s, 'import tenon')\nexcept Exception as e:\n    print('refused:', e)\n"
        if sys.version_info < (3, 13)
        else "import _interpreters as i\ns = i.create()\ne = i.exec(s, 'import tenon')\nprint('refused:', e.formatted)\n"
    )
    assert "refused:" in done.stdout and "interpreter" in done.stdout, done.stdout + done.stderr


def test_an_unsupported_python_is_told_which_are():
    done = run_python("import sys\nsys.version_info = (3, 9, 1, 'final', 0)\nimport tenon\n")
    assert done.returncode != 0 and "Tenon runs on CPython 3.11, 3.12 and 3.13; this is 3.9" in done.stderr


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_that_torch_lacks_for_a_rank_is_refused_as_by_torch(mode):
    torch = pytest.importorskip("torch")
    compiled = tenon.compile(lambda x: torch.nn.functional.pad(x, (1, 1), mode=mode))
    with pytest.raises(NotImplementedError, match="4D"):
        compiled(torch.ones(1, 1, 3, 3))
