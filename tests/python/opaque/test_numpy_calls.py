"""Functions of NumPy that the catalogue lacks: those that write into an argument, and those that find as many elements as there are."""
import numpy as np
import pytest

import tenon

x, places = np.linspace(-2.0, 2.0, 12), np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])


def after(write):
    def program(a, *more):
        a = a * 2
        write(a, *more)
        return a + 1

    return program


@pytest.mark.parametrize(
    "fn, args",
    [
        (after(lambda a, i, v: np.add.at(a, i, v)), (x, places, x)),
        (after(lambda a, i: np.maximum.at(a, i, 1.0)), (x, places)),
        (after(lambda a, i: np.subtract.at(a, (i % 3, i % 4), 1)), (np.arange(12).reshape(3, 4), places)),
        (lambda a, i: (np.add.at(a[2:], i, 1.5), a)[1], (x, places)),
        (after(lambda a: np.put(a, [1, -2], 7)), (x,)),
        (after(lambda a: np.place(a, a > 0, [1, 2])), (x,)),
        (after(lambda a: np.putmask(a, a > 0, a * 3)), (x,)),
        (after(lambda a: np.copyto(a, 3, where=a > 0)), (x,)),
        (after(lambda a: np.fill_diagonal(a, 3)), (x.reshape(3, 4),)),
        (after(lambda a: np.put_along_axis(a, np.argmax(a, 1)[:, None], 0, 1)), (x.reshape(3, 4),)),
        (lambda a: (np.put(a, [0], 9), a * 2)[1], (x,)),
        (lambda i: np.bincount(i) + 1, (places,)),
        (lambda i, w: np.bincount(i, w, minlength=4) * 2, (places, x)),
        (lambda a: (np.histogram(a, bins=5), np.histogram(a * 2, bins=np.linspace(-2, 2, 6))), (x,)),
        (lambda a, b: np.setdiff1d(a, b) * 2, (places, places[:4])),
        (lambda a: np.extract(a > 0, a) * 2, (x,)),
        (lambda a: np.multiply.outer(a, a), (x,)),
        (lambda a, b: np.polyfit(a, b, 2) * 2, (x, x**2)),
    ],
)
def test_calls_are_nodes(check, fn, args):
    check(fn, args)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("out", [np.full((3, 4), 7.0), np.full((3, 4), 7, np.complex128)])
@pytest.mark.parametrize("ufunc", [np.divide, np.add, np.fmod, np.logaddexp2, np.less, np.logical_or])
def test_chosen_places_of_an_output(check, ufunc, out):
    """The others keep what they had, and nothing is computed there."""
    a, b = x.reshape(3, 4), places.reshape(3, 4) % 3
    check(lambda a, b, out: ufunc(a, b, out=out, where=b != 0), (a, b, out))
    check(lambda a, b, out: ufunc(a, b, out, where=b != 0) is out, (a, b, out))
    check(lambda a, b: ufunc(a, b, out=np.zeros((3, 4)), where=b != 0) * 2, (a, b))
    check(lambda a, b, out: (ufunc(a, b, out=out[:, ::2], where=b > 1), out)[1], (a[:, ::2], b[:, ::2], out))
    check(lambda a, b: ufunc(a, b, out=a, where=b != 0), (a.copy(), b), fallbacks=None)
    check(lambda a, b, out: ufunc(a, b, out=out, where=True), (a, b + 1, out))


def test_sizes_that_change_from_call_to_call(check):
    check(lambda i: np.bincount(i) * 2, (places,), (places * 3,), (places[:5],))


def test_a_write_of_what_it_reads(check):
    check(after(lambda a: np.place(a, a > 0, a[::-1])), (x,))
    check(after(lambda a: np.copyto(a[1:], a[:-1])), (x,))


def test_a_refused_write_raises_and_writes_nothing():
    fn = tenon.compile(after(lambda a, i: np.add.at(a, i, 1)))
    with pytest.raises(IndexError):
        fn(x, places + 5)


def test_bins_by_name_run_eagerly(check):
    check(lambda a: np.histogram(a, bins="auto"), (x,))


@pytest.mark.parametrize("values", [[1 + 2j, 3 + 4j], [1 + 2j, 1 - 2j], [1 + 0j, 3 + 0j]])
@pytest.mark.parametrize("fn", [np.real_if_close, np.poly], ids=["real_if_close", "poly"])
def test_what_is_real_by_its_values(fn, values):
    z = np.array(values)
    np.testing.assert_array_equal(tenon.compile(lambda z: fn(z))(z), fn(z), strict=True)
