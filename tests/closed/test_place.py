"""What data say of a form in place of a curve: against the same least squares, done the slow way."""

import numpy as np
import pytest

import unbraid as ub
from unbraid.closed.place import Place
from unbraid.closed.starts import Curve, first_guesses
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.steps import branch_weight, penalised
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import FORMS, Formula


@pytest.fixture(scope="module")
def around() -> Neighbourhood:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    noisy = problem.F + 0.01 * np.random.default_rng(0).standard_normal(problem.F.shape)
    fit = ub.decouple(ub.Problem(problem.X, noisy, problem.J), 3, starts=4, rng=0)
    return neighbourhood_of(fit, ub.Problem(problem.X, noisy, problem.J))


def least_squares_left(around: Neighbourhood, k: int, formula: Formula) -> float:
    """The sum of squares with a formula in place of the k-th branch, all other unknowns free, by one dense solve."""
    tangent, problem, one = around.tangent, around.problem, around.tangent.moves[k]
    branch, w1, w0 = tangent.model.branches[one.branch], tangent.model.W1[:, one.branch], tangent.model.W0[one.branch]
    A, residual = around.rows()
    u = problem.X @ w0
    scale = np.sqrt(around.sample_weights)[:, None] * around.row_scales
    off, slope_off = branch(u) - formula(u), branch.derivative(u) - formula.slope.evaluate(u)
    slopes = np.einsum("s,i,k->sik", slope_off, w1, w0).reshape(len(u), -1)
    target = residual + scale * np.concatenate([np.outer(off, w1), slopes], axis=1)
    own = tangent.parts(k)[2]
    keep = [i for i in range(tangent.size) if not own.start <= i < own.stop]
    rows, right = [A.reshape(-1, tangent.size)[:, keep]], [target.ravel()]
    for other, root, a in penalised(tangent):
        if other != k:
            C = np.zeros((len(root), tangent.size))
            C[:, tangent.parts(other)[2]] = root @ tangent.moves[other].curves
            weight = np.sqrt(branch_weight(around, other))
            rows.append(weight * C[:, keep])
            right.append(-weight * root @ a)
    M, y = np.concatenate(rows), np.concatenate(right)
    rest = y - M @ np.linalg.lstsq(M, y, rcond=1e-10)[0]
    return float(rest @ rest)


@pytest.mark.parametrize("k", range(3))
def test_what_a_form_leaves_is_the_least_squares_of_all_other_unknowns(around: Neighbourhood, k: int) -> None:
    place = Place.of(around, k)
    for formula in (Formula.of("sine", (1.2, 3.0, 0.1, 0.3)), Formula.of("cubic polynomial", (0.1, 1.0, 0.2, -0.5))):
        rest = place.residual(formula)
        np.testing.assert_allclose(rest @ rest, least_squares_left(around, k, formula), rtol=1e-5)


@pytest.mark.parametrize("k", range(3))
def test_steps_reach_a_minimum(around: Neighbourhood, k: int) -> None:
    place = Place.of(around, k)
    tried = [place.improve(guess) for guess in first_guesses(FORMS["sine and line"], place.curve)]
    formula, left = min(tried, key=lambda one: one[1])
    at = np.array([formula.parameters[i] for i in formula.form.free])
    for step in 1e-4 * np.eye(len(at)):
        for sign in (1.0, -1.0):
            rest = place.residual(formula.with_free(at + sign * step))
            assert rest @ rest >= left * (1.0 - 1e-9)


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if name not in ("constant", "logistic")])
def test_a_first_guess_is_near_a_curve_of_its_form(name: str) -> None:
    form = FORMS[name]
    if form.h is None:
        parameters: tuple[float, ...] = tuple(np.linspace(0.3, -0.4, form.size))
    elif 1 in form.free:
        parameters = (1.5, 1.3, -1.1, 0.4, -0.3)[: form.count]
    else:
        parameters = (1.5, 1.0, 1.7 if form.shape in ("square root", "reciprocal", "logarithm") else -1.0, 0.4, -0.3)
        parameters = parameters[: form.count]
    u = np.linspace(-1.0, 3.0, 90)
    given = Curve.at(u, Formula.of(name, parameters)(u))
    off = [float(np.sqrt(np.mean((guess(given.u) - given.g) ** 2))) for guess in first_guesses(form, given)]
    assert min(off) < 0.25 * given.spread


def deviation(left: Array, right: Array) -> float:
    return float(np.abs(left - right).max() / np.std(right))


def test_a_place_without_data_knows_its_curve() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    branch = ub.decouple(problem, 3, starts=4, rng=0).model.branches[1]
    place = Place.of_curve(Curve.of(branch, np.linspace(*branch.domain, 120)), 12.0)
    formula, _ = place.improve(first_guesses(FORMS["sine"], place.curve)[0])
    assert deviation(place.levelled(formula)(place.u), branch(place.u)) < 1e-3
