"""How many reads of the data a solve out of core takes, beside the passes of one in memory.

python -m benchmarks.reads a9a,news20bin,mnist,noisy --C 0.1,1,10 --cache 0.1,0.3 --chunks 20
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial

import numpy as np

import dualsvm
from dualsvm.chunked import Plan, Run, Runs

from . import data


def noisy(n: int = 200_000, seed: int = 0):
    """The sparse set with one label in five flipped."""
    X, y = data.sparse(n, seed=seed)
    return X, y * np.where(np.random.default_rng(seed + 1).random(n) < 0.2, -1.0, 1.0)


def problem_of(make, own, chunk):
    return make(chunk.X, chunk.y, **own)


SETS = data.SETS | {"noisy": noisy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets")
    parser.add_argument("--C", default="1")
    parser.add_argument("--cache", default="0.1,0.3,1.0")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--reads", type=int, default=30)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--plan", default="", help="chunk_passes=1,rounds=2,...")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    plan = {k: float(v) if "." in v else int(v) for k, v in (p.split("=") for p in args.plan.split(",") if p)}
    warnings.simplefilter("ignore")
    for name in args.sets.split(","):
        X, y = SETS[name]()
        d = data.Data(name, X, y)
        order = np.random.default_rng(5).permutation(len(y))
        X, y = X[order], y[order]
        classes = np.unique(y)
        binary = len(classes) == 2
        make = dualsvm.Problem.binary if binary else dualsvm.Problem.multiclass
        own = {} if binary else {"n_classes": len(classes)}
        for C in map(float, args.C.split(",")):
            passes = {}
            if not args.no_memory:
                for tol in (1e-2, 1e-3):
                    began = time.perf_counter()
                    s = dualsvm.solve(make(X, y, cost=C, intercept=1.0, **own), tol=tol, random_state=0)
                    visits = sum(r.explored for r in s.history) / len(y)
                    passes[tol] = f"{s.n_iter} ({visits:.0f}, {time.perf_counter() - began:.1f} s)"
                free = _free(s.alpha, C)
                print(f"{name} C={C}: in memory {passes[1e-2]} / {passes[1e-3]} passes, free {free:.2f}", flush=True)
            for part in map(float, args.cache.split(",")):
                dataset = dualsvm.open_dataset(X, target=y, chunk_rows=-(-len(y) // args.chunks))
                run = Run(
                    dataset,
                    partial(problem_of, make, {"cost": C, "intercept": 1.0, **own}),
                    part * d.bytes,
                    args.tol,
                    0,
                    plan=Plan(**plan),
                )
                runs = Runs(dataset, [run], part * d.bytes)
                began = time.perf_counter()
                reached: dict[float, int] = {}
                while not run.converged and run.reads < args.reads:
                    runs.read()
                    rows = len(run.cache) / len(y)
                    if args.v:
                        print(
                            f"   read {run.reads}: lower {run.lower:.6g} upper {run.upper:.6g} gap {run.gap:.2e} "
                            f"visits {run.visits / len(y):.1f} kept {rows:.2f} bar {run.cache.bar:.3g}",
                            flush=True,
                        )
                    for tol in (1e-2, 1e-3):
                        if run.gap <= tol:
                            reached.setdefault(tol, run.reads)
                    run.settle()
                after = [runs.history[k].upper / run.lower - 1 for k in range(1, min(5, run.reads))]
                after = ", ".join(f"{x:.1e}" for x in after)
                seconds = time.perf_counter() - began
                print(
                    f"{name} C={C} cache {part}: reads {reached.get(1e-2)} / {reached.get(1e-3)}, gap {run.gap:.1e}, "
                    f"after {after}, visits {run.visits / len(y):.0f}, kept {rows:.2f}, {seconds:.1f} s",
                    flush=True,
                )


def _free(alpha: np.ndarray, C: float) -> float:
    alpha = alpha.reshape(len(alpha), -1)
    mass = alpha.sum(axis=1)
    return float(((mass > 0) & ((mass < C * (1 - 1e-9)) | ((alpha > 0).sum(axis=1) > 1))).mean())


if __name__ == "__main__":
    main()
