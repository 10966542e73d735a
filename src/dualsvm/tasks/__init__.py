"""Ready-made structured tasks, with compiled searches."""

from .chain import Chain
from .graph import Graph, Tree
from .grid import Grid
from .multilabel import Multilabel

__all__ = ["Chain", "Graph", "Grid", "Multilabel", "Tree"]
