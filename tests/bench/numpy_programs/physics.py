"""Thirteen programs of grids, particles and chance."""
from __future__ import annotations

import numpy as np

from tests.bench.numpy_programs import Program, random


def heat(u, steps=40):
    """Diffusion on a plate whose edge is held, in place."""
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def wave(u, before, speed, steps=40):
    """A membrane whose edge is held, three points in time."""
    for _ in range(steps):
        after = 2 * u - before
        after[1:-1, 1:-1] += speed[1:-1, 1:-1] ** 2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        after[0, :] = after[-1, :] = 0
        after[:, 0] = after[:, -1] = 0
        before, u = u, after
    return u


def shallow_water(h, u, v, steps=20, dt=0.002, g=9.81):
    """Height and velocities on a torus, by Lax and Friedrichs."""

    def ddx(f):
        return (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / 2

    def ddy(f):
        return (np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / 2

    def around(f):
        return (np.roll(f, 1, axis=0) + np.roll(f, -1, axis=0) + np.roll(f, 1, axis=1) + np.roll(f, -1, axis=1)) / 4

    for _ in range(steps):
        h, u, v = (
            around(h) - dt * (ddx(h * u) + ddy(h * v)),
            around(u) - dt * (u * ddx(u) + v * ddy(u) + g * ddx(h)),
            around(v) - dt * (u * ddx(v) + v * ddy(v) + g * ddy(h)),
        )
    return h, u, v


VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)


def lattice_boltzmann(f, obstacle, steps=10, tau=0.6):
    """D2Q9: populations stream by roll, collide, and bounce back in an obstacle."""
    cx = np.array([x for x, _ in VELOCITIES])
    cy = np.array([y for _, y in VELOCITIES])
    for _ in range(steps):
        f = np.stack([np.roll(f[i], VELOCITIES[i], axis=(1, 0)) for i in range(9)])
        bounced = f[list(OPPOSITE)][:, obstacle]
        rho = f.sum(axis=0)
        ux = np.tensordot(cx, f, axes=1) / rho
        uy = np.tensordot(cy, f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        along = 3 * (cx[:, None, None] * ux + cy[:, None, None] * uy)
        equilibrium = WEIGHTS[:, None, None] * rho * (1 + along + 0.5 * along**2 - square)
        f = f + (equilibrium - f) / tau
        f[:, obstacle] = bounced
    return f


def n_body(position, velocity, mass, steps=5, dt=0.001, softening=0.05):
    """Gravity between all pairs, by leapfrog."""

    def acceleration(at):
        apart = at[None, :, :] - at[:, None, :]
        inverse = ((apart**2).sum(axis=-1) + softening**2) ** -1.5
        return (apart * (inverse * mass)[:, :, None]).sum(axis=1)

    pull = acceleration(position)
    for _ in range(steps):
        velocity = velocity + 0.5 * dt * pull
        position = position + dt * velocity
        pull = acceleration(position)
        velocity = velocity + 0.5 * dt * pull
    return position, velocity


def gray_scott(u, v, steps=20, feed=0.04, kill=0.06):
    """Two substances that react and spread on a torus."""

    def laplacian(f):
        return np.roll(f, 1, 0) + np.roll(f, -1, 0) + np.roll(f, 1, 1) + np.roll(f, -1, 1) - 4 * f

    for _ in range(steps):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + feed * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - (feed + kill) * v
    return u, v


def ising(spins, chances, beta=0.44):
    """Metropolis on a checkerboard: first one colour's spins, then the other's."""
    spins = spins.copy()
    colour = np.indices(spins.shape).sum(axis=0) % 2
    for sweep in range(len(chances)):
        for parity in (0, 1):
            neighbours = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            flip = (colour == parity) & (chances[sweep, parity] < np.exp(-2 * beta * spins * neighbours))
            spins[flip] *= -1
    return spins, spins.mean()


def asian_option(normals, spot=100.0, strike=105.0, rate=0.03, volatility=0.2, years=1.0):
    """The price of an average's call and its standard error, by given normals."""
    dt = years / normals.shape[1]
    growth = (rate - volatility**2 / 2) * dt + volatility * np.sqrt(dt) * normals
    paths = spot * np.exp(np.cumsum(growth, axis=1))
    payoff = np.exp(-rate * years) * np.maximum(paths.mean(axis=1) - strike, 0)
    return payoff.mean(), payoff.std() / np.sqrt(len(payoff))


def mandelbrot(c, most=40):
    """Rounds until a point escapes; only those that have not are iterated."""
    z = np.zeros_like(c)
    rounds = np.zeros(c.shape, dtype=np.int64)
    for _ in range(most):
        near = np.abs(z) <= 2
        z[near] = z[near] ** 2 + c[near]
        rounds[near] += 1
    return rounds


def advection(q, steps=20, courant=0.5):
    """Upwind in one dimension, with van Leer's limiter."""
    for _ in range(steps):
        behind = q - np.roll(q, 1)
        ahead = np.roll(q, -1) - q
        both = behind * ahead
        slope = np.where(both > 0, 2 * both / np.where(both > 0, behind + ahead, 1), 0)
        flux = courant * (q + 0.5 * (1 - courant) * slope)
        q = q - (flux - np.roll(flux, 1))
    return q


def poisson(source, most=60, tolerance=1e-9):
    """Jacobi's iteration until it no more changes."""
    p = np.zeros_like(source)
    for _ in range(most):
        new = p.copy()
        new[1:-1, 1:-1] = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - source[1:-1, 1:-1])
        change = np.abs(new - p).max()
        p = new
        if change < tolerance:
            break
    return p


def smoothed_particles(position, velocity, steps=3, radius=0.1, dt=1e-4):
    """Density and pressure between all pairs of particles in two dimensions."""
    mass = 1 / len(position)
    for _ in range(steps):
        apart = position[:, None, :] - position[None, :, :]
        distance = np.sqrt((apart**2).sum(axis=2))
        near = np.where(distance < radius, radius - distance, 0)
        density = mass * (near**3).sum(axis=1) * 10 / (np.pi * radius**5)
        pressure = 2.0 * (density - 1)
        shared = (pressure[:, None] + pressure[None, :]) / (2 * density[None, :])
        direction = apart / np.maximum(distance, 1e-12)[:, :, None]
        force = (mass * (shared * near**2 * 30 / (np.pi * radius**5))[:, :, None] * direction).sum(axis=1)
        velocity = velocity + dt * (force / density[:, None] + np.array([0.0, -9.81]))
        position = position + dt * velocity
    return position, velocity


def fdtd(ez, hx, hy, epsilon, steps=40, dt=0.5):
    """Yee's scheme in two dimensions, in place, with a source in the middle."""
    ez, hx, hy = ez.copy(), hx.copy(), hy.copy()
    middle = len(ez) // 2
    for step in range(steps):
        hx[:, :-1] -= dt * (ez[:, 1:] - ez[:, :-1])
        hy[:-1, :] += dt * (ez[1:, :] - ez[:-1, :])
        ez[1:, 1:] += dt / epsilon[1:, 1:] * (hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1])
        ez[middle, middle] += np.sin(0.3 * step)
    return ez, hx, hy


def _plane(n: int) -> np.ndarray:
    return np.linspace(-2, 0.6, n * 4 // 3) + 1j * np.linspace(-1.2, 1.2, n)[:, None]


def _channel(n: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[0:n, 0 : 2 * n]
    return WEIGHTS[:, None, None] * (1 + 0.1 * random(9, n, 2 * n)), (x - n / 2) ** 2 + (y - n / 2) ** 2 < (n / 8) ** 2


def _spins(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.where(random(n, n) < 0.5, -1, 1), random(4, 2, n, n, seed=1)


PROGRAMS = [
    Program(heat, lambda n: (random(n, n),), 400, 30),
    Program(wave, lambda n: (random(n, n), random(n, n, seed=1), 0.3 + 0.3 * random(n, n, seed=2)), 400, 30),
    Program(shallow_water, lambda n: (1 + 0.1 * random(n, n), 0.1 * random(n, n, seed=1), 0.1 * random(n, n, seed=2)), 256, 24),
    Program(lattice_boltzmann, _channel, 100, 16),
    Program(n_body, lambda n: (random(n, 3), 0.1 * random(n, 3, seed=1), random(n, seed=2) / n), 300, 20),
    Program(gray_scott, lambda n: (1 - 0.5 * random(n, n), 0.25 * random(n, n, seed=1)), 256, 24),
    Program(ising, _spins, 400, 24),
    Program(asian_option, lambda n: (np.random.default_rng(0).standard_normal((n, 64)),), 20000, 50),
    Program(mandelbrot, lambda n: (_plane(n),), 300, 24),
    Program(advection, lambda n: (random(n),), 200_000, 200),
    Program(poisson, lambda n: (random(n, n) - 0.5,), 300, 24),
    Program(smoothed_particles, lambda n: (random(n, 2), np.zeros((n, 2))), 400, 24),
    Program(fdtd, lambda n: (np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), 1 + random(n, n)), 300, 24),
]
