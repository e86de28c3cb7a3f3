"""Ten programs of pictures."""
from __future__ import annotations

import numpy as np

from tests.bench.numpy_programs import Program, random

KERNEL = np.exp(-np.arange(-4, 5) ** 2 / (2 * 1.6**2))
KERNEL /= KERNEL.sum()


def _gradients(gray):
    p = np.pad(gray, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    return gx, gy


def _blurred(plane):
    """A separable Gaussian over the first two axes, edges repeated."""
    around = ((0, 0),) * (plane.ndim - 2)
    height, width = plane.shape[:2]
    p = np.pad(plane, ((4, 4), (0, 0), *around), mode="edge")
    down = sum(KERNEL[k] * p[k : k + height] for k in range(9))
    p = np.pad(down, ((0, 0), (4, 4), *around), mode="edge")
    return sum(KERNEL[k] * p[:, k : k + width] for k in range(9))


def sobel(picture):
    """Size and direction of the slope of a colour picture's brightness."""
    gray = picture @ np.array([0.299, 0.587, 0.114])
    gx, gy = _gradients(gray)
    size = np.hypot(gx, gy)
    return (255 * size / size.max()).astype(np.uint8), np.arctan2(gy, gx)


def unsharp(picture, amount=1.5, threshold=3):
    """Sharper where a picture differs from its blurred self."""
    given = picture.astype(np.float64)
    detail = given - _blurred(given)
    sharp = np.where(np.abs(detail) < threshold, given, given + amount * detail)
    return np.clip(np.rint(sharp), 0, 255).astype(np.uint8)


def bilateral(gray, radius=2, spread=2.0, tone=0.1):
    """A mean of neighbours that are near in place and in brightness."""
    height, width = gray.shape
    p = np.pad(gray, radius, mode="reflect")
    total = np.zeros_like(gray)
    weights = np.zeros_like(gray)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            other = p[radius + dy : radius + dy + height, radius + dx : radius + dx + width]
            weight = np.exp(-(dy**2 + dx**2) / (2 * spread**2) - (other - gray) ** 2 / (2 * tone**2))
            total += weight * other
            weights += weight
    return total / weights


def canny(gray, low=0.1, high=0.3):
    """Edges one pixel wide: blurred, sloped, thinned along the slope, weak and strong."""
    gx, gy = _gradients(_blurred(gray))
    size = np.hypot(gx, gy)
    sector = (np.rint(np.arctan2(gy, gx) / (np.pi / 4)).astype(np.int64) + 4) % 4
    p = np.pad(size, 1)
    pairs = [(p[1:-1, 2:], p[1:-1, :-2]), (p[2:, 2:], p[:-2, :-2]), (p[2:, 1:-1], p[:-2, 1:-1]), (p[2:, :-2], p[:-2, 2:])]
    greatest = np.select([sector == k for k in range(4)], [(size >= one) & (size >= other) for one, other in pairs])
    thin = np.where(greatest, size, 0)
    edges = np.zeros(gray.shape, dtype=np.uint8)
    edges[thin > low] = 128
    edges[thin > high] = 255
    return edges


def equalise(picture):
    """Each channel's values spread over its range, by histogram and table."""
    result = np.empty_like(picture)
    for channel in range(3):
        plane = picture[:, :, channel]
        counts = np.bincount(plane.ravel(), minlength=256)
        summed = counts.cumsum()
        first = summed[counts > 0][0]
        table = np.clip(np.rint((summed - first) * 255 / max(plane.size - first, 1)), 0, 255).astype(np.uint8)
        result[:, :, channel] = table[plane]
    return result


def dither(picture, levels=4):
    """Few levels, by Bayer's ordered thresholds."""
    bayer = np.array([[0]])
    for _ in range(3):
        bayer = np.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
    height, width = picture.shape[:2]
    threshold = np.tile((bayer + 0.5) / 64, (-(-height // 8), -(-width // 8)))[:height, :width, None]
    scaled = picture / 255 * (levels - 1)
    low = np.floor(scaled)
    return ((low + (scaled - low > threshold)) * (255 // (levels - 1))).astype(np.uint8)


def saturate(picture, factor=1.4):
    """To hue, saturation and value, more of the second, and back."""
    rgb = picture / 255.0
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = rgb.max(axis=-1)
    span = value - rgb.min(axis=-1)
    some = np.where(span == 0, 1, span)
    hue = np.where(value == r, (g - b) / some % 6, np.where(value == g, (b - r) / some + 2, (r - g) / some + 4))
    saturation = np.clip(factor * span / np.where(value == 0, 1, value), 0, 1)
    back = np.empty_like(rgb)
    for channel, offset in enumerate((5, 3, 1)):
        k = (offset + hue) % 6
        back[..., channel] = value - value * saturation * np.maximum(0, np.minimum(np.minimum(k, 4 - k), 1))
    return np.rint(255 * back).astype(np.uint8)


def opening(mask, rounds=3):
    """What is smaller than a disc goes: erosions, then as many dilations, of 3 x 3."""
    height, width = mask.shape
    for function, edge in ((np.minimum, 255), (np.maximum, 0)):
        for _ in range(rounds):
            p = np.pad(mask, 1, constant_values=edge)
            mask = p[1:-1, 1:-1]
            for dy in range(3):
                for dx in range(3):
                    mask = function(mask, p[dy : dy + height, dx : dx + width])
    return mask


def local_contrast(gray, radius=7):
    """Each pixel against mean and deviation of its box, by sums of columns and rows."""
    side = 2 * radius + 1

    def box(plane):
        p = np.pad(plane, ((radius + 1, radius), (radius + 1, radius)), mode="edge")
        table = p.cumsum(axis=0).cumsum(axis=1)
        return (table[side:, side:] - table[:-side, side:] - table[side:, :-side] + table[:-side, :-side]) / side**2

    mean = box(gray)
    deviation = np.sqrt(np.maximum(box(gray**2) - mean**2, 0))
    return (gray - mean) / (deviation + 0.01)


def warp(picture, angle=0.3, zoom=0.9):
    """Turned about its centre, by bilinear samples, black outside."""
    height, width = picture.shape[:2]
    y, x = np.mgrid[0:height, 0:width]
    cy, cx = (height - 1) / 2, (width - 1) / 2
    sx = (np.cos(angle) * (x - cx) + np.sin(angle) * (y - cy)) / zoom + cx
    sy = (-np.sin(angle) * (x - cx) + np.cos(angle) * (y - cy)) / zoom + cy
    inside = (sx >= 0) & (sx <= width - 1) & (sy >= 0) & (sy <= height - 1)
    x0 = np.clip(np.floor(sx).astype(np.int64), 0, width - 2)
    y0 = np.clip(np.floor(sy).astype(np.int64), 0, height - 2)
    fx, fy = (sx - x0)[..., None], (sy - y0)[..., None]
    top = picture[y0, x0] * (1 - fx) + picture[y0, x0 + 1] * fx
    bottom = picture[y0 + 1, x0] * (1 - fx) + picture[y0 + 1, x0 + 1] * fx
    return np.where(inside[..., None], top * (1 - fy) + bottom * fy, 0).astype(np.uint8)


def _photo(n: int) -> tuple[np.ndarray]:
    return (np.random.default_rng(0).integers(0, 256, (n, n * 4 // 3, 3), dtype=np.uint8),)


def _gray(n: int) -> tuple[np.ndarray]:
    return (random(n, n * 4 // 3),)


PROGRAMS = [
    Program(sobel, _photo, 480, 24),
    Program(unsharp, _photo, 480, 24),
    Program(bilateral, _gray, 480, 24),
    Program(canny, _gray, 480, 24),
    Program(equalise, _photo, 480, 24),
    Program(dither, _photo, 480, 24),
    Program(saturate, _photo, 480, 24),
    Program(opening, lambda n: (_photo(n)[0][:, :, 0],), 480, 24),
    Program(local_contrast, _gray, 480, 24),
    Program(warp, _photo, 480, 24),
]
