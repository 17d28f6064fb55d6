"""Laws of every constraint on every basis that carries one: certificates, and asking for constraints.

A new one joins by joining a list in registry.py. The projection onto the cone is in test_projection.py.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from registry import (
    BASES,
    CARRIERS,
    CONSTRAINTS,
    NATURALS,
    POLYNOMIALS,
    SPLINES,
    distinct_inputs,
    grid,
    pieces,
    random_feasible,
    seeds,
)
from unbraid.bases import Basis, Placement
from unbraid.bases.constraints import Constraint, per_branch
from unbraid.bases.splines import SplineBasis
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch

every_carrier = pytest.mark.parametrize("basis", CARRIERS, ids=repr)
every_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)


def violation(placed: Placement, a: Array, constraint: Constraint, points: int = 2000) -> float:
    """How far the function is from the constraint on a fine grid: positive only beyond rounding."""
    u = grid(placed, points)
    values = placed.evaluate(a, placed.at(u))
    differences = constraint.sign * np.diff(values, constraint.order)
    return float(-differences.min() - 1e-13 * np.abs(a).max())


# The certificate.


@every_carrier
@every_constraint
@given(u=distinct_inputs(), seed=seeds, power=st.integers(-3, 3), shift=st.sampled_from([0.0, 1.0, -1e3, 1e5]))
def test_feasible_coefficients_are_certified_wherever_the_inputs_lie(
    basis: Basis, constraint: Constraint, u: Array, seed: int, power: int, shift: float
) -> None:
    placed = basis.place(u)
    a = random_feasible(placed, constraint, np.random.default_rng(seed))
    assert FittedBranch(basis, placed, a).certified(constraint)
    moved = placed.moved(np.array(10.0**power), np.array(shift * 10.0**power))
    assert FittedBranch(basis, moved, a).certified(constraint)


@pytest.mark.parametrize("basis", BASES, ids=repr)
@every_constraint
@given(u=distinct_inputs(), seed=seeds, nudge=st.sampled_from([0.0, 1e-9, 1e-4, 1.0]))
def test_what_is_certified_is_not_violated_on_a_fine_grid(
    basis: Basis, constraint: Constraint, u: Array, seed: int, nudge: float
) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    if basis.refusal() is None:
        start = random_feasible(placed, constraint, rng)
    else:  # constants, lines and parabolas are the feasible polynomials at hand
        start = np.zeros(basis.size)
        start[constraint.order % basis.size] = constraint.sign
    a = start + nudge * rng.standard_normal(basis.size) * np.abs(start).max()
    if FittedBranch(basis, placed, a).certified(constraint):
        assert violation(placed, a, constraint) <= 0.0


@every_carrier
@every_constraint
@given(u=distinct_inputs(), seed=seeds)
def test_what_a_fine_grid_shows_to_be_violated_is_not_certified(
    basis: Basis, constraint: Constraint, u: Array, seed: int
) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    a = random_feasible(placed, constraint, rng) + 0.1 * rng.standard_normal(basis.size)
    if violation(placed, a, constraint) > 0.0:
        assert not FittedBranch(basis, placed, a).certified(constraint)


@pytest.mark.parametrize("basis", SPLINES, ids=repr)
@every_constraint
@given(u=distinct_inputs(), seed=seeds)
def test_the_certificate_is_also_necessary_for_high_enough_derivatives(
    basis: SplineBasis, constraint: Constraint, u: Array, seed: int
) -> None:
    """From the (d - 1)-th derivative on, coefficients are values of the derivative (or of its jumps)."""
    if constraint.order < basis.degree - 1 or constraint.order >= basis.size:
        return
    placed, rng = basis.place(u), np.random.default_rng(seed)
    a = random_feasible(placed, constraint, rng) + 0.1 * rng.standard_normal(basis.size)
    if not FittedBranch(basis, placed, a).certified(constraint):
        points = np.unique(np.concatenate([grid(placed), placed.breakpoints]))
        slopes = placed.evaluate(a, placed.at(points), min(constraint.order, basis.degree))
        shape = np.diff(slopes) if constraint.order > basis.degree else slopes
        assert (constraint.sign * shape).min() < 1e-12 * np.abs(shape).max()


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Convex()], ids=repr)
def test_a_certified_shape_holds_outside_the_domain_as_well(constraint: Constraint) -> None:
    basis, rng = ub.BSpline(df=8), np.random.default_rng(0)
    placed = basis.place(rng.standard_normal(60))
    branch = FittedBranch(basis, placed, random_feasible(placed, constraint, rng))
    values = branch(np.linspace(-20.0, 20.0, 4001))
    assert np.diff(values, constraint.order).min() >= -1e-11


@every_constraint
def test_a_polynomial_that_has_the_shape_is_certified(constraint: Constraint) -> None:
    """Legendre coefficients of 3 + t and 1 + t² and their negatives, in Bernstein form."""
    a = {0: [3.0, 1.0, 0.0, 0.0], 1: [3.0, 1.0, 0.0, 0.0], 2: [4.0 / 3.0, 0.0, 2.0 / 3.0, 0.0]}[constraint.order]
    basis = ub.Polynomial(3)
    placed = basis.place(np.linspace(-2.0, 5.0, 30))
    assert FittedBranch(basis, placed, constraint.sign * np.array(a)).certified(constraint)
    assert not FittedBranch(basis, placed, -constraint.sign * np.array(a)).certified(constraint)


@pytest.mark.parametrize("basis", NATURALS, ids=repr)
@pytest.mark.parametrize("constraint", [ub.Convex(), ub.Concave()], ids=repr)
@given(u=distinct_inputs(), seed=seeds)
def test_certificates_of_curvature_are_necessary_for_natural_splines(
    basis: ub.NaturalCubic, constraint: Constraint, u: Array, seed: int
) -> None:
    """g'' is a broken line, so its signs at the knots are all there is to know; lines have both shapes."""
    placed, rng = basis.place(u), np.random.default_rng(seed)
    z = random_feasible(placed, constraint, rng) + 0.1 * rng.standard_normal(basis.size)
    inner = pieces(placed)[1:-1]
    curvature = constraint.sign * placed.evaluate(z, placed.at(inner), 2)
    assert FittedBranch(basis, placed, z).certified(constraint) == bool(np.all(curvature >= 0.0))


@every_carrier
@every_constraint
@given(u=distinct_inputs(), seed=seeds)
def test_shape_coordinates_are_shape_coefficients_and_constants(
    basis: Basis, constraint: Constraint, u: Array, seed: int
) -> None:
    placed, order = basis.place(u), constraint.order
    a = np.random.default_rng(seed).standard_normal(basis.size)
    z = placed.differentiate(a, order)
    np.testing.assert_array_equal(z[order:], placed.shape_coefficients(a, order)[0])
    for again in (placed.integrate(z, order), placed.integration_matrix(order) @ z):
        np.testing.assert_allclose(again, a, rtol=0, atol=1e-12 * np.abs(a).max() * basis.size)


# Asking for constraints.


def test_one_constraint_serves_all_branches() -> None:
    assert per_branch(ub.Increasing(), 3, ub.BSpline()) == (ub.Increasing(),) * 3
    assert per_branch(None, 2, ub.BSpline()) == (None, None)


@pytest.mark.parametrize("container", [list, tuple])
def test_a_sequence_gives_each_branch_its_own(container: type[Sequence[object]]) -> None:
    given = container([ub.Convex(), None, ub.Decreasing()])  # type: ignore[call-arg]
    assert per_branch(given, 3, ub.BSpline()) == (ub.Convex(), None, ub.Decreasing())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        ([ub.Increasing()], r"one entry for each of the 2 branches, got 1"),
        ([None, None, None], r"one entry for each of the 2 branches, got 3"),
        (ub.Increasing, r"add parentheses, Increasing\(\)"),
        ([ub.Increasing, None], r"constraint\[0\] .*add parentheses, Increasing\(\)"),
        ("increasing", r"constraint must be .*ub\.Increasing\(\).*got 'increasing'"),
        ([None, "convex"], r"constraint\[1\] must be .*got 'convex'"),
        (1, r"constraint must be .*got 1"),
        ({ub.Increasing()}, r"constraint must be"),
    ],
)
def test_what_is_no_constraint_is_refused_with_advice(constraint: object, says: str) -> None:
    with pytest.raises(ub.UnbraidError, match=says):
        per_branch(constraint, 2, ub.BSpline())  # type: ignore[arg-type]


@pytest.mark.parametrize("basis", POLYNOMIALS, ids=repr)
@every_constraint
def test_polynomials_refuse_constraints_and_name_a_spline(basis: ub.Polynomial, constraint: Constraint) -> None:
    advice = rf"{type(constraint).__name__}\(\).*use BSpline\(df={basis.degree}, degree={basis.degree}\)"
    with pytest.raises(ub.UnbraidError, match=advice):
        per_branch([None, constraint], 2, basis)
    assert per_branch(None, 2, basis) == (None, None)


@every_constraint
def test_constraints_are_equal_by_kind(constraint: Constraint) -> None:
    assert constraint == type(constraint)()
    assert len({constraint, type(constraint)()}) == 1
    assert [constraint == other for other in CONSTRAINTS].count(True) == 1


def test_a_formula_certifies_nothing() -> None:
    _, truth = ub.datasets.monotone(rng=0)
    assert not any(branch.certified(ub.Increasing()) for branch in truth.branches)
