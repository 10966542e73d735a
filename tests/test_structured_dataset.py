"""Estimators with an oracle learn from datasets: a query is one example, or each row is."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import dualsvm
from dualsvm import LatentStructuredSVM, LatentSVM, StructuredSVM
from dualsvm.tasks import Chain, HiddenChain, Multiclass, MultipleInstance

from .estimators import THREE, TWO, X, assert_certified, assert_overlap, statements
from .reference import state

RNG = np.random.default_rng(11)
LENGTHS = RNG.integers(1, 6, size=30)
ENDS = np.cumsum(LENGTHS)
OF = np.repeat(RNG.permutation(30) * 3 - 20, LENGTHS)  # in no order
ROWS = RNG.normal(size=(ENDS[-1], 3))
LABELS = (ROWS[:, :2] + 0.5 * RNG.normal(size=(ENDS[-1], 2))).argmax(axis=1)
WEIGHTS = RNG.uniform(0.2, 3.0, size=30)
BAGS = np.repeat(np.where(np.arange(30) % 3, -1, 1), LENGTHS)  # a label for every bag
BRIGHT = (
    ROWS + 2.0 * ((BAGS > 0) & (np.concatenate([[0], ENDS])[:-1].repeat(LENGTHS) == np.arange(ENDS[-1])))[:, None]
)


def cut(values):
    return np.split(values, ENDS[:-1])


def chunks(y=LABELS, rows=ROWS, qid=OF, chunk_rows=9, **more):
    return dualsvm.open_dataset(rows, target=y, qid=qid, chunk_rows=chunk_rows, **more)


@pytest.mark.parametrize("chunk_rows", [9, None])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_sequences(storage, chunk_rows):
    model = StructuredSVM(Chain(), C=0.3, tol=1e-4, random_state=0)
    model.fit(chunks(rows=storage(ROWS), chunk_rows=chunk_rows))
    in_memory = StructuredSVM(Chain(), C=0.3, tol=1e-4, random_state=0)
    assert_overlap(model, in_memory.fit(cut(ROWS), cut(LABELS)))
    assert model.score(cut(ROWS), cut(LABELS)) == pytest.approx(in_memory.score(cut(ROWS), cut(LABELS)), abs=0.1)


def test_text(tmp_path):
    dump_svmlight_file(ROWS, LABELS, str(tmp_path / "data"), query_id=OF, zero_based=False)
    model = StructuredSVM(Chain(), C=0.3, random_state=0)
    model.fit(dualsvm.open_dataset(tmp_path / "data", chunk_rows=20))
    assert_overlap(model, StructuredSVM(Chain(), C=0.3, random_state=0).fit(cut(ROWS), cut(LABELS)))


def test_names_of_labels_from_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = np.array(["sun", "rain"])[LABELS]
    columns = {"a": ROWS[:, 0], "b": ROWS[:, 1], "c": ROWS[:, 2], "day": OF, "weather": names}
    parquet.write_table(pa.table(columns), tmp_path / "data.parquet", row_group_size=25)
    model = StructuredSVM(Chain(), C=0.3, random_state=0)
    model.fit(dualsvm.open_dataset(tmp_path / "data.parquet", target="weather", qid="day", chunk_rows=25))
    assert_overlap(model, StructuredSVM(Chain(), C=0.3, random_state=0).fit(cut(ROWS), cut(names)))
    assert set(np.concatenate(model.predict(cut(ROWS)))) <= {"sun", "rain"}


@pytest.mark.parametrize("chunk_rows", [4, None])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_every_row_is_an_example(storage, chunk_rows):
    model = StructuredSVM(Multiclass(), tol=1e-5, random_state=0)
    model.fit(dualsvm.open_dataset(storage(X), target=THREE, chunk_rows=chunk_rows))
    (problem,) = statements(X, THREE, intercept=0.0)
    model.coef_, model.intercept_ = model.coef_.reshape(3, -1), 0.0
    assert_certified(model, [problem], intercept=0.0)


class Sign:
    """Two classes, with searches in Python; tells what it was given."""

    size_joint_feature = X.shape[1]

    def joint_feature(self, x, y):
        assert x.shape == (X.shape[1],)
        assert isinstance(y, int)
        return (2 * y - 1) * x / 2

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def inference(self, x, w):
        return int(w @ x > 0)

    def loss_augmented_inference(self, x, y, w):
        return max([0, 1], key=lambda h: self.loss(y, h) + w @ self.joint_feature(x, h))


def test_a_task_in_python_with_weights():
    weight = RNG.uniform(0.2, 2.0, size=len(X))
    model = StructuredSVM(Sign(), tol=1e-5, random_state=0)
    model.fit(dualsvm.open_dataset(X, target=TWO, weight=weight, chunk_rows=10))
    optimum = state("binary", X, {"y": 2 * TWO - 1, "margin": 1.0}, cost=weight, loss="hinge").optimum()
    assert model.lower_bound_ <= optimum * (1 + 1e-7)
    assert optimum * (1 - 1e-7) <= model.upper_bound_ <= optimum * (1 + 1.1e-5)


def test_weights_of_queries():
    model = StructuredSVM(Chain(), C=0.3, random_state=0).fit(chunks(weight=np.repeat(WEIGHTS, LENGTHS)))
    in_memory = StructuredSVM(Chain(), C=0.3, random_state=0)
    assert_overlap(model, in_memory.fit(cut(ROWS), cut(LABELS), sample_weight=WEIGHTS))


def assert_same_round(one, other):
    """The bounds allow for one and the same optimum of the convex problem."""
    assert one.n_rounds_ == other.n_rounds_ == 1
    assert one.lower_bound_ <= other.upper_bound_
    assert other.lower_bound_ <= one.upper_bound_


@pytest.mark.filterwarnings("ignore:the objective was still falling")
@pytest.mark.parametrize("chunk_rows", [9, None])
@pytest.mark.parametrize("slack", ["bag", "member"])
def test_bags(slack, chunk_rows):
    labels = [bag[0] for bag in cut(BAGS)]
    init = [0 if label > 0 else None for label in labels]
    one, other = (LatentSVM(MultipleInstance(slack=slack), max_rounds=1, random_state=0) for _ in range(2))
    assert_same_round(
        one.fit(chunks(BAGS, BRIGHT, chunk_rows=chunk_rows), init=init), other.fit(cut(BRIGHT), labels, init=init)
    )
    whole = LatentSVM(MultipleInstance(slack=slack), C=10.0, random_state=0)
    assert whole.fit(chunks(BAGS, BRIGHT, chunk_rows=chunk_rows)).converged_
    assert whole.score(cut(BRIGHT), labels) > 0.8


@pytest.mark.filterwarnings("ignore:the objective was still falling")
@pytest.mark.parametrize("chunk_rows", [9, None])
def test_sequences_with_sub_types(chunk_rows):
    start = HiddenChain(2)
    start.initialize(cut(ROWS), cut(LABELS))
    init = start.init_latent(cut(ROWS), cut(LABELS), random_state=0)
    one, other = (LatentStructuredSVM(HiddenChain(2), C=0.1, max_rounds=1, random_state=0) for _ in range(2))
    assert_same_round(one.fit(chunks(chunk_rows=chunk_rows), init=init), other.fit(cut(ROWS), cut(LABELS), init=init))
    model = LatentStructuredSVM(HiddenChain(2), C=0.1, random_state=0).fit(chunks(chunk_rows=chunk_rows))
    assert model.converged_


def test_chunks_are_let_go(monkeypatch):
    """However many chunks there are, no more than a few are read at once: inputs are asked for in small parts."""
    most = []
    encode = Chain.encode

    def noted(self, X, Y=None):
        most.append(sum(len(x) for x in X))
        return encode(self, X, Y)

    monkeypatch.setattr(Chain, "encode", noted)
    dataset = chunks(chunk_rows=3)
    assert dataset.n_chunks > 15
    assert StructuredSVM(Chain(), C=0.3, random_state=0).fit(dataset).converged_
    assert max(most) <= 15  # three chunks and what a long query adds to them
    assert sum(most) > len(ROWS)


def test_warm_start_and_checkpoint(tmp_path):
    model = StructuredSVM(Chain(), C=0.3, warm_start=True, random_state=0)
    calls = model.fit(chunks(), checkpoint=tmp_path / "state").n_oracle_calls_
    assert model.fit(chunks()).n_oracle_calls_ < calls
    again = StructuredSVM(Chain(), C=0.3, random_state=0).fit(chunks(), resume=tmp_path / "state")
    assert again.n_oracle_calls_ < calls
    assert_overlap(model, again)


def test_partial_fit():
    model = StructuredSVM(Chain(), C=0.3, random_state=0).partial_fit(chunks())
    assert_overlap(model, StructuredSVM(Chain(), C=0.3, random_state=0).fit(cut(ROWS), cut(LABELS)))


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: StructuredSVM(Chain()).fit(chunks(), cut(LABELS)), "itself"),
        (lambda: StructuredSVM(Chain()).fit(chunks(), sample_weight=WEIGHTS), "itself"),
        (lambda: StructuredSVM(Chain()).fit(chunks(None)), "no targets"),
        (
            lambda: StructuredSVM(Chain()).fit(chunks(weight=np.arange(1.0, 1 + len(ROWS)))),
            "weights of a query.* 3.0 and 4.0",
        ),
        (lambda: LatentSVM(MultipleInstance()).fit(chunks(LABELS)), "targets of a query.*same"),
        (lambda: LatentSVM(MultipleInstance()).fit(chunks(np.ones(len(ROWS)))), "no negative"),
        (lambda: StructuredSVM(Multiclass()).fit(dualsvm.open_dataset(iter([(X, THREE)]))), "only once.*save"),
    ],
)
def test_what_cannot_be_learned_from(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()
