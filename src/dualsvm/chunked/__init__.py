"""Problems whose rows are read in chunks, as they are more than memory holds.

Dual variables of all examples stay in memory, and so do the weights; of the rows only some do, up to a limit: first
those of examples that are free (0 < alpha < C) or have something to gain, then those that come closest to it. A read
is one pass over the data. Every chunk is met with the dual variables that its examples had when they were last seen,
passes over it raise the dual, and after the last chunk passes over the rows in memory go on.
"""

from .part import rows_of
from .pursue import Runs
from .run import Plan, Run
from .snapshot import Keeper
from .start import Start

__all__ = ["Keeper", "Plan", "Run", "Runs", "Start", "rows_of"]
