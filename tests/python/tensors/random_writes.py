"""Makes random programs of views, in-place operations, items and out=, over torch or NumPy arguments."""
from __future__ import annotations

import random
import textwrap

LAYOUTS = {
    "torch": [
        "torch.arange(24.0).reshape(4, 6) / 7 - 1",
        "(torch.arange(24.0).reshape(6, 4) / 7 - 1).t()",
        "(torch.arange(48.0).reshape(4, 12) / 9 - 2)[:, ::2]",
        "torch.arange(24.0).reshape(2, 2, 6)[:, :, 1:5]",
        "torch.arange(6.0)",
        "torch.arange(24).reshape(4, 6)",
    ],
    "numpy": [
        "np.arange(24.0).reshape(4, 6) / 7 - 1",
        "(np.arange(24.0).reshape(6, 4) / 7 - 1).T",
        "(np.arange(48.0).reshape(4, 12) / 9 - 2)[:, ::2]",
        "np.arange(24.0).reshape(2, 2, 6)[:, ::-1, 1:5]",
        "np.arange(6.0)[::-1]",
        "np.arange(24).reshape(4, 6)",
    ],
}
VIEWS = {
    "torch": ["{a}[0]", "{a}[1:]", "{a}[..., ::2]", "{a}[..., -1]", "{a}.t() if {a}.ndim < 3 else {a}.transpose(0, 2)", "{a}.reshape(-1)", "{a}.unsqueeze(0)",
              "{a}.view({a}.shape)", "{a}.detach()", "{a}.flatten()", "{a}[None, ..., :2]", "{a}.contiguous()", "{a}.narrow(0, 0, 1)", "{a}.chunk(2)[0]", "{a}.unbind(0)[-1]",
              "{a}.expand(2, *{a}.shape)", "{a}.movedim(0, -1)"],
    "numpy": ["{a}[0]", "{a}[1:]", "{a}[..., ::2]", "{a}[..., -1]", "{a}.T", "{a}.reshape(-1)", "{a}[None]", "{a}[::-1]", "{a}.ravel()", "{a}[..., :2]", "{a}.swapaxes(0, -1)",
              "np.broadcast_to({a}, (2, *{a}.shape))", "np.squeeze({a})", "np.asarray({a})"],
}
FRESH = {
    "torch": ["{a} + 1", "{a} * {b}", "{a}.clone()", "{a} - {a}.sum()", "torch.where({a} > 0, {a}, -{a})", "{a}.sum(0)", "{a}[{a} > 0]"],
    "numpy": ["{a} + 1", "{a} * {b}", "{a}.copy()", "{a} - {a}.sum()", "np.where({a} > 0, {a}, -{a})", "{a}.sum(0)", "np.sort({a})"],
}
WRITES = {
    "torch": ["{a}.add_(1)", "{a}.mul_({b})", "{a}.clamp_(-1, 2)", "{a} += {b}", "{a} -= 1", "{a} *= 2", "{a}[0] = 3", "{a}[...] = {b}", "{a}[1:] += 1", "{a}[..., 0] = {a}[..., -1]",
               "{a}[{a} > 1] = 0", "{a}.copy_({b})", "{a}.zero_()", "{a}.fill_(2)", "torch.add({a}, {b}, out={a})", "torch.relu_({a})", "{a}.masked_fill_({a} < 0, 1)",
               "{a}[torch.tensor([0, 1])] = 5", "torch.neg({b}, out={a})", "{a}[[1, 0]] += 1", "{a}.t_()"],
    "numpy": ["{a} += 1", "{a} *= {b}", "{a} -= {b}", "{a}[0] = 3", "{a}[...] = {b}", "{a}[1:] += 1", "{a}[..., 0] = {a}[..., -1]", "{a}[{a} > 1] = 0", "{a}.fill(2)",
              "np.add({a}, {b}, out={a})", "np.negative({b}, {a})", "{a}[[0, 1]] = 5", "{a}[[1, 0]] += 1", "np.clip({a}, -1, 2, out={a})", "{a}[::-1][1:] = {a}[1:]", "{a}.sort()"],
}


def program(kind, seed):
    """The source of a function `fn` of two arguments, and the sources of its arguments. The same for the same seed."""
    choose = random.Random(seed)
    names, lines = ["x", "y"], []
    for step in range(choose.randint(3, 9)):
        way = choose.choices(("view", "fresh", "write"), (4, 2, 5))[0]
        template = choose.choice({"view": VIEWS, "fresh": FRESH, "write": WRITES}[way][kind])
        text = template.format(a=choose.choice(names), b=choose.choice(names))
        if way == "write":
            lines.append(text)
        else:
            names.append(f"t{step}")
            lines.append(f"t{step} = {text}")
    body = "\n".join([*lines, f"return ({', '.join(choose.sample(names, min(len(names), 4)))},)"])
    first = choose.choice(LAYOUTS[kind])
    second = first if choose.random() < 0.6 else choose.choice(LAYOUTS[kind])
    return f"def fn(x, y):\n{textwrap.indent(body, '    ')}\n", (first, second)
