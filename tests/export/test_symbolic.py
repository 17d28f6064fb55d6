"""Models in SymPy are the same functions."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given

import unbraid as ub
from model_files import a_model_of_formulas
from random_models import KINDS, random_branch, random_models
from unbraid.errors import MissingDependencyError, SettingError, UnbraidError
from unbraid.export.symbolic import symbol_names
from unbraid.results.branch import FittedBranch
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch


def symbols_of(model: ub.DecoupledModel) -> list[Any]:
    names = symbol_names(model.input_names or [f"x{i + 1}" for i in range(model.m)])
    return [sympy.Symbol(name, real=True) for name in names]


def evaluated(model: ub.DecoupledModel, matrix: Any, X: Any) -> Any:
    function = sympy.lambdify(symbols_of(model), list(matrix), "numpy")
    with np.errstate(all="ignore"):
        return np.stack([np.broadcast_to(value, len(X)) for value in function(*X.T)], axis=-1)


def assert_same_function(model: ub.DecoupledModel, X: Any) -> None:
    """Equal to 1e-12 of the largest parts that are added, where the model is a number."""
    F = model(X)
    told = evaluated(model, model.to_sympy(), X)
    with np.errstate(all="ignore"):
        parts = np.stack([branch(u) for branch, u in zip(model.branches, model.W0 @ X.T, strict=True)])
    largest = np.abs(parts[:, :, None] * model.W1.T[:, None, :]).sum(axis=0) + np.abs(model.bias)
    known = np.isfinite(F)
    assert np.all(np.abs(told - F)[known] <= 1e-12 * np.maximum(largest, 1.0)[known])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_branch_is_the_same_function(kind: object) -> None:
    rng = np.random.default_rng(2)
    branch = random_branch(kind, rng)
    low, high = branch.domain
    low, high = max(low, -5.0), min(high, 5.0)
    u = np.linspace(low - 0.5 * (high - low), high + 0.5 * (high - low), 60)
    model = ub.DecoupledModel([[1.0, 0.0], [0.0, 1.0]], [[0.7, 0.0], [0.0, -2.0]], [branch, branch], [0.1, 0.2])
    assert_same_function(model, np.stack([u, u[::-1]], axis=-1))


def test_a_fitted_model_is_the_same_function_inside_and_outside_its_range() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    model = ub.decouple(problem, 3, basis=ub.BSpline(6), starts=2, rng=0).model  # of few pieces
    for far in (1.0, 3.0):
        F = model(far * problem.X)
        np.testing.assert_allclose(evaluated(model, model.to_sympy(), far * problem.X), F, rtol=1e-12, atol=1e-12)


@given(model=random_models)
def test_any_model_becomes_a_matrix(model: ub.DecoupledModel) -> None:
    matrix = model.to_sympy()
    assert matrix.shape == (model.n, 1)
    assert matrix.free_symbols <= set(symbols_of(model))
    assert all(symbol.is_real for symbol in matrix.free_symbols)


def test_derivatives_are_the_jacobian() -> None:
    model = a_model_of_formulas()
    x = np.array([0.3, 1.0])
    told = model.to_sympy().jacobian(symbols_of(model)).subs(dict(zip(symbols_of(model), x.tolist(), strict=True)))
    np.testing.assert_allclose(np.array(told, dtype=float), model.jacobian(x), rtol=1e-10)


def a_sine(phase: float) -> ub.DecoupledModel:
    branch = FormulaBranch(Formula.of("sine", (1.0 / 3.0, 2.0, phase, 0.0)))
    return ub.DecoupledModel([[1.0, 0.1234567]], [[2.0]], [branch], [0.5])


def test_formulas_are_themselves_and_digits_are_few_where_asked() -> None:
    x1, x2 = symbols_of(a_sine(0.0))
    found = a_sine(0.3)
    assert str(found.to_sympy(digits=3)[0]) == "0.667*sin(2*x1 + 0.247*x2 + 0.3) + 0.5"
    assert found.to_sympy()[0].has(sympy.sin(2 * x1 + 2 * sympy.Float(0.1234567) * x2 + sympy.Float(0.3)))


def test_whole_turns_take_no_digits() -> None:
    assert str(a_sine(0.3 + 200.0 * np.pi).to_sympy(digits=3)[0]) == "0.667*sin(2*x1 + 0.247*x2 + 0.3) + 0.5"


def test_rounded_pieces_are_nearly_the_same_function() -> None:
    model = a_model_of_formulas()
    X = np.random.default_rng(0).standard_normal((50, 2))
    np.testing.assert_allclose(evaluated(model, model.to_sympy(digits=6), X), model(X), rtol=1e-3, atol=1e-3)


def test_a_branch_that_looks_nowhere_is_a_number() -> None:
    model = a_model_of_formulas()
    still = model.changed(W0=np.zeros_like(model.W0))
    np.testing.assert_allclose([float(one) for one in still.to_sympy()], still(np.zeros(2)), rtol=1e-12)
    logarithm = FormulaBranch(Formula.of("logarithm", (1.0, 1.0, 0.0, 0.0)))
    assert ub.DecoupledModel([[0.0]], [[1.0]], [logarithm]).to_sympy()[0] is sympy.nan


def test_symbols_are_words_of_python_each_once() -> None:
    names = symbol_names(["a b", "a_b", "a_b_2", "2", "", "if", "x5", "λ", "\x1b[2J", "__import__('os')", "y" * 500])
    assert len(set(names)) == 11
    assert all(name.isidentifier() and len(name) < 100 for name in names)


def test_what_is_no_formula_is_refused() -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(SettingError, match="cannot be exported"):
        truth.to_sympy()


def test_powers_beyond_floating_point_are_refused() -> None:
    basis = ub.BSpline(4)
    branch = FittedBranch(
        basis, basis.place(np.array([0.0, 1e-50])), np.full(basis.size, 1e200) * np.arange(float(basis.size))
    )
    with np.errstate(all="ignore"), pytest.raises(SettingError, match="beyond floating point"):
        ub.DecoupledModel([[1.0]], [[1.0]], [branch]).to_sympy()


@pytest.mark.parametrize("digits", [0, 2.5, "3"])
def test_digits_must_be_a_whole_number(digits: Any) -> None:
    with pytest.raises(SettingError, match="digits"):
        a_sine(0.0).to_sympy(digits)


def test_without_sympy_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(MissingDependencyError, match=r"Expressions need SymPy, which is not installed: .*\[sympy\]"):
        a_sine(0.0).to_sympy()
    assert issubclass(MissingDependencyError, UnbraidError)
