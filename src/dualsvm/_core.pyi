from typing import Any

from numpy import float64, int8, int32, int64
from numpy.typing import NDArray

def wide() -> bool: ...
def all_finite(x: NDArray[Any]) -> bool: ...
def check_csr(start: NDArray[Any], column: NDArray[Any], n_columns: int) -> int: ...

class State:
    def __init__(
        self,
        rows: Any,
        *,
        kind: str,
        cost: NDArray[float64],
        margins: NDArray[float64],
        squared: bool,
        bias: float = 0.0,
        sign: NDArray[int8] | None = None,
        pairs: NDArray[int64] | None = None,
        epsilon: float = 0.0,
        label: NDArray[int32] | None = None,
        class_loss: NDArray[float64] | None = None,
        start: NDArray[int64] | None = None,
        member: NDArray[int64] | None = None,
        mean: NDArray[float64] | None = None,
        variance: NDArray[float64] | None = None,
        lower: NDArray[float64] | None = None,
        upper: NDArray[float64] | None = None,
        seed: int = 0,
    ) -> None: ...
    def explore(self) -> None: ...
    def optimize(
        self, max_passes: int, max_visits: int, goal: float, threads: int
    ) -> list[tuple[int, int, float, float, float]]: ...
    def certify(self, threads: int) -> tuple[float, float]: ...
    @property
    def n_weights(self) -> int: ...
    @property
    def n_alpha(self) -> int: ...
    def get_weights(self, w: NDArray[float64]) -> None: ...
    def get_alpha(self, alpha: NDArray[float64]) -> None: ...
    def set_alpha(self, alpha: NDArray[float64], threads: int = 1) -> None: ...
