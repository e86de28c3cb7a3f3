"""Pictures on arrays that do not change."""
from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.bench.numpy_programs.image import KERNEL


def _gradients(gray):
    p = jnp.pad(gray, 1, mode="edge")
    gx = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    gy = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    return gx, gy


def _blurred(plane):
    around = ((0, 0),) * (plane.ndim - 2)
    height, width = plane.shape[:2]
    p = jnp.pad(plane, ((4, 4), (0, 0), *around), mode="edge")
    down = sum(KERNEL[k] * p[k : k + height] for k in range(9))
    p = jnp.pad(down, ((0, 0), (4, 4), *around), mode="edge")
    return sum(KERNEL[k] * p[:, k : k + width] for k in range(9))


@jax.jit
def sobel(picture):
    gx, gy = _gradients(picture @ jnp.array([0.299, 0.587, 0.114]))
    size = jnp.hypot(gx, gy)
    return (255 * size / size.max()).astype(jnp.uint8), jnp.arctan2(gy, gx)


@jax.jit
def unsharp(picture, amount=1.5, threshold=3):
    given = picture.astype(jnp.float64)
    detail = given - _blurred(given)
    sharp = jnp.where(jnp.abs(detail) < threshold, given, given + amount * detail)
    return jnp.clip(jnp.rint(sharp), 0, 255).astype(jnp.uint8)


@jax.jit
def bilateral(gray, spread=2.0, tone=0.1):
    radius = 2
    height, width = gray.shape
    p = jnp.pad(gray, radius, mode="reflect")
    total, weights = jnp.zeros_like(gray), jnp.zeros_like(gray)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            other = p[radius + dy : radius + dy + height, radius + dx : radius + dx + width]
            weight = jnp.exp(-(dy**2 + dx**2) / (2 * spread**2) - (other - gray) ** 2 / (2 * tone**2))
            total = total + weight * other
            weights = weights + weight
    return total / weights


@jax.jit
def canny(gray, low=0.1, high=0.3):
    gx, gy = _gradients(_blurred(gray))
    size = jnp.hypot(gx, gy)
    sector = (jnp.rint(jnp.arctan2(gy, gx) / (jnp.pi / 4)).astype(jnp.int64) + 4) % 4
    p = jnp.pad(size, 1)
    pairs = [(p[1:-1, 2:], p[1:-1, :-2]), (p[2:, 2:], p[:-2, :-2]), (p[2:, 1:-1], p[:-2, 1:-1]), (p[2:, :-2], p[:-2, 2:])]
    greatest = jnp.select([sector == k for k in range(4)], [(size >= one) & (size >= other) for one, other in pairs])
    thin = jnp.where(greatest, size, 0)
    return jnp.where(thin > high, 255, jnp.where(thin > low, 128, 0)).astype(jnp.uint8)


@jax.jit
def equalise(picture):
    def spread(plane):
        counts = jnp.bincount(plane.ravel(), length=256)
        summed = counts.cumsum()
        first = summed[jnp.argmax(counts > 0)]
        return jnp.clip(jnp.rint((summed - first) * 255 / jnp.maximum(plane.size - first, 1)), 0, 255).astype(jnp.uint8)[plane]

    return jnp.stack([spread(picture[:, :, channel]) for channel in range(3)], axis=2)


@jax.jit
def dither(picture):
    levels = 4
    bayer = jnp.array([[0]])
    for _ in range(3):
        bayer = jnp.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
    height, width = picture.shape[:2]
    threshold = jnp.tile((bayer + 0.5) / 64, (-(-height // 8), -(-width // 8)))[:height, :width, None]
    scaled = picture.astype(jnp.float64) / 255 * (levels - 1)
    low = jnp.floor(scaled)
    return ((low + (scaled - low > threshold)) * (255 // (levels - 1))).astype(jnp.uint8)


@jax.jit
def saturate(picture, factor=1.4):
    rgb = picture.astype(jnp.float64) / 255.0
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    value = rgb.max(axis=-1)
    span = value - rgb.min(axis=-1)
    some = jnp.where(span == 0, 1, span)
    hue = jnp.where(value == r, (g - b) / some % 6, jnp.where(value == g, (b - r) / some + 2, (r - g) / some + 4))
    saturation = jnp.clip(factor * span / jnp.where(value == 0, 1, value), 0, 1)

    def back(offset):
        k = (offset + hue) % 6
        return value - value * saturation * jnp.maximum(0, jnp.minimum(jnp.minimum(k, 4 - k), 1))

    return jnp.rint(255 * jnp.stack([back(5), back(3), back(1)], axis=-1)).astype(jnp.uint8)


@jax.jit
def opening(mask):
    height, width = mask.shape
    for function, edge in ((jnp.minimum, 255), (jnp.maximum, 0)):
        for _ in range(3):
            p = jnp.pad(mask, 1, constant_values=edge)
            mask = p[1:-1, 1:-1]
            for dy in range(3):
                for dx in range(3):
                    mask = function(mask, p[dy : dy + height, dx : dx + width])
    return mask


@jax.jit
def local_contrast(gray):
    radius, side = 7, 15

    def box(plane):
        p = jnp.pad(plane, ((radius + 1, radius), (radius + 1, radius)), mode="edge")
        table = p.cumsum(axis=0).cumsum(axis=1)
        return (table[side:, side:] - table[:-side, side:] - table[side:, :-side] + table[:-side, :-side]) / side**2

    mean = box(gray)
    deviation = jnp.sqrt(jnp.maximum(box(gray**2) - mean**2, 0))
    return (gray - mean) / (deviation + 0.01)


@jax.jit
def warp(picture, angle=0.3, zoom=0.9):
    height, width = picture.shape[:2]
    y, x = jnp.mgrid[0:height, 0:width]
    cy, cx = (height - 1) / 2, (width - 1) / 2
    sx = (jnp.cos(angle) * (x - cx) + jnp.sin(angle) * (y - cy)) / zoom + cx
    sy = (-jnp.sin(angle) * (x - cx) + jnp.cos(angle) * (y - cy)) / zoom + cy
    inside = (sx >= 0) & (sx <= width - 1) & (sy >= 0) & (sy <= height - 1)
    x0 = jnp.clip(jnp.floor(sx).astype(jnp.int64), 0, width - 2)
    y0 = jnp.clip(jnp.floor(sy).astype(jnp.int64), 0, height - 2)
    fx, fy = (sx - x0)[..., None], (sy - y0)[..., None]
    top = picture[y0, x0] * (1 - fx) + picture[y0, x0 + 1] * fx
    bottom = picture[y0 + 1, x0] * (1 - fx) + picture[y0 + 1, x0 + 1] * fx
    return jnp.where(inside[..., None], top * (1 - fy) + bottom * fy, 0).astype(jnp.uint8)
