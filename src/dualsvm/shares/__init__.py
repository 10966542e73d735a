"""One problem whose examples are held in shares: on several machines, say. Nothing here knows of a cluster."""

from .course import Course
from .exchange import Answer, Kept, Order, Report, Vector
from .ground import Ground
from .host import Host, Hosts, Together
from .lead import Lead
from .share import RowShare, Share

__all__ = [
    "Answer",
    "Course",
    "Ground",
    "Host",
    "Hosts",
    "Kept",
    "Lead",
    "Order",
    "Report",
    "RowShare",
    "Share",
    "Together",
    "Vector",
]
