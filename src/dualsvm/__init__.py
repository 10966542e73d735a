"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

from importlib.metadata import version

from .linear import SVMClassifier, SVMRanker, SVMRegressor, c_path, load
from .prior import Prior
from .problem import Problem
from .solution import Certificate, Record, Solution
from .solve import solve

__version__ = version("dualsvm")
__all__ = [
    "Certificate",
    "Prior",
    "Problem",
    "Record",
    "SVMClassifier",
    "SVMRanker",
    "SVMRegressor",
    "Solution",
    "c_path",
    "load",
    "solve",
]
