"""Ready-made structured tasks, with compiled searches."""

from .chain import Chain
from .graph import Graph, Tree
from .grid import Grid

__all__ = ["Chain", "Graph", "Grid", "Tree"]
