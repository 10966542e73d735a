"""Ready-made structured tasks, with compiled searches."""

from .assignment import Assignment
from .chain import Chain
from .graph import Graph, Tree
from .grid import Grid
from .multiclass import Multiclass
from .multilabel import Multilabel
from .ranking import Ranking

__all__ = ["Assignment", "Chain", "Graph", "Grid", "Multiclass", "Multilabel", "Ranking", "Tree"]
