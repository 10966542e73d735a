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
from dualsvm.dask.load import PairList
from dualsvm.dask.structured import _EFFORT, PairHost
from dualsvm.dask.survey import Facts
from dualsvm.data import Chunk
from dualsvm.linear.sharing import RowHost, Shared
from dualsvm.shares import Answer, Course, Host, Lead, Order, Together
from dualsvm.structured import StructuredSVM
from dualsvm.structured.agree import agreed, survey
from dualsvm.structured.oracle import OfTask
from dualsvm.structured.share import ground_of
from dualsvm.tasks import Chain

from . import data as sets
from .ocr import SMALL
from .report import row
from .tasks import Task

TARGETS = (1e-2, 1e-3)
MOST = 300  # rounds after which it is given up
MORE = 2  # times as many as ours that the plain method has, and never fewer than
FLOOR = 50
LAMBDA = 0.01  # of the words, as in the table of structured problems
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
after each of them; '> 50': given up."""


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

    hosts: Sequence[Host]

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

    def begin(self, stiffness: float, w: np.ndarray | None = None) -> None:
        super().begin(stiffness, w)
        self._freedom = float(self.shares)

    def _balance(self, *parts: float) -> float:
        return 1.0


@contextmanager
def plainly(lead: Lead) -> Iterator[Lead]:
    """Have shares follow CoCoA+, with one pass a round, and prove something in each."""
    lead.courses = [Plain(course) for course in lead.courses]
    lead._effort = lead._least = 1.0
    names = {"share.RELAX": 1.0, "course.RELAX": 1.0, "lead._PROOF": 0.0, "lead._PATIENCE": 1.0}
    names["lead.shape_of"] = lambda masses, shares: np.ones(len(masses))
    with ExitStack() as stack:
        for name, value in names.items():
            stack.enter_context(mock.patch(f"dualsvm.shares.{name}", value))
        yield lead


class Prepared(NamedTuple):
    """A problem that can be had in shares."""

    n: int  # examples
    looks: bool  # whether looks for a proof are not among the visits that are counted already
    lead: Callable[[int], Lead]  # who leads so many shares of them, in this process


def rows(task: Task, order: str = "random") -> Prepared:
    """Return a linear problem: its rows, or a sample of many, in random order or in that of the file."""
    data = sets.load(task.set)
    some = np.random.default_rng(0).permutation(len(data.y)) if order == "random" else np.arange(len(data.y))
    some = some[:: SAMPLE.get(task.set, 1)]
    data = sets.Data(data.name, data.X[some], data.y[some])
    return Prepared(len(some), True, partial(row_shares, data, task, tol=TARGETS[-1]))


def row_shares(data: sets.Data, task: Task, shares: int, tol: float) -> Lead:
    common = {"C": task.cost, "loss": task.loss, "fit_intercept": False, "tol": tol, "random_state": 0}
    if task.kind == "regression":
        learner = DaskSVMRegressor(epsilon=task.epsilon, **common)._prepared(Facts())
    else:
        learner = DaskSVMClassifier(**common)._prepared(Facts(classes=np.unique(data.y)))
    shared = Shared(learner, data.X.shape[1], data.X.dtype)
    parts = [Chunk(data.X[a:b], data.y[a:b]) for a, b in _cut(len(data.y), shares)]
    hosts = [RowHost(k, shared, [((k, 0), f"share {k}", part, None)], 0, 1) for k, part in enumerate(parts)]
    return Lead(Counted(hosts), shared.courses(tol, shares), shared.seen)


def words() -> Prepared:
    """Return chains of letters."""
    data = sets.ocr(SMALL)
    some = np.random.default_rng(0).permutation(len(data)).tolist()
    pairs = PairList((data.inputs[i], data.outputs[i]) for i in some)
    return Prepared(len(pairs), False, partial(pair_shares, pairs, 1.0 / (LAMBDA * len(pairs)), tol=TARGETS[-1]))


def pair_shares(pairs: PairList, C: float, shares: int, tol: float) -> Lead:
    task = Chain(normalized=True)
    parts = [PairList(pairs[a:b]) for a, b in _cut(len(pairs), shares)]
    told = [survey(task, [x for x, _ in part], [y for _, y in part]) for part in parts]
    model = StructuredSVM(agreed(task, told), C=C, tol=tol, random_state=0)
    ground, outward = ground_of(OfTask(model.task, 1, np.full(1, C), None, None, None, None))
    hosts = [PairHost(k, model, [((k, 0), part)], [f"share {k}"], 0, 1) for k, part in enumerate(parts)]
    return Lead(Counted(hosts), [Course(ground, tol, shares)], lambda weights: outward(weights[0]), _EFFORT)


def _cut(n: int, shares: int) -> Iterator[tuple[int, int]]:
    return pairwise(np.linspace(0, n, shares + 1).astype(int).tolist())


def stages(lead: Any, problem: Prepared, targets: Sequence[float], most: int) -> list[Stage | None]:
    """Go on from target to target, the loosest first; None for those that are not reached."""
    lead.begin()
    visited, found = 0, []
    for target in targets:
        while lead.gap > target and lead.left and lead.rounds < most:
            lead.round()
            visited += lead.record.explored
        visits = visited / problem.n + (lead.hosts.looks if problem.looks else 0)
        here = Stage(lead.rounds, visits, lead.nbytes, lead.hosts.down, float(lead.gap))
        found.append(here if lead.gap <= target else None)
    return found


def rounds(name: str, prepare: Callable[[], Prepared], options: Any) -> dict[str, Any]:
    problem = prepare()
    lines = []
    for k, shares in enumerate(options.shares):
        options.tell(f"{name}: {shares} shares")
        lead = problem.lead(shares)
        ours = stages(lead, problem, TARGETS, MOST)
        gap, most = float(lead.gap), max(FLOOR, MORE * (ours[0].rounds if ours[0] else 0))
        with plainly(problem.lead(shares)) as lead:
            (plain,) = stages(lead, problem, TARGETS[:1], most)
        cells = [name if k == 0 else "", str(shares)]
        for stage in ours:
            cells += _told(stage)
        row([*cells, f"{gap:.1e}", str(plain.rounds) if plain else f"> {most}"], WIDTH, LEFT)
        if ours[-1] is None:
            options.note(f"{name}: with {shares} shares, {MOST} rounds are not enough: the gap is {gap:.1e}")
        both = {"ours": [stage and stage._asdict() for stage in ours], "plain": plain and plain._asdict()}
        lines.append({"shares": shares, "gap": gap, "most": most} | both)
    return {"name": name, "n": problem.n, "targets": TARGETS, "lines": lines}


def _told(stage: Stage | None) -> list[str]:
    if stage is None:
        return [f"> {MOST}", "", "", ""]
    return [str(stage.rounds), f"{stage.visits:.1f}", *(f"{1e-6 * size:.3g}" for size in (stage.up, stage.down))]


TASKS = {f"rounds-{name}": Task(name, "binary", "hinge") for name in ("sparse", "a9a", "news20bin", "mnist")}
TASKS["rounds-housing"] = Task("housing", "regression", "epsilon_insensitive", epsilon=0.1)
TASKS["rounds-mnist10-cs"] = Task("mnist10", "crammer_singer", "hinge")
ROWS = {name: partial(rounds, name, partial(rows, task)) for name, task in TASKS.items()}
SORTED = "rounds-news20bin-sorted"
ROWS[SORTED] = partial(rounds, SORTED, partial(rows, TASKS["rounds-news20bin"], "file"))
ROWS["rounds-ocr"] = partial(rounds, "rounds-ocr", words)
