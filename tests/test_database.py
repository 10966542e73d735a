"""Training from databases: a DuckDB query over a folder of Parquet files, and a Polars lazy frame."""

import duckdb
import numpy as np
import polars as pl
import pytest

import dualsvm
from dualsvm import SVMClassifier, SVMRanker, SVMRegressor

from .estimators import assert_certified, assert_overlap, statements

RNG = np.random.default_rng(2)
N = 400
X = RNG.normal(size=(N, 3)).round(3)
SUM = X @ [1.0, -1.0, 0.5] + RNG.normal(size=N)
TABLE = pl.DataFrame(
    {
        "night": RNG.permutation(np.repeat(np.arange(50), 8)),
        "a": X[:, 0],
        "b": X[:, 1],
        "c": X[:, 2],
        "stars": np.digitize(SUM, [-1.0, 1.0]),
        "price": SUM.round(3),
        "kind": np.array(["early", "late"])[(SUM > 0).astype(int)],
        "valid": RNG.random(N) < 0.8,
        "row": np.arange(N),
    }
)
FEATURES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bookings")
    for k in range(4):
        TABLE[k * 100 : (k + 1) * 100].write_parquet(folder / f"part{k}.parquet")
    return folder


def from_duckdb(folder):
    return duckdb.connect().sql(f"select * exclude (valid) from '{folder}/*.parquet' where valid order by night, row")


def from_polars(folder):
    return pl.scan_parquet(folder / "*.parquet").filter(pl.col("valid")).sort("night", "row").drop("valid")


DATABASES = {"duckdb": from_duckdb, "polars": from_polars}
every_database = pytest.mark.parametrize("database", DATABASES.values(), ids=DATABASES)


def rows():
    """The same rows in memory, selected by numpy alone."""
    columns = {name: TABLE[name].to_numpy() for name in TABLE.columns}
    which = np.lexsort([columns["row"], columns["night"]])
    which = which[columns["valid"][which]]
    return X[which], {name: column[which] for name, column in columns.items()}


def opened(database, folder, target, **more):
    return dualsvm.open_dataset(database(folder), target=target, features=FEATURES, chunk_rows=60, **more)


@every_database
@pytest.mark.parametrize("cache_mb", [0.003, 1.0])
def test_classes(database, folder, cache_mb):
    chosen, columns = rows()
    model = SVMClassifier(C=0.5, cache_mb=cache_mb, tol=1e-4, random_state=0)
    model.fit(opened(database, folder, "kind"))
    assert_certified(model, statements(chosen, columns["kind"], cost=0.5))
    assert model.classes_.tolist() == ["early", "late"]
    assert model.feature_names_in_.tolist() == FEATURES
    assert_overlap(model, SVMClassifier(C=0.5, tol=1e-4, random_state=0).fit(chosen, columns["kind"]))


@every_database
@pytest.mark.parametrize("slack", ["pair", "query"])
def test_rankings(database, folder, slack):
    chosen, columns = rows()
    model = SVMRanker(C=0.1, slack=slack, cache_mb=0.02, random_state=0)
    model.fit(opened(database, folder, "stars", qid="night"))
    in_memory = SVMRanker(C=0.1, slack=slack, random_state=0).fit(chosen, columns["stars"], columns["night"])
    assert_overlap(model, in_memory)
    assert model.dual_coef_.shape == (1, len(chosen))


@every_database
def test_targets(database, folder):
    chosen, columns = rows()
    model = SVMRegressor(cache_mb=0.003, random_state=0).fit(opened(database, folder, "price"))
    assert_overlap(model, SVMRegressor(random_state=0).fit(chosen, columns["price"]))
