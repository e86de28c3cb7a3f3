"""Benchmarks: eager, torch.compile and Tenon interleaved in one process. Run with ``python -m tests.bench``."""
