"""Benchmarks against other solvers: ``python -m benchmarks core`` and ``python -m benchmarks linear``."""
