"""Rounds and bytes to certified gaps, for more shares than a machine has cores: all of them in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from dualsvm.dask import DaskSVMClassifier, DaskSVMRegressor
from dualsvm.dask.survey import Facts
from dualsvm.data import Chunk
from dualsvm.linear.sharing import RowHost, Shared
from dualsvm.shares import Answer, Course, Lead, Order, Together

from . import data as sets
from .report import row
from .tasks import Task

TARGETS = (1e-2, 1e-3)
MOST = 300  # rounds after which it is given up
MORE = 3  # times as many as ours that the plain method has, and never fewer than
FLOOR = 60
SAMPLE = {"mnist10": 6}  # one row in so many
WIDTH = (24, 6, *(6, 6, 7, 7) * 2, 8, 6)
LEFT = {0}
HEAD = [*("rounds: row", "shares"), *("1e-2", "visits", "MB up", "down"), *("1e-3", "visits", "MB up", "down")]
HEAD += ["gap", "plain"]
INTRO = """Rounds: how often shares tell one another what they have found until the gap is certified to be 1e-2 and
1e-3; the shares are in this process, asked one after the other, by the code that asks workers. Rows are dealt at
random, or in the order of the file where that is sorted by class: sorted. visits: of an example, looks for a proof
included, which cost as much as a visit; MB up: of all vectors that all shares have told, before any are added up;
down: of all that they were told, once for each. A round takes as long as the visits of a share, a few milliseconds
of waiting, and the vectors that pass a worker. plain: rounds of CoCoA+ to 1e-2, with one pass a round and a proof
after each of them; '> 60': given up."""


class Stage(NamedTuple):
    """What it took to get somewhere."""

    rounds: int
    visits: float  # of each example, looks for proofs included
    up: int  # bytes told by shares
    down: int  # bytes told to them
    gap: float


@dataclass
class Counted(Together):
    """Hosts in this process, that count what they are told, and their looks for a proof."""

    hosts: Sequence[RowHost]

    def __post_init__(self) -> None:
        super().__init__(self.hosts)
        self.down = self.looks = 0

    def ask(self, verb: str, messages: Sequence[Any]) -> Answer:
        told = [part for message in messages if message for part in message]
        vectors = [v for part in told for v in ((part.z, part.pivot) if isinstance(part, Order) else (part,))]
        self.down += len(self) * sum(getattr(vector, "nbytes", 0) for vector in vectors)
        self.looks += verb == "prove" or any(isinstance(part, Order) and part.certify for part in told)
        return super().ask(verb, messages)


class Plain(Course):
    """CoCoA+: as many times as much curvature as there are shares, and nothing that is learned on the way."""

    def __init__(self, course: Course) -> None:
        super().__init__(course.ground, course.tol, course.shares, course.single)
        self._freedom = float(course.shares)

    def _balance(self, gap: float) -> float:
        return 1.0


@contextmanager
def plainly() -> Iterator[None]:
    """Have shares follow CoCoA+, with one pass a round, and prove something in each."""
    here = "dualsvm.shares"
    with ExitStack() as stack:
        for name, value in {"share.RELAX": 1.0, "course.RELAX": 1.0, "lead._EFFORT": 0.0, "lead._PROOF": 0.0}.items():
            stack.enter_context(mock.patch(f"{here}.{name}", value))
        ones = mock.patch(f"{here}.lead.shape_of", lambda masses, shares: np.ones(len(masses)))
        stack.enter_context(ones)
        yield


def simulated(data: sets.Data, task: Task, shares: int, tol: float) -> Lead:
    """Return who leads so many shares of the rows, in this process."""
    common = {"C": task.cost, "loss": task.loss, "fit_intercept": False, "tol": tol, "random_state": 0}
    if task.kind == "regression":
        learner = DaskSVMRegressor(epsilon=task.epsilon, **common)._prepared(Facts())
    else:
        learner = DaskSVMClassifier(**common)._prepared(Facts(classes=np.unique(data.y)))
    shared = Shared(learner, data.X.shape[1], data.X.dtype)
    cuts = np.linspace(0, len(data.y), shares + 1).astype(int)
    parts = [Chunk(data.X[a:b], data.y[a:b]) for a, b in pairwise(cuts)]
    hosts = [RowHost(k, shared, [((k, 0), f"share {k}", part, None)], 0, 1) for k, part in enumerate(parts)]
    return Lead(Counted(hosts), shared.courses(tol, shares), shared.seen)


def stages(lead: Any, examples: int, targets: Sequence[float], most: int) -> list[Stage | None]:
    """Go on from target to target, the loosest first; None for those that are not reached."""
    lead.begin()
    visited, found = 0, []
    for target in targets:
        while lead.gap > target and lead.rounds < most:
            lead.round()
            visited += lead.record.explored
        visits = visited / examples + lead.hosts.looks
        here = Stage(lead.rounds, visits, lead.nbytes, lead.hosts.down, float(lead.gap))
        found.append(here if lead.gap <= target else None)
    return found


def rounds(name: str, load: Callable[[], tuple[sets.Data, Task]], options: Any) -> dict[str, Any]:
    data, task = load()
    lines = []
    for k, shares in enumerate(options.shares):
        options.tell(f"{name}: {shares} shares")
        lead = simulated(data, task, shares, TARGETS[-1])
        ours = stages(lead, len(data.y), TARGETS, MOST)
        gap = float(lead.gap)
        with plainly():
            lead = simulated(data, task, shares, TARGETS[-1])
            lead.courses = [Plain(course) for course in lead.courses]
            most = max(FLOOR, MORE * (ours[0].rounds if ours[0] else 0))
            (plain,) = stages(lead, len(data.y), TARGETS[:1], most)
        cells = [name if k == 0 else "", str(shares)]
        for stage in ours:
            cells += _told(stage)
        cells += [f"{gap:.1e}", str(plain.rounds) if plain else f"> {most}"]
        row(cells, WIDTH, LEFT)
        if ours[-1] is None:
            options.note(f"{name}: with {shares} shares, {MOST} rounds are not enough: the gap is {gap:.1e}")
        both = {"ours": [stage and stage._asdict() for stage in ours], "plain": plain and plain._asdict()}
        lines.append({"shares": shares, "gap": gap, "most": most} | both)
    return {"name": name, "shape": data.X.shape, "targets": TARGETS, "lines": lines}


def _told(stage: Stage | None) -> list[str]:
    if stage is None:
        return [f"> {MOST}", "", "", ""]
    return [str(stage.rounds), f"{stage.visits:.1f}", *(f"{1e-6 * size:.3g}" for size in (stage.up, stage.down))]


def loaded(task: Task, order: str = "random") -> tuple[sets.Data, Task]:
    """Return a set, a sample of it where it is large, with its rows in random order or in that of the file."""
    data = sets.load(task.set)
    every = SAMPLE.get(task.set, 1)
    rows = np.random.default_rng(0).permutation(len(data.y)) if order == "random" else np.arange(len(data.y))
    return sets.Data(data.name, data.X[rows[::every]], data.y[rows[::every]]), task


TASKS = {f"rounds-{name}": Task(name, "binary", "hinge") for name in ("sparse", "a9a", "news20bin", "mnist")}
TASKS["rounds-housing"] = Task("housing", "regression", "epsilon_insensitive", epsilon=0.1)
TASKS["rounds-mnist10-cs"] = Task("mnist10", "crammer_singer", "hinge")
ROWS = {name: partial(rounds, name, partial(loaded, task)) for name, task in TASKS.items()}
SORTED = "rounds-news20bin-sorted"
ROWS[SORTED] = partial(rounds, SORTED, partial(loaded, TASKS["rounds-news20bin"], "file"))
