"""Closed forms: values, derivatives and parameters of every one, against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array
from unbraid.results.branches.expressions import FUNCTIONS, Expression, U, apply
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch

every_form = pytest.mark.parametrize("name", FORMS)
AT = np.linspace(0.31, 2.0, 41)  # no kink of the formulas below is among these
STEP = 1e-6


def some_formula(name: str) -> Formula:
    """A formula of the form, defined where t = 0.7 u + 0.2 > 0."""
    form = FORMS[name]
    parameters = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0) if form.h is None else (1.3, 0.7, 0.2, 0.4, -0.3)
    return Formula.of(name, parameters[: form.count])


def central(function: object, at: Array) -> Array:
    assert callable(function)
    return np.asarray((function(at + STEP) - function(at - STEP)) / (2.0 * STEP))


@every_form
def test_slopes_and_bends_are_those_of_the_values(name: str) -> None:
    branch = FormulaBranch(some_formula(name))
    np.testing.assert_allclose(branch.derivative(AT), central(branch, AT), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(branch.derivative(AT, 2), central(branch.derivative, AT), rtol=1e-6, atol=1e-5)


@every_form
def test_the_design_is_the_change_by_each_parameter(name: str) -> None:
    formula = some_formula(name)
    at = np.array([formula.parameters[k] for k in formula.form.free])
    for derivative in (0, 1):
        for k, column in enumerate(formula.design(AT, derivative).T):
            step = STEP * np.eye(len(at))[k]
            above, below = (FormulaBranch(formula.with_free(at + sign * step)) for sign in (1.0, -1.0))
            values = [one.derivative(AT) if derivative else one(AT) for one in (above, below)]
            np.testing.assert_allclose(column, (values[0] - values[1]) / (2.0 * STEP), rtol=1e-5, atol=1e-6)


@every_form
def test_values_without_expressions_are_those_of_the_expression(name: str) -> None:
    formula = some_formula(name)
    value, slope = formula.with_slope(AT)
    np.testing.assert_allclose(value, formula(AT), rtol=1e-13)
    np.testing.assert_allclose(slope, formula.slope.evaluate(AT), rtol=1e-12, atol=1e-13)


@every_form
@given(by=st.floats(-3.0, 3.0))
def test_a_shifted_formula_is_the_function_moved(name: str, by: float) -> None:
    formula = some_formula(name)
    np.testing.assert_allclose(formula.shifted(by)(AT + by), formula(AT), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(t=st.floats(0.05, 0.9))
def test_every_elementary_function_knows_its_derivative(name: str, t: float) -> None:
    at = np.array([t])
    function = apply(name, U)
    np.testing.assert_allclose(function.derivative().evaluate(at), central(function.evaluate, at), rtol=1e-4, atol=1e-6)


def test_expressions_are_differentiated_by_the_rules() -> None:
    inner = 2.0 * U + 1.0
    expression: Expression = apply("sin", inner**2) * apply("exp", -1.0 * U) - inner**-1
    np.testing.assert_allclose(
        expression.derivative().evaluate(AT), central(expression.evaluate, AT), rtol=1e-6, atol=1e-6
    )


def test_a_formula_is_nan_where_it_is_not_defined_and_where_u_is() -> None:
    log = FormulaBranch(Formula.of("logarithm", (1.0, 1.0, 0.0, 0.0)))
    assert np.isnan(log(np.array([-1.0, np.nan]))).all()
    constant = FormulaBranch(Formula.of("constant", (3.0,)))
    np.testing.assert_array_equal(constant(np.array([np.nan, 1.0])), [np.nan, 3.0])


def test_large_arguments_do_not_overflow() -> None:
    t = np.array([-1e4, 1e4])
    softplus, logistic = (Formula.of(name, (1.0, 1.0, 0.0, 0.0)) for name in ("softplus", "logistic"))
    np.testing.assert_array_equal(softplus(t), [0.0, 1e4])
    np.testing.assert_array_equal(logistic(t), [0.0, 1.0])
    np.testing.assert_array_equal(softplus.slope.evaluate(t), [0.0, 1.0])


def test_unknown_forms_and_wrong_numbers_of_parameters_are_refused() -> None:
    with pytest.raises(SettingError, match="form must be one of constant, line"):
        Formula.of("cosine", (1.0,))
    with pytest.raises(SettingError, match="A sine has 4 finite parameters"):
        Formula.of("sine", (1.0, 2.0))
    with pytest.raises(SettingError, match="finite"):
        Formula.of("line", (1.0, np.nan))
    with pytest.raises(SettingError, match="order must be 1 or 2"):
        FormulaBranch(some_formula("sine")).derivative(AT, 3)


def test_models_of_formulas_are_evaluated_and_differentiated() -> None:
    branches = [FormulaBranch(some_formula(name)) for name in ("sine", "tanh and line")]
    model = ub.DecoupledModel([[1.0, 0.5], [-0.2, 1.0]], [[1.0, 2.0]], branches, [0.1])
    X = np.random.default_rng(0).uniform(0.4, 1.0, (50, 2))
    U0 = X @ model.W0.T
    np.testing.assert_allclose(model(X)[:, 0], branches[0](U0[:, 0]) + 2.0 * branches[1](U0[:, 1]) + 0.1)
    J = np.stack([(model(X + STEP * e) - model(X - STEP * e))[:, 0] / (2.0 * STEP) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(model.jacobian(X)[:, 0], J, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(model(X[:1]), model(X)[:1])
