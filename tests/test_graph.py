"""Graphs: every search against a list of all labellings, and certificates against a QP with all constraints."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import dualsvm
from dualsvm import Prior, StructuredSVM, check_task
from dualsvm.tasks import Graph, Grid, Tree

from .graphs import grid_edges, joint_feature, outputs, random_graph, relaxation, scores, statement

SEEDS = st.integers(0, 2**32 - 1)
SLOTS = {"full": np.arange(9).reshape(3, 3), "symmetric": np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])}
SLOTS["potts"] = np.where(np.eye(3, dtype=bool), 0, -1)


def ready(task, x, y, labels):
    """Return the task with all labels known, and the numbers of edge features."""
    task.labels = labels
    task.initialize([x], [y])
    return task


def dense(task, x, y):
    phi = np.zeros(task.size_joint_feature)
    column, values = task.joint_feature(x, y)
    phi[column] = values
    return phi


def posed(x, y, w, n_labels):
    """Return the scores of nodes, with their losses if y is given, and of edges."""
    features, edges, edge_features = x
    width = features.shape[1]
    unary = features @ w[: width * n_labels].reshape(width, n_labels)
    pairwise = w[width * n_labels :].reshape(-1, n_labels, n_labels)
    tables = np.einsum("me,eab->mab", edge_features, pairwise)
    return unary + (0 if y is None else 1 - np.eye(n_labels)[y]), tables, edges


def worst(task, x, y, w):
    """Return the value and the bound of the worst constraint, as the compiled search has them."""
    found = task.encode([x], [y]).search(np.array([0]), w)
    phi = np.zeros(task.size_joint_feature)
    phi[found.column] = found.x
    assert found.value[0] == pytest.approx(found.l[0] - w @ phi)
    return found.value[0], found.bound[0]


@pytest.mark.parametrize("pairwise", SLOTS)
@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_joint_features_are_those_of_the_definition(pairwise, seed):
    rng = np.random.default_rng(seed)
    x, y = random_graph(rng, int(rng.integers(2, 7)), 3, edge_width=2)
    task = ready(Graph(pairwise=pairwise), (x[0], [[0, 1]], [[1.0, 1.0]]), [0, 1], [0, 1, 2])
    expected = joint_feature(x, y, 3, 2, SLOTS[pairwise])
    np.testing.assert_allclose(dense(task, x, y), expected, atol=1e-12)
    some = np.where(rng.random(len(y)) < 0.5, y, -1)
    given_labels = [None if label < 0 else int(label) for label in some]
    np.testing.assert_allclose(
        dense(task, x, given_labels), joint_feature(x, some, 3, 2, SLOTS[pairwise]), atol=1e-12
    )


@given(SEEDS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_small_graphs_and_forests_are_searched_exactly(seed, forest):
    rng = np.random.default_rng(seed)
    L = int(rng.integers(1, 4))
    n = int(rng.integers(1, 9 if forest else 7))
    x, y = random_graph(rng, n, L, share=rng.random(), forest=forest)
    task = ready((Tree if forest else Graph)(), x, y, range(L))
    w = rng.normal(size=task.size_joint_feature) if len(x[1]) else rng.normal(size=task._width * L + 2 * L * L)
    Y, truth = outputs(n, L), y[None]
    plain = scores(*posed(x, None, w, L), Y)
    assert scores(*posed(x, None, w, L), task.inference(x, w)[None])[0] == pytest.approx(plain.max())
    augmented = scores(*posed(x, y, w, L), Y).max()
    at = scores(*posed(x, y, w, L), truth)[0]
    value, bound = worst(task, x, y, w)
    assert value == bound == pytest.approx(augmented - at)
    found = task.loss_augmented_inference(x, y, w)
    assert scores(*posed(x, y, w, L), found[None])[0] == pytest.approx(augmented)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_two_labels_that_attract_each_other_are_cut_exactly(seed):
    rng = np.random.default_rng(seed)
    height, width = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    edges, _ = grid_edges(height, width)
    n = height * width
    x = rng.normal(size=(n, 2)), edges, rng.random((len(edges), 1))
    y = rng.integers(2, size=n)
    task = ready(Graph(), x, y, [0, 1])
    pairwise = rng.normal(size=4)
    pairwise[0] += max(0, pairwise[1] + pairwise[2] - pairwise[0] - pairwise[3])  # just so, or by far
    w = np.concatenate([rng.normal(size=4), pairwise * 10.0 ** rng.integers(-3, 3)])
    unary, tables, _ = posed(x, y, w, 2)
    best = scores(unary, tables, edges, outputs(n, 2)).max() - scores(unary, tables, edges, y[None])[0]
    value, bound = worst(task, x, y, w)
    assert value == pytest.approx(best, abs=1e-9)
    assert value <= bound <= value + 1e-9 * (1 + np.abs(w).sum() * n)


def test_large_cuts_agree_with_the_relaxation():
    """For two labels that attract each other, the linear program has whole solutions."""
    rng = np.random.default_rng(0)
    edges, _ = grid_edges(9, 11)
    x = rng.normal(size=(99, 1)), edges, rng.random((len(edges), 1))
    y = rng.integers(2, size=99)
    task = ready(Graph(submodular=True), x, y, [0, 1])
    w = np.array([1.0, -1.0, 0.3, -0.2, -0.3, 0.1])
    unary, tables, _ = posed(x, y, w, 2)
    value, bound = worst(task, x, y, w)
    assert (
        value == bound == pytest.approx(relaxation(unary, tables, edges) - scores(unary, tables, edges, y[None])[0])
    )


@pytest.mark.parametrize("max_iter", [1, 3, 50])
@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_message_passing_bounds_what_it_does_not_find(max_iter, seed):
    rng = np.random.default_rng(seed)
    n, L = (9, 3) if rng.random() < 0.5 else (13, 2)
    x, y = random_graph(rng, n, L, share=0.3 + 0.7 * rng.random())
    task = ready(Graph(max_iter=max_iter), x, y, range(L))
    w = rng.normal(size=task.size_joint_feature) * 3
    unary, tables, edges = posed(x, y, w, L)
    at = scores(unary, tables, edges, y[None])[0]
    best = scores(unary, tables, edges, outputs(n, L)).max() - at
    value, bound = worst(task, x, y, w)
    assert 0 <= value <= best + 1e-9
    assert best <= bound + 1e-9
    if bound > value + 1e-6:  # not proven by branching: then the messages' bound is that of trees, at best
        assert bound >= relaxation(unary, tables, edges) - at - 1e-6


def test_message_passing_reaches_the_relaxation_of_two_labels():
    rng = np.random.default_rng(5)
    edges, _ = grid_edges(7, 8)
    x = rng.normal(size=(56, 2)), edges, 2 * rng.normal(size=(len(edges), 1))
    y = rng.integers(2, size=56)
    task = ready(Graph(max_iter=1000), x, y, [0, 1])
    w = np.array([1.0, -1.0, 0.3, 0.2, 1.0, -1.0, -1.0, 1.0])
    unary, tables, _ = posed(x, y, w, 2)
    value, bound = worst(task, x, y, w)
    upper = relaxation(unary, tables, edges) - scores(unary, tables, edges, y[None])[0]
    assert value <= upper + 1e-6
    assert bound <= upper + 0.05 * abs(upper)


def test_parts_that_do_not_hang_together():
    """A triangle, a tree, a node alone and a part that only message passing can do, all in one graph."""
    rng = np.random.default_rng(3)
    grid, _ = grid_edges(3, 3)
    edges = np.concatenate([[[0, 1], [2, 1], [2, 0], [3, 4], [4, 5]], grid + 7])
    x = rng.normal(size=(16, 2)), edges, rng.normal(size=(len(edges), 2))
    y = rng.integers(3, size=16)
    task = ready(Graph(), x, y, [0, 1, 2])
    w = rng.normal(size=task.size_joint_feature)
    unary, tables, _ = posed(x, y, w, 3)
    best = 0
    for nodes, links in ((range(3), range(3)), (range(3, 7), (3, 4)), (range(7, 16), range(5, len(edges)))):
        Y = np.zeros((3 ** len(nodes), 16), dtype=int)
        Y[:, nodes] = outputs(len(nodes), 3)
        own = np.zeros_like(unary)
        own[nodes] = unary[nodes]
        best += scores(own, tables[list(links)], edges[list(links)], Y).max()
    value, bound = worst(task, x, y, w)
    assert value <= best - scores(unary, tables, edges, y[None])[0] + 1e-9 <= bound + 2e-9


@pytest.mark.parametrize("edge_features", ["constant", "ends"])
def test_grids_are_graphs(edge_features):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3, 2)), np.array([[0, 1, 2], [2, 0, 1]])
    task = ready(Grid(edge_features), x, y, [0, 1, 2])
    features, (edges, kinds) = x.reshape(-1, 2), grid_edges(2, 3)
    ends = np.column_stack([features[edges[:, 0]], features[edges[:, 1]]])
    graph = (features, edges, ends if edge_features == "ends" else np.ones((len(edges), 1)))
    width = graph[2].shape[1]

    def phi(labels):
        return joint_feature(graph, labels.ravel(), 3, width, kinds=kinds)

    np.testing.assert_allclose(dense(task, x, y), phi(y), atol=1e-12)
    w = rng.normal(size=task.size_joint_feature)
    Y = outputs(6, 3)
    best = Y[np.argmax([w @ phi(h) for h in Y])].reshape(2, 3)
    np.testing.assert_array_equal(task.inference(x, w), best)
    parts = task.unpack(w)
    assert parts.unary.shape == (3, 2)
    assert parts.horizontal.shape == parts.vertical.shape == (width, 3, 3)
    (a, b), k = edges[-1], len(edges) - 1  # an edge downwards
    by_hand = graph[2][k] @ parts.vertical[:, best.ravel()[a], best.ravel()[b]]
    table = task._scores(task._parts(x, "x"), w)[1][k]
    assert table[best.ravel()[a], best.ravel()[b]] == pytest.approx(by_hand)


SHAPES = {
    "plain": {},
    "bounds": {"lower": -0.05, "upper": 0.1},
    "prior": {"mean": 0.2, "variance": 0.5},
    "both": {"mean": -0.1, "variance": 2.0, "lower": 0.0},
}


def examples(seed, count=5, nodes=4, n_labels=2, missing=False):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        x, y = random_graph(rng, nodes, n_labels, share=0.7)
        x = (np.eye(n_labels)[y] + rng.normal(size=(nodes, n_labels)), x[1], np.abs(x[2]))
        made.append((x, np.where(rng.random(nodes) < 0.3, -1, y) if missing else y))
    return made


def fitted(task, made, shape, C=0.3, **rest):
    prior = Prior(**{k: shape[k] for k in ("mean", "variance") if k in shape})
    box = {k: shape[k] for k in ("lower", "upper") if k in shape}
    Y = [[None if label < 0 else int(label) for label in y] for _, y in made]
    model = StructuredSVM(task, C=C, prior=prior, tol=1e-6, random_state=0, **box, **rest)
    return model.fit([x for x, _ in made], Y)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_certificates_bracket_the_optimum(n_labels, shape, missing):
    made = examples(7, n_labels=n_labels, missing=missing)

    def phi(x, y):
        return joint_feature(x, y, n_labels, 2)

    model = fitted(Graph(labels=range(n_labels)), made, SHAPES[shape])
    optimum = statement(made, n_labels, 0.3, phi, **SHAPES[shape]).optimum()
    assert model.converged_
    assert model.lower_bound_ <= optimum + 1e-7 * optimum
    assert model.upper_bound_ >= optimum - 1e-7 * optimum


@pytest.mark.parametrize("pairwise", ["full", "symmetric", "potts"])
def test_submodular_weights(pairwise):
    made = examples(11)
    slots = {"full": [[0, 1], [2, 3]], "symmetric": [[0, 1], [1, 2]], "potts": [[0, -1], [-1, 0]]}[pairwise]
    slots = np.array(slots)
    model = fitted(Graph(pairwise=pairwise, submodular=True), made, {})
    tables = model.task.unpack(model.coef_).pairwise
    assert (tables[:, [0, 1], [0, 1]] >= 0).all()
    assert (tables[:, [0, 1], [1, 0]] <= 0).all()
    free = np.full(4, np.inf)
    equal = np.isin(np.arange(slots.max() + 1), np.diag(slots))
    lower = np.concatenate([-free, *2 * [np.where(equal, 0, -np.inf)]])
    upper = np.concatenate([free, *2 * [np.where(equal, np.inf, 0)]])

    def phi(x, y):
        return joint_feature(x, y, 2, 2, slots)

    optimum = statement(made, 2, 0.3, phi, lower=lower, upper=upper).optimum()
    assert model.lower_bound_ - 1e-7 * optimum <= optimum <= model.upper_bound_ + 1e-7 * optimum
    with pytest.raises(ValueError, match="input 1 has edge features below 0"):
        fitted(Graph(submodular=True), [made[0], ((made[1][0][0], made[1][0][1], -made[1][0][2]), made[1][1])], {})
    with pytest.raises(ValueError, match="two labels, got 3"):
        fitted(Graph(submodular=True), examples(1, n_labels=3), {})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_slack_rescaling_counts_the_bounds_of_the_search():
    made = examples(5, count=3)

    def phi(x, y):
        return joint_feature(x, y, 2, 2)

    model = fitted(Graph(), made, {}, rescaling="slack", max_iter=100)
    optimum = statement(made, 2, 0.3, phi, slack=True).optimum()
    assert model.lower_bound_ <= optimum * (1 + 1e-7)
    assert model.upper_bound_ >= optimum * (1 - 1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_search_that_is_not_exact_still_certifies(rescaling):
    """One iteration on graphs full of contradictions: the upper bound must not be less than the objective."""
    rng = np.random.default_rng(2)
    made = [random_graph(rng, 13, 2, share=0.9) for _ in range(3)]
    task = Graph(max_iter=1)
    model = StructuredSVM(task, C=0.5, rescaling=rescaling, max_iter=5, random_state=0)
    model.fit([x for x, _ in made], [y for _, y in made])
    w, objective = model.coef_, model.coef_ @ model.coef_ / 2
    for x, y in made:
        Y = outputs(13, 2)
        parts = posed(x, None, w, 2)
        short = scores(*parts, y[None])[0] - scores(*parts, Y)
        loss = np.not_equal(Y, y).sum(axis=1)
        objective += 0.5 * (loss - short if rescaling == "margin" else loss * (1 - short)).max()
    assert model.certified_
    assert model.lower_bound_ <= objective <= model.upper_bound_ * (1 + 1e-9)


def test_the_relaxed_problem_is_harder_and_certified():
    rng = np.random.default_rng(4)
    triangle = np.array([[0, 1], [1, 2], [2, 0]])
    made = [((rng.normal(size=(3, 2)), triangle), rng.integers(2, size=3)) for _ in range(3)]
    X, Y = [x for x, _ in made], [y for _, y in made]
    plain = StructuredSVM(Graph(), C=2.0, tol=1e-4, random_state=0).fit(X, Y)
    relaxed = StructuredSVM(Graph(relaxed=True), C=2.0, tol=1e-4, random_state=0).fit(X, Y)
    assert relaxed.converged_
    assert relaxed.upper_bound_ >= plain.lower_bound_
    task, w, objective = relaxed.task, relaxed.coef_, relaxed.coef_ @ relaxed.coef_ / 2
    for x, y in made:
        parts = posed((*x, np.ones((3, 1))), y, w, 2)
        objective += 2 * (relaxation(*parts) - scores(*parts, y[None])[0])
    assert relaxed.lower_bound_ <= objective * (1 + 1e-9)
    assert relaxed.upper_bound_ == pytest.approx(objective, rel=1e-6)
    w = np.array([0.1, 0, 0, 0.1, -1, 1, 1, -1.0])  # every edge wants different labels: the corner is in the middle
    nodes, edges = task.loss_augmented_inference(X[0], Y[0], w)
    np.testing.assert_allclose(nodes.sum(axis=1), 1)
    np.testing.assert_allclose(edges.sum(axis=2), nodes[triangle[:, 0]], atol=1e-12)
    np.testing.assert_allclose(edges.sum(axis=1), nodes[triangle[:, 1]], atol=1e-12)
    assert 0.1 < nodes.max() < 0.9
    phi = dense(task, X[0], (nodes, edges))
    value = task.loss(Y[0], (nodes, edges)) + w @ phi
    assert value == pytest.approx(relaxation(*posed((*X[0], np.ones((3, 1))), Y[0], w, 2)))
    assert all(label in (0, 1) for label in task.inference(X[0], w))


def test_relaxed_outputs_with_missing_labels():
    made = examples(9, count=3, missing=True)
    model = fitted(Graph(relaxed=True), made, {})
    optimum = statement(made, 2, 0.3, lambda x, y: joint_feature(x, y, 2, 2)).optimum()
    assert model.upper_bound_ >= optimum * (1 - 1e-7)


def test_labels_of_any_type_and_grids_with_gaps():
    rng = np.random.default_rng(0)
    kinds = np.empty(2, dtype=object)
    kinds[:] = [("sky", 1), ("sea", 2)]
    Y = [kinds[(rng.random((3, 4)) < 0.5).astype(int)] for _ in range(6)]
    X = [np.array([[[label == kinds[0], label == kinds[1]] for label in line] for line in y], float) for y in Y]
    Y[0][1, 2] = None
    model = StructuredSVM(Grid(), random_state=0).fit(X, Y)
    predicted = model.predict(X)
    assert predicted[0].shape == (3, 4)
    assert predicted[0][1, 2] in set(kinds)
    assert model.score(X, Y) == 1.0
    words = [["a", "b", None], ["b", "a", "a"]]
    graph = (np.eye(3), [(0, 1), (1, 2)])
    assert len(StructuredSVM(Tree()).fit([graph, graph], words).predict([graph])[0]) == 3


def test_sparse_and_narrow_features_make_no_difference():
    made = examples(3)
    reference = fitted(Graph(), made, {})
    sparse = [((sp.csr_array(x[0]), x[1], sp.csr_array(x[2])), y) for x, y in made]
    np.testing.assert_allclose(fitted(Graph(), sparse, {}).coef_, reference.coef_, atol=1e-9)
    narrow = [((x[0].astype(np.float32), x[1], x[2]), y) for x, y in made]
    np.testing.assert_allclose(fitted(Graph(), narrow, {}).coef_, reference.coef_, atol=1e-3)
    np.testing.assert_allclose(fitted(Graph(), made, {}, n_jobs=2).coef_, reference.coef_)


def test_nodes_and_edges_may_be_absent():
    none = (np.empty((0, 2)), [])
    alone = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.empty((0, 2), int))
    pair = (np.array([[1.0, 0.5], [0.2, 1.0]]), [(1, 0)])
    model = StructuredSVM(Graph(normalized=True), random_state=0).fit([none, alone, pair], [[], "ab", "ba"])
    assert [len(y) for y in model.predict([none, alone, pair])] == [0, 2, 2]
    assert model.predict([]) == []
    assert StructuredSVM(Graph()).fit([alone], ["ab"]).converged_


@pytest.mark.parametrize("task", [Graph(), Graph(pairwise="potts", cost=[[0, 2], [0.5, 0]]), Grid("ends")])
def test_files(task, tmp_path):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, 2, 2)) for _ in range(4)]
    Y = [rng.choice(["u", "v"], size=(2, 2)) for _ in X]
    if type(task) is Graph:
        X, Y = [(x.reshape(4, 2), [(0, 1), (2, 3), (3, 0)]) for x in X], [y.ravel() for y in Y]
    model = StructuredSVM(task, random_state=0).fit(X, Y)
    model.save(tmp_path / "model.npz")
    again = dualsvm.load(tmp_path / "model.npz")
    for a, b in zip(model.predict(X), again.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_tasks_keep_their_promises():
    made = examples(13, count=2)
    X, Y = [x for x, _ in made], [y for _, y in made]
    check_task(Graph(), X, Y, outputs=lambda x: outputs(4, 2))
    check_task(Graph(pairwise="symmetric", normalized=True, cost=[[0, 3], [1, 0]]), X, Y)
    images = [np.ones((2, 2, 1)), np.zeros((2, 2, 1))]
    check_task(Grid(), images, [np.zeros((2, 2), int), np.ones((2, 2), int)])
