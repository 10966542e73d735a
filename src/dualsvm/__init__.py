"""Support vector machines, solved in the dual, with a proof of how close the answer is to the best one."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

    __version__: str

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

_HOMES = {
    "conformance": ("check_task",),
    "data": ("Chunk", "Dataset", "open_dataset"),
    "latent": ("LatentSVM", "LatentStructuredSVM"),
    "linear": ("SVMClassifier", "SVMRanker", "SVMRegressor", "c_path"),
    "load": ("load",),
    "prior": ("Prior",),
    "problem": ("Problem",),
    "solution": ("Certificate", "Record", "Round", "Solution"),
    "solve": ("solve",),
    "structured": ("OracleError", "OracleProblem", "OracleSolution", "StructuredSVM"),
    "tasks": ("tasks",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """Loads a name when it is first asked for, so that the command line answers before scikit-learn is there."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            value: Any = import_module("importlib.metadata").version("dualsvm")
        elif name in _HOME:
            home = import_module(f"{__name__}.{_HOME[name]}")
            value = getattr(home, name, home)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # modules that have the name of what they hold, `load` and `solve`, do not take its place
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *__all__, "__version__"})

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (__name__,)  # functions that say `dualsvm` travel to other processes


sys.modules[__name__].__class__ = _Package
