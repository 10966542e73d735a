"""The same estimators on a Dask cluster."""

try:
    import dask
    import distributed
except ImportError as error:
    raise ImportError(
        f'dualsvm.dask works with dask and distributed: pip install "dualsvm[dask]" ({error})'
    ) from error

del dask, distributed

from .linear import DaskSVMClassifier, DaskSVMRanker, DaskSVMRegressor  # noqa: E402
from .structured import DaskStructuredSVM  # noqa: E402

__all__ = ["DaskSVMClassifier", "DaskSVMRanker", "DaskSVMRegressor", "DaskStructuredSVM"]
