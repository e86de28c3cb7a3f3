"""Exported programs whose sizes vary: what is asked for is kept, or refused where the program does not hold for all sizes."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def check(program, function, *calls):
    with torch.no_grad():
        for args in calls:
            torch.testing.assert_close(program(*args), function(*args))


@pytest.fixture
def convnet():
    layers = [torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2)]
    return torch.nn.Sequential(*layers).eval()


@pytest.mark.parametrize("shapes", [{"input": {0: "batch"}}, ({0: "batch"},), [("batch", None, None, None)], [{-4: "batch"}]], ids=repr)
def test_a_network_takes_any_batch(convnet, shapes, tmp_path):
    program = tenon.export(convnet, (torch.randn(2, 3, 8, 8),), dynamic_shapes=shapes)
    batches = [(torch.randn(n, 3, 8, 8),) for n in (2, 3, 11)]
    check(program, convnet, *batches)
    program.save(tmp_path / "net.tnx")
    check(tenon.load(tmp_path / "net.tnx"), convnet, *batches)


def test_sizes_that_must_be_equal_are_checked_together():
    def product(a, b):
        return a @ b, a.reshape(-1)

    program = tenon.export(product, (torch.randn(4, 6), torch.randn(6, 5)), dynamic_shapes=({0: "n", 1: "k"}, {0: "k"}))
    check(program, product, (torch.randn(7, 9), torch.randn(9, 5)), (torch.randn(2, 2), torch.randn(2, 5)))
    with pytest.raises(tenon.Error, match="b has the shape"):
        program(torch.randn(7, 9), torch.randn(8, 5))


def test_sizes_inside_of_containers_vary():
    program = tenon.export(lambda given: given["x"][0] * 2, ({"x": [torch.randn(4, 2)]},), dynamic_shapes={"given": {"x": [{0: "n"}]}})
    assert program({"x": [torch.ones(9, 2)]}).shape == (9, 2)


def test_what_was_not_asked_for_stays_fixed():
    program = tenon.export(lambda x: x * 2, (torch.randn(4, 6),), dynamic_shapes={"x": {0: "n"}})
    for shape in ((4, 7), (1, 6), (0, 6)):
        with pytest.raises(tenon.Error):
            program(torch.randn(*shape))


@pytest.mark.parametrize("function, reason", [
    (lambda x: x + torch.ones(4), "cannot vary"),
    (lambda x: x.view(2, -1), "cannot vary"),
    (lambda x: x * 2 if x.shape[0] > 3 else x, "it needs 3 < x.shape"),
    (lambda x: x[:3], "it needs 3 <= x.shape"),
], ids=["fixed", "divided", "compared", "cut"])
def test_a_program_that_holds_for_some_sizes_only_is_refused(function, reason):
    with pytest.raises(tenon.Error, match=reason):
        tenon.export(function, (torch.randn(4),), dynamic_shapes={"x": {0: "n"}})


@pytest.mark.parametrize("shapes, reason", [
    ({"y": {0: "n"}}, "names 'y'"), ({"x": {2: "n"}}, "2 dimensions"), (5, "sequence"), ([None, None], "at most 1"), ({"x": {1: "n"}}, "at least 2"),
], ids=repr)
def test_wrong_requests_say_what_is_wrong(shapes, reason):
    with pytest.raises(tenon.ConfigError, match=reason):
        tenon.export(lambda x: x * 2, (torch.randn(4, 1),), dynamic_shapes=shapes)
