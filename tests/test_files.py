"""Estimators in files: what comes back is what was saved, and files from strangers do no harm."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

import dualsvm
from dualsvm import Prior, SVMClassifier, SVMRanker, SVMRegressor, load

from .estimators import KINDS, TARGETS, THREE, TWO, X, every_kind


def kept(model, folder):
    model.save(folder / "model")
    return load(folder / "model")


def same(one, other):
    if isinstance(one, Prior):
        return isinstance(other, Prior) and all(same(getattr(one, k), getattr(other, k)) for k in vars(one))
    if hasattr(one, "toarray"):
        return type(one) is type(other) and same(one.toarray(), other.toarray())
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


@every_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_that_was_learned_comes_back(kind, dtype, tmp_path):
    model, y, fit_params = KINDS[kind]
    model = clone(model).fit(X.astype(dtype), y, **fit_params)
    again = kept(model, tmp_path)
    assert type(again) is type(model)
    assert set(vars(again)) == set(vars(model))
    different = [name for name, value in vars(model).items() if not same(value, getattr(again, name))]
    assert different == []
    np.testing.assert_array_equal(again.predict(X.astype(dtype)), model.predict(X.astype(dtype)))


PARAMETERS = [
    SVMClassifier(),
    SVMClassifier(class_weight={0: 1.0, 1: 2.5}),
    SVMClassifier(class_weight={"a": 1.0, "b": 2}),
    SVMClassifier(class_weight={True: 1.0, False: 0.5}),
    SVMClassifier(class_weight="balanced", fit_intercept="unpenalized", loss="squared_hinge", multi_class="ovr"),
    SVMClassifier(class_loss=np.array([[0.0, 1.0], [2.0, 0.0]]), rescaling="slack", n_jobs=-1, verbose=2),
    SVMClassifier(prior=Prior(mean=np.arange(3.0), variance=2.0), lower=-np.inf, upper=np.array([1.0, np.inf, 2.0])),
    SVMRegressor(prior=Prior(covariance=np.eye(3)), C=7, epsilon=0.25, random_state=5, warm_start=True),
    SVMRegressor(prior=Prior(), tol=0, max_iter=10**12, fit_intercept=False),
    SVMRanker(slack="query", upper=np.zeros((), np.float32), prior=Prior(mean=np.array([1, 2, 3]))),
]


@pytest.mark.parametrize("model", PARAMETERS, ids=repr)
def test_all_kinds_of_parameters_come_back(model, tmp_path):
    again = kept(model, tmp_path)
    assert again.get_params().keys() == model.get_params().keys()
    different = [k for k, value in model.get_params().items() if not same(value, getattr(again, k))]
    assert different == []
    assert not hasattr(again, "coef_")


def test_lists_come_back_as_arrays(tmp_path):
    model = SVMClassifier(prior=Prior(mean=[1.0, 2.0, 0.0, 0.0]), class_loss=[[0, 1], [2, 0]], random_state=0)
    again = kept(model, tmp_path)
    np.testing.assert_array_equal(again.class_loss, [[0, 1], [2, 0]])
    np.testing.assert_array_equal(again.fit(X, TWO).coef_, model.fit(X, TWO).coef_)


def test_numbers_of_numpy_come_back(tmp_path):
    model = SVMRegressor(C=np.float32(0.5), tol=np.float64(1e-2), max_iter=np.int64(50), warm_start=np.bool_(True))
    again = kept(model, tmp_path)
    assert (again.C, again.tol, again.max_iter, again.warm_start) == (0.5, 1e-2, 50, True)


@pytest.mark.parametrize(
    "names",
    [
        np.array([3, 1, 2]),
        np.array([2.0, 3.0, 4.0], np.float32),
        np.array(["ä", "", "long text"]),
        np.array(["ä", "", "long text"], dtype=object),
        np.array([0, 1, 255], np.uint8),
    ],
    ids=lambda names: str(names.dtype),
)
def test_labels_come_back(names, tmp_path):
    model = SVMClassifier(random_state=0).fit(X, names[THREE])
    again = kept(model, tmp_path)
    assert same(again.classes_, model.classes_)
    assert same(again.predict(X), model.predict(X))


def test_truth_comes_back(tmp_path):
    model = SVMClassifier(random_state=0).fit(X, TWO == 1)
    assert same(kept(model, tmp_path).predict(X), model.predict(X))


def test_names_of_features_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    again = kept(SVMRegressor(random_state=0).fit(frame, TARGETS), tmp_path)
    assert again.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("abdc")])


@every_kind
def test_what_is_learned_later_is_the_same(kind, tmp_path):
    model, y, fit_params = KINDS[kind]
    model = clone(model).set_params(warm_start=True).fit(X, y, **fit_params)
    again = kept(model, tmp_path)
    for one in (model, again):
        one.set_params(C=2.0).fit(X, y, **fit_params)
    assert again.n_iter_ == model.n_iter_
    np.testing.assert_array_equal(again.coef_, model.coef_)


@every_kind
def test_a_stream_goes_on_from_a_file(kind, tmp_path):
    model, y, fit_params = KINDS[kind]
    model = clone(model).fit(X, y, **fit_params).partial_fit(X[::-1], y[::-1], **fit_params)
    again = kept(model, tmp_path)
    for one in (model, again):
        one.partial_fit(X, y, **fit_params)
    np.testing.assert_array_equal(again.coef_, model.coef_)


# what a file cannot hold


@pytest.mark.parametrize("random_state", [np.random.RandomState(0), np.random.default_rng(0)], ids=["old", "new"])
def test_a_random_state_must_be_an_integer(random_state, tmp_path):
    with pytest.raises(TypeError, match=r"random_state is a (RandomState|Generator).*for random_state an integer"):
        SVMClassifier(random_state=random_state).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_older_file(tmp_path, monkeypatch):
    model = SVMRegressor(random_state=0).fit(X, TARGETS)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()

    def half(file, *_, **__):
        file.write(b"half of it")
        raise OSError("the disk is full")

    monkeypatch.setattr(np.lib.format, "write_array", half)
    with pytest.raises(OSError, match="the disk is full"):
        model.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_bytes() == before


def test_a_file_is_replaced(tmp_path):
    SVMRegressor(random_state=0).fit(X, TARGETS).save(tmp_path / "model")
    SVMClassifier(C=3.0).save(str(tmp_path / "model"))
    assert load(str(tmp_path / "model")).C == 3.0


# files from strangers


class Trap:
    """Leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def saved(folder):
    SVMClassifier(random_state=0).fit(X, TWO).save(folder / "model")
    return folder / "model"


def rewritten(path, **replaced):
    """Write a saved file again, with some of its arrays replaced or, for None, left out."""
    with np.load(path) as file:
        arrays = {k: v for k, v in (dict(file) | replaced).items() if v is not None}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def test_nothing_is_unpickled(tmp_path):
    trap, path = tmp_path / "trace", saved(tmp_path)
    rewritten(path, coef_=np.array([Trap(trap)], dtype=object))
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(path)
    path.write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(path)
    assert not trap.exists()


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_truncated_files(part, tmp_path):
    path = saved(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match="model' is not an estimator saved by dualsvm"):
        load(path)


def test_damaged_files(tmp_path):
    path = saved(tmp_path)
    content = path.read_bytes()
    model = load(path)
    for at in np.linspace(0, len(content) - 1, 60, dtype=int):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            again = load(path)
        except ValueError:
            continue
        np.testing.assert_array_equal(again.coef_, model.coef_)  # what was hit does not matter


def archive(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


def arrays(**values):
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()


FOREIGN = {
    "nothing": b"",
    "text": b"hello",
    "other zip": archive(readme="hello"),
    "other arrays": arrays(a=np.ones(3)),
    "one array": arrays(meta=np.ones(3)),
    "no json": arrays(meta=np.array("{")),
    "json of another kind": arrays(meta=np.array("[1, 2]")),
    "no format": arrays(meta=np.array("{}")),
    "another format": arrays(meta=np.array(json.dumps({"format": "dualsvm.SVMClassifier 2", "state": {}}))),
    "no state": arrays(meta=np.array(json.dumps({"format": "dualsvm.SVMClassifier 1"}))),
    "no parameters": arrays(meta=np.array(json.dumps({"format": "dualsvm.SVMClassifier 1", "state": {}}))),
}


@pytest.mark.parametrize("content", list(FOREIGN))
def test_foreign_files(content, tmp_path):
    (tmp_path / "model").write_bytes(FOREIGN[content])
    with pytest.raises(ValueError, match="model' is not an estimator saved by dualsvm"):
        load(tmp_path / "model")


@pytest.mark.parametrize("name", ["fit", "predict", "__class__", "_bias", "save"])
def test_a_file_cannot_replace_methods(name, tmp_path):
    path = saved(tmp_path)
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
    meta["state"][name] = 1
    rewritten(path, meta=np.array(json.dumps(meta)))
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(path)


@pytest.mark.parametrize("name", ["coef_", "intercept_", "classes_", "dual_coef_.data"])
def test_a_file_that_lacks_an_array(name, tmp_path):
    rewritten(path := saved(tmp_path), **{name: None})
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        SVMClassifier().save(tmp_path / "nowhere" / "model")


def test_a_solution_is_no_estimator(tmp_path):
    problem = dualsvm.Problem.binary(X, 2 * TWO - 1)
    dualsvm.solve(problem, random_state=0).save(tmp_path / "model")
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(tmp_path / "model")


FORGED = {
    "indices beyond the matrix": {"_alpha.indices": lambda a: np.full_like(a, 2_000_000_000)},
    "negative indices": {"_alpha.indices": lambda a: np.full_like(a, -100_000)},
    "rows that end before they begin": {"_alpha.indptr": lambda a: a[::-1].copy()},
    "dual coefficients elsewhere": {"dual_coef_.indices": lambda a: np.full_like(a, 2_000_000_000)},
    "weights that are not numbers": {"coef_": lambda a: a * np.nan},
    "weights of another width": {"coef_": lambda a: a[:, :-1].copy()},
    "weights of another number of classes": {"coef_": lambda a: np.vstack([a, a])},
    "weights that are text": {"coef_": lambda a: a.astype(str)},
    "complex weights": {"coef_": lambda a: a * 1j},
    "intercepts of another number": {"intercept_": lambda a: a[:-1].copy()},
    "fewer classes": {"classes_": lambda a: a[:2].copy()},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name, tmp_path):
    path = tmp_path / "model.npz"
    SVMClassifier(random_state=0).fit(X, THREE).save(path)
    with np.load(path) as file:
        parts = dict(file)
    for key, forge in FORGED[name].items():
        parts[key] = forge(parts[key])
    np.savez(path, **parts)
    with pytest.raises(ValueError, match="is not an estimator saved by dualsvm"):
        load(path)


def test_a_subclass_is_saved_as_what_it_extends(tmp_path):
    class Mine(SVMClassifier):
        pass

    model = Mine(random_state=0).fit(X, THREE)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert type(loaded) is SVMClassifier
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_dates_and_odd_words_as_labels(tmp_path):
    for names in (np.array(["2026-01-01", "2026-02-01", "2026-03-01"], "M8[D]"), np.array(["a", "a\0", "b"], object)):
        model = SVMClassifier(random_state=0).fit(X, names[THREE])
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_keys_that_json_cannot_hold(tmp_path):
    with pytest.raises(TypeError, match="class_weight has keys that a file without pickle cannot hold"):
        SVMClassifier(class_weight={("a", 1): 1.0}).save(tmp_path / "m")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    SVMClassifier().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert isinstance(load(tmp_path / "model"), SVMClassifier)
