"""Layers of sequences and of rows."""
from __future__ import annotations

from tests.fuzz_modules.layers import State, of


@of("sequence")
@of("sequence")
def linear_of_sequence(s: State) -> None:
    made = s.choose(8, 12, 16, 24)
    s.module(f"nn.Linear({s.sizes[1]}, {made}, bias={s.choose(True, False)})")
    s.sizes[1] = made


@of("sequence")
def norm_of_sequence(s: State) -> None:
    s.module(s.choose(f"nn.LayerNorm({s.sizes[1]})", f"nn.RMSNorm({s.sizes[1]}, eps=1e-5)", f"nn.LayerNorm(({s.sizes[0]}, {s.sizes[1]}), elementwise_affine=False)"))


@of("sequence")
def attention(s: State) -> None:
    width = s.sizes[1]
    heads, name = s.divisor(width), s.name()
    kind = s.random.random()
    if kind < 0.3:
        s.init.append(f"self.{name} = nn.MultiheadAttention({width}, {heads}, batch_first=True)")
        s.line(f"x = x + self.{name}(x, x, x, need_weights={s.choose(True, False)})[0]")
    elif kind < 0.5:
        s.init.append(f"self.{name} = nn.TransformerEncoderLayer({width}, {heads}, 32, batch_first=True, norm_first={s.choose(True, False)}, activation={s.choose('F.gelu', 'F.relu')})")
        s.line(f"x = self.{name}(x)")
    else:
        s.init.append(f"self.{name} = nn.Linear({width}, {3 * width})")
        s.line(f"q, k, v = self.{name}(x).reshape(x.shape[0], x.shape[1], 3, {heads}, {width // heads}).permute(2, 0, 3, 1, 4)"
               + s.choose("", ".unbind(0)"))
        s.line(s.choose("a = F.scaled_dot_product_attention(q, k, v)", "a = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                        f"a = ((q @ k.mT) / {width // heads} ** 0.5).softmax(-1) @ v",
                        "n = x.shape[1]\na = torch.einsum('bhij,bhjd->bhid', torch.einsum('bhid,bhjd->bhij', q, k).masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), float('-inf')).softmax(-1), v)"))
        s.line(s.choose("x = x + a.transpose(1, 2).reshape(x.shape)", "x = a.transpose(1, 2).flatten(2)"))


@of("sequence")
def recurrent(s: State) -> None:
    if s.sizes[0] > 60:
        return linear_of_sequence(s)
    made, kind, both = s.choose(6, 8), s.choose("LSTM", "GRU", "RNN"), s.choose(True, False)
    s.module(f"nn.{kind}({s.sizes[1]}, {made}, batch_first=True, bidirectional={both})", "x, state = self.{0}(x)")
    s.sizes[1] = made * (1 + both)


@of("sequence")
def convolution_of_sequence(s: State) -> None:
    made, kernel = s.choose(6, 8, 16), s.choose(1, 3, 5)
    s.module(f"nn.Conv1d({s.sizes[1]}, {made}, {kernel}, padding={kernel // 2})", "x = self.{0}(x.transpose(1, 2)).transpose(1, 2)")
    s.sizes[1] = made


@of("sequence")
def cell_loop(s: State) -> None:
    if s.sizes[0] > 20:
        return norm_of_sequence(s)
    width, name = s.sizes[1], s.name()
    s.init.append(f"self.{name} = nn.GRUCell({width}, {width})")
    s.line(f"h = x.new_zeros(x.shape[0], {width})", "steps = []", "for step in x.unbind(1):", f"    h = self.{name}(step, h)", "    steps.append(h)", "x = torch.stack(steps, dim=1)")


@of("sequence")
def positions(s: State) -> None:
    length, width = s.sizes
    name = s.name()
    if s.random.random() < 0.5:
        s.init.append(f"self.{name} = nn.Embedding({length + 3}, {width})")
        s.line(f"x = x + self.{name}(torch.arange(x.shape[1], device=x.device))")
    else:
        s.line(f"t = torch.arange(x.shape[1], dtype=x.dtype)[:, None] / (1 + torch.arange({width}, dtype=x.dtype))", "x = x + t.sin()")


@of("sequence")
def take_of_sequence(s: State) -> None:
    length, width = s.sizes
    if length < 3:
        return linear_of_sequence(s)
    if s.random.random() < 0.5:
        s.line(s.choose("x = x[:, 1:]", "x = x[:, :-1].clone()", "x = x.narrow(1, 1, x.size(1) - 1)"))
        s.sizes[0] = length - 1
    else:
        k = s.choose(1, 2, 3)
        s.line(s.choose(f"x = x.topk({k}, dim=1).values", f"x = x.sort(dim=1, descending=True)[0][:, :{k}]",
                        f"x = x.gather(1, x.detach().argsort(1, stable=True)[:, :{k}])", f"x = torch.index_select(x, 1, torch.arange({k}))"))
        s.sizes[0] = k


@of("sequence")
def sequence_to_rows(s: State) -> None:
    if s.random.random() < 0.6:
        s.line(s.choose("x = x.mean(1)", "x = x[:, 0]", "x = x[:, -1, :]", "x = x.max(dim=1).values", "x = x.sum(dim=1)", "x = torch.logsumexp(x, 1)", "x = (x * x.softmax(1)).sum(1)"))
        s.kind, s.sizes = "rows", [s.sizes[1]]
    else:
        s.line("x = x.reshape(x.shape[0], -1)")
        s.kind, s.sizes = "rows", [s.sizes[0] * s.sizes[1]]


@of("rows")
@of("rows")
@of("rows")
def linear(s: State) -> None:
    made = s.choose(4, 8, 12, 16, 24, 36)
    s.module(f"nn.Linear({s.sizes[0]}, {made}, bias={s.choose(True, True, False)})")
    s.sizes = [made]


@of("rows")
def norm_of_rows(s: State) -> None:
    s.module(s.choose(f"nn.LayerNorm({s.sizes[0]})", f"nn.BatchNorm1d({s.sizes[0]})", f"nn.RMSNorm({s.sizes[0]}, eps=1e-5)", f"nn.GroupNorm({s.divisor(s.sizes[0])}, {s.sizes[0]})"))


@of("rows")
def perceptron(s: State) -> None:
    made = s.choose(4, 8, 16)
    s.module(f"nn.Sequential(nn.Linear({s.sizes[0]}, 16), nn.{s.choose('ReLU', 'GELU', 'Tanh')}(), nn.Dropout(0.2), nn.Linear(16, {made}))")
    s.sizes = [made]


@of("rows")
def shared_linear(s: State) -> None:
    width, name = s.sizes[0], s.name()
    if width > 100:
        return linear(s)
    s.init += [f"self.{name} = nn.Linear({width}, {width}, bias=False)", f"self.{name}_again = self.{name}"]
    s.line(f"x = F.relu(self.{name}(x))", s.choose(f"x = self.{name}_again(x)", f"x = F.linear(x, self.{name}.weight.t())", f"x = x @ self.{name}_again.weight"))


@of("rows")
def experts(s: State) -> None:
    width, name = s.sizes[0], s.name()
    if width > 100:
        return linear(s)
    s.init += [f"self.{name} = nn.ModuleDict({{str(i): nn.Linear({width}, 8) for i in range(3)}})", f"self.{name}_gate = nn.Linear({width}, 3)"]
    s.line(f"gate = self.{name}_gate(x).softmax(-1)", f"x = sum(gate[:, i : i + 1] * layer(x) for i, layer in enumerate(self.{name}.values()))")
    s.sizes = [8]


@of("rows")
def outer(s: State) -> None:
    width = s.sizes[0]
    if width > 16:
        return linear(s)
    s.line(s.choose("x = torch.einsum('bi,bj->bij', x, x)", "x = x[:, :, None] * x[:, None]", "x = torch.bmm(x.unsqueeze(2), x.unsqueeze(1))", "x = torch.cdist(x[:, :, None], x[:, :, None] * 0.5 + 1)"))
    s.kind, s.sizes = "sequence", [width, width]


@of("rows")
def rows_to_image(s: State) -> None:
    width = s.sizes[0]
    if width % 4 or width > 400:
        return linear(s)
    s.line(s.choose("x = x.reshape(x.shape[0], -1, 2, 2)", f"x = x.unflatten(1, ({width // 4}, 2, 2))"))
    s.kind, s.sizes = "image", [width // 4, 2, 2]
