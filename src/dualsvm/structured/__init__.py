"""Structured outputs: constraints that are searched by an oracle."""

from .constraints import OracleError
from .estimator import StructuredSVM
from .problem import OracleProblem
from .solution import OracleSolution

__all__ = ["OracleError", "OracleProblem", "OracleSolution", "StructuredSVM"]
