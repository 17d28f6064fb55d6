"""Laws of the projection onto the cone of every constraint, on every basis that carries one; SciPy is the oracle."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from scipy import optimize

import unbraid as ub
from registry import (
    BASES,
    CARRIERS,
    CONSTRAINTS,
    EPS,
    KINDS,
    distinct_inputs,
    inputs,
    knots,
    pieces,
    random_feasible,
    seeds,
)
from unbraid.bases import Basis, Placement
from unbraid.bases.constraints import Constraint
from unbraid.bases.natural import PlacedNatural, unfold
from unbraid.bases.projection import Projection, Targets, targets
from unbraid.bases.splines import PlacedSpline
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch

every_carrier = pytest.mark.parametrize("basis", CARRIERS, ids=repr)
couplings = st.sampled_from([1e-4, 0.1, 1.0, 100.0])
LAMBDA = 0.1
One = TypeVar("One")


def each(ones: Iterable[One]) -> Iterator[One]:
    """One after the other within an example, for drawing it takes longer than a projection; a failure names it."""
    for one in ones:
        note(f"with {one!r}")
        yield one


def cone_coordinates(placed: Placement, order: int) -> Array:
    """Q (K, K): row `order` and below of Q a are what must be ≥ 0, the rows above are free. Built from the knots."""
    if isinstance(placed, PlacedNatural):  # of the cubic's rows, without those that the end conditions settle
        P = unfold(np.eye(len(pieces(placed))), placed.shares).T
        settled = ([1, -2], [1, -1], [2, -1])[order]
        return np.delete(cone_coordinates(placed.spline, order) @ P, settled, axis=0)
    assert isinstance(placed, PlacedSpline)
    tau, d, K = knots(placed), placed.degree, len(placed.breakpoints) - 1 + placed.degree
    a = np.eye(K)
    slopes = np.array([d * (a[j + 1] - a[j]) / (tau[j + d + 1] - tau[j + 1]) for j in range(K - 1)])
    return (a, np.vstack([a[:1], slopes]), np.vstack([a[:1], slopes[:1], np.diff(slopes, axis=0)]))[order]


def project(
    placed: Placement, u: Array, G: Array, R: Array | None, constraint: Constraint | None, coupling: float = LAMBDA
) -> Array:
    """The projection of one branch: (K,)."""
    one = placed.select((None, None))
    values = None if R is None else R[None, None]
    a = Projection.onto([constraint])(one, one.at(u[None, None]), G[None, None], values, coupling)
    return np.asarray(a[0, 0])


def stacked(placed: Placement, u: Array, G: Array, R: Array, coupling: float) -> tuple[Array, Array]:
    """A and b of min ‖A a - b‖² = ‖G - B a‖² + λ ‖R - B̃ a‖², from the dense designs."""
    weight = np.sqrt(coupling)
    A = np.vstack([placed.design(u, 1), weight * placed.design(u)])
    return A, np.concatenate([G, weight * R])


def scipy_minimum(placed: Placement, constraint: Constraint, A: Array, b: Array) -> tuple[Array, float]:
    """The minimiser of ‖A a - b‖ over the cone and its residual, by SciPy; a free coordinate is a difference of two."""
    T, order = np.linalg.inv(cone_coordinates(placed, constraint.order)), constraint.order
    T[:, order:] *= constraint.sign
    columns = A @ T
    doubled = np.column_stack([columns, -columns[:, :order]])
    scale = np.linalg.norm(doubled, axis=0)
    silent = scale < 1e-5 * scale.max()  # as good as zero, by the weight of the roughness in the projection
    doubled[:, silent], scale[silent] = 0.0, 1.0
    x, residual = optimize.nnls(doubled / scale, b, maxiter=100 * len(T))
    x /= scale
    z = x[: len(T)] - np.pad(x[len(T) :], (0, len(T) - order))
    return np.asarray(T @ z), float(residual)


# The projection onto the cone.


@every_carrier
@given(u=distinct_inputs(), seed=seeds, coupling=couplings)
def test_feasible_functions_are_given_back(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    for constraint in each(CONSTRAINTS):
        truth = random_feasible(placed, constraint, rng)
        G, R = placed.design(u, 1) @ truth, placed.design(u) @ truth
        a = project(placed, u, G, R, constraint, coupling)
        size = np.abs(truth).max() + 1e-300
        np.testing.assert_allclose(placed.design(u) @ a, R, rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(a, truth, rtol=0, atol=1e-4 * size)


@every_carrier
@given(u=distinct_inputs(), seed=seeds, coupling=couplings)
def test_projecting_twice_is_projecting_once(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    for constraint in each(CONSTRAINTS):
        once = project(placed, u, G, R, constraint, coupling)
        twice = project(placed, u, placed.design(u, 1) @ once, placed.design(u) @ once, constraint, coupling)
        np.testing.assert_allclose(
            placed.design(u) @ twice, placed.design(u) @ once, rtol=0, atol=1e-6 * (np.abs(once).max() + 1e-6)
        )


@every_carrier
@given(u=inputs(), seed=seeds, coupling=couplings)
def test_projections_are_certified(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    for constraint in each(CONSTRAINTS):
        a = project(placed, u, G / np.ptp(placed.domain()), R, constraint, coupling)
        assert np.isfinite(a).all()
        assert FittedBranch(basis, placed, a).certified(constraint)


@every_carrier
@given(u=distinct_inputs(size=120), seed=seeds, coupling=couplings)
def test_projection_onto_the_cone_is_optimal(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    """KKT: the gradient is zero along free and positive coordinates and nonnegative along active ones."""
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    for constraint in each(CONSTRAINTS):
        a = project(placed, u, G, R, constraint, coupling)
        A, b = stacked(placed, u, G, R, coupling)
        Q = cone_coordinates(placed, constraint.order)
        T, z = np.linalg.inv(Q), Q @ a
        T[:, constraint.order :] *= constraint.sign
        z[constraint.order :] *= constraint.sign
        columns = A @ T
        gradient = columns.T @ (A @ a - b) / (np.linalg.norm(columns, axis=0) * np.linalg.norm(b))
        share = z * np.linalg.norm(columns, axis=0) / np.linalg.norm(b)
        free = np.arange(basis.size) < constraint.order
        positive = free | (share > 1e-7)
        assert np.abs(gradient[positive]).max(initial=0.0) <= 1e-8
        assert gradient[~positive].min(initial=0.0) >= -1e-8
        assert share[~free].min(initial=0.0) >= -1e-10


@every_carrier
@given(u=distinct_inputs(size=120), seed=seeds, coupling=couplings)
def test_projection_onto_the_cone_agrees_with_scipy(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    for constraint in each(CONSTRAINTS):
        ours = project(placed, u, G, R, constraint, coupling)
        A, b = stacked(placed, u, G, R, coupling)
        theirs, residual = scipy_minimum(placed, constraint, A, b)
        assert np.linalg.norm(A @ ours - b) <= residual * (1.0 + 1e-9)
        np.testing.assert_allclose(A @ ours, A @ theirs, rtol=0, atol=1e-6 * float(np.linalg.norm(b)))


@every_carrier
@given(seed=seeds, kind=st.sampled_from(["rounded", "few values", "point mass"]), coupling=couplings)
def test_projection_onto_the_cone_is_optimal_for_repeated_inputs(
    basis: Basis, seed: int, kind: str, coupling: float
) -> None:
    """Fewer distinct inputs than coefficients: the minimiser is not unique, the minimum is."""
    rng = np.random.default_rng(seed)
    u = KINDS[kind](rng, 60)
    placed, (G, R) = basis.place(u), rng.standard_normal((2, len(u)))
    A, b = stacked(placed, u, G, R, coupling)
    for constraint in each(CONSTRAINTS):
        ours = np.linalg.norm(A @ project(placed, u, G, R, constraint, coupling) - b)
        assert ours <= scipy_minimum(placed, constraint, A, b)[1] * (1.0 + 1e-5)


@pytest.mark.parametrize("basis", BASES, ids=repr)
@given(u=distinct_inputs(size=120), seed=seeds, coupling=couplings)
def test_projection_without_constraint_is_least_squares(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    A, b = stacked(placed, u, G, R, coupling)
    a = project(placed, u, G, R, None, coupling)
    expected = np.linalg.lstsq(A, b)[0]
    np.testing.assert_allclose(A @ a, A @ expected, rtol=0, atol=1e-8 * float(np.linalg.norm(b)))


@pytest.mark.parametrize("basis", BASES, ids=repr)
@given(seed=seeds)
def test_without_values_the_mean_of_a_branch_is_zero(basis: Basis, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(80)
    placed = basis.place(u)
    for constraint in each([None, ub.Increasing(), ub.Convex()] if basis.refusal() is None else [None]):
        a = project(placed, u, rng.standard_normal(80), None, constraint)
        values = placed.evaluate(a, placed.at(u))
        assert abs(values.mean()) <= 1e-7 * np.abs(values).max() + 1e-14


@every_carrier
@given(u=distinct_inputs(), seed=seeds)
def test_the_constant_of_an_increasing_branch_is_free(basis: Basis, u: Array, seed: int) -> None:
    placed = basis.place(u)
    truth = random_feasible(placed, ub.Increasing(), np.random.default_rng(seed))
    for offset in each([-1e3, -5.0, 0.0, 1e3]):
        G, R = placed.design(u, 1) @ truth, placed.design(u) @ truth + offset
        a = project(placed, u, G, R, ub.Increasing())
        room = 1e-6 * np.abs(truth).max() + 1e-9 * abs(offset)
        np.testing.assert_allclose(placed.design(u) @ a, R, rtol=0, atol=room)


@every_carrier
@given(u=distinct_inputs(), seed=seeds, coupling=couplings)
def test_mirrored_constraints_give_mirrored_branches(basis: Basis, u: Array, seed: int, coupling: float) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal((2, len(u)))
    pairs: list[tuple[Constraint, Constraint]] = [(ub.Increasing(), ub.Decreasing()), (ub.Convex(), ub.Concave())]
    for constraint, mirror in each(pairs):
        a = project(placed, u, G, R, constraint, coupling)
        np.testing.assert_allclose(project(placed, u, -G, -R, mirror, coupling), -a, rtol=1e-10, atol=1e-12)


@every_carrier
@given(seed=seeds, kind=st.sampled_from(sorted(KINDS)))
def test_mixed_constraints_give_what_each_branch_gets_alone(basis: Basis, seed: int, kind: str) -> None:
    """Branches grouped by constraint, all starts together, bit for bit."""
    rng = np.random.default_rng(seed)
    mixed = [ub.Increasing(), None, ub.Convex(), ub.Increasing(), ub.NonNegative()]
    u = np.stack([KINDS[kind](rng, 40) for _ in range(10)]).reshape(2, 5, 40)
    G, R = rng.standard_normal((2, *u.shape))
    placed = basis.place(u)
    together = Projection.onto(mixed)(placed, placed.at(u), G, R, LAMBDA)
    for start, branch in np.ndindex(2, 5):
        one = basis.place(u[start, branch])
        alone = project(one, u[start, branch], G[start, branch], R[start, branch], mixed[branch])
        np.testing.assert_array_equal(together[start, branch], alone)


def test_the_projection_of_rounding_errors_stays_in_the_cone() -> None:
    """Slopes that are zero but for rounding, of either sign."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal(60)
    placed = ub.BSpline(df=12).place(u)
    a = project(placed, u, EPS * rng.standard_normal(60), 1.0 + EPS * rng.standard_normal(60), ub.Increasing())
    assert np.diff(a).min() >= 0.0


# The stand-in for a branch without any slope.


def leaky(projection: Projection, placed: Placement, u: Array) -> Callable[[], Targets]:
    return lambda: targets(placed, placed.at(u), *projection.leaky(u), LAMBDA)


@every_carrier
@given(u=distinct_inputs(), seed=seeds)
def test_a_branch_that_can_only_fall_is_replaced_by_one_that_rises(basis: Basis, u: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fall = np.stack([-u, u])[None]  # the first branch must be replaced, the second must not
    slopes = np.stack([-rng.uniform(0.5, 1.0, len(u)), rng.uniform(0.5, 1.0, len(u))])[None]
    projection = Projection.onto([ub.Increasing(), ub.Increasing()])
    inside = np.stack([u, u])[None]
    placed = basis.place(inside)
    at = placed.at(inside)
    a = projection(placed, at, slopes, fall, LAMBDA)
    replaced, where = projection.replace_constant(placed, a, leaky(projection, placed, inside), LAMBDA)
    np.testing.assert_array_equal(where, [[True, False]])
    np.testing.assert_array_equal(replaced[0, 1], a[0, 1])
    stand_in = FittedBranch(basis, placed.select((0, 0)), replaced[0, 0])
    assert stand_in.certified(ub.Increasing())
    assert not placed.is_constant(replaced)[0, 0]
    assert np.ptp(stand_in(u)) > 0.0


@every_carrier
@given(u=distinct_inputs(), seed=seeds)
def test_the_stand_in_is_feasible_and_not_constant(basis: Basis, u: Array, seed: int) -> None:
    for constraint in each(CONSTRAINTS):
        projection, inside = Projection.onto([constraint]), u[None, None]
        placed = basis.place(inside)
        flat = np.full((1, 1, basis.size), 0.5)
        replaced, where = projection.replace_constant(placed, flat, leaky(projection, placed, inside), LAMBDA)
        assert where.all()
        assert FittedBranch(basis, placed.select((0, 0)), replaced[0, 0]).certified(constraint)
        assert not placed.is_constant(replaced).any()


def test_without_a_constant_branch_nothing_is_replaced() -> None:
    u = np.linspace(-1.0, 1.0, 40)[None, None]
    placed, projection = ub.BSpline().place(u), Projection.onto([None])
    a = np.arange(13.0)[None, None]
    replaced, where = projection.replace_constant(placed, a, leaky(projection, placed, u), LAMBDA)
    assert replaced is a
    assert not where.any()
