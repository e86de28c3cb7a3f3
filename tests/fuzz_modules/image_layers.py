"""Layers of images."""
from __future__ import annotations

from tests.fuzz_modules.layers import State, of


@of("image")
@of("image")
@of("image")
def convolution(s: State) -> None:
    channels, height, width = s.sizes
    kernel = s.choose(1, 1, 3, 3, 3, 5, 2)
    stride, padding, dilation = s.choose(1, 1, 2), s.choose(0, 1, kernel // 2), s.choose(1, 1, 1, 2)
    out = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in (height, width)]
    if min(out) < 1:
        kernel, stride, padding, dilation, out = 1, 1, 0, 1, [height, width]
    groups = s.choose(1, 1, 1, s.divisor(channels), channels)
    made = groups * s.choose(1, 2, 3, 4) if groups > 1 else s.choose(3, 4, 8, 12, 16, 24, 32)
    mode = "" if padding == 0 or padding >= min(height, width) else s.choose("", "", ", padding_mode='reflect'", ", padding_mode='replicate'", ", padding_mode='circular'")
    s.module(f"nn.Conv2d({channels}, {made}, {kernel}, stride={stride}, padding={padding}, dilation={dilation}, groups={groups}, bias={s.choose(True, False)}{mode})")
    s.sizes = [made, *out]
    if s.random.random() < 0.5:
        batch_norm(s)


@of("image")
def batch_norm(s: State) -> None:
    s.module(f"nn.BatchNorm2d({s.sizes[0]}{s.choose('', '', ', affine=False', ', track_running_stats=False', ', momentum=None')})")


@of("image")
def norm_of_image(s: State) -> None:
    channels = s.sizes[0]
    many = s.sizes[1] * s.sizes[2] > 1
    s.module(s.choose(f"nn.GroupNorm({s.divisor(channels)}, {channels})", f"nn.LocalResponseNorm(3)",
                      f"nn.InstanceNorm2d({channels}, affine={s.choose(True, False)})" if many else f"nn.GroupNorm(1, {channels})"))


@of("image")
def residual_block(s: State) -> None:
    c = s.sizes[0]
    s.module(f"Block(nn.Sequential(nn.Conv2d({c}, {c}, 3, padding=1), nn.BatchNorm2d({c}), nn.ReLU(), nn.Conv2d({c}, {c}, 1)))")


@of("image")
def stages(s: State) -> None:
    c, name = s.sizes[0], s.name()
    s.init.append(f"self.{name} = nn.ModuleList(nn.Conv2d({c}, {c}, 3, padding=1, groups={s.divisor(c)}) for _ in range({s.choose(2, 3)}))")
    s.line(*s.choose((f"for i, layer in enumerate(self.{name}):", "    x = F.relu(layer(x)) + x / (i + 1)"),
                     (f"for layer in reversed(self.{name}):", "    x = layer(x)", "    if x.shape[0] > 64:", "        break"),
                     (f"x = torch.stack([layer(x) for layer in self.{name}], 0).sum(0)",)))


@of("image")
def dense_block(s: State) -> None:
    c, grow, count, name = s.sizes[0], s.choose(4, 8), s.choose(2, 3), s.name()
    s.init.append(f"self.{name} = nn.ModuleList(nn.Conv2d({c} + i * {grow}, {grow}, 3, padding=1) for i in range({count}))")
    s.line("features = [x]", f"for layer in self.{name}:", "    features.append(F.relu(layer(torch.cat(features, 1))))", "x = torch.cat(features, 1)")
    s.sizes[0] = c + grow * count


@of("image")
def squeeze_excite(s: State) -> None:
    c = s.sizes[0]
    s.module(f"nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d({c}, 4, 1), nn.ReLU(), nn.Conv2d(4, {c}, 1), nn.Sigmoid())", "x = x * self.{0}(x)")


@of("image")
def pool(s: State) -> None:
    if min(s.sizes[1:]) < 4:
        return upsample(s)
    kernel, stride, padding = s.choose(2, 3), s.choose(1, 2), s.choose(0, 1)
    s.module(s.choose(f"nn.MaxPool2d({kernel}, {stride}, {padding})", f"nn.AvgPool2d({kernel}, {stride}, {padding}, count_include_pad={s.choose(True, False)})",
                      f"nn.LPPool2d(2, {kernel}, {stride})" if padding == 0 else f"nn.MaxPool2d({kernel}, {stride}, {padding})"))
    s.sizes[1:] = [(n + 2 * padding - kernel) // stride + 1 for n in s.sizes[1:]]


@of("image")
def adaptive_pool(s: State) -> None:
    size = [s.choose(1, 2, 3, 5), s.choose(1, 2, 4)]
    s.module(f"nn.Adaptive{s.choose('Avg', 'Max')}Pool2d({tuple(size)})")
    s.sizes[1:] = size


@of("image")
def upsample(s: State) -> None:
    if max(s.sizes[1:]) > 20:
        return pool(s)
    mode = s.choose("'nearest'", "'bilinear', align_corners=False", "'bilinear', align_corners=True", "'bicubic'", "'nearest-exact'")
    s.line(f"x = F.interpolate(x, scale_factor=2, mode={mode})")
    s.sizes[1:] = [2 * n for n in s.sizes[1:]]


@of("image")
def transposed_convolution(s: State) -> None:
    channels, height, width = s.sizes
    if max(height, width) > 20:
        return convolution(s)
    made, kernel, stride, padding = s.choose(4, 8, 6), s.choose(2, 3, 4), s.choose(1, 2), s.choose(0, 1)
    out = [(n - 1) * stride - 2 * padding + kernel for n in (height, width)]
    if min(out) < 1:
        return convolution(s)
    s.module(f"nn.ConvTranspose2d({channels}, {made}, {kernel}, stride={stride}, padding={padding})")
    s.sizes = [made, *out]


@of("image")
def shuffle(s: State) -> None:
    c, height, width = s.sizes
    if c % 4 == 0 and max(height, width) <= 20 and s.random.random() < 0.5:
        s.line("x = F.pixel_shuffle(x, 2)")
        s.sizes = [c // 4, height * 2, width * 2]
    elif height % 2 == 0 and width % 2 == 0:
        s.line("x = F.pixel_unshuffle(x, 2)")
        s.sizes = [c * 4, height // 2, width // 2]
    else:
        groups = s.divisor(c)
        s.line("b, c, h, w = x.shape", f"x = x.view(b, {groups}, c // {groups}, h, w).transpose(1, 2).reshape(b, c, h, w)" if s.random.random() < 0.3 else
               f"x = x.reshape(b, {groups}, c // {groups}, h, w).transpose(1, 2).flatten(1, 2)")


@of("image")
def pad(s: State) -> None:
    left, top = s.choose(0, 1, 2), s.choose(0, 1)
    mode = s.choose("'constant', value=0.5", "'constant'") if min(s.sizes[1:]) < 4 else s.choose("'reflect'", "'replicate'", "'circular'", "'constant'")
    s.line(f"x = F.pad(x, ({left}, 1, {top}, 0), mode={mode})")
    s.sizes = [s.sizes[0], s.sizes[1] + top, s.sizes[2] + left + 1]


@of("image")
def cut(s: State) -> None:
    c, height, width = s.sizes
    if height > 2 and width > 3:
        s.line(s.choose("x = x[:, :, 1:, :-1]", "x = x[..., 1:, :-1]", "x = x[:, :, 1:].narrow(3, 0, x.shape[3] - 1)"))
        s.sizes = [c, height - 1, width - 1]
    else:
        s.line("x = x.transpose(2, 3)")
        s.sizes = [c, width, height]


@of("image")
def to_sequence(s: State) -> None:
    c, height, width = s.sizes
    s.line(s.choose("x = x.flatten(2).transpose(1, 2)", "x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, x.shape[1])",
                    "b, c, h, w = x.size()\nx = x.view(b, c, h * w).permute(0, 2, 1)" if not s.forward else "x = x.flatten(2).mT"))
    s.kind, s.sizes = "sequence", [height * width, c]


@of("image")
def to_rows(s: State) -> None:
    if s.random.random() < 0.5:
        s.line(s.choose("x = x.mean((2, 3))", "x = x.amax(dim=(-2, -1))", "x = F.adaptive_avg_pool2d(x, 1).flatten(1)", "x = x.flatten(2).sum(-1) / 10"))
        s.kind, s.sizes = "rows", [s.sizes[0]]
    else:
        s.line("x = torch.flatten(x, 1)")
        s.kind, s.sizes = "rows", [s.sizes[0] * s.sizes[1] * s.sizes[2]]
