"""What the linear estimators do on a cluster: shares of rows, and what fits report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..checks import Array
from ..data.cut import query_starts
from ..linear.base import FittedInterrupt
from ..linear.chunks import Learner
from ..linear.sharing import Account, RowHost, Shared
from ..progress import printers
from ..shares import Kept, Lead
from ..solve import as_passes, as_seed, as_threads, as_tolerance, warn_not_converged
from .base import OnCluster
from .checkpoint import Checkpoint
from .cluster import Cluster
from .data import as_client, gather_pieces, held
from .load import Piece, load
from .survey import Facts, Targets, survey


@dataclass
class Partitions:
    """Stands in for the dataset of a learner, which is in many places."""

    name: str = "the data"
    n_chunks: int = 1


DATA: Any = Partitions()  # of every learner


@dataclass
class Make:
    """Makes hosts, on workers, of pieces.

    Parameters
    ----------
    shared : Shared
        What all shares know.
    seed : int
        Of the order in which examples are visited.
    n_jobs : int or None
        Number of threads; None: all that a worker has.
    """

    shared: Shared
    seed: int
    n_jobs: int | None

    def __call__(self, number: int, pieces: Sequence[Piece], blocks: Sequence[Any], threads: int) -> RowHost:
        """Return a host of some pieces."""
        chunks: list[Any] = []
        for piece, some in zip(pieces, blocks, strict=True):
            loaded = load(piece, *some, width=self.shared.width, dtype=self.shared.dtype)
            at = 0
            for k, chunk in enumerate(loaded):
                margin = loaded.margin
                if np.ndim(margin) > 0:
                    margin = margin[at : at + len(chunk)]
                at += len(chunk)
                _check_queries(chunk.qid, piece.name)
                chunks.append(((piece.number, k), piece.name, replace(chunk, index=len(chunks)), margin))
        threads = threads if self.n_jobs is None else as_threads(self.n_jobs)
        return RowHost(number, self.shared, chunks, self.seed, threads)


def _check_queries(qid: Array | None, name: str) -> None:
    if qid is not None and len(query_starts(qid)) > len(np.unique(qid)):
        raise ValueError(f"{name}: rows of one query must be next to one another: sort the partition by its queries")


class DaskLinear(OnCluster):
    """What the linear estimators do on a cluster."""

    _targets: Targets
    coef_: Any
    intercept_: Any
    tol: Any
    max_iter: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    warm_start: bool

    def _prepared(self, facts: Facts) -> Learner:
        """Return what makes problems of chunks, given what is known of all of them."""
        raise NotImplementedError

    def _fit_shares(self, given: dict[str, Any], options: Any, checkpoint: Checkpoint) -> Self:
        client = as_client(self.client)
        tol, max_iter = as_tolerance(self.tol), as_passes(self.max_iter)
        pieces = held(client, gather_pieces(client, **given, options=options))
        facts = survey(client, pieces, self._targets)
        shared = Shared(self._prepared(facts), facts.width, facts.dtype)
        make = Make(shared, as_seed(self.random_state), self.n_jobs)
        some = [k for k, rows in enumerate(facts.rows) if rows > 0]
        cluster = Cluster(client, [pieces[k] for k in some], [facts.rows[k] for k in some], make)
        lead = Lead(cluster, shared.courses(tol, len(cluster)), shared.seen)
        try:
            start = self._start(shared.learner)
            checkpoint.begin(lead, shared.learner.about(), start, self._weights(shared) if start else None)
            status = lead.pursue(max_iter, printers(self.verbose, tol))
            checkpoint.write()
            kept = lead.gather("keep") if self.warm_start else None
            accounts = lead.gather("account")
        finally:
            cluster.close()
        self._set(lead, shared.learner, facts, accounts)
        self._kept = kept
        if status == "interrupted":
            raise FittedInterrupt
        if not self.converged_ and status in ("max_iter", "stalled"):
            warn_not_converged(self.n_iter_, self.gap_, tol, status == "stalled")
        return self

    def _start(self, learner: Learner) -> dict[Any, Kept] | None:
        """Return what the last fit has left to start from."""
        same = np.array_equal(getattr(self, "classes_", ()), getattr(learner.model, "classes_", ()))
        return getattr(self, "_kept", None) if self.warm_start and same else None

    def _weights(self, shared: Shared) -> list[Array] | None:
        """Return the weights of the last fit as shares have them, if they are as many."""
        weights = shared.learner.frame.weights(self.coef_, self.intercept_)
        return shared.inward(weights) if np.shape(self.coef_)[-1] == shared.width else None

    def _set(self, lead: Lead, learner: Learner, facts: Facts, accounts: dict[Any, Account]) -> None:
        """Set the attributes of a fit."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        if hasattr(learner.model, "classes_"):
            self.classes_ = learner.model.classes_
        self.n_features_in_ = facts.width
        if facts.feature_names is not None:
            self.feature_names_in_ = np.array(facts.feature_names, dtype=object)
        self.lower_bound_, self.upper_bound_, self.gap_ = lead.lower, lead.upper, float(lead.gap)
        self.converged_ = bool(self.gap_ <= as_tolerance(self.tol))
        self.n_iter_, self.history_, self.n_restarts_ = lead.rounds, lead.history, lead.restarts
        self.n_shares_ = len(lead.hosts)
        each = [accounts[key] for key in sorted(accounts)]
        self.dual_coef_ = sp.hstack([account.coefficients for account in each], format="csr")
        alpha = [account.alpha for account in each if account.alpha is not None]
        self._alpha, self._fingerprint = sp.hstack(alpha, format="csr"), ""
        support = [account.support for account in each if account.support is not None]
        self.n_support_: Any = sum(support) if support else len(np.unique(self.dual_coef_.indices))
        attributes = self._attributes(*learner.frame.seen(lead.weights()))  # type: ignore[attr-defined]
        for name, value in attributes.items():
            setattr(self, name, value)
