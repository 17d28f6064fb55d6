"""Closed forms for the branches of fits."""

from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import j0

import unbraid as ub
from draws import few_or_many
from unbraid.closed import Formulas
from unbraid.closed.reoptimise import Reference, reoptimise
from unbraid.errors import DataError, SettingError
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.worth.objective import Objective


@pytest.fixture(scope="module")
def fit() -> ub.Fit:
    return ub.decouple(ub.datasets.trig(S=100, rng=0)[0], 3, rng=0)


@pytest.fixture(scope="module")
def found(fit: ub.Fit) -> Formulas:
    return ub.formulas(fit)


def system(*formulas: Formula) -> ub.DecoupledModel:
    """A model of two or three branches of three inputs, and as many outputs."""
    rng = np.random.default_rng(5)
    r = len(formulas)
    W0 = rng.standard_normal((r, 3))
    W0 /= np.linalg.norm(W0, axis=1)[:, None]
    return ub.DecoupledModel(W0, rng.standard_normal((r, r)), [FormulaBranch(one) for one in formulas])


def sampled(model: ub.DecoupledModel, noise: float = 0.0, S: int = 200) -> ub.Problem:
    rng = np.random.default_rng(8)
    X = rng.uniform(-1.0, 1.0, (S, model.m))
    F, J = model(X), model.jacobian(X)
    F = F + noise * F.std(axis=0) * rng.standard_normal(F.shape)
    return ub.Problem(X, F, J + noise * J.std() * rng.standard_normal(J.shape))


def test_the_forms_of_f_trig_are_found(found: Formulas) -> None:
    names = sorted(one.best.formula.form.name for one in found if one.best is not None)
    assert names == ["sine", "sine", "sine and line"]
    assert found.from_data
    assert len(found) == 3
    for one in found:
        assert one.best is not None
        assert one.best.mean <= one.best.largest < 0.1
        assert one.best.held_out is not None
        assert abs(one.best.held_out) < 0.1


def test_it_prints_formulas_with_what_is_lost(found: Formulas) -> None:
    text = repr(found)
    assert text.count("sin(") + text.count("cos(") >= 3
    assert "sine and line" in text
    assert "error on new points" in text


def test_a_line_with_as_much_noise_is_a_line_and_a_model_that_leaves_much_is_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 3))
    line = X @ [1.0, 0.5, 0.2]
    names = []
    for _ in range(4):
        noisy = ub.Problem(X, line + line.std() * rng.standard_normal(200))
        [found_line] = ub.formulas(ub.decouple(noisy, 1, starts=2, rng=0))
        names += [one.formula.form.name for one in found_line.candidates[:2]]
    assert names.count("line") >= 2
    both = np.stack([np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2, np.exp(X[:, 2])], axis=1)
    found = ub.formulas(ub.decouple(ub.Problem(X, both), 1, starts=2, rng=0))
    assert found.doubt is not None
    assert "more branches may be needed" in repr(found)


def test_branches_that_cannot_be_seen_say_why() -> None:
    assert "has no range to be seen on" in repr(ub.formulas(ub.datasets.trig(S=4, rng=0)[1]))


def test_a_model_of_formulas_is_right_far_outside_of_the_samples(fit: ub.Fit) -> None:
    truth = ub.datasets.trig(S=100, rng=0)[1]
    model = fit.with_formulas()
    X = np.random.default_rng(1).uniform(-6.0, 6.0, (300, 2))
    assert all(isinstance(branch, FormulaBranch) for branch in model.branches)
    np.testing.assert_allclose(model(X), truth(X), rtol=0.0, atol=1e-6)
    assert np.abs(fit.model(X) - truth(X)).max() > 1.0


def test_noise_leaves_the_forms_and_moves_their_parameters_a_little() -> None:
    truth = system(Formula.of("tanh", (2.0, 2.0, 0.3, 0.0)), Formula.of("exponential", (0.5, 1.2, 0.0, 0.0)))
    found = ub.formulas(ub.decouple(sampled(truth, 0.01), 2, rng=0))
    best = {one.best.formula.form.name: one.best.formula for one in found if one.best is not None}
    assert set(best) == {"tanh", "exponential"}
    assert abs(abs(best["tanh"].parameters[1]) - 2.0) < 0.1
    assert abs(abs(best["exponential"].parameters[1]) - 1.2) < 0.06


def test_kinks_are_found() -> None:
    truth = system(Formula.of("rectifier", (2.0, 1.0, 0.2, 0.0)), Formula.of("saturation", (1.0, 2.5, 0.2, 0.0)))
    found = ub.formulas(ub.decouple(sampled(truth, S=300), 2, rng=0))
    names = {one.best.formula.form.shape for one in found if one.best is not None}
    assert "saturation" in names
    assert names & {"rectifier", "absolute value"}


def test_a_curve_that_is_no_form_stays_a_curve() -> None:
    rng = np.random.default_rng(2)
    curves = [CubicSpline(np.linspace(-1.8, 1.8, 8), rng.standard_normal(8)) for _ in range(2)]
    model = ub.DecoupledModel.from_parts(system(*[Formula.of("line", (0.0, 1.0))] * 2).W0, np.eye(2), None, curves)
    fit = ub.decouple(sampled(model), 2, rng=0)
    found = ub.formulas(fit)
    assert [one.best for one in found] == [None, None]
    assert "stays a curve; nearest" in repr(found)
    kept = fit.with_formulas()
    X = fit.problem.X if fit.problem is not None else np.zeros((1, 3))
    np.testing.assert_allclose(kept(X), fit.model(X), rtol=0.0, atol=1e-9)
    forced = fit.with_formulas(threshold=100.0)
    assert any(isinstance(branch, FormulaBranch) for branch in forced.branches)


def test_without_data_curves_judge(fit: ub.Fit) -> None:
    found = ub.formulas(fit.model)
    assert not found.from_data
    assert sorted(one.best.formula.form.shape for one in found if one.best is not None) == ["sine"] * 3
    assert "Without data" in repr(found)


def test_a_model_of_formulas_is_its_own_answer(fit: ub.Fit) -> None:
    model = fit.with_formulas()
    for problem in (None, fit.problem):
        again = ub.formulas(model, problem)
        assert [one.best.formula for one in again if one.best is not None] == [
            branch.formula for branch in model.branches if isinstance(branch, FormulaBranch)
        ]


def test_values_alone_and_gaps_are_judged_as_well() -> None:
    truth = system(Formula.of("sine", (1.0, 2.5, 0.4, 0.0)), Formula.of("square", (1.0, 1.0, 0.3, 0.0)))
    full = sampled(truth)
    assert full.F is not None
    values = full.F.copy()
    values[::7, 0] = np.nan
    fit = ub.decouple(ub.Problem(full.X, values, missing="mask"), 2, rng=0)
    names = {one.best.formula.form.name for one in ub.formulas(fit) if one.best is not None}
    assert names == {"sine", "square"}


def test_slopes_alone_are_enough() -> None:
    truth = system(Formula.of("sine", (1.0, 2.5, 0.4, 0.0)), Formula.of("Gaussian", (2.0, 1.5, 0.1, 0.0)))
    full = sampled(truth)
    fit = ub.decouple(ub.Problem(full.X, J=full.J), 2, rng=0)
    names = {one.best.formula.form.name for one in ub.formulas(fit) if one.best is not None}
    assert names == {"sine", "Gaussian"}


def test_what_is_neither_a_fit_nor_a_model_is_refused(fit: ub.Fit) -> None:
    with pytest.raises(SettingError, match="takes a fit or a model, got a str"):
        ub.formulas("model.npz")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="threshold must be a number of percents"):
        fit.with_formulas(threshold=-1.0)
    with pytest.raises(DataError, match="must have the 2 inputs and 2 outputs of the model"):
        ub.formulas(fit.model, ub.Problem(np.zeros((4, 5)), np.zeros((4, 2))))
    with pytest.raises(DataError, match="does not remember"):
        ub.formulas(fit.without_problem())


def products(kind: str, seed: int) -> tuple[ub.Problem, int]:
    """A system whose directions the samples leave open: exact values of a polynomial in turned inputs, and its rank."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (300, 3))
    x, y, z = (X @ np.linalg.qr(rng.standard_normal((3, 3)))[0]).T
    values, rank = {"xy": (x * y, 2), "squares": (x**2 - y**2 + z**2, 3), "xxy": (x**2 * y, 3), "xyz": (x * y * z, 4)}[
        kind
    ]
    return ub.Problem(X, values[:, None]), rank


@few_or_many(1, 12)
@pytest.mark.parametrize("kind", ["xy", "squares", "xxy", pytest.param("xyz", marks=pytest.mark.verify)])
def test_products_are_sums_of_powers_and_no_worse_than_the_curves(kind: str, draws: int) -> None:
    for seed in range(draws):
        problem, rank = products(kind, seed)
        assert problem.F is not None
        fit = ub.decouple(problem, rank, rng=0)
        model = fit.with_formulas()
        assert ub.metrics.output_errors(problem.F, model(problem.X)).max() < 1e-5
        assert all(isinstance(branch, FormulaBranch) for branch in model.branches)


@few_or_many(1, 20)
def test_what_is_within_is_no_worse_in_place_of_the_curve(draws: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(draws):
        X = rng.uniform(-1.0, 1.0, (300, 2))
        values = X.prod(axis=1)
        problem = ub.Problem(X, (values + 0.01 * values.std() * rng.standard_normal(300))[:, None])
        fit = ub.decouple(problem, 2, rng=0)
        found = ub.formulas(fit)
        changes = [form.held_out for one in found for form in one.candidates if form.within]
        assert all(change is not None and change < 0.1 for change in changes)
        own, theirs = (ub.metrics.output_errors(values[:, None], m(X)).max() for m in (fit.model, found.model))
        assert theirs < max(0.5, 1.5 * own)


@few_or_many(1, 6)
@pytest.mark.parametrize("kind", ["step", pytest.param("xyz", marks=pytest.mark.verify)])
def test_formulas_and_the_model_with_formulas_tell_the_same_story(kind: str, draws: int) -> None:
    """A step is far from its curves, and directions of a product turn far away from the fit's."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (300, 3 if kind == "xyz" else 2))
        values = X.prod(axis=1) if kind == "xyz" else (X[:, 0] > 0.0) * X[:, 1]
        noise = 0.01 * values.std() * rng.standard_normal(300) if kind == "xyz" else 0.0
        fit = ub.decouple(ub.Problem(X, (values + noise)[:, None]), 4 if kind == "xyz" else 2, rng=0)
        found, model = ub.formulas(fit), fit.with_formulas()
        named = [one.best.formula.form if one.best is not None else None for one in found]
        assert named == [own.formula.form if isinstance(own, FormulaBranch) else None for own in model.branches]
        moved = model(X) - fit.model(X)
        own_spread = min(
            np.std(branch(X @ w0)) * np.linalg.norm(w1)
            for branch, w0, w1 in zip(fit.model.branches, fit.model.W0, fit.model.W1.T, strict=True)
        )
        for one in found:
            assert one.best is None or one.best.mean <= 101.0 * np.std(moved) / own_spread


def test_worse_forms_do_not_replace_the_curves_of_a_model_whose_fit_is_not_known(tmp_path: Path) -> None:
    """Its splines could have used as many degrees of freedom as there are samples."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (70, 1))
    problem = ub.Problem(X, np.sin(3.0 * X[:, 0]) + 0.05 * rng.standard_normal(70))
    ub.decouple(problem, 1, starts=2, rng=0).model.save(tmp_path / "model.npz")
    model = ub.DecoupledModel.load(tmp_path / "model.npz")
    around = Neighbourhood.of(model, problem, Objective.default(problem), ())
    allowed = {}
    for form, parameters in {"sine": (1.0, 3.0, 0.0, 0.0), "cubic polynomial": (0.0, 1.0, 0.0, -1.0)}.items():
        branch = FormulaBranch(Formula.of(form, parameters), (-1.0, 1.0))
        plain = model.changed(W0=[[1.0]], W1=[[1.0]], branches=[branch])
        allowed[form] = Reference(around, fitted=False).allows(reoptimise(around, plain))
    assert allowed == {"sine": True, "cubic polynomial": False}


def test_curves_whose_smoothing_is_not_known_stay_beside_forms(tmp_path: Path) -> None:
    """Fitted again without it, they would follow the noise, and go far astray between samples."""
    rng = np.random.default_rng(0)

    def function(X: Array) -> Array:
        return np.asarray(j0(8.0 * (X[:, 0] + X[:, 1])) + 0.5 * np.exp(X[:, 0] - X[:, 1]))

    X, new = rng.uniform(-1.0, 1.0, (150, 2)), rng.uniform(-1.0, 1.0, (1000, 2))
    values = function(X)
    problem = ub.Problem(X, values + 0.05 * values.std() * rng.standard_normal(150))
    ub.decouple(problem, 2, starts=4, rng=0).model.save(tmp_path / "model.npz")
    model = ub.DecoupledModel.load(tmp_path / "model.npz")
    found = ub.formulas(model, problem)
    own, theirs = (float(np.std(one(new)[:, 0] - function(new))) for one in (model, found.model))
    assert theirs < 1.5 * own
