"""What must be known of all pieces before a fit: found where they lie, and added up on the way here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from distributed import Client

from ..checks import Array
from ..data import Chunk
from ..linear.classes import classes_of
from ..queries import count_pairs, groups
from .load import Loaded, Piece, load

_MOST_CLASSES = 2**20
_FAN = 8  # facts that are added up in one task

Targets = Literal["classes", "numbers", "queries"]


@dataclass(frozen=True)
class Facts:
    """What is known of pieces.

    Attributes
    ----------
    name : str
        The first piece that holds rows, with which others are compared.
    rows : tuple of int
        Numbers of rows of the pieces, in their order.
    weights : tuple of float
        Sums of the weights of their rows.
    weighted : bool
        Whether any of them have weights.
    width : int
        Number of features.
    dtype : dtype
        The type in which all features are held: float64 if any are.
    sparse : bool
        Whether features are sparse.
    feature_names : list of str or None
        Names of the features.
    grows : bool
        Whether the width is that of the longest row, so that chunks of some pieces have to be made wider.
    index_base : int or None
        The first index of text.
    text : bool
        Whether targets are text.
    classes, counts : ndarray or None
        The classes, sorted, and how often they occur, if that was asked for.
    queries, pairs : int
        Numbers of queries and of preference pairs, if that was asked for.
    ids, owners : ndarray or None
        The queries, sorted, and the numbers of the pieces that they are in. They stay on the workers.
    torn : tuple or None
        A query that is in two pieces, and their numbers.
    """

    name: str = ""
    rows: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    weighted: bool = False
    width: int = 0
    dtype: Any = np.float32
    sparse: bool = False
    feature_names: list[str] | None = None
    grows: bool = False
    index_base: int | None = None
    text: bool = False
    classes: Array | None = None
    counts: Array | None = None
    queries: int = 0
    pairs: int = 0
    ids: Array | None = None
    owners: Array | None = None
    torn: tuple[int, int, int] | None = None

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return sum(self.rows)

    @property
    def starts(self) -> list[int]:
        """Position of the first row of every piece."""
        return list(accumulate(self.rows, initial=0))[:-1]


def survey(client: Client, pieces: Sequence[Piece], targets: Targets) -> Facts:
    """Look at all pieces, on the workers, and return what is known of them together.

    Parameters
    ----------
    client : Client
        Whose workers hold the data.
    pieces : sequence of Piece
        What to look at; `held` sees to it that this does not read and check them once more.
    targets : {"classes", "numbers", "queries"}
        What targets are: classes, numbers, or relevances within queries.

    Returns
    -------
    Facts
        Pieces that `rows` says to be empty may be left out.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from dualsvm.dask.data import gather_pieces
    >>> from dualsvm.dask.survey import survey
    >>> X = da.ones((100, 5), chunks=(30, 5))
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     facts = survey(client, gather_pieces(client, X, da.arange(100, chunks=30) % 3), "classes")
    >>> facts.rows, facts.classes.tolist(), facts.counts.tolist()
    ((30, 30, 30, 10), [0, 1, 2], [34, 33, 33])
    """
    parts = [client.submit(examine, piece, *piece.futures, targets=targets, pure=False) for piece in pieces]
    while len(parts) > 1:
        parts = [client.submit(together, *parts[k : k + _FAN], pure=False) for k in range(0, len(parts), _FAN)]
    facts: Facts = client.submit(_short, parts[0], pure=False).result()
    if facts.n_rows == 0:
        raise ValueError(f"there are no rows to learn from: all {len(pieces)} partitions are empty")
    if not any(facts.weights):
        raise ValueError("the weights are zero for every row: at least one must count")
    if facts.torn is not None:
        name, (query, *owners) = {piece.number: piece.name for piece in pieces}, facts.torn
        raise ValueError(
            f"query {query} has rows in {name[owners[0]]} and in {name[owners[1]]}: all rows of a query must be in "
            "one partition"
        )
    return facts


def examine(piece: Piece, *blocks: Any, targets: Targets) -> Facts:
    """Return what is known of one piece."""
    loaded = load(piece, *blocks)
    if not loaded:
        return Facts(rows=(0,), weights=(0.0,))
    facts = Facts(
        name=piece.name,
        rows=(sum(len(chunk) for chunk in loaded),),
        weights=(float(sum(len(c) if c.weight is None else c.weight.sum() for c in loaded)),),
        weighted=any(chunk.weight is not None for chunk in loaded),
        width=loaded[0].X.shape[1],
        dtype=np.result_type(*(chunk.X.dtype for chunk in loaded)),
        sparse=sp.issparse(loaded[0].X),
        feature_names=loaded.names,
        grows=loaded.grows,
        index_base=loaded.index_base,
    )
    try:
        return _with_targets(facts, loaded, piece.number, targets)
    except ValueError as error:
        raise ValueError(f"{piece.name}: {error}") from error


def _with_targets(facts: Facts, loaded: Loaded, number: int, targets: Targets) -> Facts:
    y = _together([chunk.y for chunk in loaded])
    if y is None:
        raise ValueError("there are no targets: give y, or say where they are with target=...")
    if targets == "classes":
        classes = classes_of(y)
        _refuse_many(len(classes))
        counts = np.bincount(np.searchsorted(classes, y), minlength=len(classes))
        return replace(facts, text=y.dtype.kind == "U", classes=classes, counts=counts)
    if y.dtype.kind not in "fiub":
        raise ValueError(f"targets must be numbers, got dtype {y.dtype}")
    return _with_queries(facts, loaded, y, number) if targets == "queries" else facts


def _with_queries(facts: Facts, chunks: Sequence[Chunk], y: Array, number: int) -> Facts:
    qid = _together([chunk.qid for chunk in chunks])
    start, member = groups(np.zeros(len(y)) if qid is None else qid)
    pairs = int(count_pairs(y[member], start).sum())
    ids = None if qid is None else qid[member][start[:-1]]
    owners = None if ids is None else np.full(len(ids), number)
    return replace(facts, queries=len(start) - 1, pairs=pairs, ids=ids, owners=owners)


def _together(arrays: Sequence[Array | None]) -> Array | None:
    given = [array for array in arrays if array is not None]
    return np.concatenate(given) if given and len(given) == len(arrays) else None


def _refuse_many(classes: int) -> None:
    if classes > _MOST_CLASSES:
        raise ValueError(f"y holds more than {_MOST_CLASSES:,} classes: are these numbers, for a regressor?")


def together(*several: Facts) -> Facts:
    """Return what is known of several pieces, given what is known of each."""
    known = Facts()
    for facts in several:
        rows, weights = known.rows + facts.rows, known.weights + facts.weights
        if facts.name and known.name:
            _compare(known, facts)
            known = _added(known, facts)
        elif facts.name:
            known = facts
        known = replace(known, rows=rows, weights=weights)
    return known


def _compare(known: Facts, facts: Facts) -> None:
    """Raise if pieces cannot be parts of one problem."""
    one, other = facts.name, known.name
    if facts.width != known.width and not (facts.grows and known.grows):
        raise ValueError(f"{one} has {facts.width} columns, but {other} has {known.width}: they must be the same")
    if facts.sparse != known.sparse:
        kinds = ("sparse", "dense") if facts.sparse else ("dense", "sparse")
        raise ValueError(f"{one} is {kinds[0]}, but {other} is {kinds[1]}: make them alike")
    if facts.feature_names != known.feature_names:
        names = [_columns(each.feature_names) for each in (facts, known)]
        raise ValueError(
            f"{one} has {names[0]}, but {other} has {names[1]}: they must be the same, in the same order"
        )
    if facts.index_base != known.index_base:
        raise ValueError(
            f"indices seem to begin at {facts.index_base} in {one}, but at {known.index_base} in {other}: say where "
            "they do with index_base=..."
        )
    if facts.text != known.text:
        kinds = ("text", "numbers") if facts.text else ("numbers", "text")
        raise ValueError(f"the targets of {one} are {kinds[0]}, but those of {other} are {kinds[1]}: make them alike")
    if (facts.ids is None) != (known.ids is None):
        raise ValueError(f"{one if facts.ids is None else other} has no queries, but others have")
    if facts.queries and facts.ids is None:
        raise ValueError(
            f"{one} and {other} do not say which rows belong to one query: give qid, or all rows in one partition"
        )


def _columns(names: list[str] | None) -> str:
    return "no names of columns" if names is None else "the columns " + ", ".join(map(repr, names[:10]))


def _added(known: Facts, facts: Facts) -> Facts:
    """Return what is known of pieces that are alike."""
    found = replace(
        known,
        weighted=known.weighted or facts.weighted,
        width=max(known.width, facts.width),
        dtype=np.result_type(known.dtype, facts.dtype),
        queries=known.queries + facts.queries,
        pairs=known.pairs + facts.pairs,
    )
    if known.classes is not None and facts.classes is not None:
        classes = np.union1d(known.classes, facts.classes)
        _refuse_many(len(classes))
        counts = np.zeros(len(classes), np.int64)
        for each in (known, facts):
            counts[np.searchsorted(classes, np.asarray(each.classes))] += np.asarray(each.counts)
        found = replace(found, classes=classes, counts=counts)
    if known.ids is not None:
        ids = np.concatenate([known.ids, np.asarray(facts.ids)])
        owners = np.concatenate([np.asarray(known.owners), np.asarray(facts.owners)])
        order = np.argsort(ids, kind="stable")
        ids, owners = ids[order], owners[order]
        torn = known.torn or facts.torn
        if torn is None and (twice := np.flatnonzero(ids[1:] == ids[:-1])).size:
            k = int(twice[0])
            torn = int(ids[k]), int(owners[k]), int(owners[k + 1])
        found = replace(found, ids=ids, owners=owners, torn=torn)
    return found


def _short(facts: Facts) -> Facts:
    """Return what is worth sending."""
    return replace(facts, ids=None, owners=None)
