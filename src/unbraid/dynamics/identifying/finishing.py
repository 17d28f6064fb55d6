r"""From a solver's model to the user's: states of standard deviation one, curves without lines, the user's units.

Two things are free in every state-space model with branches. The states can be mixed, x → S x; they are scaled to a
standard deviation of one. And a line can go from a branch to the matrices: g(u) = ĝ(u) + c + e u gives the same model
with W1 (c + e W0 φ) in bias and L. Branches are left without line, by least squares over what they saw, unless a
constraint speaks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.dynamics.identifying.forms import Form, Scales, StateSpaceForm, Units
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.dynamics.record import moving_spread
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.results.model import DecoupledModel

LINE = 1e-9
"""How far the line that a basis comes nearest to may be off, relatively, to be taken out of a branch."""


def scaled_states(form: Form, model: Candidate, trajectories: Sequence[Trajectory]) -> Candidate:
    """The model with states of standard deviation one; a NARX model as it is."""
    if not isinstance(form, StateSpaceForm):
        return model
    nx = form.order
    s = 1.0 / moving_spread(np.concatenate([one.phi[:, :nx] for one in trajectories]), 1.0)
    phi, f = np.ones(form.width), np.ones(len(model.L))
    phi[:nx] = f[:nx] = s
    return replace(
        model,
        L=f[:, None] * model.L / phi,
        W0=model.W0 / phi,
        W1=f[:, None] * model.W1,
        bias=f * model.bias,
        pasts=tuple(past * s for past in model.pasts),
    )


def normalised(model: Candidate, phi: Array, constraints: Sequence[Constraint | None]) -> Candidate:
    """The same model with branches of standard deviation one over φ (T, mφ), without line where that is free."""
    if model.placement is None:
        return model
    L, bias, W1, a = model.L.copy(), model.bias.copy(), model.W1.copy(), model.a.copy()
    u = model.branch_inputs(phi)
    for j, constraint in enumerate(constraints[: model.rank]):
        placement = model.placement.select(j)
        design = placement.design(u[j])
        value = design @ a[j]
        free = 2 if constraint is None or constraint.order > 1 else constraint.order
        columns = np.column_stack([np.ones(u.shape[1]), u[j]])[:, :free]
        if free:
            line = np.linalg.lstsq(columns, value, rcond=None)[0]
            own = np.linalg.lstsq(design, columns @ line, rcond=None)[0]
            if np.abs(design @ own - columns @ line).max() <= LINE * max(np.abs(value).max(), 1e-300):
                a[j] -= own
                bias += W1[:, j] * line[0]
                if free > 1:
                    L += np.outer(W1[:, j] * line[1], model.W0[j])
                value = value - columns @ line
        size = value.std() or 1.0
        a[j] /= size
        W1[:, j] *= size
    projection, placed = Projection.onto(constraints[: model.rank]), model.placement.select(None)
    z = projection.shape_coordinates(placed, a[None])  # rounding has led out of cones
    return replace(model, L=L, bias=bias, W1=W1, a=projection.from_shape_coordinates(placed, z)[0])


def in_user_units(
    form: Form,
    units: Units,
    model: Candidate,
    basis: Basis | None,
    reaches: Array,
    spread: Array,
    signals: dict[str, Any],
) -> DynamicModel:
    """The model of a solver as the user has it; `reaches` (r, 2): how far branches go on as polynomials."""
    scales = form.scales(units)
    L, W0 = scales.f_scale[:, None] * model.L / scales.scale, model.W0 / scales.scale
    W1 = scales.f_scale[:, None] * model.W1
    bias = scales.f_center + scales.f_scale * model.bias - L @ scales.center
    shift = W0 @ scales.center
    branches = []
    for j in range(model.rank):
        assert model.placement is not None
        assert basis is not None
        placement = model.placement.select(j).moved(np.array(1.0), np.array(shift[j]))
        branches.append(FittedBranch(basis, placement, model.a[j], reaches[j]))
    inputs = signals.get("input_names") or numbered("u", form.nu)
    outputs = signals.get("output_names") or numbered("y", form.ny)
    function = DecoupledModel(
        W0,
        W1,
        branches,
        bias,
        input_names=form.input_names(inputs, outputs),
        output_names=form.output_names(outputs),
    )
    if not isinstance(form, StateSpaceForm):
        spread = spread * units.y_scale
    return form.model(L, function, spread, signals)


def numbered(name: str, count: int) -> list[str]:
    """'u', or 'u1', 'u2' and so on."""
    return [name] if count == 1 else [f"{name}{i + 1}" for i in range(count)]


def balanced_model(L: Array, function: DecoupledModel, scales: Scales) -> Candidate:
    """A model in the user's units, L φ + function(φ), in balanced ones: the inverse of `in_user_units`."""
    scale = np.where(np.isfinite(scales.scale), scales.scale, 0.0)
    W0, W1 = function.W0 * scale, function.W1 / scales.f_scale[:, None]
    shift = function.W0 @ scales.center
    branches = [branch for branch in function.branches if isinstance(branch, FittedBranch)]
    if len(branches) < function.rank:
        raise SettingError("The nonlinearity must have branches in a basis.")
    moved = [
        branch.placement.moved(np.array(1.0), np.array(-by)).select(None)
        for branch, by in zip(branches, shift, strict=True)
    ]
    placement = moved[0].joined(moved[1:]) if len(moved) > 1 else moved[0]
    bias = (function.bias + L @ scales.center - scales.f_center) / scales.f_scale
    balanced = L * scale / scales.f_scale[:, None]
    a = np.stack([branch.coordinates for branch in branches])
    return Candidate(balanced, W0, W1, bias, placement, a, ())
