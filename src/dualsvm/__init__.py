"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

from importlib.metadata import version

from .prior import Prior
from .problem import Problem
from .solution import Certificate, Record, Solution
from .solve import solve

__version__ = version("dualsvm")
__all__ = ["Certificate", "Prior", "Problem", "Record", "Solution", "solve"]
