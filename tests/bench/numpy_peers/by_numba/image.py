"""Pictures in loops."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from tests.bench.numpy_programs import image

KERNEL = image.KERNEL


@njit
def _slopes(p, i, j):
    above, below = max(i - 1, 0), min(i + 1, p.shape[0] - 1)
    left, right = max(j - 1, 0), min(j + 1, p.shape[1] - 1)
    gx = (p[above, right] + 2 * p[i, right] + p[below, right]) - (p[above, left] + 2 * p[i, left] + p[below, left])
    gy = (p[below, left] + 2 * p[below, j] + p[below, right]) - (p[above, left] + 2 * p[above, j] + p[above, right])
    return gx, gy


@njit(parallel=True)
def _blurred(plane):
    height, width = plane.shape
    down, result = np.zeros_like(plane), np.zeros_like(plane)
    for i in prange(height):
        for k in range(9):
            row = min(max(i + k - 4, 0), height - 1)
            for j in range(width):
                down[i, j] += KERNEL[k] * plane[row, j]
    for i in prange(height):
        for j in range(width):
            for k in range(9):
                result[i, j] += KERNEL[k] * down[i, min(max(j + k - 4, 0), width - 1)]
    return result


@njit(parallel=True)
def sobel(picture):
    height, width, _ = picture.shape
    gray, size, direction = np.empty((height, width)), np.empty((height, width)), np.empty((height, width))
    for i in prange(height):
        for j in range(width):
            gray[i, j] = 0.299 * picture[i, j, 0] + 0.587 * picture[i, j, 1] + 0.114 * picture[i, j, 2]
    most = 0.0
    for i in prange(height):
        for j in range(width):
            gx, gy = _slopes(gray, i, j)
            size[i, j] = np.hypot(gx, gy)
            direction[i, j] = np.arctan2(gy, gx)
            most = max(most, size[i, j])
    return (255 * size / most).astype(np.uint8), direction


@njit(parallel=True)
def unsharp(picture, amount=1.5, threshold=3):
    height, width, channels = picture.shape
    result = np.empty_like(picture)
    down = np.zeros((height, width, channels))
    for i in prange(height):
        for k in range(9):
            row = min(max(i + k - 4, 0), height - 1)
            for j in range(width):
                for c in range(channels):
                    down[i, j, c] += KERNEL[k] * picture[row, j, c]
    for i in prange(height):
        for j in range(width):
            for c in range(channels):
                blurred = 0.0
                for k in range(9):
                    blurred += KERNEL[k] * down[i, min(max(j + k - 4, 0), width - 1), c]
                given = float(picture[i, j, c])
                detail = given - blurred
                sharp = given if abs(detail) < threshold else given + amount * detail
                result[i, j, c] = np.uint8(min(max(np.rint(sharp), 0.0), 255.0))
    return result


@njit
def _reflected(i, n):
    return -i if i < 0 else 2 * (n - 1) - i if i >= n else i


@njit(parallel=True)
def bilateral(gray, radius=2, spread=2.0, tone=0.1):
    height, width = gray.shape
    result = np.empty_like(gray)
    for i in prange(height):
        for j in range(width):
            total, weights = 0.0, 0.0
            for dy in range(-radius, radius + 1):
                row = _reflected(i + dy, height)
                for dx in range(-radius, radius + 1):
                    other = gray[row, _reflected(j + dx, width)]
                    weight = np.exp(-(dy**2 + dx**2) / (2 * spread**2) - (other - gray[i, j]) ** 2 / (2 * tone**2))
                    total += weight * other
                    weights += weight
            result[i, j] = total / weights
    return result


@njit(parallel=True)
def canny(gray, low=0.1, high=0.3):
    height, width = gray.shape
    blurred = _blurred(gray)
    size = np.zeros((height + 2, width + 2))
    sector = np.empty((height, width), dtype=np.int64)
    for i in prange(height):
        for j in range(width):
            gx, gy = _slopes(blurred, i, j)
            size[i + 1, j + 1] = np.hypot(gx, gy)
            sector[i, j] = (int(np.rint(np.arctan2(gy, gx) / (np.pi / 4))) + 4) % 4
    edges = np.zeros((height, width), dtype=np.uint8)
    for i in prange(height):
        for j in range(width):
            k = sector[i, j]
            dy = 0 if k == 0 else 1
            dx = 1 if k < 2 else 0 if k == 2 else -1
            own = size[i + 1, j + 1]
            if own > low and own >= size[i + 1 + dy, j + 1 + dx] and own >= size[i + 1 - dy, j + 1 - dx]:
                edges[i, j] = 255 if own > high else 128
    return edges


@njit(parallel=True)
def equalise(picture):
    height, width, channels = picture.shape
    result = np.empty_like(picture)
    for c in prange(channels):
        counts = np.zeros(256, dtype=np.int64)
        for i in range(height):
            for j in range(width):
                counts[picture[i, j, c]] += 1
        summed = counts.cumsum()
        first = summed[counts > 0][0]
        table = np.empty(256, dtype=np.uint8)
        for value in range(256):
            table[value] = np.uint8(min(max(np.rint((summed[value] - first) * 255 / max(height * width - first, 1)), 0.0), 255.0))
        for i in range(height):
            for j in range(width):
                result[i, j, c] = table[picture[i, j, c]]
    return result


@njit(parallel=True)
def dither(picture, levels=4):
    height, width, channels = picture.shape
    bayer = np.zeros((8, 8))
    side = 1
    for _ in range(3):
        for i in range(side):
            for j in range(side):
                base = 4 * bayer[i, j]
                bayer[i, j], bayer[i, j + side], bayer[i + side, j], bayer[i + side, j + side] = base, base + 2, base + 3, base + 1
        side *= 2
    result = np.empty_like(picture)
    for i in prange(height):
        for j in range(width):
            threshold = (bayer[i % 8, j % 8] + 0.5) / 64
            for c in range(channels):
                scaled = picture[i, j, c] / 255 * (levels - 1)
                low = np.floor(scaled)
                result[i, j, c] = np.uint8((low + (1 if scaled - low > threshold else 0)) * (255 // (levels - 1)))
    return result


@njit(parallel=True)
def saturate(picture, factor=1.4):
    height, width, _ = picture.shape
    result = np.empty_like(picture)
    for i in prange(height):
        for j in range(width):
            r, g, b = picture[i, j, 0] / 255.0, picture[i, j, 1] / 255.0, picture[i, j, 2] / 255.0
            value = max(r, g, b)
            span = value - min(r, g, b)
            some = span if span != 0 else 1.0
            hue = (g - b) / some % 6 if value == r else (b - r) / some + 2 if value == g else (r - g) / some + 4
            saturation = min(max(factor * span / (value if value != 0 else 1.0), 0.0), 1.0)
            for channel in range(3):
                k = (5 - 2 * channel + hue) % 6
                result[i, j, channel] = np.uint8(np.rint(255 * (value - value * saturation * max(0.0, min(k, 4 - k, 1.0)))))
    return result


@njit(parallel=True)
def opening(mask, rounds=3):
    height, width = mask.shape
    for turn in range(2 * rounds):
        new = np.empty_like(mask)
        for i in prange(height):
            for j in range(width):
                best = mask[i, j]
                for y in range(max(i - 1, 0), min(i + 2, height)):
                    for x in range(max(j - 1, 0), min(j + 2, width)):
                        best = min(best, mask[y, x]) if turn < rounds else max(best, mask[y, x])
                new[i, j] = best
        mask = new
    return mask


@njit(parallel=True)
def _box(plane, radius):
    height, width = plane.shape
    side = 2 * radius + 1
    table = np.zeros((height + side, width + side))
    for i in prange(height + side):
        summed = 0.0
        for j in range(width + side):
            summed += plane[min(max(i - radius - 1, 0), height - 1), min(max(j - radius - 1, 0), width - 1)]
            table[i, j] = summed
    for i in range(1, height + side):
        for j in range(width + side):
            table[i, j] += table[i - 1, j]
    return (table[side:, side:] - table[:-side, side:] - table[side:, :-side] + table[:-side, :-side]) / side**2


@njit(parallel=True)
def local_contrast(gray, radius=7):
    mean = _box(gray, radius)
    deviation = np.sqrt(np.maximum(_box(gray**2, radius) - mean**2, 0))
    return (gray - mean) / (deviation + 0.01)


@njit(parallel=True)
def warp(picture, angle=0.3, zoom=0.9):
    height, width, channels = picture.shape
    result = np.zeros_like(picture)
    cy, cx = (height - 1) / 2, (width - 1) / 2
    for i in prange(height):
        for j in range(width):
            sx = (np.cos(angle) * (j - cx) + np.sin(angle) * (i - cy)) / zoom + cx
            sy = (-np.sin(angle) * (j - cx) + np.cos(angle) * (i - cy)) / zoom + cy
            if 0 <= sx <= width - 1 and 0 <= sy <= height - 1:
                x0, y0 = min(int(sx), width - 2), min(int(sy), height - 2)
                fx, fy = sx - x0, sy - y0
                for c in range(channels):
                    top = picture[y0, x0, c] * (1 - fx) + picture[y0, x0 + 1, c] * fx
                    bottom = picture[y0 + 1, x0, c] * (1 - fx) + picture[y0 + 1, x0 + 1, c] * fx
                    result[i, j, c] = np.uint8(top * (1 - fy) + bottom * fy)
    return result
