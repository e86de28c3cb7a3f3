"""Sound in loops."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

MISSING = {"mel_spectrogram": "numpy.fft is not supported in nopython mode"}


@njit(parallel=True)
def echo(dry, delay=4800, feedback=0.6, mix=0.4):
    wet = dry.copy()
    for first in prange(delay):
        for i in range(first + delay, len(dry), delay):
            wet[i] += feedback * wet[i - delay]
    result = np.empty_like(dry)
    for i in prange(len(dry)):
        early = 0.0
        if i >= 331:
            early += 0.5 * dry[i - 331]
        if i >= 577:
            early += 0.35 * dry[i - 577]
        if i >= 907:
            early += 0.25 * dry[i - 907]
        if i >= 1259:
            early += 0.18 * dry[i - 1259]
        result[i] = min(max((1 - mix) * dry[i] + mix * wet[i] + 0.2 * early, -1.0), 1.0)
    return result


@njit(parallel=True)
def biquad_bank(x, b, a):
    samples, channels = x.shape
    y = np.empty_like(x)
    for c in prange(channels):
        first, second = 0.0, 0.0
        for t in range(samples):
            y[t, c] = b[0, c] * x[t, c] + first
            first = b[1, c] * x[t, c] - a[0, c] * y[t, c] + second
            second = b[2, c] * x[t, c] - a[1, c] * y[t, c]
    return y


@njit(parallel=True)
def resample(samples, ratio=48000 / 44100, half=16):
    result = np.empty(int(len(samples) * ratio))
    for i in prange(len(result)):
        position = i / ratio
        total = 0.0
        for tap in range(int(position) + 1 - half, int(position) + half + 1):
            distance = position - tap
            sine = np.sin(np.pi * distance) / (np.pi * distance) if distance != 0 else 1.0
            total += samples[min(max(tap, 0), len(samples) - 1)] * sine * (0.5 + 0.5 * np.cos(np.pi * distance / half))
        result[i] = total
    return result


@njit(parallel=True)
def compressor(x, threshold=-20.0, ratio=4.0, knee=6.0, frame=64):
    frames = len(x) // frame
    gain = np.empty(frames)
    for k in prange(frames):
        power = 0.0
        for i in range(k * frame, (k + 1) * frame):
            power += x[i, 0] ** 2 + x[i, 1] ** 2
        over = 10 * np.log10(power / (2 * frame) + 1e-12) - threshold
        if over <= -knee / 2:
            over = 0.0
        elif over < knee / 2:
            over = (over + knee / 2) ** 2 / (2 * knee)
        gain[k] = (1 / ratio - 1) * over
    window = np.hanning(9)
    smooth = np.convolve(gain, window / window.sum())[4:-4]
    result = np.empty_like(x)
    for i in prange(len(x)):
        at = min(max((i + 0.5) / frame - 0.5 - 0.5 / frame, 0.0), frames - 1.0)
        k = min(int(at), frames - 2)
        factor = 10 ** ((smooth[k] + (at - k) * (smooth[k + 1] - smooth[k])) / 20)
        result[i, 0] = np.tanh(x[i, 0] * factor)
        result[i, 1] = np.tanh(x[i, 1] * factor)
    return result


@njit(parallel=True)
def chorus(x, rate=44100, voices=3):
    result = np.empty((len(x), 2))
    for i in prange(len(x)):
        left, right = 0.7 * x[i], 0.7 * x[i]
        for voice in range(voices):
            at = max(i - rate * (0.02 + 0.003 * np.sin(2 * np.pi * (0.8 + 0.3 * voice) * i / rate + voice)), 0.0)
            whole = int(at)
            late = (1 - (at - whole)) * x[whole] + (at - whole) * x[min(whole + 1, len(x) - 1)]
            pan = (voice + 0.5) / voices
            left += 0.4 * np.cos(pan * np.pi / 2) * late
            right += 0.4 * np.sin(pan * np.pi / 2) * late
        result[i, 0], result[i, 1] = left, right
    return result
