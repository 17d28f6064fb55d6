"""What a branch does beyond the range of its samples: laws of every basis that goes on as a polynomial."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import unbraid as ub
from model_files import a_model, refusal, rewritten
from registry import BASES, CARRIERS, CONSTRAINTS, seeds
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch, first_negative

SHAPES = [one for one in CONSTRAINTS if one.order > 0]
CURVED = [basis for basis in BASES if basis.continued_degree > 1]
CURVED_CARRIERS = [basis for basis in CARRIERS if basis.continued_degree > 1]

every_curved = pytest.mark.parametrize("basis", CURVED, ids=repr)
every_curved_carrier = pytest.mark.parametrize("basis", CURVED_CARRIERS, ids=repr)
every_shape = pytest.mark.parametrize("constraint", SHAPES, ids=repr)


def random_branch(basis: Basis, seed: int, constraint: Constraint | None = None, reach: float = 0.125) -> FittedBranch:
    rng = np.random.default_rng(seed)
    placed = basis.place(rng.standard_normal(50))
    a = rng.standard_normal((1, 1, basis.size))
    if constraint is not None:
        a = Projection.onto([constraint]).feasible(placed.select((None, None)), a)
    return FittedBranch(basis, placed, a[0, 0], np.full(2, reach))


def beyond(branch: FittedBranch, share: float = 1.0) -> Array:
    """Points on both sides of the domain, up to a share of its length away, outwards."""
    low, high = branch.domain
    far = np.linspace(0.0, share * (high - low), 201)
    return np.stack([low - far, high + far])


def has_no_shape(branch: FittedBranch) -> bool:
    return not any(branch.certified(one) for one in SHAPES)


@every_curved
@given(seed=seeds)
def test_a_branch_without_shape_goes_on_as_its_taylor_polynomial(basis: Basis, seed: int) -> None:
    branch = random_branch(basis, seed)
    assume(has_no_shape(branch))
    for u, end in zip(beyond(branch, 0.124), branch.domain, strict=True):
        taylor = [
            float(branch.placement.design(np.array([end]), k)[0] @ branch.coordinates) / math.factorial(k)
            for k in range(basis.continued_degree + 1)
        ]
        expected = np.polynomial.polynomial.polyval(u - end, taylor)
        np.testing.assert_allclose(branch(u), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("basis", [one for one in CURVED if one not in CARRIERS or one.size == 4], ids=repr)
@given(seed=seeds)
def test_a_branch_of_one_piece_goes_on_as_what_it_is(basis: Basis, seed: int) -> None:
    """A polynomial of at most the continued degree is the same polynomial beyond the range, up to the reach."""
    branch = random_branch(basis, seed)
    assume(has_no_shape(branch))
    if basis.continued_degree < basis.size - 1:
        return
    inside, outside = np.linspace(*branch.domain, 60), beyond(branch, 0.124).ravel()
    same = np.polynomial.Polynomial.fit(inside, branch(inside), basis.size - 1)
    np.testing.assert_allclose(branch(outside), same(outside), rtol=0, atol=1e-7 * np.abs(same(outside)).max())


@every_curved
@given(seed=seeds, reach=st.sampled_from([0.0, 0.03125, 0.125]))
def test_values_and_slopes_have_no_jumps(basis: Basis, seed: int, reach: float) -> None:
    """At the ends of the domain and where the polynomial ends, on both sides."""
    branch = random_branch(basis, seed, reach=reach)
    low, high = branch.domain
    down, up = (one.reach for one in branch.continuations)
    for place in (low, low - down, high, high + up):
        near = place + 1e-9 * (high - low) * np.array([-1.0, 1.0])
        bent = np.abs(branch.derivative(near, 2)).max()
        for function, steep in ((branch, np.abs(branch.derivative(near)).max()), (branch.derivative, bent)):
            before, after = function(near)
            scale = np.abs(function(near)).max() + np.abs(branch(near)).max() / (high - low)
            assert abs(after - before) <= 1e-8 * (high - low) * steep + 1e-10 * scale


@every_curved
@given(seed=seeds)
def test_slopes_beyond_the_range_are_those_of_the_values(basis: Basis, seed: int) -> None:
    branch = random_branch(basis, seed)
    for u in beyond(branch):
        middle, h = 0.5 * (u[1:] + u[:-1]), u[1:] - u[:-1]
        differences = (branch(u[1:]) - branch(u[:-1])) / h
        bent = np.abs(branch.derivative(u, 2)).max() * np.abs(h).max()  # where it stops bending within a step
        scale = np.abs(differences).max()
        np.testing.assert_allclose(branch.derivative(middle), differences, rtol=0, atol=bent + 1e-9 * scale)


@every_curved_carrier
@every_shape
@given(seed=seeds)
def test_the_polynomial_goes_on_for_as_long_as_it_has_the_shape(
    basis: Basis, constraint: Constraint, seed: int
) -> None:
    branch = random_branch(basis, seed, constraint)
    low, high = branch.domain
    for continuation, outwards in zip(branch.continuations, (-1.0, 1.0), strict=True):
        assert 0.0 <= continuation.reach <= 0.125 * (high - low)
        shape = constraint.sign * np.polynomial.Polynomial(continuation.powers).deriv(constraint.order)
        kept = shape(outwards * np.linspace(0.0, continuation.reach, 400))
        rounding = np.sum(np.abs(continuation.powers) * (0.125 * (high - low)) ** np.arange(len(continuation.powers)))
        assert kept.min() >= -1e-9 * (np.abs(kept).max() + rounding / (high - low) ** constraint.order)


@every_curved_carrier
@every_shape
@given(seed=seeds)
def test_shapes_go_on_beyond_the_range(basis: Basis, constraint: Constraint, seed: int) -> None:
    branch = random_branch(basis, seed, constraint)
    low, high = beyond(branch)
    inside = np.linspace(*branch.domain, 100)
    u = np.concatenate([low[::-1], inside[1:-1], high])
    slopes = constraint.sign * branch.derivative(u)
    length = branch.domain[1] - branch.domain[0]
    tolerance = 1e-10 * (np.abs(slopes).max() + np.abs(branch.coordinates).max() / length)
    if constraint.order == 1:
        assert slopes.min() >= -tolerance
    else:
        assert np.diff(slopes).min() >= -tolerance


@every_curved
def test_far_away_a_branch_is_a_straight_line(basis: Basis) -> None:
    branch = random_branch(basis, 3)
    u = np.array([-1e6, -1e5, 1e5, 1e6])
    np.testing.assert_array_equal(branch.derivative(u, 2), 0.0)
    slopes = branch.derivative(u)
    assert slopes[0] == slopes[1]
    assert slopes[2] == slopes[3]
    assert np.isnan(branch(np.nan))
    assert np.isnan(branch.derivative(np.nan))


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30])
@every_curved
def test_domains_of_any_size_give_finite_values(basis: Basis, scale: float) -> None:
    branch = random_branch(basis, 0)
    moved = replace(branch, placement=branch.placement.moved(np.array(scale), np.array(0.0)))
    low, high = moved.domain
    u = np.array([low - 0.1 * (high - low), high + 0.1 * (high - low)])
    assert np.isfinite(moved(u)).all()


@pytest.mark.parametrize(
    ("powers", "first"), [([1.0, -2.0], 0.5), ([1.0, 0.0, 1.0], 1.0), ([-1.0], 0.0), ([0.0, -1.0], 0.0), ([2.0], 1.0)]
)
def test_the_first_place_where_a_polynomial_is_negative(powers: list[float], first: float) -> None:
    assert first_negative(np.array(powers), 1.0) == pytest.approx(first)


# Files.


def with_reaches(model: ub.DecoupledModel, *reaches: tuple[float, float]) -> ub.DecoupledModel:
    branches = [
        replace(branch, reach=np.array(reach))  # type: ignore[type-var]
        for branch, reach in zip(model.branches, reaches, strict=True)
    ]
    return ub.DecoupledModel(model.W0, model.W1, branches, model.bias)


@every_curved
def test_a_saved_branch_comes_back_with_its_reach(basis: Basis, tmp_path: Path) -> None:
    model = with_reaches(a_model([basis, basis]), (0.125, 0.03515625), (0.0, 0.125))
    model.save(tmp_path / "model.npz")
    again = ub.DecoupledModel.load(tmp_path / "model.npz")
    X = 5.0 * np.random.default_rng(0).standard_normal((200, 2))
    np.testing.assert_array_equal(again(X), model(X))
    np.testing.assert_array_equal(again.jacobian(X), model.jacobian(X))


def test_files_hold_the_ends_of_polynomials_where_there_are_any(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with_reaches(a_model([ub.BSpline(6)] * 2), (0.0, 0.0), (0.0, 0.125)).save(path)
    with np.load(path) as file:
        assert "branch_0.continued" not in file.files
        knots, ends = file["branch_1.breakpoints"], file["branch_1.continued"]
    np.testing.assert_allclose(ends, [knots[0], knots[-1] + 0.125 * np.ptp(knots)])
    linear = ub.DecoupledModel.load(rewritten(path, lambda arrays: arrays.pop("branch_1.continued")))
    assert not np.any([branch.reach for branch in linear.branches])  # type: ignore[attr-defined]


@pytest.mark.parametrize("ends", [np.array([1.0, 0.0]), np.array([np.nan, 1.0]), np.array([0.0]), np.array([0, 9])])
def test_ends_that_make_no_sense_are_refused(ends: Array, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with_reaches(a_model([ub.BSpline(6)]), (0.0, 0.125)).save(path)
    assert "branch_0.continued" in refusal(rewritten(path, lambda arrays: arrays.update({"branch_0.continued": ends})))


def test_ends_inside_the_domain_are_those_of_the_domain(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with_reaches(a_model([ub.BSpline(6)]), (0.0, 0.125)).save(path)
    inside = np.array([-1e-3, 1e-3])
    model = ub.DecoupledModel.load(rewritten(path, lambda arrays: arrays.update({"branch_0.continued": inside})))
    assert not model.branches[0].reach.any()  # type: ignore[attr-defined]
