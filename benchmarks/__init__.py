"""Benchmarks against other solvers: ``python -m benchmarks core``, ``linear`` and ``structured``."""
