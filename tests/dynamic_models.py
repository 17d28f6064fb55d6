"""Dynamic models of every kind, made without an identification, whose branches can be saved and exported."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

import unbraid as ub
from exported_models import formula_branch
from unbraid.dynamics import DynamicModel, NarxModel, StateSpaceModel
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FunctionBranch

KNOTS = 12
"""Of the splines that stand for curves."""


def spline_of(branch: Branch) -> CubicSpline:
    """A cubic spline through a curve, over its domain, which goes on along its tangents."""
    u = np.linspace(*branch.domain, KNOTS)
    return CubicSpline(u, branch(u), extrapolate=False)


def splined(truth: StateSpaceModel) -> StateSpaceModel:
    """A system of `ub.dynamics.systems` with splines in place of its functions."""
    function = truth.nonlinearity
    splines = [spline_of(branch) for branch in function.branches]
    return truth.changed(
        nonlinearity=ub.DecoupledModel.from_parts(function.W0, function.W1, function.bias, splines),
    )


def system(name: str, T: int) -> tuple[Array, StateSpaceModel]:
    """Inputs (T, nu), and one of the systems with splines."""
    record, truth = getattr(ub.dynamics.systems, name)(T=T, rng=0)
    return record.u, splined(truth)


def without_branches(m: int, bias: Array) -> ub.DecoupledModel:
    """The constant function of m inputs."""
    return ub.DecoupledModel(np.zeros((0, m)), np.zeros((len(bias), 0)), [], bias)


def random_state_space(
    nx: int = 3, nu: int = 2, ny: int = 2, r: int = 2, seed: int = 0, gain: float = 0.0
) -> StateSpaceModel:
    """A stable model with saturations, whose K is of that size; without branches where r is 0."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((nx, nx))
    A *= 0.6 / np.linalg.norm(A, 2)
    B, C, D = rng.standard_normal((nx, nu)), rng.standard_normal((ny, nx)), rng.standard_normal((ny, nu))
    function = random_function(nx + nu, nx + ny, r, rng)
    return StateSpaceModel(A, B, C, D, function, K=gain * rng.standard_normal((nx, ny)), dt=0.5)


def random_narx(
    input_lags: tuple[int, ...] = (0, 2),
    output_lags: tuple[int, ...] = (1, 3),
    nu: int = 2,
    ny: int = 2,
    r: int = 2,
    seed: int = 0,
) -> NarxModel:
    """A stable model with saturations; without branches where r is 0."""
    rng = np.random.default_rng(seed)
    fed, m = ny * len(output_lags), ny * len(output_lags) + nu * len(input_lags)
    L = rng.standard_normal((ny, m))
    L[:, :fed] *= 0.5 / sum(np.linalg.norm(part, 2) for part in np.split(L[:, :fed], len(output_lags), axis=1))
    function = random_function(m, ny, r, rng)
    return NarxModel(L, function, input_lags=input_lags, output_lags=output_lags, nu=nu, dt=0.1)


def random_function(m: int, n: int, r: int, rng: np.random.Generator) -> ub.DecoupledModel:
    """A few saturations of m inputs, with slopes of at most 0.2 in all."""
    if not r:
        return without_branches(m, 0.1 * rng.standard_normal(n))
    saturation = FunctionBranch(lambda u: np.tanh(u), lambda u: 1.0 / np.cosh(u) ** 2, "tanh(u)", (-4.0, 4.0))
    W0, W1 = rng.standard_normal((r, m)), rng.standard_normal((n, r))
    W0, W1 = W0 / np.linalg.norm(W0, 2), 0.2 * W1 / np.linalg.norm(W1, 2)
    return ub.DecoupledModel.from_parts(W0, W1, 0.1 * rng.standard_normal(n), [spline_of(saturation)] * r)


def with_formulas() -> NarxModel:
    """A model whose branches are closed formulas, which call functions of their language."""
    branches = [formula_branch(form) for form in ("sine", "tanh", "softplus and line")]
    rng = np.random.default_rng(1)
    W0, W1 = rng.standard_normal((3, 3)), 0.1 * rng.standard_normal((1, 3))
    function = ub.DecoupledModel(W0, W1, branches, [0.2])
    return NarxModel([[0.3, -0.2, 0.5]], function, input_lags=(1,), output_lags=(1, 2))


def dynamic_models() -> dict[str, DynamicModel]:
    """Models of both kinds, by names that programs may have."""
    systems = {name: system(name, 100)[1] for name in ub.dynamics.systems.SYSTEMS}
    return systems | {
        "linear_state_space": random_state_space(r=0),
        "narx": random_narx(),
        "narx_of_one_moment": random_narx((0,), (1,), nu=1, ny=1, r=1),
        "narx_of_many_moments": random_narx((0, 1, 2, 5), (1, 2, 3, 4), nu=1, ny=2, r=3),
        "narx_of_late_inputs": random_narx((2, 7), (2,), nu=2, ny=1, r=2),
        "linear_narx": random_narx(r=0),
        "narx_with_formulas": with_formulas(),
    }


MODELS = dynamic_models()


def inputs_of(name: str, T: int) -> Array:
    """Inputs (T, nu) for one of the models."""
    if name in ub.dynamics.systems.SYSTEMS:
        return system(name, T)[0]
    return np.random.default_rng(7).standard_normal((T, MODELS[name].nu))
