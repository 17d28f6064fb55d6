"""Fits to values alone: the way from few degrees of freedom to the basis."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting.from_values import LADDER, Refine
from unbraid.fitting.session import Found, Session
from unbraid.results.fit import errors_on
from unbraid.results.outcome import Status, Trace
from unbraid.solvers.evaluated import outputs_at
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run


def noisy_values(n: int, m: int, r: int, S: int, seed: int) -> tuple[ub.Problem, ub.Problem]:
    whole, _ = ub.datasets.random_system(n, m, r, S + 500, "sine", seed)
    train, fresh = whole.take(slice(S)), whole.take(slice(S, None))
    F = np.asarray(train.F)
    noise = 0.01 * np.std(F, axis=0) * np.random.default_rng(seed).standard_normal(F.shape)
    return ub.Problem(train.X, F + noise), fresh


@pytest.mark.parametrize("basis", [ub.BSpline(5), ub.BSpline(12), ub.SmoothingSpline()], ids=repr)
@pytest.mark.parametrize("shape", [(1, 4, 2, 200), (2, 4, 3, 200), (3, 4, 4, 200)], ids=str)
def test_noisy_values_of_several_inputs_are_learned(basis: Basis, shape: tuple[int, int, int, int]) -> None:
    problem, fresh = noisy_values(*shape, seed=0)
    fit = ub.decouple(problem, shape[2], basis=basis, rng=0)
    outputs = errors_on(fresh, fit.model)[1]
    assert outputs is not None
    assert outputs.max() < (25.0 if basis.size < 7 else 8.0)
    assert len(fit.starts) == 16
    assert fit.basis == basis


def test_the_ladder_goes_up() -> None:
    sizes = [basis.size for basis in LADDER]
    assert sizes == sorted(sizes)


def test_two_starts_and_one_are_enough() -> None:
    problem, _ = noisy_values(1, 3, 2, 120, 0)
    for starts in (1, 2):
        assert len(ub.decouple(problem, 2, starts=starts, rng=0).starts) == starts


def test_only_different_directions_go_on() -> None:
    problem, _ = noisy_values(1, 3, 2, 120, 0)
    samples = Samples.of(problem, Units.balanced(problem))
    coarse = GaussNewton(samples, ub.BSpline(6), Projection.onto([None] * 2), 1.0, offset=True)
    rng = np.random.default_rng(0)
    W0 = rng.standard_normal((2, 1, 2, 3))
    runs = []
    for k, objective in ((0, 1.0), (0, 2.0), (1, 3.0)):
        placement = coarse.basis.place(W0[k] @ samples.X.T)
        it = Iterates(W0[k], rng.standard_normal((1, 1, 2)), placement, rng.standard_normal((1, 2, 7)))
        runs.append(Run(it, objective, Status.CONVERGED, Trace(np.zeros(0), np.zeros(0), ())))
    finer = GaussNewton(samples, ub.BSpline(20), Projection.onto([None] * 2), 1.0, offset=True)
    found = Refine(finer)(Session(), Found(tuple(runs))).runs
    assert len(found) == 2
    assert found[0].best.a.shape == (1, 2, 21)
    before, after = (outputs_at(samples, it) for it in (runs[0].best, found[0].best))
    np.testing.assert_allclose(
        after.values @ found[0].best.W1.mT, before.values @ runs[0].best.W1.mT, atol=0.2 * np.abs(before.values).max()
    )
