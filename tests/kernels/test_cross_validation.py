"""Generalised cross-validation in closed form, against refitting for every strength."""

import numpy as np
import pytest

from unbraid.bases.smoothing import ROUGHNESS, even_roots
from unbraid.kernels.arrays import Array
from unbraid.kernels.cross_validation import GAMMA, PenalisedSystem, cross_validate, diagonalise, trial_strengths

K = 12
ROOT = even_roots(K - 3, 3)[ROUGHNESS]
OMEGA = ROOT.T @ ROOT


def regression(seed: int, r: int, rows: int = 200) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((rows, r * K))
    return D, D @ rng.standard_normal(r * K) + 0.3 * rng.standard_normal(rows)


def score(D: Array, y: Array, alpha: Array) -> float:
    """The definition: residuals of a penalised fit, and the trace of the matrix that makes fits from data."""
    P = np.kron(np.diag(alpha), OMEGA)
    hat = D @ np.linalg.solve(D.T @ D + P, D.T)
    residual = y - hat @ y
    return float(residual @ residual / (len(y) - GAMMA * np.trace(hat)) ** 2)


@pytest.mark.parametrize("r", [1, 3])
def test_scores_are_those_of_the_definition(r: int) -> None:
    D, y = regression(0, r)
    T, penalised = diagonalise(ROOT)
    both = np.kron(np.eye(r), T)
    alpha = np.logspace(-6, -4, r)
    tried = np.logspace(-12, 2, 15)
    for j in range(r):
        H, right = both.T @ D.T @ D @ both, both.T @ D.T @ y
        found = PenalisedSystem(H, right, np.asarray(y @ y), penalised, float(len(y))).scores(alpha, j, tried)
        wanted = [score(D, y, np.where(np.arange(r) == j, one, alpha)) for one in tried]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_no_other_strength_of_one_branch_has_a_lower_score() -> None:
    D, y = regression(1, 2)
    N, b = (D.T @ D).reshape(2, K, 2, K), (D.T @ y).reshape(2, K)
    alpha = cross_validate(N, b, np.asarray(y @ y), ROOT, float(len(y)))
    best = score(D, y, alpha)
    for j in range(2):
        unit = np.trace(N[j, :, j])
        others = [score(D, y, np.where(np.arange(2) == j, one * unit, alpha)) for one in trial_strengths(ROOT)[::4]]
        assert best <= min(others) * (1 + 1e-6)


def test_a_batch_gives_what_its_members_give() -> None:
    every = [regression(seed, 2) for seed in range(3)]
    N = np.stack([(D.T @ D).reshape(2, K, 2, K) for D, _ in every])
    b = np.stack([(D.T @ y).reshape(2, K) for D, y in every])
    square = np.array([y @ y for _, y in every])
    together = cross_validate(N, b, square, ROOT, 200.0)
    for i in range(3):
        np.testing.assert_allclose(together[i], cross_validate(N[i], b[i], square[i], ROOT, 200.0))


@pytest.mark.parametrize(("intervals", "degree"), [(1, 3), (9, 3), (24, 5), (120, 5)])
def test_coordinates_are_penalised_equally_or_not_at_all(intervals: int, degree: int) -> None:
    root = even_roots(intervals, degree)[ROUGHNESS]
    T, penalised = diagonalise(root)
    gram = (root @ T).T @ (root @ T)
    expected = np.zeros_like(gram)
    expected[penalised, penalised] = 1.0
    np.testing.assert_allclose(gram, expected, atol=1e-6)
    assert len(penalised) == intervals


def test_strengths_go_from_nothing_to_much() -> None:
    tried = trial_strengths(ROOT)
    values = np.linalg.svd(ROOT, compute_uv=False) ** 2
    assert tried[0] * values.sum() < 1e-5
    assert tried[-1] * values[-1] == pytest.approx(1.0)
    assert (np.diff(np.log10(tried)) <= 0.25 + 1e-12).all()
