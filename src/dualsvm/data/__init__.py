"""Data of any size, read in chunks."""

from .chunk import Chunk
from .dataset import Dataset
from .open import open_dataset

__all__ = ["Chunk", "Dataset", "open_dataset"]
