"""Linear estimators in the manner of scikit-learn."""

from .classifier import SVMClassifier
from .path import c_path
from .ranker import SVMRanker
from .regressor import SVMRegressor

__all__ = ["SVMClassifier", "SVMRanker", "SVMRegressor", "c_path"]
