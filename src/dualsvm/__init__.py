"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

from importlib.metadata import version

from . import tasks
from .conformance import check_task
from .data import Chunk, Dataset, open_dataset
from .latent import LatentStructuredSVM, LatentSVM
from .linear import SVMClassifier, SVMRanker, SVMRegressor, c_path
from .load import load
from .prior import Prior
from .problem import Problem
from .solution import Certificate, Record, Round, Solution
from .solve import solve
from .structured import OracleError, OracleProblem, OracleSolution, StructuredSVM

__version__ = version("dualsvm")
__all__ = [
    "Certificate",
    "Chunk",
    "Dataset",
    "LatentSVM",
    "LatentStructuredSVM",
    "OracleError",
    "OracleProblem",
    "OracleSolution",
    "Prior",
    "Problem",
    "Record",
    "Round",
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
