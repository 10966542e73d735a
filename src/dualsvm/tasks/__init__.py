"""Ready-made structured tasks, with compiled searches."""

from .assignment import Assignment
from .chain import Chain
from .graph import Graph, Tree
from .grid import Grid
from .hidden_chain import HiddenChain
from .hidden_multiclass import HiddenMulticlass
from .multiclass import Multiclass
from .multilabel import Multilabel
from .multiple_instance import MultipleInstance
from .ranking import Ranking

__all__ = [
    "Assignment",
    "Chain",
    "Graph",
    "Grid",
    "HiddenChain",
    "HiddenMulticlass",
    "Multiclass",
    "Multilabel",
    "MultipleInstance",
    "Ranking",
    "Tree",
]
