"""What a sweep of each method costs against S, r and df: measured exponents.

    python benchmarks/complexity.py

n = m = 5, r = 5, df = 12 (polynomials: degree 12) at the S in the first column; then each of S, r and df is multiplied
by four, and the exponent is that of the time. One start, one BLAS thread; the fastest of several sweeps.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.methods import Method
from unbraid.runtime.process import single_blas_thread


@dataclass(frozen=True)
class Case:
    """A method, the basis that a df stands for, and the S it is measured at."""

    method: Method
    spline: bool
    S: int = 32000

    def basis(self, df: int) -> Basis:
        """The basis that the method's branches are made of."""
        return ub.BSpline(df) if self.spline else ub.Polynomial(df)


CASES = {
    "dejonghe2025": Case(ub.methods.dejonghe2025(), True),
    "zniyed2021": Case(ub.methods.zniyed2021(), True),
    "hollander2017": Case(ub.methods.hollander2017(), False, S=8000),
    "dreesen2015": Case(ub.methods.dreesen2015(), False),
    "decuyper2022": Case(ub.methods.decuyper2022(), False, S=300),
}


def seconds(case: Case, S: int, r: int, df: int) -> float:
    """Seconds of the fastest of some sweeps."""
    problem, _ = ub.datasets.random_system(5, 5, r, S, "sine", rng=0)
    samples, free = Samples.of(problem, Units.balanced(problem)), Projection.onto([None] * r)
    solver: Any = case.method.solver(samples, case.basis(df), free)
    with single_blas_thread():
        state = solver.random_start(r, [np.random.default_rng(0)])
        state, _ = solver.step(state)
        taken = []
        for _ in range(5 if case.S > 1000 else 1):
            began = time.perf_counter()
            state, _ = solver.step(state)
            taken.append(time.perf_counter() - began)
    return min(taken)


def main() -> None:
    """Print one row a method."""
    print("| method | ms per sweep | exponent of S | of r | of df |\n|---|---|---|---|---|")
    for name, case in CASES.items():
        usual = seconds(case, case.S, 5, 12)
        larger = [seconds(case, 4 * case.S, 5, 12), seconds(case, case.S, 20, 12), seconds(case, case.S, 5, 48)]
        powers = " | ".join(f"{np.log(one / usual) / np.log(4.0):.1f}" for one in larger)
        print(f"| `{name}` (S = {case.S}) | {1e3 * usual:.3g} | {powers} |", flush=True)


if __name__ == "__main__":
    main()
