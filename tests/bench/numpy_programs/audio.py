"""Six programs of sound."""
from __future__ import annotations

import numpy as np

from tests.bench.numpy_programs import Program, random


def mel_spectrogram(samples, window, filters, hop=160):
    """Decibels in mel bands, frame by frame."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::hop]
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = np.abs(spectrum) ** 2
    return 10 * np.log10(np.maximum(power @ filters.T, 1e-10))


def echo(dry, delay=4800, feedback=0.6, mix=0.4):
    """A delay line that is fed back, block by block, and four early reflections."""
    wet = dry.copy()
    for start in range(delay, len(dry), delay):
        block = wet[start : start + delay]
        block += feedback * wet[start - delay : start - delay + len(block)]
    early = np.zeros_like(dry)
    for gain, lag in ((0.5, 331), (0.35, 577), (0.25, 907), (0.18, 1259)):
        early[lag:] += gain * dry[:-lag]
    return np.clip((1 - mix) * dry + mix * wet + 0.2 * early, -1, 1)


def biquad_bank(x, b, a):
    """A second-order filter for each channel, sample by sample (direct form II transposed)."""
    y = np.empty_like(x)
    first = np.zeros(x.shape[1])
    second = np.zeros(x.shape[1])
    for t in range(len(x)):
        y[t] = b[0] * x[t] + first
        first = b[1] * x[t] - a[0] * y[t] + second
        second = b[2] * x[t] - a[1] * y[t]
    return y


def resample(samples, ratio=48000 / 44100, half=16):
    """Another rate, by sines over arguments under a window."""
    position = np.arange(int(len(samples) * ratio)) / ratio
    taps = np.floor(position).astype(np.int64)[:, None] + np.arange(1 - half, half + 1)
    distance = position[:, None] - taps
    weights = np.sinc(distance) * (0.5 + 0.5 * np.cos(np.pi * distance / half))
    return (samples[np.clip(taps, 0, len(samples) - 1)] * weights).sum(axis=1)


def compressor(x, threshold=-20.0, ratio=4.0, knee=6.0, frame=64):
    """Less gain where stereo sound is loud, with a soft knee, smooth over frames."""
    level = 10 * np.log10((x.reshape(-1, frame, 2) ** 2).mean(axis=(1, 2)) + 1e-12)
    over = level - threshold
    within = (over + knee / 2) ** 2 / (2 * knee)
    gain = (1 / ratio - 1) * np.where(over <= -knee / 2, 0, np.where(over >= knee / 2, over, within))
    window = np.hanning(9)
    smooth = np.convolve(gain, window / window.sum(), mode="same")
    each = np.interp(np.arange(len(x)), (np.arange(len(gain)) + 0.5) * frame, smooth)
    return np.tanh(x * (10 ** (each / 20))[:, None])


def chorus(x, rate=44100, voices=3):
    """Voices whose delay wavers, between samples by a line, each at its place in stereo."""
    time = np.arange(len(x))
    left, right = 0.7 * x, 0.7 * x
    for voice in range(voices):
        delay = rate * (0.02 + 0.003 * np.sin(2 * np.pi * (0.8 + 0.3 * voice) * time / rate + voice))
        at = np.maximum(time - delay, 0)
        whole = at.astype(np.int64)
        part = at - whole
        late = (1 - part) * x[whole] + part * x[np.minimum(whole + 1, len(x) - 1)]
        pan = (voice + 0.5) / voices
        left = left + 0.4 * np.cos(pan * np.pi / 2) * late
        right = right + 0.4 * np.sin(pan * np.pi / 2) * late
    return np.stack([left, right], axis=1)


def _mel_arguments(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = 700 * (10 ** (np.linspace(0, 2840, 82) / 2595) - 1)
    frequencies = np.linspace(0, 8000, 257)
    rise = (frequencies - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    fall = (points[2:, None] - frequencies) / (points[2:] - points[1:-1])[:, None]
    return random(160 * n) - 0.5, np.hanning(512), np.maximum(0, np.minimum(rise, fall))


def _bank_arguments(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    angle = np.linspace(0.05, 1.5, 256)
    radius = 0.9
    return random(n, 256) - 0.5, np.stack([np.full(256, 0.1), np.zeros(256), np.full(256, -0.1)]), np.stack([-2 * radius * np.cos(angle), np.full(256, radius**2)])


PROGRAMS = [
    Program(mel_spectrogram, _mel_arguments, 1000, 12),
    Program(echo, lambda n: (random(n) - 0.5,), 480_000, 12_000),
    Program(biquad_bank, _bank_arguments, 400, 12),
    Program(resample, lambda n: (random(n) - 0.5,), 22_050, 200),
    Program(compressor, lambda n: (random(n, 2) - 0.5,), 441_600, 6400),
    Program(chorus, lambda n: (random(n) - 0.5,), 220_500, 2205),
]
