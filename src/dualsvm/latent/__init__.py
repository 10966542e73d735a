"""Outputs or classes with latent values: rounds of completing them and solving the convex problem that this makes."""

from .binary import LatentSVM
from .structured import LatentStructuredSVM

__all__ = ["LatentSVM", "LatentStructuredSVM"]
