"""NumPy arrays and scalars through compiled code: types, promotion, layouts, views, refusals."""
import time

import numpy as np
import pytest

import tenon

RNG = np.random.default_rng(0)


def test_functions_methods_and_operators(check):
    def fn(a, b):
        c = np.sqrt(a * a + b * b)
        return np.where(c > 1, c, np.sin(a)).astype(np.float32), c.mean(axis=0), a.T @ b, np.float64(2) * a

    a, b = RNG.standard_normal((5, 4)), RNG.standard_normal((5, 4))
    graphs = check(fn, (a, b), (a.astype(np.float32), b.astype(np.float32)), (a[::2], b[::2]))
    assert 1 <= len(graphs) <= 3


def test_promotion_and_integers(check):
    def fn(i, f):
        return i / 2, i // 2, i * 1.5, i + f, (i % 3).dtype == i.dtype, np.maximum(i, 2)

    check(fn, (np.arange(6, dtype=np.int32), np.float32(0.5)), (np.arange(6), np.ones(6)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_dtypes(check, dtype):
    check(lambda a: (a + a, a * 2, a > 0), (np.array([0, 1, 1, 0]).astype(dtype),))


def test_scalar_results_are_numpy_scalars(check):
    check(lambda a: (a.sum(), a.max(), a[1], np.mean(a), a.sum() + 1), (np.arange(4.0),), (np.arange(4, dtype=np.int32),))


def test_zero_dimensional_zero_size_and_one(check):
    fn = lambda a: np.exp(a) * 2 + 1  # noqa: E731
    check(fn, (np.array(0.5),), (np.zeros((0, 3)),), (np.zeros((1, 1)),), (np.float32(0.25),))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::-2],
        lambda a: a[1:, 2:],
        lambda a: np.broadcast_to(a[0], a.shape),
        lambda a: np.asfortranarray(a),
        lambda a: a[:, None, :].swapaxes(0, 2),
    ],
)
def test_layouts_of_inputs(check, view):
    a = RNG.standard_normal((4, 6))
    check(lambda x: (x + 1, x * x.mean(), np.sqrt(abs(x))), (view(a),))


def test_a_read_only_input_is_read(check):
    a = np.arange(4.0)
    a.flags.writeable = False
    check(lambda x: (x + 1, x), (a,))


def test_views_of_inputs_are_views():
    compiled = tenon.compile(lambda a: (a, a.T, a[1:], a.reshape(-1), a + 1), fullgraph=True)
    a = np.arange(12.0).reshape(3, 4)
    for _ in range(2):
        itself, turned, tail, flat, fresh = compiled(a)
        assert itself is a
        for view, want in ((turned, a.T), (tail, a[1:]), (flat, a.reshape(-1))):
            assert np.shares_memory(view, a) and view.strides == want.strides and view.flags.writeable
            np.testing.assert_array_equal(view, want)
        assert not np.shares_memory(fresh, a)


def test_views_of_results_share_memory():
    compiled = tenon.compile(lambda a: (lambda b: (b, b.T, b[0]))(a + 1), fullgraph=True)
    b, turned, row = compiled(np.ones((2, 3)))
    assert np.shares_memory(b, turned) and np.shares_memory(b, row)
    b[0, 0] = 7
    assert turned[0, 0] == 7 and row[0] == 7


def test_results_are_not_overwritten_by_the_next_call():
    compiled = tenon.compile(lambda a: a * 2)
    results = [compiled(np.full(1000, float(i))) for i in range(20)]
    for i, result in enumerate(results):
        assert (result == 2.0 * i).all()


def test_an_array_from_outside_is_an_input():
    table = np.arange(3.0)
    compiled = tenon.compile(lambda a: a + table, fullgraph=True)
    np.testing.assert_array_equal(compiled(np.ones(3)), [1, 2, 3])
    table[:] = 5
    np.testing.assert_array_equal(compiled(np.ones(3)), [6, 6, 6])
    assert tenon.stats()["graphs"] == 1


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    "odd",
    [
        np.arange(3, dtype=">f8"),
        np.array([1, "x", None], dtype=object)[:1],
        np.zeros(3, dtype=[("a", "f4"), ("b", "f4")])["a"],
        np.zeros(3, dtype=np.complex128),
        np.zeros(3, dtype=np.uint32),
        np.zeros(3, dtype=np.longdouble),
        np.frombuffer(bytes(17), dtype=np.uint8)[1:].view(np.float64),
        np.zeros(3).view(Sub),
    ],
    ids=["byte-swapped", "object", "field", "complex", "uint32", "longdouble", "unaligned", "subclass"],
)
def test_odd_arrays_run_eagerly(odd):
    compiled = tenon.compile(lambda a: a + a)
    got, want = compiled(odd), odd + odd
    assert type(got) is type(want) and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_a_write_to_an_array_is_seen():
    def fn(a):
        a += 1
        a[0] = 5
        return a * 2

    compiled = tenon.compile(fn)
    a, b = np.zeros(3), np.zeros(3)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(a), fn(b))
        np.testing.assert_array_equal(a, b)


def test_numpy_errors_are_numpys():
    def fn(a, b):
        return a @ b

    compiled = tenon.compile(fn)
    with pytest.raises(ValueError) as want:
        fn(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError) as got:
        compiled(np.ones((2, 3)), np.ones((2, 3)))
    assert str(got.value) == str(want.value)


def test_arrays_made_inside(check):
    def fn(a):
        return a + np.arange(4) * np.array([1.0, 2.0, 3.0, 4.0]), np.zeros((2, 2)), np.ones_like(a), np.full(2, 1.5), np.ones(3), np.linspace(0, 1, 3)

    check(fn, (np.ones(4),))


def test_made_arrays_are_new_each_call():
    compiled = tenon.compile(lambda a: np.zeros(3) + a, fullgraph=True)
    first = compiled(np.ones(3))
    first += 5
    np.testing.assert_array_equal(compiled(np.ones(3)), np.ones(3))


def test_strides_of_results(check):
    a = RNG.standard_normal((3, 4, 5))
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        x = a.transpose(order)
        check(lambda x: (np.sin(x), x + x.mean(), x * x[:1], np.where(x > 0, x, 0), x.sum(axis=1), x.T + 1), (x,))


def test_subscripts(check):
    check(lambda a: (a[1], a[:, None], a[..., -1], a[[2, 0]], a[[0, 1], [1, 2]], a[1, 1:], a[::-1, ::2], a[np.array([0, 1])]), (RNG.standard_normal((3, 4)),))


def test_errstate_that_raises_runs_eagerly():
    compiled = tenon.compile(lambda a, b: a / b + 1)
    compiled(np.ones(3), np.ones(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(np.ones(3), np.zeros(3))
    with np.errstate(all="ignore"):
        assert np.isinf(compiled(np.ones(3), np.zeros(3))).all()


def test_an_array_as_the_subject_of_a_match():
    def fn(x):
        match x:
            case [first, *_, last]:
                return first + last, "sequence"
            case {}:
                return x, "mapping"
            case other:
                return other * 2, "neither"

    x = np.arange(3.0)
    got, want = tenon.compile(fn)(x), fn(x)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1] == want[1]


def test_methods_that_give_python_numbers(check):
    check(lambda a: (a.tolist(), a[0].tolist(), (a * 2).tobytes()), (np.arange(3.0),))


def test_results_that_numpy_makes_read_only(check):
    check(lambda a: (a.imag, a.real, a.imag + 1), (np.arange(3.0),))


def test_scalars_become_arrays(check):
    check(lambda a: (np.asarray(a.sum()), np.asanyarray(a[0]), np.copy(a[1])), (np.arange(3.0),))


def test_flags_that_are_assigned():
    def of_a_result(x):
        y = x * 2
        y.flags.writeable = False
        try:
            y[0] = 1
        except ValueError as error:
            return str(error), y.flags.writeable, y

    def of_an_argument(x):
        x.flags.writeable = False
        return x.flags["WRITEABLE"]

    x = np.ones(3)
    text, writeable, y = tenon.compile(of_a_result)(x)
    assert (text, writeable, y.flags.writeable) == ("assignment destination is read-only", False, False)
    assert tenon.compile(of_an_argument)(x) is False and not x.flags.writeable


def write_row(a, i):
    row = a[i]
    row += 1
    return a, row


def write_rows(a):
    for i in np.arange(2):
        a[i][1:] = i
    a[np.int64(-1)] *= 2
    return a[np.int64(1) :], a[a[:, 0].argmax()]


def write_whole(a):
    row = a[a[:, 0].argmax()]
    a[:] = 9
    return row


@pytest.mark.parametrize("index", [np.int64(2), np.uint8(1), np.array(2), 1, (np.int64(1), slice(1, None))])
def test_rows_at_integers_of_numpy_are_views(index):
    for fn, args in (write_row, (index,)), (write_rows, ()), (write_whole, ()):
        want, got = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3)
        compiled = tenon.compile(fn)
        for _ in range(2):
            plain, results = fn(want, *args), compiled(got, *args)
            np.testing.assert_equal(results, plain)
            np.testing.assert_equal(got, want)
            shared = [[np.shares_memory(x, y) for x in many] for many, y in ((plain, want), (results, got))]
            assert shared[0] == shared[1]


def test_rows_at_computed_indices_are_read_in_the_graph(check):
    check(lambda a: (a[a[:, 0].argmax()] * 2, a[a[:, 0].argmin(), 1]), (np.arange(12.0).reshape(4, 3),))


def test_layouts_of_what_indices_give(check):
    check(
        lambda a: (a[:, [0, 1]], a[..., [1, 0]], a[:, [0, 1], :], a[[0], :, [1]], a[:, None, [0, 1]], a[[0, 1]], a[:, [True, False, True]]),
        (np.arange(36.0).reshape(4, 3, 3),),
        (np.arange(36, dtype=np.uint8).reshape(3, 3, 4).T,),
    )


@pytest.mark.parametrize("key", [0, (0,), (-1,), np.array(0), slice(0, 1), ..., [0]])
def test_arrays_that_are_assigned_to_items(key):
    def program(a, b):
        a[key] = b
        return a

    compiled = tenon.compile(program)
    for b in np.ones(1), np.ones((1, 1)), np.array(1.0):
        outcomes = []
        for fn in program, compiled, compiled:
            try:
                outcomes.append(fn(np.zeros(3), b).tolist())
            except ValueError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1] == outcomes[2]


def test_unsigned_numbers_have_no_sign(check):
    check(lambda a: (np.abs(-a), abs(-a) + np.square(-a), -(-a)), (np.arange(5, dtype=np.uint8),), (np.arange(-128, -120, dtype=np.int8),))


def test_what_is_trimmed_is_a_view():
    def program(a):
        np.trim_zeros(a)[0] = 7
        return a

    np.testing.assert_equal(tenon.compile(program)(np.array([0.0, 1, 2, 0])), [0, 7, 2, 0])


def sum_in_rows(a):
    for i in np.arange(3):
        a[i] += i
        row = a[i]
        row *= 2
    return a


def rolled_by_each(a):
    for dy, dx in np.array([(0, 1), (1, 0), (-1, 2)]):
        a = a + np.roll(a, (dy, dx), (0, 1))
    return a, a[np.array([2, 1])[0]]


def powers(a):
    out = np.zeros(4)
    for i, x in enumerate(np.linspace(0, 1, 4)):
        out[i] = (a**x).sum()
    return out


def written_constants(a):
    places = np.arange(3)
    places[0] = 2
    first = places[0]
    places += 1
    return a[first], a[places[0]], places


@pytest.mark.parametrize("fn", [sum_in_rows, rolled_by_each, powers, written_constants])
def test_items_of_constants_are_constants(check, fn):
    check(fn, (np.arange(16.0).reshape(4, 4),), (np.arange(20.0).reshape(5, 4),), fallbacks=None)
    assert fn is written_constants or tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: (np.real(a), a.real, np.linalg.diagonal(a)),
        lambda a: (np.real(a.T) + 1, a.T.real * 2, np.linalg.diagonal(a, offset=-1) + a[0, 0]),
    ],
)
def test_parts_of_real_arrays_are_views(check, fn):
    check(fn, (RNG.standard_normal((4, 4)),), (np.arange(9).reshape(3, 3),))
    assert " on python" not in str(tenon.explain(fn)(RNG.standard_normal((4, 4))))
    assert fn(np.ones((2, 2)))[2].flags.writeable == tenon.compile(fn)(np.ones((2, 2)))[2].flags.writeable


def test_a_write_to_the_real_part_is_seen():
    def fn(a):
        a.real[...] = 3
        np.real(a)[0] += 1
        return a.sum()

    a = np.ones((2, 3))
    assert tenon.compile(fn)(a) == 21 and np.array_equal(a, [[4, 4, 4], [3, 3, 3]])


@pytest.mark.parametrize("order", ["C", "A", "K", "F"])
def test_flatten_in_the_order_that_is_asked_for(order):
    rows = np.arange(6.0).reshape(2, 3)
    for array in (rows, np.asfortranarray(rows), rows.T, rows[:, ::2]):
        for fn in (lambda a: a.flatten(order), lambda a: (a + 1).flatten(order)):
            assert tenon.compile(fn)(array).tolist() == fn(array).tolist()


def test_what_lies_outside_is_read_in_each_call(tmp_path):
    path = tmp_path / "numbers"
    fn = tenon.compile(lambda a: np.fromfile(path) * a)
    for number in (1.0, 2.0):
        np.full(3, number).tofile(path)
        assert fn(np.ones(3)).tolist() == [number] * 3


@pytest.mark.parametrize("fn", [lambda a: (np.datetime64("now"), a + 1), lambda a: (np.array(["now"], "M8[s]")[0], a + 1)], ids=["scalar", "array"])
def test_the_time_is_asked_for_in_each_call(fn):
    compiled = tenon.compile(fn)
    first = compiled(np.ones(2))[0]
    time.sleep(1.01)  # a date of now has whole seconds
    assert compiled(np.ones(2))[0] > first
