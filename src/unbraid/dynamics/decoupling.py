"""From a fitted state-space model with any nonlinearity to one whose nonlinearity is a few curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.functions.forms import Form
from unbraid.data.functions.recognition import form_of
from unbraid.data.problem import Problem
from unbraid.decouple import decouple as decouple_function
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.identifying.climbing import MOST_STATES, find_size
from unbraid.dynamics.identifying.finishing import balanced_model
from unbraid.dynamics.identifying.linear_models import LinearModels
from unbraid.dynamics.identifying.request import Auto, Request, is_auto, open_session
from unbraid.dynamics.identifying.result import completed
from unbraid.dynamics.identifying.search import CUBIC
from unbraid.dynamics.identifying.stages import Fitted, Identification
from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import Outputs
from unbraid.dynamics.models.state_space import matrix
from unbraid.dynamics.models.trajectory import walk
from unbraid.dynamics.record import Record, as_records
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.errors import DataError, SettingError, check_whole, shown
from unbraid.fitting.request import Continuing
from unbraid.fitting.session import Session
from unbraid.kernels.arrays import Array, spread_out
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback

MOMENTS = 50
"""Moments by which a given model is known."""
POINTS = 500
"""Points of the trajectory at which f is evaluated, with its Jacobian, at most."""


def decouple(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike,
    D: npt.ArrayLike,
    f: Callable[..., Any],
    records: Record | Sequence[Record],
    rank: int | Auto = "auto",
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    continuation: Continuing = "auto",
    starts: int = 8,
    rng: int | np.random.Generator | None = 0,
    callback: Callback | None = None,
    checkpoint: StrPath | None = None,
    max_seconds: float | None = None,
) -> DynamicFit:
    """Replace the nonlinearity of a state-space model x⁺ = A x + B u + f_x(x, u), y = C x + D u + f_y(x, u) by curves.

    Along the trajectory of the given model, f = [f_x; f_y] and its Jacobians are decoupled (`ub.decouple`), and all is
    then fitted to the simulation error over the records. That is what papers do to polynomial models (PNLSS).

    Parameters
    ----------
    A, B, C, D
        The linear part, (nx, nx), (nx, nu), (ny, nx), (ny, nu).
    f
        A function of points [x; u], (S, nx + nu) or one of them, that gives [f_x; f_y], (S, nx + ny): of NumPy, PyTorch
        or JAX, as `Problem.from_function` takes it.
    records
        One `Record`, or several.
    rank
        How many branches. "auto": as many as make the simulation of held-out stretches better, as in `state_space`.
    basis, constraint, continuation, starts, rng, callback, checkpoint, max_seconds
        As of `state_space`; `starts` are those of the decoupling.

    Returns
    -------
    DynamicFit

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> record, truth = ub.dynamics.systems.duffing(T=400, rng=0)
    >>> f = lambda p: np.stack([-0.01 * p[:, 0] ** 3, -0.1 * p[:, 0] ** 3, 0.0 * p[:, 0]], axis=1)
    >>> fit = ub.dynamics.decouple(truth.A, truth.B, truth.C, truth.D, f, record, rank=1, basis=ub.Polynomial(3))
    >>> bool(fit.simulation_error.percent[0] < 1.1)
    True
    """
    used = as_records(records)
    if not is_auto(rank):
        check_whole("rank", rank, 1)
    request = Request(rank, basis, constraint, continuation, starts, max_seconds)
    if not callable(f):
        raise SettingError(f"f must be a function of points [x; u], got {shown(f)}.")
    parts = {name: matrix(name, one) for name, one in zip("ABCD", (A, B, C, D), strict=True)}
    nx, nu, ny = len(parts["A"]), used[0].nu, used[0].ny
    for name, shape in (("A", (nx, nx)), ("B", (nx, nu)), ("C", (ny, nx)), ("D", (ny, nu))):
        if parts[name].shape != shape:
            raise DataError(f"{name} must be {shape}, as A and the records have it, got shape {parts[name].shape}.")
    form, _ = form_of("f", f, np.pad(used[0].u, ((0, 0), (nx, 0))))
    if form.shape != (nx + ny,):
        raise DataError(
            f"f must map points [x; u] (S, {nx + nu}) to [f_x; f_y] (S, {nx + ny}), got shape (S, {form.shape[0]}): "
            "give zeros for f_y where y = C x + D u."
        )
    given = GivenModel(np.block([[parts["A"], parts["B"]], [parts["C"], parts["D"]]]), replace(form, failures={}), nx)
    began, settings = time.perf_counter(), vars(request)
    further = {"kind": "decouple", "L": given.L, "f": given.beginning(used[0])}
    with open_session(used, {**settings, **further}, rng, callback, checkpoint) as session:
        phi = session.journal.unit(lambda: given.points(used))
        work, linear = LinearModels(session, used, request, max(nx, MOST_STATES)).level(nx)
        level = Decoupling(work.data, request, L=given.L, problem=Problem.from_function(f, phi)), linear
        found = find_size(session, lambda _: level, request, nx, nx)
        return completed(found, "decouple", settings, rng, records, began)


@dataclass(frozen=True, kw_only=True)
class Decoupling(Identification):
    """An identification whose branches begin as those of `problem`, the given nonlinearity beside L."""

    L: Array
    problem: Problem

    def fit_branches(
        self, session: Session, linear: Candidate, rank: int, bases: Sequence[Basis], fewer: Candidate | None = None
    ) -> Fitted | None:
        """So many branches of the given model, in the basis that does best; None where they cannot be simulated."""
        (rng,) = session.rng.spawn(1)
        constraint, starts = self.request.constraints[:rank], self.request.starts
        static = decouple_function(self.problem, rank, basis=CUBIC, constraint=constraint, starts=starts, rng=rng)
        courses, scales = self.data.courses(self.data.stretches()), self.data.form.scales(self.data.units)
        solver = self.fitting.solver(courses, CUBIC, rank)
        point = solver.point(self.onto(courses, balanced_model(self.L, static.model, scales)))
        return None if point is None else self.choose_basis(session, point, bases, None)


@dataclass(frozen=True)
class GivenModel:
    """The model that is given: its linear part L = [[A, B], [C, D]], f, NaN where it has no answer, and its order."""

    L: Array
    f: Form
    order: int

    def values(self, phi: Array) -> Outputs:
        """[x⁺; y] at φ = [x; u]."""
        return Outputs(phi @ self.L.T + self.f(phi, np.arange(len(phi))), np.zeros((0, len(phi))))

    def slopes(self, outputs: Outputs, width: int) -> Array:
        """Nothing: the model is gone through moment by moment."""
        return np.zeros((len(outputs.f), len(self.L), width))

    def beginning(self, record: Record) -> Array:
        """What the model does in its first moments on a record: by that a checkpoint knows f, which has no numbers."""
        n, nx = len(self.L), self.order
        return walk(self, Feedback(nx, (1,), n - nx, n), record.u[:MOMENTS], np.zeros((1, nx)), np.full(nx, 1e100)).f

    def points(self, records: Sequence[Record]) -> Array:
        """Some points φ of its trajectories from rest, spread evenly."""
        n, nx = len(self.L), self.order
        feedback = Feedback(nx, (1,), n - nx, n)
        every = []
        for record in records:
            done = walk(self, feedback, record.u, np.zeros((1, nx)), np.full(nx, 1e100))
            if len(done.f) < len(record):
                why = next(map(str, (self.f.failures or {}).values()), "it diverges.")
                raise DataError(f"The given model cannot be followed beyond sample {len(done.f)} of a record: {why}")
            every.append(done.phi)
        phi = np.concatenate(every)
        return np.asarray(phi[np.sort(spread_out(len(phi), POINTS))])
