"""Structured support vector machines on a cluster."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from distributed import Client

from ..checks import Array
from ..linear.base import FittedInterrupt
from ..linear.encoding import as_text
from ..progress import printers
from ..shares import Answer, Course, Host, Kept, Lead
from ..solve import as_passes, as_seed, as_threads, as_tolerance
from ..structured import StructuredSVM
from ..structured.agree import agreed, survey
from ..structured.examples import Examples
from ..structured.oracle import OfTask, TaskProblem
from ..structured.share import OracleShare, ground_of
from .base import OnCluster, unharmed
from .checkpoint import Checkpoint
from .cluster import Cluster
from .data import as_client, bag_pieces, check_picklable, held
from .load import PairList, Piece, load_pairs

_EFFORT = 0.5  # calls of the oracle in a round, for every example


class _Size(NamedTuple):
    """The number of examples of a piece, and whether any of them counts."""

    n: int
    counts: bool


def size(piece: Piece, *blocks: Any) -> _Size:
    """Look how large a piece is, on a worker."""
    pairs = load_pairs(piece, *blocks)
    return _Size(len(pairs), bool(pairs) and (pairs.weight is None or bool(pairs.weight.any())))


def look(task: Any, piece: Piece, *blocks: Any) -> Any:
    """Return what a piece tells a task, on a worker."""
    pairs = load_pairs(piece, *blocks)
    try:
        return survey(task, [x for x, _ in pairs], [y for _, y in pairs])
    except Exception as error:
        error.add_note(f"in {piece.name}")
        raise


class PairHost(Host):
    """The share of some pieces of examples.

    Parameters
    ----------
    number : int
        Of the host, among all.
    model : StructuredSVM
        Whose parameters hold.
    pieces : sequence of tuple
        Keys of the pieces, and their pairs.
    names : sequence of str
        What messages call them.
    seed : int
        Of the order in which examples are visited.
    threads : int
        For the oracle.
    """

    def __init__(
        self,
        number: int,
        model: StructuredSVM,
        pieces: Sequence[tuple[Hashable, PairList]],
        names: Sequence[str],
        seed: int,
        threads: int,
    ) -> None:
        pairs = [pair for _, some in pieces for pair in some]
        examples = Examples([x for x, _ in pairs], [y for _, y in pairs])
        if any(some.weight is not None for _, some in pieces):
            weights = [np.ones(len(some)) if some.weight is None else some.weight for _, some in pieces]
            examples.weight = np.concatenate(weights)
        rest = model.prior, model.lower, model.upper
        self._problem = TaskProblem(model.task, examples, model.rescaling, costs(model, examples), *rest)
        self._sizes = [len(some) for _, some in pieces]
        search = threads, model.cache_mb, model.prune_after
        share = OracleShare(self._problem, self._sizes, seed + number, *search, names)
        super().__init__(number, [key for key, _ in pieces], [share])

    def _answer(self, verb: str, messages: Sequence[Any]) -> Answer:
        if verb == "take":
            prints, kept = self._prints(), messages[0]
            same = {key: key in kept and kept[key].print == prints[key] for key in self.pieces}
            messages = [{key: [kept[key].arrays if same[key] else {}] for key in self.pieces}]
        found = super()._answer(verb, messages)
        if verb != "keep" or found.fresh:
            return found
        prints = self._prints()
        return Answer(each={key: Kept(prints[key], own[0]) for key, own in found.each.items()})

    def _prints(self) -> dict[Hashable, tuple[int, int]]:
        """Return what tells the pieces from others, most likely."""
        parts = np.split(self._problem.prints(), np.cumsum(self._sizes)[:-1])
        return {key: (len(part), zlib.crc32(part.tobytes())) for key, part in zip(self.pieces, parts, strict=True)}


def costs(model: StructuredSVM, examples: Examples) -> Array:
    """Return the costs of examples, none of which may count here."""
    cost = model._cost(None, Examples([0], [0]))[0]
    return np.full(examples.n, cost) if examples.weight is None else cost * examples.weight


@dataclass
class Make:
    """Makes hosts, on workers, of pieces.

    Parameters
    ----------
    model : StructuredSVM
        Whose parameters and task hold.
    seed : int
        Of the order in which examples are visited.
    """

    model: StructuredSVM
    seed: int

    def __call__(self, number: int, pieces: Sequence[Piece], blocks: Sequence[Any], threads: int) -> PairHost:
        """Return a host of some pieces."""
        loaded = [((p.number, 0), load_pairs(p, *some)) for p, some in zip(pieces, blocks, strict=True)]
        names = [piece.name for piece in pieces]
        threads = threads if self.model.n_jobs is None else as_threads(self.model.n_jobs)
        return PairHost(number, self.model, loaded, names, self.seed, threads)


class DaskStructuredSVM(OnCluster, StructuredSVM, local=StructuredSVM):
    """`dualsvm.StructuredSVM` on a Dask cluster: the same problem and proof, with the examples where they are.

    Parameters
    ----------
    task : object
        As in `StructuredSVM`; it travels to the workers, and has to be picklable. What it learns from examples it
        learns from all partitions, if it has ``survey(X, Y)`` and ``agree(surveys)`` as the ready-made tasks have;
        one that has only ``initialize(X, Y)`` learns from the first partition.
    client : distributed.Client, default None
        The cluster. None: the client that was made last.
    C, rescaling, prior, lower, upper, tol, prune_after, random_state, verbose
        As in `StructuredSVM`.
    max_iter : int, default 1000
        Largest number of rounds.
    cache_mb : float, default 1024.0
        Memory for constraints on each worker, in megabytes.
    warm_start : bool, default False
        Whether a fit starts from the constraints of the last, for those partitions that are still the same.
    n_jobs : int, default None
        Threads for the oracle on each worker; None: all that it has.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds.
    history_ : list of Record
        One record for every round; `explored` counts calls of the oracle, and `active` constraints.
    n_shares_ : int
        Number of workers that have had a share of the examples.
    n_restarts_ : int
        How often a share was lost with its worker, and began anew.
    coef_, task_, lower_bound_, upper_bound_, gap_, converged_, certified_, n_oracle_calls_, n_constraints_
        As in `StructuredSVM`.

    Examples
    --------
    >>> import dask.bag as db
    >>> import numpy as np
    >>> from distributed import Client
    >>> from dualsvm.dask import DaskStructuredSVM
    >>> from dualsvm.tasks import Chain
    >>> rng = np.random.default_rng(0)
    >>> inputs = [rng.normal(size=(5, 3)) for _ in range(20)]
    >>> pairs = [(x, x.argmax(axis=1)) for x in inputs]
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskStructuredSVM(Chain(), random_state=0).fit(db.from_sequence(pairs, npartitions=2))
    ...     found = model.predict(db.from_sequence(inputs, npartitions=2)).compute()
    >>> model.gap_ <= 1e-3, len(found)
    (True, 20)
    """

    n_restarts_: int

    @unharmed
    def fit(
        self,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        options: dict[str, Any] | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 600.0,
        resume: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask bag or list
            Pairs (x, y), or with Y inputs only: a bag, or a list of futures or of delayed objects, each a sequence
            of them. Or a list of paths, each of which a worker opens as `open_dataset` does: its queries, or rows,
            are examples, as in `StructuredSVM.fit`.
        Y : Dask bag or list, default None
            Outputs, in partitions as those of X.
        sample_weight : Dask array, bag or list, default None
            What an example counts.
        options : dict, default None
            Arguments of `open_dataset` for paths.
        checkpoint : path-like, default None
            Where to write, on this machine, what all shares hold: every `checkpoint_every` seconds and in the end.
        checkpoint_every : float, default 600.0
            Seconds between checkpoints.
        resume : path-like, default None
            A checkpoint of the same problem and partitions to go on from, on whatever workers there are.

        Returns
        -------
        self : DaskStructuredSVM
        """
        self._check()
        check_picklable(self.task, "task")
        keeper = Checkpoint(checkpoint, checkpoint_every, resume)
        client, tol = as_client(self.client), as_tolerance(self.tol)
        pieces = held(client, bag_pieces(client, X, Y, sample_weight, options), pairs=True)
        pieces, sizes = _examples(client, pieces)
        model = self._bare()
        model.task = _initialised(client, self.task, pieces)
        model._check()
        C = model._cost(None, Examples([0], [0]))[:1]
        ground, outward = ground_of(OfTask(model.task, 1, C, model.prior, model.lower, model.upper, None))
        cluster = Cluster(client, pieces, sizes, Make(model, as_seed(self.random_state)))
        lead = Lead(cluster, [Course(ground, tol, len(cluster))], lambda weights: outward(weights[0]), _EFFORT)
        try:
            start = getattr(self, "_kept", None) if self.warm_start else None
            same = start and (self.prior is None or self.prior.covariance is None)  # coordinates are weights
            keeper.begin(lead, _about(model), start, [self.coef_] if same else None)
            status = lead.pursue(as_passes(self.max_iter), printers(self.verbose, tol))
            keeper.write()
            kept = lead.gather("keep") if self.warm_start else None
        finally:
            cluster.close()
        self._set_from(lead, status, model.task)
        self._kept = kept
        if status == "interrupted":
            raise FittedInterrupt
        self._warn(status, self.n_iter_, self.gap_)
        return self

    def _set_from(self, lead: Lead, status: str, task: Any) -> None:
        """Set the attributes of a fit."""
        self.coef_, self.task_ = lead.weights(), task
        self.lower_bound_, self.upper_bound_, self.gap_ = lead.lower, lead.upper, float(lead.gap)
        self.converged_, self.certified_ = status == "converged", lead.certified
        self.n_iter_, self.history_, self.n_restarts_ = lead.rounds, lead.history, lead.restarts
        self.n_shares_ = len(lead.hosts)
        self.n_oracle_calls_ = sum(record.explored for record in lead.history)
        self.n_constraints_ = lead.record.active if lead.history else 0


def _examples(client: Client, pieces: Sequence[Piece]) -> tuple[list[Piece], list[int]]:
    """Return the pieces that hold examples, and how many."""
    told = client.gather([client.submit(size, piece, *piece.futures, pure=False) for piece in pieces])
    some = [k for k, one in enumerate(told) if one.n > 0]
    if not some:
        raise ValueError(f"there are no examples to learn from: all {len(pieces)} partitions are empty")
    if not any(one.counts for one in told):
        raise ValueError("sample_weight must not be zero for every example: at least one must count")
    return [pieces[k] for k in some], [told[k].n for k in some]


def _initialised(client: Client, task: Any, pieces: Sequence[Piece]) -> Any:
    """Return the task when it has learned from the pieces: one that cannot agree, from the first."""
    some = pieces if callable(getattr(task, "agree", None)) else pieces[:1]
    return agreed(task, client.gather([client.submit(look, task, p, *p.futures, pure=False) for p in some]))


def _about(model: StructuredSVM) -> dict[str, str]:
    """Return what a checkpoint says of the problem; what the examples are tells what the task is, too."""
    names = ("C", "rescaling", "prior", "lower", "upper")
    return {name: as_text(getattr(model, name), name) for name in names} | {"estimator": type(model).__name__}
