"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

from importlib.metadata import version

from . import tasks
from .data import Chunk, Dataset, open_dataset
from .linear import SVMClassifier, SVMRanker, SVMRegressor, c_path
from .load import load
from .prior import Prior
from .problem import Problem
from .solution import Certificate, Record, Solution
from .solve import solve
from .structured import OracleError, OracleProblem, OracleSolution, StructuredSVM, check_task

__version__ = version("dualsvm")
__all__ = [
    "Certificate",
    "Chunk",
    "Dataset",
    "OracleError",
    "OracleProblem",
    "OracleSolution",
    "Prior",
    "Problem",
    "Record",
    "SVMClassifier",
    "SVMRanker",
    "SVMRegressor",
    "Solution",
    "StructuredSVM",
    "c_path",
    "check_task",
    "load",
    "open_dataset",
    "solve",
    "tasks",
]
