"""Sound on arrays that do not change."""
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


@jax.jit
def mel_spectrogram(samples, window, filters):
    starts = jnp.arange(0, len(samples) - len(window) + 1, 160)
    frames = samples[starts[:, None] + jnp.arange(len(window))]
    power = jnp.abs(jnp.fft.rfft(frames * window, axis=1)) ** 2
    return 10 * jnp.log10(jnp.maximum(power @ filters.T, 1e-10))


@jax.jit
def echo(dry, feedback=0.6, mix=0.4):
    delay = 4800
    padded = jnp.pad(dry, (0, -len(dry) % delay)).reshape(-1, delay)

    def step(before, block):
        after = block + feedback * before
        return after, after

    wet = lax.scan(step, jnp.zeros(delay), padded)[1].ravel()[: len(dry)]
    early = jnp.zeros_like(dry)
    for gain, lag in ((0.5, 331), (0.35, 577), (0.25, 907), (0.18, 1259)):
        early = early.at[lag:].add(gain * dry[:-lag])
    return jnp.clip((1 - mix) * dry + mix * wet + 0.2 * early, -1, 1)


@jax.jit
def biquad_bank(x, b, a):
    def step(state, sample):
        first, second = state
        y = b[0] * sample + first
        return (b[1] * sample - a[0] * y + second, b[2] * sample - a[1] * y), y

    return lax.scan(step, (jnp.zeros(x.shape[1]), jnp.zeros(x.shape[1])), x)[1]


@jax.jit
def resample(samples):
    ratio, half = 48000 / 44100, 16
    position = jnp.arange(int(len(samples) * ratio)) / ratio
    taps = jnp.floor(position).astype(jnp.int64)[:, None] + jnp.arange(1 - half, half + 1)
    distance = position[:, None] - taps
    weights = jnp.sinc(distance) * (0.5 + 0.5 * jnp.cos(jnp.pi * distance / half))
    return (samples[jnp.clip(taps, 0, len(samples) - 1)] * weights).sum(axis=1)


@jax.jit
def compressor(x, threshold=-20.0, ratio=4.0, knee=6.0):
    frame = 64
    level = 10 * jnp.log10((x.reshape(-1, frame, 2) ** 2).mean(axis=(1, 2)) + 1e-12)
    over = level - threshold
    within = (over + knee / 2) ** 2 / (2 * knee)
    gain = (1 / ratio - 1) * jnp.where(over <= -knee / 2, 0, jnp.where(over >= knee / 2, over, within))
    window = jnp.hanning(9)
    smooth = jnp.convolve(gain, window / window.sum(), mode="same")
    each = jnp.interp(jnp.arange(len(x)), (jnp.arange(len(gain)) + 0.5) * frame, smooth)
    return jnp.tanh(x * (10 ** (each / 20))[:, None])


@jax.jit
def chorus(x, rate=44100):
    time = jnp.arange(len(x))
    left, right = 0.7 * x, 0.7 * x
    for voice in range(3):
        delay = rate * (0.02 + 0.003 * jnp.sin(2 * jnp.pi * (0.8 + 0.3 * voice) * time / rate + voice))
        at = jnp.maximum(time - delay, 0)
        whole = at.astype(jnp.int64)
        part = at - whole
        late = (1 - part) * x[whole] + part * x[jnp.minimum(whole + 1, len(x) - 1)]
        pan = (voice + 0.5) / 3
        left = left + 0.4 * jnp.cos(pan * jnp.pi / 2) * late
        right = right + 0.4 * jnp.sin(pan * jnp.pi / 2) * late
    return jnp.stack([left, right], axis=1)
