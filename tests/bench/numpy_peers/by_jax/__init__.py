"""Arrays that do not change, under ``jax.jit`` in double precision; loops are ``lax.fori_loop``, ``scan`` and ``while_loop``."""
