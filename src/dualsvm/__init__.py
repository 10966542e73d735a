"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

from .prior import Prior
from .problem import Problem
from .solution import Certificate, Record, Solution
from .solve import solve

__version__ = "0.1.0"
__all__ = ["Certificate", "Prior", "Problem", "Record", "Solution", "solve"]
