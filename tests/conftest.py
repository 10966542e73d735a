"""Fixtures that several files of tests share, and how hypothesis looks for examples."""

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True)  # --hypothesis-profile=default looks at others each time
settings.load_profile("same")


@pytest.fixture(scope="session")
def client():
    """A client of a cluster of one worker in this process, which all tests share."""
    from .clusters import cluster

    with cluster() as client:
        yield client


@pytest.fixture(scope="session")
def two_workers():
    """A client of a cluster of two worker processes, which all tests share."""
    from .clusters import cluster

    with cluster(2, processes=True) as client:
        yield client
