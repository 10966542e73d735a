"""The same estimators on a Dask cluster."""

try:
    from .linear import DaskSVMClassifier, DaskSVMRanker, DaskSVMRegressor
    from .structured import DaskStructuredSVM
except ModuleNotFoundError as error:
    if str(error.name).split(".")[0] not in ("dask", "distributed"):
        raise
    raise ImportError(
        f'dualsvm.dask works with dask and distributed: pip install "dualsvm[dask]" ({error})'
    ) from error

__all__ = ["DaskSVMClassifier", "DaskSVMRanker", "DaskSVMRegressor", "DaskStructuredSVM"]
