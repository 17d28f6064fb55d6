"""The module that needs NumPy alone computes what the model computes, to the last bits."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from exported_models import BASES, MODELS, difference, fitted_branches, formula_branch, inside, outside, special, within
from unbraid.export.files import Options
from unbraid.export.python_module import write
from unbraid.results.branch import Branch
from unbraid.results.branches.forms import FORMS

EXACT = 1e-15


def module_of(model: ub.DecoupledModel) -> dict[str, Any]:
    """The names of the exported module."""
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(write(model, Options("model"))[".py"], "exported.py", "exec"), names)
    return names


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("points", [inside, outside], ids=["inside", "outside"])
def test_values_and_jacobians_are_the_models(name: str, points: Any) -> None:
    model = MODELS[name]
    module, X = module_of(model), points(model, 2000)
    assert difference(module["values"](X), model(X)) <= within(EXACT, name)
    assert difference(module["jacobian"](X), model.jacobian(X)) <= within(EXACT, name)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_no_number_stays_none_and_infinity_is_infinite(name: str) -> None:
    model, X = MODELS[name], special()
    module = module_of(model)
    with np.errstate(all="ignore"):
        assert difference(module["values"](X), model(X)) <= within(EXACT, name)
        assert difference(module["jacobian"](X), model.jacobian(X)) <= within(EXACT, name)


def test_a_single_point_no_point_and_wrong_points() -> None:
    model = MODELS["SciPy 1"]
    module, X = module_of(model), inside(model, 1)
    assert difference(module["values"](X[0]), model(X[0])) <= EXACT
    assert difference(module["jacobian"](X[0].tolist()), model.jacobian(X[0])) <= EXACT
    assert module["values"](X[:0]).shape == (0, 2)
    assert module["jacobian"](X[:0]).shape == (0, 2, 3)
    with pytest.raises(ValueError, match=r"X must be \(S, 3\) or \(3,\), got shape \(4,\)"):
        module["values"](np.zeros(4))


@pytest.mark.parametrize("name", MODELS)
def test_it_imports_numpy_alone_and_has_no_name_it_does_not_use(name: str) -> None:
    tree = ast.parse(write(MODELS[name], Options("model"))[".py"])
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import numpy as np"]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions - used == {"values", "jacobian"}


@few_or_many(200, 1000)
def test_random_small_models(draws: int) -> None:
    rng = np.random.default_rng(draws)
    kinds = [basis for basis in BASES if not isinstance(basis, ub.Polynomial)]
    for _ in range(draws):
        r, m, n = rng.integers(1, 5, 3)
        branches: list[Branch] = []
        for _ in range(r):
            basis = kinds[rng.integers(len(kinds))]
            fitted = fitted_branches(basis, bool(rng.random() < 0.5), rng)[rng.integers(3)]
            branches.append(formula_branch(str(rng.choice(list(FORMS)))) if rng.random() < 0.3 else fitted)
        model = ub.DecoupledModel(
            rng.standard_normal((r, m)), rng.standard_normal((n, r)), branches, rng.standard_normal(n)
        )
        module, X = module_of(model), 2.0 * rng.standard_normal((20, m))
        assert difference(module["values"](X), model(X)) <= EXACT
        assert difference(module["jacobian"](X), model.jacobian(X)) <= EXACT
