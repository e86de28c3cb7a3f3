"""Writes through views, into what shares memory, into `out=`, and what changes a tensor's shape or storage in place."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

from tests.python.tensors.writes import check_writes  # noqa: E402


def numbers(*shape):
    return torch.arange(float(np.prod(shape))).reshape(shape)


# Bodies of functions of x (and y), by what they begin with.
BODIES = {
    (numbers, (4, 6)): """
x.view(24).unfold(0, 8, 24).index_fill_(1, torch.tensor([0]), -1.0); return x + 1
x.diagonal().add_(1); return x
x.T[torch.tensor([0, 1]), torch.tensor([1, 2])] = torch.tensor([50.0, 60.0]); return x
x[1].index_put_((torch.tensor([0, 0, 1]),), torch.ones(3), accumulate=True); return x
x.T.masked_scatter_(x.T > 4, -x.T.clone()); return x
x[:, 1:].scatter_(1, torch.tensor([[0], [1], [2], [1]]), 9.0); return x
x.T.scatter_reduce_(0, torch.zeros(6, 4, dtype=torch.long), x.T.clone(), "sum"); return x
x.T.index_add_(0, torch.tensor([0, 0]), torch.ones(2, 4)); return x
x[:, ::3].index_copy_(1, torch.tensor([1, 0]), torch.ones(4, 2) * 7); return x
x.T.put_(torch.tensor([0, 5]), torch.tensor([90.0, 91.0])); return x
x.T[x.T > 5] = x.max(); return x
x.fill_diagonal_(3); x.T.triu_(1); return x
x.movedim(0, -1)[0] = 3; x.unflatten(1, (2, 3))[:, 1].neg_(); return x
r = x.T.reshape(-1); r[0] = 99; return x, r
r = x.reshape(8, 3); r[0] = 99; return x, r
x.ravel()[0] = 9; x.T.ravel()[1] = 8; return x
y = torch.einsum("ij->ji", x); y[0] = 5; return x
a = x.T.numpy()[1]; a *= 2; return x
torch.cumsum(x, 0, out=x); return x
torch.sum(x, 0, out=x[0]); return x
torch._foreach_add_([x[0], x[1]], [x[1], x[2]]); return x
torch._foreach_mul_(list(x.unbind(0)), 2.0); return x
r = x.unbind(0); r[0].add_(r[1]); return r
y = x * 2; y.t_(); y[0] = 1; return y
y = x + 1; y.unsqueeze_(0); y[0, 0] = 4; return y, y.shape
y = x + 1; return y[1:], y[1:].clone(), y[1:].contiguous(), y[:, 1:].contiguous(), y[1:].T, y.diagonal()
y = x + 1; return y, y, y[0], [y]
d = x.detach(); d.add_(1); return x, d
x.data.mul_(3); return x + 1
d = x.data[1:]; d.zero_(); return x
a, b = x.chunk(2); a.add_(b); b.mul_(a); return x, a
for k, part in enumerate(x.split([1, 2, 1])): part.fill_(k)
x[:2], x[2:] = x[2:].clone(), x[:2].clone(); return x
x.copy_(x.sort(descending=True)[0]); return x
o = torch.empty(0); r = torch.add(x, 1, out=o); return r is o, o
v, k = torch.empty(0), torch.empty(0, dtype=torch.long); r = torch.sort(x, 0, descending=True, out=(v, k)); return r[0] is v, v, k
a = x._version; x.add_(1); y = x + 1; y.mul_(2); y[0] = 0; return x._version - a, y._version
""",
    (numbers, (4, 6), (4, 6)): """
x.mul_(2); return x + y
y.add_(x); x.add_(y); return x
x[0] = 7; return y + 1, y[0]
x.T.copy_(y.T.int()); return x
torch.mul(x, 2.5, out=y[:, [0, 1, 2, 3, 4, 5]]); return y
torch.mul(x[:2, :3], 2, out=y[1:3, ::2]); return y
torch.cat([x[:2], x[2:]], out=y); return y
x[:], y[:] = y.clone(), x.clone(); return x - y
x.view(torch.float32).copy_(y)
""",
    (lambda *shape: (numbers(*shape) + 1), (6,)): """
x.view(torch.int32)[0] = 0; return x
x.view(torch.uint8)[3] = 64; return x + 0
x[::2].zero_(); x[1::2] = x[::2] + 5; return x
x[1:].clamp_(1, 3); torch.nn.functional.relu_(x[:1]); torch.nn.functional.hardtanh(x, 0, 2, inplace=True); return x
v = x.view(3, 2); x.add_(1); w = v * 2; v.zero_(); return w, x
f = x.flatten(); f += 1; return x, f is x
a, b = torch.broadcast_tensors(x, torch.ones(6)); a.add_(1); return x
y = x; y += 1; z = x[0]; z += 1; return x, y is x
""",
    (lambda *shape: torch.complex(numbers(*shape), numbers(*shape) + 1), (3,)): """
x.real.mul_(2); x.imag[0] = 5; return x
torch.view_as_real(x)[..., 0] = 1; return x
""",
    (lambda *shape: numbers(*shape).numpy(), (6,)): """
x[1:] += x[:-1]; return x
x += x[::-1]; return x
r = np.add(x[:-1], x[1:], out=x[1:]); return r
b = x[::-1]; b.sort(); return x
np.copyto(x[1:], x[:-1]); return x
np.add.at(x[1:], [0, 0, 1], 10); return x
u, v = x[:3], x[2:]; u += 1; v *= 2; return u, v
s = x[1]; s += 5; return x, s
x *= 2; x //= 3; x **= 2; return x
x.view(np.int32)[0] = 0; return x
x[1:].fill(4); x[::2] *= -1; return x
""",
    (numbers, (3, 3), (3, 3)): """
torch.mm(x, y, out=x); return x
torch.addmm(x, x, y, out=x); return x
torch.addmm(y.t(), x, x, out=y.t()); return y
torch.addmm(x[0].clone(), y, y, out=x); return x
torch.addmv(x[0], x, y[0], out=x[0]); return x
torch.index_add(y, 0, torch.tensor([0, 2, 0]), x, out=y); return y
torch.kron(x, y, out=torch.empty(9, 9)); return x
v = torch.empty(9, 9); n = v._version; torch.kron(x, y, out=v); return v, v._version - n
""",
    (lambda *shape: numbers(*shape).numpy(), (3, 4)): """
x[:3, :3] = x[:3, :3].T; x.T[0] += 5; return x
x.T.flat[1:3] = [7, 8]; x.flat = x.flat[::-1]; return x
np.put(x.T, [0, 1], [50, 51]); np.place(x, x > 8, -1); np.putmask(x, x < 2, 77); return x
np.fill_diagonal(x.T, 5); return x
x[[0, 1]] = x[[1, 0]]; return x
x[:, ::-1][0] = [1, 2, 3, 4]; return x
b = x + 1; b.shape = (4, 3); b.setflags(write=False); return b
t = torch.from_numpy(x); t.add_(1); return x.sum(), t
b = x * 2; return b.T, b[::-1], b[:, 1], b.reshape(-1), b.ravel("F"), b[None]
x.T.partition(1); return x
""",
}
SITUATIONS = [(body, *situation) for situation, bodies in BODIES.items() for body in bodies.strip().splitlines()]


@pytest.mark.parametrize("body, make, shapes", [(body, make, shapes) for body, make, *shapes in SITUATIONS], ids=[body for body, *_ in SITUATIONS])
def test_as_plain(body, make, shapes, check):
    names = {"torch": torch, "np": np}
    exec(f"def fn({'x, y'[: 3 * len(shapes) - 2]}):\n    {body}", names)
    with torch.no_grad():
        check_writes(check.same, names["fn"], lambda: tuple(make(*shape) for shape in shapes), calls=2, fallbacks=None)


WITH_OUTPUT = """
torch.mm(a, b, out=c)
torch.matmul(a, b, out=c)
torch.bmm(a[None], b[None], out=c[None])
torch.addmm(c, a, b, beta=0.0, out=c)
torch.addmm(a, a, a, alpha=2, out=c)
torch.baddbmm(c[None], a[None], b[None], out=c[None])
torch.addmv(c[0], a, b[0], out=c[0])
torch.addmv(c[0], a, b[0], out=c[1])
torch.addr(c, a[0], b[0], out=c)
torch.cumsum(a, 1, out=c)
torch.sum(a, 0, out=c[0])
torch.amax(a, 1, out=c[:, 1])
torch.softmax(a, 1, out=c)
torch.gather(a, 1, a.long() % 3, out=c)
torch.scatter_add(c, 1, a.long() % 3, b, out=c)
torch.stack([a[0], b[1], a[2]], out=c)
""".strip().splitlines()


@pytest.mark.parametrize("call", WITH_OUTPUT)
def test_what_computes_from_many_elements_writes_an_output_in_the_graph(call, check):
    names = {"torch": torch}
    exec(f"def fn(a, b, c):\n    r = {call}\n    return r is c, r, c * 2", names)
    plain, given, compiled = [numbers(3, 3) + k for k in range(3)], [numbers(3, 3) + k for k in range(3)], tenon.compile(names["fn"])
    with torch.no_grad():
        for _ in range(2):
            check.same(compiled(*given), names["fn"](*plain))
            check.same(given, plain)
            assert [t._version for t in given] == [t._version for t in plain]
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("name", ["roll", "flip", "cdist", "relu"])
def test_an_output_that_torch_does_not_take_is_refused(name):
    arguments = {"roll": (1,), "flip": ([0],), "cdist": (torch.ones(3, 3),)}.get(name, ())
    compiled = tenon.compile(lambda x, out: getattr(torch, name)(x, *arguments, out=out))
    for _ in range(2):
        with pytest.raises(TypeError):
            compiled(torch.ones(3, 3), torch.zeros(3, 3))


def halves(x, y):
    x.mul_(2)
    y.add_(x[0].clone())
    return x + y


@pytest.mark.parametrize("shares", [lambda b: (b[:4], b[4:]), lambda b: (b[:4], b[2:6]), lambda b: (b[:4], b[:4]), lambda b: (b[::2], b[1::2]), lambda b: (b[:4], b[:4].flip(0))])
def test_arguments_that_share_memory_after_others_that_do_not(shares, check):
    compiled = tenon.compile(halves)
    with torch.no_grad():
        for begin in (lambda: (numbers(4), numbers(4)), lambda: shares(numbers(8)), lambda: (numbers(4), numbers(4)), lambda: shares(numbers(8))):
            plain, given = begin(), begin()
            check.same(compiled(*given), halves(*plain))
            check.same(given, plain)
