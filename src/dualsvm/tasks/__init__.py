"""Ready-made structured tasks, with compiled searches."""

from .chain import Chain

__all__ = ["Chain"]
