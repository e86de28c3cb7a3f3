"""Grids, particles and chance on arrays that do not change."""
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench.numpy_programs import physics


def _around(u):
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]


@jax.jit
def heat(u, steps=40):
    def step(_, u):
        return u.at[1:-1, 1:-1].add(0.2 * (_around(u) - 4 * u[1:-1, 1:-1]))

    return lax.fori_loop(0, steps, step, u)


@jax.jit
def wave(u, before, speed, steps=40):
    def step(_, state):
        before, u = state
        inner = 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + speed[1:-1, 1:-1] ** 2 * (_around(u) - 4 * u[1:-1, 1:-1])
        return u, jnp.pad(inner, 1)

    return lax.fori_loop(0, steps, step, (before, u))[1]


@jax.jit
def shallow_water(h, u, v, steps=20, dt=0.002, g=9.81):
    def ddx(f):
        return (jnp.roll(f, -1, axis=1) - jnp.roll(f, 1, axis=1)) / 2

    def ddy(f):
        return (jnp.roll(f, -1, axis=0) - jnp.roll(f, 1, axis=0)) / 2

    def around(f):
        return (jnp.roll(f, 1, axis=0) + jnp.roll(f, -1, axis=0) + jnp.roll(f, 1, axis=1) + jnp.roll(f, -1, axis=1)) / 4

    def step(_, state):
        h, u, v = state
        return (
            around(h) - dt * (ddx(h * u) + ddy(h * v)),
            around(u) - dt * (u * ddx(u) + v * ddy(u) + g * ddx(h)),
            around(v) - dt * (u * ddx(v) + v * ddy(v) + g * ddy(h)),
        )

    return lax.fori_loop(0, steps, step, (h, u, v))


@jax.jit
def lattice_boltzmann(f, obstacle, steps=10, tau=0.6):
    cx = jnp.array([x for x, _ in physics.VELOCITIES])
    cy = jnp.array([y for _, y in physics.VELOCITIES])
    weights = jnp.array(physics.WEIGHTS)[:, None, None]

    def step(_, f):
        f = jnp.stack([jnp.roll(f[i], physics.VELOCITIES[i], axis=(1, 0)) for i in range(9)])
        rho = f.sum(axis=0)
        ux = jnp.tensordot(cx, f, axes=1) / rho
        uy = jnp.tensordot(cy, f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        along = 3 * (cx[:, None, None] * ux + cy[:, None, None] * uy)
        equilibrium = weights * rho * (1 + along + 0.5 * along**2 - square)
        return jnp.where(obstacle, f[jnp.array(physics.OPPOSITE)], f + (equilibrium - f) / tau)

    return lax.fori_loop(0, steps, step, f)


@jax.jit
def n_body(position, velocity, mass, steps=5, dt=0.001, softening=0.05):
    def acceleration(at):
        apart = at[None, :, :] - at[:, None, :]
        inverse = ((apart**2).sum(axis=-1) + softening**2) ** -1.5
        return (apart * (inverse * mass)[:, :, None]).sum(axis=1)

    def step(_, state):
        position, velocity, pull = state
        velocity = velocity + 0.5 * dt * pull
        position = position + dt * velocity
        pull = acceleration(position)
        return position, velocity + 0.5 * dt * pull, pull

    return lax.fori_loop(0, steps, step, (position, velocity, acceleration(position)))[:2]


@jax.jit
def gray_scott(u, v, steps=20, feed=0.04, kill=0.06):
    def laplacian(f):
        return jnp.roll(f, 1, 0) + jnp.roll(f, -1, 0) + jnp.roll(f, 1, 1) + jnp.roll(f, -1, 1) - 4 * f

    def step(_, state):
        u, v = state
        reaction = u * v * v
        return u + 0.16 * laplacian(u) - reaction + feed * (1 - u), v + 0.08 * laplacian(v) + reaction - (feed + kill) * v

    return lax.fori_loop(0, steps, step, (u, v))


@jax.jit
def ising(spins, chances, beta=0.44):
    colour = jnp.indices(spins.shape).sum(axis=0) % 2

    def sweep(spins, chance):
        for parity in (0, 1):
            neighbours = jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0) + jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
            flip = (colour == parity) & (chance[parity] < jnp.exp(-2 * beta * spins * neighbours))
            spins = jnp.where(flip, -spins, spins)
        return spins, None

    spins, _ = lax.scan(sweep, spins, chances)
    return spins, spins.mean()


@jax.jit
def asian_option(normals, spot=100.0, strike=105.0, rate=0.03, volatility=0.2, years=1.0):
    dt = years / normals.shape[1]
    growth = (rate - volatility**2 / 2) * dt + volatility * jnp.sqrt(dt) * normals
    paths = spot * jnp.exp(jnp.cumsum(growth, axis=1))
    payoff = jnp.exp(-rate * years) * jnp.maximum(paths.mean(axis=1) - strike, 0)
    return payoff.mean(), payoff.std() / jnp.sqrt(len(payoff))


@jax.jit
def mandelbrot(c, most=40):
    def step(_, state):
        z, rounds = state
        near = jnp.abs(z) <= 2
        return jnp.where(near, z**2 + c, z), rounds + near

    return lax.fori_loop(0, most, step, (jnp.zeros_like(c), jnp.zeros(c.shape, dtype=jnp.int64)))[1]


@jax.jit
def advection(q, steps=20, courant=0.5):
    def step(_, q):
        behind = q - jnp.roll(q, 1)
        ahead = jnp.roll(q, -1) - q
        both = behind * ahead
        slope = jnp.where(both > 0, 2 * both / jnp.where(both > 0, behind + ahead, 1), 0)
        flux = courant * (q + 0.5 * (1 - courant) * slope)
        return q - (flux - jnp.roll(flux, 1))

    return lax.fori_loop(0, steps, step, q)


@jax.jit
def poisson(source, most=60, tolerance=1e-9):
    def step(state):
        p, _, rounds = state
        new = p.at[1:-1, 1:-1].set(0.25 * (_around(p) - source[1:-1, 1:-1]))
        return new, jnp.abs(new - p).max(), rounds + 1

    return lax.while_loop(lambda state: (state[1] >= tolerance) & (state[2] < most), step, (jnp.zeros_like(source), jnp.inf, 0))[0]


@jax.jit
def smoothed_particles(position, velocity, steps=3, radius=0.1, dt=1e-4):
    mass = 1 / len(position)

    def step(_, state):
        position, velocity = state
        apart = position[:, None, :] - position[None, :, :]
        distance = jnp.sqrt((apart**2).sum(axis=2))
        near = jnp.where(distance < radius, radius - distance, 0)
        density = mass * (near**3).sum(axis=1) * 10 / (jnp.pi * radius**5)
        pressure = 2.0 * (density - 1)
        shared = (pressure[:, None] + pressure[None, :]) / (2 * density[None, :])
        direction = apart / jnp.maximum(distance, 1e-12)[:, :, None]
        force = (mass * (shared * near**2 * 30 / (jnp.pi * radius**5))[:, :, None] * direction).sum(axis=1)
        velocity = velocity + dt * (force / density[:, None] + jnp.array([0.0, -9.81]))
        return position + dt * velocity, velocity

    return lax.fori_loop(0, steps, step, (position, velocity))


@jax.jit
def fdtd(ez, hx, hy, epsilon, steps=40, dt=0.5):
    middle = len(ez) // 2

    def step(number, state):
        ez, hx, hy = state
        hx = hx.at[:, :-1].add(-dt * (ez[:, 1:] - ez[:, :-1]))
        hy = hy.at[:-1, :].add(dt * (ez[1:, :] - ez[:-1, :]))
        ez = ez.at[1:, 1:].add(dt / epsilon[1:, 1:] * (hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1]))
        return ez.at[middle, middle].add(jnp.sin(0.3 * number)), hx, hy

    return lax.fori_loop(0, steps, step, (ez, hx, hy))
