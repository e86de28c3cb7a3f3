"""Programs of Python on the card, compiled, against torch's own execution there: python3 programs.py [NAME…]"""
from __future__ import annotations

import copy
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import tenon
from judged import D, differences, placed, run, same_as_eager

torch.manual_seed(0)
X, Y, B = torch.randn(64, 48), torch.randn(48), torch.randn(2, 8, 17, 33)
N, T = torch.randint(0, 48, (64, 5)), torch.randint(0, 64, (200,))
C = torch.randn(2, 8, 16, 16).to(memory_format=torch.channels_last)
KIND = D.split(":")[0]


def writes(x):
    x += 1
    x[0].mul_(2)
    x[x > 0] = 0.5
    x[:, 3:9:2] = x[:, :3]
    x.t()[5].add_(x[5, 5])
    return x.sum()


def many_channels(x, stem, wide, short):
    x = F.max_pool2d(F.conv2d(x, stem, stride=2, padding=3).relu(), 3, 2, 1)
    return (F.conv2d(F.conv2d(x, wide, padding=1).relu(), wide.transpose(0, 1).repeat(2, 1, 1, 1), padding=1) + F.conv2d(x, short)).relu().mean((2, 3))


def breaks(x):
    y = x + 1
    print(end="")
    return y * 2


def loops(x):
    turns = 0
    while x.abs().max() > 0.1 and turns < 20:
        x = x * 0.5
        turns += 1
    return x, turns


def made_by_names(x):
    with torch.device(D):
        return torch.ones(3) + torch.arange(3), torch.rand(4).shape, x.new_tensor([1.0, 2.0]), torch.empty(2, 2).fill_(3)


def scattered(x, i):
    y = torch.zeros_like(x)
    y.index_put_((i[:, 0],), x[: i.shape[0]], accumulate=True)
    y.scatter_(1, i, 2.0)
    y.scatter_reduce_(1, i, x[:, :5], "amax")
    return y.index_add(0, i[:3, 0], x[:3]).index_copy(0, i[:1, 0], x[:1]).index_fill(1, i[0, :1], 9.0)


def normalized(x):
    return F.group_norm(x, 2), F.instance_norm(x), F.batch_norm(x, None, None, training=True), F.local_response_norm(x, 3), F.rms_norm(x, x.shape[-1:])


def pooled(x):
    return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 5), F.adaptive_max_pool2d(x, (3, 4)), F.max_pool2d(x, 2, return_indices=True), F.lp_pool2d(x.abs(), 2, 2)


def attention(q):
    mask = torch.ones(33, 33, dtype=torch.bool, device=q.device).tril()
    q = q.transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, q * 2, q, attn_mask=mask), F.scaled_dot_product_attention(q, q, q, mask.float().log(), scale=0.3)


def random_values(x):
    a, b, c = torch.rand_like(x), torch.randn(5, 7, device=x.device), torch.randint(0, 9, (40,), device=x.device)
    d, e = F.dropout(x, 0.3), torch.bernoulli(x.sigmoid())
    x = x.clone().uniform_() + x.clone().normal_() + x.clone().exponential_()
    return a, b, c, d, e, x, torch.randperm(9, device=x.device), torch.multinomial(x.abs() + 1, 3), F.gumbel_softmax(x), torch.rand(3)


def several_dtypes(x):
    return [(x.to(t) * 2 + 1, (x.to(t) / 3).sum(0), x.to(t).amax(1)) for t in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8)] + [x > 0, (x > 0).sum(), (x > 0).any(1)]


def doubles(x):
    x = x.double()
    return (x.exp().log1p(), x.sin(), x.cos(), x.tanh(), torch.erf(x), x.sigmoid(), x.abs().pow(1.3), x.abs().lgamma(), x.tan(), x.atan(), x.sinh(), torch.erfc(x), F.gelu(x), F.softplus(x), x.softmax(0), x.digamma(), x.expm1(),
            torch.atan2(x, x.flip(0)), x.abs().rsqrt(), x.erfinv(), torch.special.i0(x), x.asinh(), F.silu(x), F.mish(x))


def functions(x):
    return (x.exp(), x.log1p(), x.sin(), x.cos(), x.tan(), x.tanh(), torch.erf(x), x.sigmoid(), x.abs().pow(1.3), x ** 3, x.abs().lgamma(), x.atan(), x.clamp(-1, 1).asin(), x.sinh(), x.cosh(), torch.erfc(x), F.gelu(x), F.gelu(x, approximate="tanh"),
            F.softplus(x), F.elu(x), F.selu(x), F.hardswish(x), F.mish(x), F.silu(x), x.expm1(), x.rsqrt(), x.floor(), x.round(), x.frac(), x.sign(), torch.atan2(x, x.flip(0)), torch.hypot(x, x.flip(0)), x.fmod(0.7), x.remainder(-0.7), x.erfinv(), x.digamma(),
            torch.xlogy(x, x), torch.special.i0(x), x.clamp(-1, 2), torch.lerp(x, x.flip(0), 0.3), torch.nextafter(x, x.flip(0)), x.nan_to_num(), x.isnan(), x.isfinite(), torch.logaddexp(x, x.flip(0)), x.ldexp(x.new_tensor(2)), x.signbit())


def reductions(x):
    return (x.sum(), x.mean(0), x.var(1), x.std(), x.norm(), x.norm(1, 0), x.prod(1), x.amax(), x.amin(0), x.argmax(1), x.argmin(), x.max(0), x.min(1), x.median(), x.mode(1).values.shape, x.logsumexp(1), x.count_nonzero(0), x.all(), x.any(1), x.aminmax(dim=1), x.nansum(0),
            x.softmax(0), x.log_softmax(1), x.cumsum(0), x.cumprod(1), x.cummax(0), x.logcumsumexp(1), x.quantile(0.3), x.var_mean(0), torch.linalg.vector_norm(x, dim=1), F.normalize(x), F.cosine_similarity(x, x.flip(0)), x.dist(x.flip(0)), torch.cdist(x, x[:4]))


def shapes(x):
    return (x.t(), x[1:, ::2], x.view(32, -1), x.reshape(-1, 6, 8).permute(2, 0, 1), x.unfold(1, 5, 3), x.expand(3, -1, -1), x.repeat(2, 1), x.flip(1), x.roll((3, -2), (0, 1)), x.tril(1), x.triu(-2), x.diag(), x.diagonal(1), x.chunk(3, 1), x.split([10, 54]),
            torch.stack([x, x + 1], 1), torch.cat([x, x * 2], 1), x.unsqueeze(1).squeeze(), F.pad(x, (1, 2, 3, 0), value=2.0), F.pad(x[None], (1, 2), mode="reflect"), x.movedim(0, 1), x.as_strided((4, 5), (7, 2)), x.rot90(), torch.meshgrid(x[0], x[1], indexing="ij"),
            torch.tensor_split(x, 5), x.repeat_interleave(2, 0), torch.block_diag(x[:2], x[2:5]), x.ravel()[::7], torch.combinations(x[0, :5]), torch.kron(x[:2, :3], x[:3, :2]), F.pixel_shuffle(x.view(1, 48, 8, 8), 2), F.fold(F.unfold(x.view(1, 3, 32, 32), 3), (32, 32), 3))


def indexed(x, i):
    return (x[i], x[:, i[0]], x[i[:, 0], i[:, 1]], x.gather(1, i), x.take(i), x.index_select(1, i[0]), x[i > 9] if x.shape == i.shape else x[x > 0.5], x[None, ..., 3], x.masked_select(x > 1), torch.take_along_dim(x, i, 1), x[-3:, [1, 5, 7]],
            F.one_hot(i, 48), torch.bincount(i.flatten()), x.nonzero(), torch.unique(i), torch.searchsorted(x.sort(1).values, x), torch.bucketize(x, x[0].sort().values), F.embedding(i, x[:48]), torch.where(x > 0), x.argsort(1), x.topk(4), x.kthvalue(3), i.sort(0, stable=True))


def losses(x, i):
    t = i[:, 0]
    return (F.cross_entropy(x, t), F.cross_entropy(x, t, reduction="none", label_smoothing=0.1), F.nll_loss(x.log_softmax(1), t), F.mse_loss(x, x.flip(0)), F.smooth_l1_loss(x, x.flip(0)), F.binary_cross_entropy_with_logits(x, x.sigmoid()), F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
            F.huber_loss(x, x * 2), F.cosine_embedding_loss(x, x.flip(0), x[:, 0].sign()), F.triplet_margin_loss(x, x.flip(0), x.roll(1, 0)), F.multi_margin_loss(x, t), F.hinge_embedding_loss(x, x.sign()))


def to_hosts_values(x):
    return x.sum().item(), x[:2, :2].tolist(), int(x.shape[0]), float(x[0, 0]), bool((x > 0).any()), x.cpu().numpy().shape, x.numel()


def on_the_hosts_side(x):
    h = x.cpu()
    h = (h * 2).relu().sum(0)
    return h, (h.to(x.device) + x).softmax(-1), torch.ones(3) + 1


def indices_of_the_host(x, host):
    return x[host["host"]], x[:, host["host"][:5]] * host["host"].new_tensor(2.0)


def pad_and_pool(x):
    return F.interpolate(x, scale_factor=2), F.interpolate(x, size=(9, 40), mode="bilinear"), F.interpolate(x, size=(20, 20), mode="bicubic", align_corners=True), F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False)


def products(x):
    return (x @ x.t(), x.t() @ x, torch.einsum("ij,kj->ik", x, x), torch.bmm(x.view(4, 16, 48), x.view(4, 48, 16)), torch.addmm(x[:, 0], x, x.t()), x.mv(x[0]), x[0].dot(x[1]), torch.outer(x[0], x[1]), F.linear(x, x[:7], x[0, :7]), torch.tensordot(x, x, 2), F.bilinear(x[:, :4], x[:, 4:9], x[:12].reshape(-1)[:60].view(3, 4, 5)),
            torch.linalg.solve(x[:48].t() @ x[:48] + torch.eye(48, device=x.device), x[:48]), torch.linalg.svdvals(x), torch.linalg.det(x[:5, :5]), torch.chain_matmul(x, x.t(), x) if False else x, torch.baddbmm(x.view(4, 16, 48)[..., :16], x.view(4, 16, 48), x.view(4, 48, 16), beta=0.5))


def autocast(dtype):
    def fn(x, w):
        with torch.autocast(KIND, dtype=dtype):
            y = x @ w
            z = F.layer_norm(y.relu(), y.shape[1:]).softmax(-1)
            return y, z, y.sum(), F.mse_loss(y, z), (x * 2), F.linear(y, w)

    return fn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Linear(16, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.head(self.norm(self.conv(x)).relu().mean((2, 3)))


def of_module(model, *inputs, grad=False):
    def situation():
        torch.manual_seed(0)
        first = model().to(D)
        second = copy.deepcopy(first)
        compiled = tenon.compile(second)
        for training in (True, False):
            first.train(training), second.train(training)
            for call in range(2):
                args = placed(list(inputs))
                with torch.set_grad_enabled(grad):
                    torch.manual_seed(call)
                    want = first(*args)
                    torch.manual_seed(call)
                    got = compiled(*args)
                if said := differences([got, dict(second.named_buffers())], [want, dict(first.named_buffers())]):
                    return f"training {training}, call {call}: {said}"
        return ""

    return situation


PROGRAMS = {
    "relu": (lambda x: torch.relu(x + 1) * 2, X), "functions": (functions, X), "doubles": (doubles, X), "several dtypes": (several_dtypes, X), "reductions": (reductions, X), "shapes": (shapes, X),
    "indexed": (indexed, X, N), "losses": (losses, X, N), "scattered": (scattered, X, N), "normalized": (normalized, B), "pooled": (pooled, B), "attention": (attention, B.transpose(1, 3).contiguous()), "products": (products, X),
    "random values": (random_values, X), "writes": (writes, X), "writes of a column": (lambda x: x[:, 2].exp_(), X), "out": (lambda x, y: torch.add(x, 1, out=y), X, torch.empty(64, 48)), "views": (lambda x: (x[1:, ::2], x.t(), x), X),
    "device": (lambda x: (x.device, x.is_cuda, x.get_device(), x.is_cpu), X), "made there": (lambda x: torch.zeros(64, 48, device=x.device) + torch.arange(48, device=x.device) * x, X), "made by names": (made_by_names, X),
    "constant": (lambda x: torch.tensor([2.0], device=x.device) * x, X), "to the host": (on_the_hosts_side, X), "cuda()": (lambda x: x.to(D) + x.cpu().to(D) + x.to(D, torch.float64), X), "number beside": (lambda x: x * torch.tensor(2.0) + torch.tensor(3), X),
    "indices of the host": (indices_of_the_host, X, {"host": torch.arange(6)}), "item": (lambda x: x + x.max().item(), X), "values of the host": (to_hosts_values, X), "branch": (lambda x: x + 1 if x.max() > 0 else x - 1, X), "loops": (loops, X),
    "found sizes": (lambda x: (x[x > 0], torch.nonzero(x > 0), x[x > 0].sum() * 2), X), "a break": (breaks, X), "convolution": (lambda x, w: F.conv2d(x, w, padding=1).relu(), torch.randn(2, 3, 32, 32), torch.randn(8, 3, 3, 3)),
    "convolutions": (lambda x, w: (F.conv2d(x, w, groups=1, stride=2), F.conv_transpose2d(x, w, stride=2), F.conv1d(x[:, :, 0], w[:, :, 0]), F.conv2d(x, w[:, :1], groups=8)), B, torch.randn(8, 8, 3, 3)),
    "many channels": (many_channels, torch.randn(4, 3, 64, 48), torch.randn(64, 3, 7, 7) / 12, torch.randn(128, 64, 3, 3) / 24, torch.randn(128, 64, 1, 1) / 8),
    "channels last": (lambda x, w: F.max_pool2d(F.conv2d(x, w).relu() + 1, 2), C, torch.randn(4, 8, 3, 3).to(memory_format=torch.channels_last)), "fft": (lambda x: (torch.fft.rfft(x).abs(), torch.view_as_real(torch.fft.fft2(x)), torch.fft.ifft(torch.fft.fft(x)).real), X),
    "complex": (lambda x: (torch.complex(x, x.flip(0)) * (1 + 2j)).abs() + torch.polar(x.abs(), x).imag, X), "inverse": (lambda x: torch.linalg.inv(x.t() @ x + torch.eye(48, device=x.device)), X), "gelu, layer_norm": (lambda x: F.layer_norm(F.gelu(x), (48,)), X),
    "sort": (lambda x: x.sort(-1), X), "half": (lambda x: (x.half() * 2).float(), X), "pictures": (pad_and_pool, B), "autocast f16": (autocast(torch.float16), X, torch.randn(48, 32)), "autocast bf16": (autocast(torch.bfloat16), X, torch.randn(48, 32)),
    "not contiguous": (lambda x: (x * 2 + 1, x.sum(0), x.softmax(1), x.contiguous(), x.add_(1).sum()), X.t()), "every other": (lambda x: (x * 2, x.mul_(2).amax(0)), torch.randn(64, 96)[:, ::2]), "expanded": (lambda x: (x + 1, x.sum(0), x @ x.t()), torch.randn(1, 48).expand(64, 48)),
    "shifted": (lambda x: (x * 2, x.sum(1), x.softmax(0), x.t() + 1), torch.randn(64 * 48 + 1)[1:].view(64, 48)), "empty": (lambda x: (x + 1, x.sum(0), x.t(), torch.cat([x, x]), x.mean(), x.softmax(1)), torch.randn(0, 5)), "one number": (lambda x: (x + 1, x.sum(), x.exp(), x[None]), torch.tensor(2.0)),
    "whole numbers": (lambda i: (i + 1, i // 3, i % 5, i.sum(), i << 2, i & 7, ~i, i.float().mean(), i.cumsum(0), i.max(0), i / 2, -i), N), "truths": (lambda x: ((x > 0) & (x < 1), (x > 0).sum(1), ~(x > 0), (x > 0).float().mean(), torch.logical_xor(x > 0, x > 1)), X),
    "beside a tensor of the host": (lambda x, host: x + host["host"], X, {"host": torch.randn(48)}), "a product with the host's": (lambda x, host: x @ host["host"], X, {"host": torch.randn(48, 3)}), "an index on the card": (lambda i, host: host["host"][i], T, {"host": torch.randn(64)}),
    "wrong shapes": (lambda x, y: x @ y, X, torch.randn(5)), "wrong types": (lambda x: torch.bitwise_and(x, 1), X), "a list that is too long": (lambda x: x.view(7, -1), X), "dict of results": (lambda x: {"a": x + 1, "b": [x.sum(), 3, None, "c"]}, X), "numpy": (lambda x: x.cpu().numpy().sum().item(), X),
    "many results": (lambda x: [x * n for n in range(40)], X), "long chain": (lambda x: [x := (x * 1.01 + 0.1).sin() for _ in range(60)][-1], X), "large": (lambda x: (x.sum(), x.softmax(-1).amax(0), x.t().contiguous().sum(1), x.cumsum(1)[:, -1]), torch.randn(3000, 5000)),
    "functional": (lambda x: (torch.func.vmap(lambda r: r.sum() * r)(x), torch.func.grad(lambda x: (x.sin() ** 2).sum())(x)), X), "grad in a program": (lambda x: torch.autograd.grad((y := x.detach().requires_grad_()).exp().sum(), y)[0], X),
}


def error_of(result, want):
    return ((result.double() - want).norm() / want.norm()).item()


def as_exact_as_flags_say(fn, *values, at_least=1e-5):
    """A function of float32 products under each setting of torch's flags, and its gradients: errors by float64 are not above those of torch by much, and they are tf32's
    where torch may round, and float32's where it may not."""
    compiled, said = tenon.compile(fn), []
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [f.allow_tf32 for f in flags]
    wide = [v.to(D).double().requires_grad_() for v in values]
    want = fn(*wide)
    wanted = [want.detach(), *torch.autograd.grad(want.sin().sum(), wide)]
    for allowed in ((False, False), (True, False), (False, True), (True, True), (False, False)):
        for flag, on in zip(flags, allowed):
            flag.allow_tf32 = on
        errors = []
        for function in (compiled, fn):
            given = [v.to(D).requires_grad_() for v in values]
            result = function(*given)
            got = [result.detach(), *torch.autograd.grad(result.sin().sum(), given)]
            errors.append([error_of(g, w) for g, w in zip(got, wanted)])
        for place, (mine, theirs) in enumerate(zip(*errors)):
            if mine > 1.5 * theirs + 1e-6 or (mine > at_least and theirs < at_least):
                said.append(f"result {place} with tf32 {allowed}: an error of {mine:.2g} where torch's is {theirs:.2g}")
    for flag, on in zip(flags, before):
        flag.allow_tf32 = on
    return "; ".join(said)


def situations():
    found = {name: (lambda program=program: same_as_eager(*program)) for name, program in PROGRAMS.items()}
    found["dynamic"] = lambda: same_as_eager(lambda x: (x.softmax(-1) + x.sum(0), x.t().contiguous(), torch.cat([x, x])), X, dynamic=True)
    found["net"] = of_module(Net, torch.randn(4, 8, 10, 10))
    found["net with gradients"] = of_module(Net, torch.randn(4, 8, 10, 10), grad=True)
    found["encoder"] = of_module(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True), 2, enable_nested_tensor=False), torch.randn(3, 9, 32))
    found["decoder"] = of_module(lambda: nn.TransformerDecoderLayer(32, 4, 64, 0.0, batch_first=True, activation="gelu"), torch.randn(3, 9, 32), torch.randn(3, 7, 32))
    found["attention module"] = of_module(lambda: nn.MultiheadAttention(32, 4, batch_first=True), torch.randn(3, 9, 32), torch.randn(3, 9, 32), torch.randn(3, 9, 32))
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        found[kind.__name__] = of_module(lambda kind=kind: kind(32, 16, 2, batch_first=True, bidirectional=True), torch.randn(3, 9, 32))
    found["flags of tf32: a product"] = lambda: as_exact_as_flags_say(lambda x, w: x @ w, torch.randn(256, 256), torch.randn(256, 256) / 16)
    found["flags of tf32: a convolution"] = lambda: as_exact_as_flags_say(lambda x, w: F.conv2d(x, w, padding=1), torch.randn(4, 64, 16, 16), torch.randn(64, 64, 3, 3) / 24)
    found["flags of tf32: both"] = lambda: as_exact_as_flags_say(lambda x, w, v: F.conv2d(x, w, padding=1).flatten(2) @ v, torch.randn(4, 64, 16, 16), torch.randn(64, 64, 3, 3) / 24, torch.randn(256, 128) / 16)
    found["embedding bag"] = of_module(lambda: nn.Sequential(nn.EmbeddingBag(48, 16), nn.ReLU()), N)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
    sys.exit(run(situations()))
