"""A conformance test of tasks, for those who write them."""

from .task import check_task

__all__ = ["check_task"]
