"""Warnings of captured code: issued at every call, for the line of the program, by the filters of that moment, without a break."""
import warnings

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


def plain(x):
    warnings.warn("careful")
    return x * 2


def warn_for_caller():
    warnings.warn("deep", DeprecationWarning, stacklevel=2)


def for_caller(x):
    warn_for_caller()
    return x + 1


def by_library(x):
    return F.softmax(x)


def about_sizes(x):
    return F.mse_loss(x, x[:1].clone())


def handled(x):
    try:
        warnings.warn("a reason to subtract")
    except UserWarning:
        return x - 1
    return x + 1


def calls(function, mode):
    globals().pop("__warningregistry__", None)
    results = []
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter(mode)
        for _ in range(3):
            try:
                results.append(function(torch.ones(4)).tolist())
            except Warning as error:
                results.append(repr(error))
    return results, [(str(w.message), w.category, w.filename, w.lineno) for w in issued]


@pytest.mark.parametrize("function", [plain, for_caller, by_library, about_sizes, handled])
@pytest.mark.parametrize("mode", ["always", "default", "once", "error", "ignore"])
def test_warnings_are_those_of_plain_execution(function, mode):
    compiled = tenon.compile(function)
    assert calls(compiled, mode) == calls(function, mode)
    assert mode == "error" or tenon.stats()["graph_breaks"] == 0


def test_a_filter_that_raises_is_seen_by_later_calls():
    compiled = tenon.compile(handled)
    assert calls(compiled, "ignore") == calls(handled, "ignore")
    assert calls(compiled, "error") == calls(handled, "error")
    assert calls(compiled, "ignore") == calls(handled, "ignore")


class Recording:
    def __enter__(self):
        self.manager = warnings.catch_warnings(record=True)
        self.issued = tenon.disable(self.manager.__enter__)()
        return self

    def __exit__(self, *error):
        self.manager.__exit__(*error)


def test_warnings_are_counted_that_an_older_list_records():
    recording = Recording()

    def run(x):
        with recording:
            warnings.warn("careful")
        return len(recording.issued), x * 2

    compiled = tenon.compile(run)
    for _ in range(3):
        globals().pop("__warningregistry__", None)
        assert compiled(torch.ones(2))[0] == 1


@pytest.mark.parametrize("search", [torch.searchsorted, lambda bounds, values: torch.bucketize(values, bounds[:, 0])], ids=["searchsorted", "bucketize"])
def test_searches_in_tensors_that_are_not_contiguous(search):
    rows = torch.arange(12.0).reshape(3, 4)
    turned = torch.arange(12.0).reshape(4, 3).t()
    compiled = tenon.compile(search)
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        for bounds, values in ((rows, rows + 1), (rows, turned), (turned, rows), (rows, rows + 1)):
            issued = []
            for call in (search, compiled):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    result = call(bounds, values)
                issued.append(([str(warning.message) for warning in caught], result.tolist()))
            assert issued[0] == issued[1]
    finally:
        torch.set_warn_always(before)
