"""Copies of NumPy scalars that a program makes of array elements."""
import numpy as np


def test_the_copy_of_a_scalar_is_a_scalar(check):
    def fn(x):
        return np.sort(x)[0].copy(), x[0].copy() + 1

    check(fn, (np.arange(6.0)[::-1],), (np.arange(3.0) - 7,))
