"""Each line of the tables of docs/coming_from_torch_compile.md is true."""
import logging
import operator
import pathlib
import re

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "coming_from_torch_compile.md").read_text()
X = torch.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def fresh():
    tenon.reset()


def double(x):
    return x * 2 + 1


def sizes(count):
    return [torch.ones(n, 3) for n in range(2, 2 + count)]


def as_torch_compile():
    @tenon.compile
    def bare(x):
        return double(x)

    @tenon.compile(fullgraph=True)
    def with_arguments(x):
        return double(x)

    for compiled in (bare, with_arguments, tenon.compile(double)):
        assert torch.equal(compiled(X), double(X))


def model_compile():
    net = torch.nn.Linear(3, 2)
    want = net(X)
    assert tenon.compile(net, in_place=True) is net
    torch.testing.assert_close(net(X), want)
    assert tenon.stats()["graphs"] == 1 and list(net.state_dict()) == ["weight", "bias"]


def flags():
    with pytest.raises(tenon.GraphBreakError):
        tenon.compile(lambda x: double(x) if x.sum() > 0 else x, fullgraph=True)(X)
    compiled = tenon.compile(double, dynamic=True)
    for x in sizes(3):
        compiled(x)
    assert tenon.stats()["graphs"] == 1
    assert tenon.compile(double, disable=True) is double


def modes():
    for mode in ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        assert torch.equal(tenon.compile(double, mode=mode)(X), double(X))


def backend_function():
    def backend(gm, example_inputs):
        assert isinstance(gm, torch.fx.GraphModule) and example_inputs[0] is X
        return gm.forward

    assert torch.equal(tenon.compile(double, backend=backend)(X), double(X))


def backend_by_name():
    for name in ("eager", "aot_eager"):
        compiled = tenon.compile(double, backend=name)
        for x in sizes(3):
            assert torch.equal(compiled(x), double(x))
    assert tenon.stats()["recompiles"] == 4, tenon.stats()


def options(caplog):
    given = {"max_autotune": True, "triton.cudagraphs": False}
    for _ in range(2):
        assert torch.equal(tenon.compile(double, options=given)(X), double(X))
    assert sum("triton.cudagraphs" in record.message for record in caplog.records) <= 1
    with pytest.raises(tenon.ConfigError, match="did you mean 'freeze'"):
        tenon.compile(double, options={"freezes": True})


def orig_mod():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    compiled, theirs = tenon.compile(net), torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 2)), backend="eager")
    assert compiled._orig_mod is net and list(compiled.state_dict()) == ["0.weight", "0.bias"]
    compiled.load_state_dict(theirs.state_dict())
    assert torch.equal(net[0].weight, theirs._orig_mod[0].weight)
    parent = torch.nn.ModuleDict({"part": tenon.compile(torch.nn.Linear(3, 2))})
    parent.load_state_dict({"part._orig_mod.weight": torch.ones(2, 3), "part._orig_mod.bias": torch.zeros(2)})
    assert torch.equal(parent["part"].weight, torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="_orig_mod"):  # of what is not compiled
        net.load_state_dict(theirs.state_dict())


def explain():
    assert tenon.explain(double)(X).op_count == tenon.explain(double, X).op_count == 2


def trace(tmp_path):
    assert pathlib.Path(tenon.report(double, X, path=tmp_path / "page.html").path).stat().st_size > 10_000


def disable():
    @torch.compiler.disable
    def plain(x):
        return x + 1

    compiled = tenon.compile(lambda x: plain(x * 2) * 3)
    assert torch.equal(compiled(X), (X * 2 + 1) * 3) and tenon.stats()["graph_breaks"] == 1


def is_compiling():
    asked = (torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, tenon.is_compiling)
    for ask in asked:
        assert not ask() and torch.equal(tenon.compile(lambda x, ask=ask: x + 1 if ask() else x)(X), X + 1)


def set_stance():
    compiled = tenon.compile(double, dynamic=False)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(compiled(X), double(X))
    assert tenon.stats()["graphs"] == 0
    compiled(X)
    for stance in ("force_eager", "default", "force_eager"):  # what is compiled runs plainly, too, and compiled again
        before = tenon.stats()["eager_fallbacks"]
        with torch.compiler.set_stance(stance):
            assert torch.equal(compiled(X), double(X))
        assert tenon.stats()["eager_fallbacks"] - before == (stance == "force_eager")
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(X[:2])
    assert tenon.stats()["graphs"] == 1 and tenon.stats()["eager_fallbacks"] == 4
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(X)
        with pytest.raises(tenon.Error, match="fail_on_recompile"):
            compiled(X[:2])
    compiled(X[:2])
    assert tenon.stats()["graphs"] == 2


def profiler():
    compiled = tenon.compile(double)
    compiled(X)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        compiled(X)
    names = [event.key for event in seen.key_averages()]
    assert "tenon: call double" in names and "tenon: fused_mul_add" in names


def allow_in_graph(caplog):
    @torch.compiler.allow_in_graph
    def inner(x):
        return x.sin() + 1

    with caplog.at_level(logging.WARNING, "tenon"):
        assert tenon.explain(lambda x: inner(x) * 2, X).op_count == 3
    assert all("tenon.allow_in_graph makes it one node" in record.message for record in caplog.records)  # once a process
    marked = tenon.allow_in_graph(lambda x: x.sin() + 1)
    assert tenon.explain(lambda x: marked(x) * 2, X).op_count == 2


def substitute_in_graph():
    import zlib  # a function written in C that Tenon does not follow, and torch has no substitute for

    if not dynamo.trace_rules.is_polyfilled_callable(zlib.adler32):

        @torch.compiler.substitute_in_graph(zlib.adler32, skip_signature_check=True)
        def length(data, value=1):
            return len(data) + value

    report = tenon.explain(lambda x: x + zlib.adler32(b"abc"), X)
    assert report.graph_break_count == 0 and torch.equal(report.result, X + 4)  # what the substitute says, as torch.compile has it


def nested_compile_region():
    @torch.compiler.nested_compile_region
    def region(x):
        return x.sin() + 1

    report = tenon.explain(lambda x: region(region(x)), X)
    assert (report.graph_count, report.graph_break_count, report.op_count) == (1, 0, 4)


def assume_constant_result():
    factor = {"by": 2}
    by = torch.compiler.assume_constant_result(lambda: factor["by"])
    compiled = tenon.compile(lambda x: x * by(), fullgraph=True)
    assert torch.equal(compiled(X), X * 2)
    factor["by"] = 5
    assert torch.equal(compiled(X), X * 5)


def cudagraph_mark_step_begin():
    def step(x):
        torch.compiler.cudagraph_mark_step_begin()
        return double(x)

    assert torch.equal(tenon.compile(step)(X), double(X))


def reset():
    compiled = tenon.compile(double)
    compiled(X)
    tenon.reset()
    assert tenon.stats()["graphs"] == 0
    compiled(X)
    assert tenon.stats()["graphs"] == 1


def list_backends():
    assert "llvm" in tenon.backends() and "tenon" in torch.compiler.list_backends()
    with pytest.raises(tenon.ConfigError, match="did you mean 'inductor'"):
        tenon.compile(double, backend="inducter")
    with pytest.raises(tenon.ConfigError, match="leave it out"):
        tenon.compile(double, backend="tenon")


def graph_break():
    def broken(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    assert torch.equal(tenon.compile(broken)(X), (X + 1) * 2)
    assert tenon.stats()["graphs"] == 2 and tenon.stats()["graph_breaks"] == 1


def mark_dynamic():
    for mark in (dynamo.mark_dynamic, dynamo.maybe_mark_dynamic):
        tenon.reset()
        compiled, x = tenon.compile(lambda x: x * 2 + x.shape[0]), X.clone()
        mark(x, 0)
        for one in (x, *sizes(3)):
            assert torch.equal(compiled(one), one * 2 + one.shape[0])
        assert tenon.stats()["graphs"] == 1
    x = X.clone()
    dynamo.mark_dynamic(x, 0)
    compiled = tenon.compile(lambda x: x.reshape(2, 2, 3) + 1)  # needs the size
    assert torch.equal(compiled(x), x.reshape(2, 2, 3) + 1)


def mark_static():
    compiled = tenon.compile(double)
    for x in sizes(4):
        dynamo.mark_static(x, 0)
        assert torch.equal(compiled(x), double(x))
    assert tenon.stats()["graphs"] == 4


def recompile_limit(caplog):
    for name in ("recompile_limit", "cache_size_limit"):
        tenon.reset()
        compiled = tenon.compile(double, dynamic=False)
        with dynamo.config.patch(**{name: 2}):
            for x in sizes(6):
                assert torch.equal(compiled(x), double(x))
        assert tenon.stats()["graphs"] == 2, name
    compiled = tenon.compile(double, dynamic=False, options={"recompile_limit": 3})
    with dynamo.config.patch(recompile_limit=2):
        for x in sizes(6):
            compiled(x)
    assert tenon.stats()["graphs"] == 5


def accumulated_recompile_limit():
    def broken(x):
        y = x + 1
        tenon.graph_break()
        return y * 2

    compiled = tenon.compile(broken, dynamic=False)
    with dynamo.config.patch(accumulated_recompile_limit=3):
        for x in sizes(6):
            assert torch.equal(compiled(x), (x + 1) * 2)
    assert tenon.stats()["recompiles"] == 3


def guard_filter(caplog):
    compiled = tenon.compile(double, options={"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe})
    assert torch.equal(compiled(X), double(X)) and "is not followed" in caplog.text


def other_arguments():
    for argument in ("name", "shapes_spec", "isolate_recompiles", "recompile_limit"):
        with pytest.raises(TypeError, match=argument):
            tenon.compile(double, **{argument: 1})


def set_default_backend():
    torch.compiler.set_default_backend("tenon")
    try:
        assert torch.equal(torch.compile(double)(X), double(X))
        tenon.reset()
        torch.compiler.set_default_backend("eager")
        assert torch.equal(tenon.compile(double)(X), double(X))
    finally:
        torch.compiler.set_default_backend(None)
    assert tenon.stats()["graphs"] == 1 and tenon.stats()["backends"]["llvm"]["nodes"] > 0


def is_exporting():
    assert torch.equal(tenon.compile(lambda x: x - 1 if torch.compiler.is_exporting() else x + 1)(X), X + 1)


def cache_artifacts(tmp_path):
    assert torch.equal(tenon.compile(double)(X), double(X))
    assert torch.compiler.save_cache_artifacts() is None


def wrap_numpy():
    compiled = tenon.compile(torch.compiler.wrap_numpy(lambda a: np.sin(a) * 2))
    torch.testing.assert_close(compiled(X), torch.sin(X) * 2)
    with pytest.raises(RuntimeError, match="requires grad"):
        compiled(X.clone().requires_grad_())


def guard_collectives():
    before = torch.compiler.set_enable_guard_collectives(True)
    try:
        assert torch.equal(tenon.compile(double)(X), double(X))
    finally:
        torch.compiler.set_enable_guard_collectives(before)


def error_on_graph_break():
    @dynamo.error_on_graph_break(True)
    def breaking(x):
        tenon.graph_break()
        return x + 1

    assert torch.equal(tenon.compile(breaking)(X), X + 1)
    with pytest.raises(tenon.GraphBreakError):
        tenon.compile(breaking, fullgraph=True)(X)


def nonstrict_trace(caplog):
    traced = dynamo.nonstrict_trace(lambda x: x.sin() + 1)
    compiled = tenon.compile(lambda x: traced(x) * 2)
    torch.testing.assert_close(compiled(X), (X.sin() + 1) * 2)
    assert tenon.stats()["graph_breaks"] == 0


def suppress_errors():
    def failing(gm, example_inputs):
        raise ValueError("no such luck")

    with dynamo.config.patch(suppress_errors=True):
        assert torch.equal(tenon.compile(double, backend=failing)(X), double(X))
        assert torch.equal(tenon.compile(double, backend=lambda gm, example_inputs: None)(X), double(X))
    with pytest.raises(tenon.CompileError):
        tenon.compile(double, backend=failing)(X)


def capture_scalar_outputs():
    with dynamo.config.patch(capture_scalar_outputs=True):
        assert torch.equal(tenon.compile(lambda x: x * x.sum().item())(X), X * X.sum())
    assert tenon.stats()["graph_breaks"] == 0


def capture_dynamic_output_shape_ops():
    assert torch.equal(tenon.compile(lambda x: x[x > 3] * 2, fullgraph=True)(X), X[X > 3] * 2)


def assume_static_by_default():
    compiled = tenon.compile(double)
    with dynamo.config.patch(assume_static_by_default=False):
        for x in sizes(3):
            compiled(x)
    assert tenon.stats()["graphs"] == 1


def automatic_dynamic_shapes():
    compiled = tenon.compile(double)
    with dynamo.config.patch(automatic_dynamic_shapes=False):
        for x in sizes(4):
            compiled(x)
    assert tenon.stats()["graphs"] == 4


def error_on_recompile():
    compiled = tenon.compile(double)
    compiled(X)
    with dynamo.config.patch(error_on_recompile=True):
        compiled(X)
        with pytest.raises(tenon.Error, match="error_on_recompile"):
            compiled(X.double())
    assert torch.equal(compiled(X.double()), double(X.double()))


def logs(capfd):
    tenon.set_logs(graph_code=True)
    try:
        tenon.compile(double)(X)
    finally:
        tenon.set_logs()
    assert "TRACED GRAPH" in capfd.readouterr().err


LINES = {
    "torch.compile(fn)": as_torch_compile, "model.compile()": model_compile, "fullgraph=": flags, "mode=": modes, "backend=fn": backend_function,
    'backend="inductor"': backend_by_name, 'options={"max_autotune": True}': options, "compiled._orig_mod": orig_mod, "torch._dynamo.explain(fn)(x)": explain,
    "TORCH_TRACE": trace, "torch.profiler": profiler,
    "disable": disable, "is_compiling": is_compiling, "set_stance": set_stance, "allow_in_graph": allow_in_graph, "substitute_in_graph": substitute_in_graph,
    "nested_compile_region": nested_compile_region, "assume_constant_result": assume_constant_result, "cudagraph_mark_step_begin": cudagraph_mark_step_begin,
    "list_backends": list_backends, "graph_break": graph_break, "mark_dynamic": mark_dynamic, "mark_static": mark_static, "reset": reset,
    "config.recompile_limit": recompile_limit, "config.accumulated_recompile_limit": accumulated_recompile_limit, "config.suppress_errors": suppress_errors,
    'options={"guard_filter_fn": f}': guard_filter, "name=": other_arguments, "set_default_backend": set_default_backend, "is_exporting": is_exporting, "save_cache_artifacts": cache_artifacts,
    "wrap_numpy": wrap_numpy, "set_enable_guard_collectives": guard_collectives, "error_on_graph_break": error_on_graph_break, "nonstrict_trace": nonstrict_trace,
    "config.capture_scalar_outputs": capture_scalar_outputs, "config.capture_dynamic_output_shape_ops": capture_dynamic_output_shape_ops,
    "config.assume_static_by_default": assume_static_by_default, "config.automatic_dynamic_shapes": automatic_dynamic_shapes,
    "config.error_on_recompile": error_on_recompile, "TORCH_LOGS": logs,
}  # fmt: skip


def test_every_line_is_tested():
    written = [line for line in re.findall(r"^\| `([^`]+)`", PAGE, re.M)]
    assert set(written) == set(LINES)


@pytest.mark.parametrize("line", LINES)
def test_line(line, request):
    given = {name: request.getfixturevalue(name) for name in LINES[line].__code__.co_varnames[: LINES[line].__code__.co_argcount]}
    LINES[line](**given)


def test_what_is_passed_over_is_said_once(caplog):
    with caplog.at_level(logging.WARNING, "tenon"), dynamo.config.patch(capture_scalar_outputs=True):
        for _ in range(2):
            tenon.compile(lambda x: x + 1)(X)
    assert sum("capture_scalar_outputs" in record.message for record in caplog.records) <= 1
