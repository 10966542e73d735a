"""What users give, as pieces: parts of the data that lie on workers, or that workers open themselves."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np
from dask import array as da
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future, get_client

from ..checks import as_number
from ..data import Chunk, Dataset
from .load import Piece, load, load_pairs

_HOW = "with distributed.Client(distributed.LocalCluster()) as client: ..."
_FIELDS = {"sample_weight": "weight", "Y": "y"}  # what blocks are called, where the user calls them otherwise
_KINDS = "a Dask array or dataframe, a list of delayed objects or of futures, or a list of paths"


def as_client(client: Any = None) -> Client:
    """Return the client to work with: the given one, or the one that is there.

    Parameters
    ----------
    client : Client, default None
        None: the one that was made last, or, in a task, that of its worker.

    Returns
    -------
    Client
    """
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                f"there is no Dask client: make one before fit, as in `{_HOW}`, or give one as client=..."
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    if client.asynchronous:
        raise ValueError("the client is asynchronous, but fit waits for results: give one that is not")
    if client.status != "running":
        raise ValueError(f"the client is {client.status}: make one that is connected, as in `{_HOW}`")
    return client


def check_picklable(value: Any, name: str) -> None:
    """Raise if an object cannot travel to workers.

    Parameters
    ----------
    value : object
        What has to travel.
    name : str
        What to call it.
    """
    try:
        cloudpickle.dumps(value)
    except Exception as error:  # objects may raise anything here
        raise TypeError(
            f"the {name}, a {type(value).__name__}, cannot be pickled, and so cannot be sent to workers: {error}; "
            "make what it holds where it is used, or leave it out in __getstate__"
        ) from error


def gather_pieces(
    client: Client,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    qid: Any = None,
    margin: Any = None,
    options: dict[str, Any] | None = None,
) -> list[Piece]:
    """Return the data of a fit in pieces, of which each becomes chunks on a worker; see `load`.

    What is not computed yet begins to be computed on the workers. No rows come here.

    Parameters
    ----------
    client : Client
        Whose workers hold the data.
    X : Dask array or dataframe, or list
        Features, with dense or sparse blocks. Or a list of delayed objects or of futures, each some rows; or tuples
        (X, y), (X, y, weight) or (X, y, weight, qid) of them, or each a result of that form. Or a list of paths,
        each of which one worker opens.
    y, sample_weight, qid, margin : Dask array or series, or list, default None
        What belongs to the rows, in as many partitions; those of arrays are made those of X where lengths are known.
        Paths come with their own. A margin may be one number.
    options : dict, default None
        Arguments of `open_dataset` for paths.

    Returns
    -------
    list of Piece

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from dualsvm.dask.data import gather_pieces
    >>> X = da.random.random((100, 5), chunks=(30, 5))
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     pieces = gather_pieces(client, X, X[:, 0] > 0.5)
    ...     pieces[3].name, pieces[3].fields, [future.result().shape for future in pieces[3].futures]
    ('partition 3 of X', ('X', 'y'), [(10, 5), (10,)])
    """
    number = None
    if (
        margin is not None
        and not isinstance(margin, list)
        and not is_dask_collection(margin)
        and np.ndim(margin) == 0
    ):
        number, margin = as_number(margin, "margin"), None
    beside = {"y": y, "sample_weight": sample_weight, "qid": qid, "margin": margin}
    given = {name: value for name, value in beside.items() if value is not None}
    if (paths := _paths(X)) is not None:
        _alone(given)
        return [Piece(k, repr(path), path=path, options=options, margin=number) for k, path in enumerate(paths)]
    if options:
        raise ValueError(f"options are for paths that workers open, but X is {_told(X)}")
    if isinstance(X, da.Array):
        X = by_rows(X)
        given = {name: aligned(value, X, name) for name, value in given.items()}
    return [replace(piece, margin=number) for piece in _pieces(client, {"X": X} | given)]


def bag_pieces(
    client: Client, X: Any, Y: Any = None, sample_weight: Any = None, options: dict[str, Any] | None = None
) -> list[Piece]:
    """Return the examples of a structured fit in pieces, of which each becomes pairs on a worker; see `load_pairs`.

    Parameters
    ----------
    client : Client
        Whose workers hold the data.
    X : Bag or list
        Pairs (x, y), or with Y inputs only. A list holds delayed objects or futures, each a sequence of them, or
        paths, whose rows are examples as those of a `Dataset` are in `StructuredSVM.fit`.
    Y : Bag or list, default None
        Outputs, in as many partitions as X.
    sample_weight : Dask array, bag or list, default None
        What examples count.
    options : dict, default None
        Arguments of `open_dataset` for paths.

    Returns
    -------
    list of Piece
    """
    given = {name: value for name, value in (("Y", Y), ("sample_weight", sample_weight)) if value is not None}
    if (paths := _paths(X)) is not None:
        _alone(given)
        return [Piece(k, repr(path), path=path, options=options) for k, path in enumerate(paths)]
    if options:
        raise ValueError(f"options are for paths that workers open, but X is {_told(X)}")
    return _pieces(client, {"X": X} | given)


def held(client: Client, pieces: Sequence[Piece], pairs: bool = False) -> list[Piece]:
    """Return the pieces loaded, each on the worker that loads it, so that none is read and checked twice.

    Let go of the pieces that are given here: what has been loaded is counted once then, and what it was made of is
    computed again only if a worker is lost.

    Parameters
    ----------
    client : Client
        Whose workers hold the data.
    pieces : sequence of Piece
        What to load.
    pairs : bool, default False
        Whether pieces are pairs, and not chunks.

    Returns
    -------
    list of Piece
        What `load` makes of these is what has been loaded.
    """
    futures = [client.submit(load_pairs if pairs else load, p, *p.futures, pure=False) for p in pieces]
    return [Piece(p.number, p.name, ("loaded",), (future,)) for p, future in zip(pieces, futures, strict=True)]


def _pieces(client: Client, given: dict[str, Any]) -> list[Piece]:
    """Return pieces of what is given, which begins to be computed."""
    blocks = partitions(_persisted(client, given))
    fields, count = tuple(_FIELDS.get(name, name) for name in blocks), len(blocks["X"])
    flat = [block for several in blocks.values() for block in several]
    futures = iter(client.compute([block for block in flat if not isinstance(block, Future)]))
    found = [block if isinstance(block, Future) else next(futures) for block in flat]
    return [Piece(k, f"partition {k} of X", fields, tuple(found[k::count])) for k in range(count)]


def _persisted(client: Client, given: dict[str, Any]) -> dict[str, Any]:
    """Have collections computed on the workers, together, as they may have much in common.

    Arrays and bags are not optimised: X and y would be fused with what they share, each for itself, under keys that
    mean something else the next time.
    """
    found = dict(given)
    collections = {name: value for name, value in given.items() if not isinstance(value, list)}
    for name, value in collections.items():
        _check_collection(value, name)
    for frames in (False, True):
        some = {name: value for name, value in collections.items() if hasattr(value, "expr") == frames}
        if some:
            found |= zip(some, client.persist(list(some.values()), optimize_graph=frames), strict=True)
    return found


def partitions(given: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what is given as lists of delayed objects and futures, as many of each."""
    X = given["X"]
    if isinstance(X, list) and X and all(isinstance(each, tuple) for each in X):
        _alone({name: value for name, value in given.items() if name != "X"})
        if len(lengths := {len(each) for each in X}) > 1 or not lengths <= {1, 2, 3, 4}:
            raise ValueError(
                "tuples must be (X, y), (X, y, weight) or (X, y, weight, qid), all of one length, got lengths "
                f"{sorted(lengths)}"
            )
        names = ("X", "y", "sample_weight", "qid")
        given = {name: list(column) for name, column in zip(names, zip(*X, strict=True), strict=False)}
    lists = {name: _listed(value, name) for name, value in given.items()}
    for name, blocks in lists.items():
        if len(blocks) != len(lists["X"]):
            raise ValueError(
                f"X has {len(lists['X'])} partitions, but {name} has {len(blocks)}: they must belong together one by "
                f"one; repartition {name} as X is"
            )
    return lists


def _listed(value: Any, name: str) -> list[Any]:
    """Return the partitions of a collection, or what a list holds."""
    if not isinstance(value, list):
        return list(np.ravel(value.to_delayed(optimize_graph=False)))
    if not value:
        raise ValueError(f"{name} is an empty list: give at least one partition")
    for k, each in enumerate(value):
        if not isinstance(each, Delayed | Future):
            raise TypeError(
                f"element {k} of {name} must be a delayed object or a future, got {_told(each)}{_in_memory(each)}"
            )
    return value


def _check_collection(value: Any, name: str) -> None:
    """Refuse what has no partitions."""
    if isinstance(value, Delayed | Future):
        raise TypeError(f"{name} is one {type(value).__name__}: give a list of them, one for each partition")
    if not is_dask_collection(value) or not hasattr(value, "to_delayed"):
        raise TypeError(f"{name} must be {_KINDS}, got {_told(value)}{_in_memory(value)}")


def _told(value: Any) -> str:
    return f"a {type(value).__name__}"


def _in_memory(value: Any) -> str:
    """Tell what to do with data that lie here."""
    if isinstance(value, Dataset):
        return ": give its path, which a worker then opens"
    if isinstance(value, str | os.PathLike):
        return ": give a list of paths"
    if hasattr(value, "shape") or isinstance(value, list | tuple | Chunk):
        return (
            ", which lies in memory: fit the local estimator, which needs no cluster, or make it a Dask array with "
            "dask.array.from_array"
        )
    return ""


def _paths(X: Any) -> list[str] | None:
    """Return a list of paths as text; None: it is something else."""
    if not isinstance(X, list) or not X or not any(isinstance(each, str | os.PathLike) for each in X):
        return None
    for k, each in enumerate(X):
        if not isinstance(each, str | os.PathLike):
            raise TypeError(f"element {k} of X must be a path, as others are, got {_told(each)}")
    return [os.fspath(each) for each in X]


def _alone(given: dict[str, Any]) -> None:
    """Refuse what X brings with it."""
    if given:
        raise ValueError(f"paths and tuples come with their own targets, weights and queries: leave {min(given)} out")


def by_rows(X: da.Array) -> da.Array:
    """Return a table whose blocks are whole rows."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a Dask array of {X.ndim} dimensions")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(value: Any, X: da.Array, name: str) -> Any:
    """Return what belongs to rows in the partitions of X, where lengths are known."""
    if not isinstance(value, da.Array) or value.ndim == 0:
        return value
    own, wanted = value.chunks[0], X.chunks[0]
    if any(map(math.isnan, (*own, *wanted))):
        return value
    if sum(own) != sum(wanted):
        raise ValueError(f"X has {sum(wanted)} rows, but {name} has {sum(own)}")
    return value if own == wanted else value.rechunk({0: wanted})
