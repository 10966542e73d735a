"""Clusters on this machine for the tests of Dask."""

from contextlib import contextmanager

from distributed import Client, LocalCluster


@contextmanager
def cluster(n_workers=1, processes=False):
    """Start workers of one thread each, in this process or in processes of their own, and a client."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        yield client
