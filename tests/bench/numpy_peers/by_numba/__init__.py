"""Loops under ``@njit(parallel=True)``."""
