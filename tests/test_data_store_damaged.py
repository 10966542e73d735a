"""Stores that are not what they should be: damaged, forged or changed, they are refused with their name."""

import json
import os

import numpy as np
import pytest

import dualsvm

from .datasets import whole
from .stores import W, X, Y, saved


@pytest.mark.parametrize("name", ["values", "indices", "indptr", "target", "weight", "qid"])
@pytest.mark.parametrize("change", ["shorter", "longer", "missing", "header"])
def test_files_that_do_not_fit(name, change, tmp_path):
    path = saved(tmp_path)
    file = path / f"{name}.npy"
    content = file.read_bytes()
    if change == "missing":
        file.unlink()
    else:
        shapes = content[:128].replace(b"(", b"(1")
        file.write_bytes(
            {"shorter": content[:-1], "longer": content + b"0", "header": shapes[:128] + content[128:]}[change]
        )
    with pytest.raises(ValueError, match=rf"store' is not a whole store.*{name}.npy.*write it again"):
        dualsvm.open_dataset(path)


@pytest.mark.parametrize("name", ["values", "indices", "indptr", "target", "weight", "qid"])
def test_checksums(name, tmp_path):
    path = saved(tmp_path)
    with open(path / f"{name}.npy", "r+b") as file:
        file.seek(128 + 16)
        byte = file.read(1)
        file.seek(128 + 16)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ValueError, match=rf"store' is damaged: {name}.npy has another checksum"):
        dualsvm.open_dataset(path, verify=True)


FORGED = {
    "no json": lambda meta: "{",
    "a list": lambda meta: [],
    "another format": lambda meta: meta | {"format": "other"},
    "another version": lambda meta: meta | {"version": 2},
    "no format": lambda meta: {k: v for k, v in meta.items() if k != "format"},
    "no arrays": lambda meta: {k: v for k, v in meta.items() if k != "arrays"},
    "other rows": lambda meta: meta | {"rows": 91},
    "no rows": lambda meta: meta | {"rows": 0},
    "negative": lambda meta: meta | {"rows": -1},
    "text": lambda meta: meta | {"rows": "90"},
    "huge": lambda meta: meta | {"rows": 10**30},
    "truth": lambda meta: meta | {"features": True},
    "dense": lambda meta: meta | {"sparse": False},
    "other entries": lambda meta: meta | {"stored": meta["stored"] - 1},
    "a stranger": lambda meta: meta | {"arrays": meta["arrays"] | {"../x": {"dtype": "<f8"}}},
    "objects": lambda meta: meta | {"arrays": meta["arrays"] | {"values": {"dtype": "|O"}}},
    "no values": lambda meta: meta | {"arrays": {k: v for k, v in meta["arrays"].items() if k != "values"}},
    "names": lambda meta: meta | {"feature_names": ["a"]},
    "classes": lambda meta: meta | {"classes": [1, 2]},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_descriptions(name, tmp_path):
    path = saved(tmp_path)
    forged = FORGED[name](json.loads((path / "meta.json").read_text()))
    (path / "meta.json").write_text(forged if isinstance(forged, str) else json.dumps(forged))
    with pytest.raises(ValueError, match=r"store' is not a whole store"):
        dualsvm.open_dataset(path)


@pytest.mark.parametrize(
    ("name", "forge", "message"),
    [
        ("indices", lambda a: np.full_like(a, 10_000), "broken CSR matrix"),
        ("indices", lambda a: np.full_like(a, -1), "broken CSR matrix"),
        ("indptr", lambda a: np.concatenate([a[:1], a[1:-1] + 10**12, a[-1:]]), "indptr.npy does not increase"),
        ("indptr", lambda a: np.concatenate([a[:1], a[-2:0:-1], a[-1:]]), "indptr.npy does not increase|broken CSR"),
        ("values", lambda a: a * np.nan, "contains NaN"),
        ("weight", lambda a: a - 2, "weight must not be negative"),
    ],
)
def test_forged_arrays(name, forge, message, tmp_path):
    path = saved(tmp_path)
    file = path / f"{name}.npy"
    forged = forge(np.load(file))
    with open(file, "r+b") as out:
        out.seek(128)
        out.write(forged.tobytes())
    with pytest.raises(ValueError, match=message):
        whole(dualsvm.open_dataset(path, chunk_rows=20))


def test_numbers_of_no_class(tmp_path):
    dualsvm.open_dataset(X, target=np.array(["a", "b", "c", "d"])[Y]).save(tmp_path / "store")
    meta = json.loads((tmp_path / "store" / "meta.json").read_text())
    (tmp_path / "store" / "meta.json").write_text(json.dumps(meta | {"classes": ["a", "b"]}))
    with pytest.raises(ValueError, match="holds numbers of no class"):
        whole(dualsvm.open_dataset(tmp_path / "store"))


def test_a_store_that_changes(tmp_path):
    path = saved(tmp_path)
    store = dualsvm.open_dataset(path, chunk_rows=10, read_ahead=0)
    whole(store)
    os.utime(path / "values.npy", ns=(1, 1))
    with pytest.raises(ValueError, match=r"values.npy' has changed since it was opened"):
        whole(store)
    store = dualsvm.open_dataset(path, chunk_rows=10, read_ahead=0)
    chunks = iter(store)
    next(chunks)
    os.truncate(path / "values.npy", 200)
    with pytest.raises(ValueError, match="has become shorter"):  # and not the end of the process
        list(chunks)


def test_columns_are_not_for_stores(tmp_path):
    path = saved(tmp_path)
    with pytest.raises(ValueError, match="target is for named columns and arrays only"):
        dualsvm.open_dataset(path, target="y")
    with pytest.raises(ValueError, match=r"store' has its own weight: leave weight out"):
        whole(dualsvm.open_dataset(path, weight=W[::-1]))
    with pytest.raises(ValueError, match="verify is for stores only"):
        dualsvm.open_dataset(X, verify=True)
