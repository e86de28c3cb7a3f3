"""Grids, particles and chance in loops."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from tests.bench.numpy_programs import physics

CX = np.array([x for x, _ in physics.VELOCITIES])
CY = np.array([y for _, y in physics.VELOCITIES])
WEIGHTS = physics.WEIGHTS
OPPOSITE = np.array(physics.OPPOSITE)


@njit(parallel=True)
def heat(u, steps=40):
    height, width = u.shape
    u = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in prange(1, height - 1):
            for j in range(1, width - 1):
                new[i, j] = u[i, j] + 0.2 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])
        u, new = new, u
    return u


@njit(parallel=True)
def wave(u, before, speed, steps=40):
    height, width = u.shape
    u, before = u.copy(), before.copy()
    after = np.zeros_like(u)
    for _ in range(steps):
        for i in prange(1, height - 1):
            for j in range(1, width - 1):
                around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j]
                after[i, j] = 2 * u[i, j] - before[i, j] + speed[i, j] ** 2 * around
        after[0, :] = 0
        after[-1, :] = 0
        after[:, 0] = 0
        after[:, -1] = 0
        before, u, after = u, after, before
    return u


@njit(parallel=True)
def shallow_water(h, u, v, steps=20, dt=0.002, g=9.81):
    height, width = h.shape
    h, u, v = h.copy(), u.copy(), v.copy()
    h2, u2, v2 = np.empty_like(h), np.empty_like(u), np.empty_like(v)
    for _ in range(steps):
        for i in prange(height):
            up, down = (i - 1) % height, (i + 1) % height
            for j in range(width):
                left = j - 1 if j > 0 else width - 1
                right = j + 1 if j < width - 1 else 0
                flow = (h[i, right] * u[i, right] - h[i, left] * u[i, left] + h[down, j] * v[down, j] - h[up, j] * v[up, j]) / 2
                ux, uy = (u[i, right] - u[i, left]) / 2, (u[down, j] - u[up, j]) / 2
                vx, vy = (v[i, right] - v[i, left]) / 2, (v[down, j] - v[up, j]) / 2
                hx, hy = (h[i, right] - h[i, left]) / 2, (h[down, j] - h[up, j]) / 2
                h2[i, j] = (h[up, j] + h[down, j] + h[i, left] + h[i, right]) / 4 - dt * flow
                u2[i, j] = (u[up, j] + u[down, j] + u[i, left] + u[i, right]) / 4 - dt * (u[i, j] * ux + v[i, j] * uy + g * hx)
                v2[i, j] = (v[up, j] + v[down, j] + v[i, left] + v[i, right]) / 4 - dt * (u[i, j] * vx + v[i, j] * vy + g * hy)
        h, h2 = h2, h
        u, u2 = u2, u
        v, v2 = v2, v
    return h, u, v


@njit(parallel=True)
def lattice_boltzmann(f, obstacle, steps=10, tau=0.6):
    _, height, width = f.shape
    f = f.copy()
    new = np.empty_like(f)
    for _ in range(steps):
        for i in prange(height):
            cell = np.empty(9)
            for j in range(width):
                rho, ux, uy = 0.0, 0.0, 0.0
                for k in range(9):
                    cell[k] = f[k, (i - CY[k]) % height, (j - CX[k]) % width]
                    rho += cell[k]
                    ux += CX[k] * cell[k]
                    uy += CY[k] * cell[k]
                if obstacle[i, j]:
                    for k in range(9):
                        new[k, i, j] = cell[OPPOSITE[k]]
                else:
                    ux /= rho
                    uy /= rho
                    square = 1.5 * (ux**2 + uy**2)
                    for k in range(9):
                        along = 3 * (CX[k] * ux + CY[k] * uy)
                        new[k, i, j] = cell[k] + (WEIGHTS[k] * rho * (1 + along + 0.5 * along**2 - square) - cell[k]) / tau
        f, new = new, f
    return f


@njit(parallel=True)
def _pull(at, mass, softening):
    n = len(at)
    result = np.empty_like(at)
    for i in prange(n):
        x, y, z = 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy, dz = at[j, 0] - at[i, 0], at[j, 1] - at[i, 1], at[j, 2] - at[i, 2]
            weight = mass[j] * (dx * dx + dy * dy + dz * dz + softening**2) ** -1.5
            x += dx * weight
            y += dy * weight
            z += dz * weight
        result[i, 0], result[i, 1], result[i, 2] = x, y, z
    return result


@njit(parallel=True)
def n_body(position, velocity, mass, steps=5, dt=0.001, softening=0.05):
    pull = _pull(position, mass, softening)
    for _ in range(steps):
        velocity = velocity + 0.5 * dt * pull
        position = position + dt * velocity
        pull = _pull(position, mass, softening)
        velocity = velocity + 0.5 * dt * pull
    return position, velocity


@njit(parallel=True)
def gray_scott(u, v, steps=20, feed=0.04, kill=0.06):
    height, width = u.shape
    u, v = u.copy(), v.copy()
    u2, v2 = np.empty_like(u), np.empty_like(v)
    for _ in range(steps):
        for i in prange(height):
            up, down = (i - 1) % height, (i + 1) % height
            for j in range(width):
                left = j - 1 if j > 0 else width - 1
                right = j + 1 if j < width - 1 else 0
                du = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j]
                dv = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j]
                reaction = u[i, j] * v[i, j] * v[i, j]
                u2[i, j] = u[i, j] + 0.16 * du - reaction + feed * (1 - u[i, j])
                v2[i, j] = v[i, j] + 0.08 * dv + reaction - (feed + kill) * v[i, j]
        u, u2 = u2, u
        v, v2 = v2, v
    return u, v


@njit(parallel=True)
def ising(spins, chances, beta=0.44):
    height, width = spins.shape
    spins = spins.copy()
    for sweep in range(len(chances)):
        for parity in range(2):
            for i in prange(height):
                for j in range((i + parity) % 2, width, 2):
                    neighbours = spins[i - 1, j] + spins[(i + 1) % height, j] + spins[i, j - 1] + spins[i, (j + 1) % width]
                    if chances[sweep, parity, i, j] < np.exp(-2 * beta * spins[i, j] * neighbours):
                        spins[i, j] *= -1
    return spins, spins.mean()


@njit(parallel=True)
def asian_option(normals, spot=100.0, strike=105.0, rate=0.03, volatility=0.2, years=1.0):
    paths, steps = normals.shape
    dt = years / steps
    drift, spread = (rate - volatility**2 / 2) * dt, volatility * np.sqrt(dt)
    payoff = np.empty(paths)
    for i in prange(paths):
        summed, total = 0.0, 0.0
        for t in range(steps):
            summed += drift + spread * normals[i, t]
            total += spot * np.exp(summed)
        payoff[i] = np.exp(-rate * years) * max(total / steps - strike, 0)
    return payoff.mean(), payoff.std() / np.sqrt(paths)


@njit(parallel=True)
def mandelbrot(c, most=40):
    height, width = c.shape
    rounds = np.zeros((height, width), dtype=np.int64)
    for i in prange(height):
        for j in range(width):
            z = 0j
            while rounds[i, j] < most and abs(z) <= 2:
                z = z * z + c[i, j]
                rounds[i, j] += 1
    return rounds


@njit(parallel=True)
def advection(q, steps=20, courant=0.5):
    n = len(q)
    q = q.copy()
    flux = np.empty_like(q)
    for _ in range(steps):
        for i in prange(n):
            behind, ahead = q[i] - q[i - 1], q[(i + 1) % n] - q[i]
            slope = 2 * behind * ahead / (behind + ahead) if behind * ahead > 0 else 0.0
            flux[i] = courant * (q[i] + 0.5 * (1 - courant) * slope)
        for i in prange(n):
            q[i] -= flux[i] - flux[i - 1]
    return q


@njit(parallel=True)
def poisson(source, most=60, tolerance=1e-9):
    height, width = source.shape
    p, new = np.zeros_like(source), np.zeros_like(source)
    for _ in range(most):
        change = 0.0
        for i in prange(1, height - 1):
            for j in range(1, width - 1):
                new[i, j] = 0.25 * (p[i + 1, j] + p[i - 1, j] + p[i, j + 1] + p[i, j - 1] - source[i, j])
                change = max(change, abs(new[i, j] - p[i, j]))
        p, new = new, p
        if change < tolerance:
            break
    return p


@njit(parallel=True)
def smoothed_particles(position, velocity, steps=3, radius=0.1, dt=1e-4):
    n = len(position)
    mass = 1 / n
    position, velocity = position.copy(), velocity.copy()
    density = np.empty(n)
    for _ in range(steps):
        for i in prange(n):
            total = 0.0
            for j in range(n):
                distance = np.sqrt((position[i, 0] - position[j, 0]) ** 2 + (position[i, 1] - position[j, 1]) ** 2)
                if distance < radius:
                    total += (radius - distance) ** 3
            density[i] = mass * total * 10 / (np.pi * radius**5)
        for i in prange(n):
            fx, fy = 0.0, 0.0
            for j in range(n):
                x, y = position[i, 0] - position[j, 0], position[i, 1] - position[j, 1]
                distance = np.sqrt(x * x + y * y)
                if distance < radius:
                    shared = (2 * (density[i] - 1) + 2 * (density[j] - 1)) / (2 * density[j])
                    force = mass * shared * (radius - distance) ** 2 * 30 / (np.pi * radius**5) / max(distance, 1e-12)
                    fx += force * x
                    fy += force * y
            velocity[i, 0] += dt * fx / density[i]
            velocity[i, 1] += dt * (fy / density[i] - 9.81)
        position = position + dt * velocity
    return position, velocity


@njit(parallel=True)
def fdtd(ez, hx, hy, epsilon, steps=40, dt=0.5):
    height, width = ez.shape
    ez, hx, hy = ez.copy(), hx.copy(), hy.copy()
    middle = height // 2
    for step in range(steps):
        for i in prange(height):
            for j in range(width - 1):
                hx[i, j] -= dt * (ez[i, j + 1] - ez[i, j])
            if i < height - 1:
                for j in range(width):
                    hy[i, j] += dt * (ez[i + 1, j] - ez[i, j])
        for i in prange(1, height):
            for j in range(1, width):
                ez[i, j] += dt / epsilon[i, j] * (hy[i, j] - hy[i - 1, j] - hx[i, j] + hx[i, j - 1])
        ez[middle, middle] += np.sin(0.3 * step)
    return ez, hx, hy
