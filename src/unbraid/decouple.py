"""The front door."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from unbraid.bases import Basis
from unbraid.constraints import Constraint, NonNegative, per_branch
from unbraid.errors import DataError, SettingError, as_generator, check_whole
from unbraid.fit import Fit, StartSummary, errors_on
from unbraid.iterate import Callback, Run
from unbraid.methods import AlternatingMethod, default
from unbraid.metrics import direction_angles
from unbraid.model import DecoupledModel
from unbraid.problem import Problem
from unbraid.projection import Projection
from unbraid.samples import Samples
from unbraid.solvers.alternating import AlternatingProjection
from unbraid.starts import run_from, run_starts
from unbraid.threads import single_blas_thread
from unbraid.units import Units


def decouple(
    problem: Problem,
    rank: int,
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    method: AlternatingMethod | None = None,
    starts: int = 16,
    init: DecoupledModel | None = None,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Find f(x) ≈ W1 g(W0 x) + bias with `rank` univariate branches g.

    Parameters
    ----------
    problem
        The samples.
    rank
        r, how many branches.
    basis
        What the branches are made of; the method's own if None.
    constraint
        One for all branches, or a sequence with one (or None) per branch.
    method
        From `unbraid.methods`; the default solver if None.
    starts
        How many random starts; the best one counts.
    init
        A model to start from, instead of random starts.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result.
    callback
        Called with a `Progress` after each sweep.

    Returns
    -------
    Fit
        The model and how it came about. Ctrl-C ends the search and returns the best so far.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=1)
    >>> fit = ub.decouple(problem, rank=3, basis=ub.BSpline(df=20), rng=0)
    >>> bool(fit.output_errors.max() < 1.0)
    True
    """
    began = time.perf_counter()
    method = as_method(method)
    basis = method.basis if basis is None else basis
    constraints = check_settings(problem, rank, basis, constraint, starts, init)
    units = Units.balanced(problem) if method.scaled else Units.as_given(problem)
    solver = AlternatingProjection(
        Samples.of(problem, units),
        basis,
        Projection.onto(constraints),
        method.coupling,
        method.anchored,
        method.normalised,
        method.offset,
    )
    generator = as_generator(rng)
    with single_blas_thread():
        if init is None:
            ended, cut = run_starts(solver, rank, generator.spawn(starts), method.stopping, callback)
        else:
            ended, cut = run_from(solver, *seen_from(problem, units, init), generator, method.stopping, callback)
        ended.sort(key=lambda start: start.objective)
        models = [lift(solver, units, basis, start) for start in ended]
        jacobian_error, output_errors = errors_on(problem, models[0])
    return Fit(
        model=models[0],
        status=ended[0].status if cut is None else cut,
        jacobian_error=jacobian_error,
        output_errors=output_errors,
        objective=ended[0].objective,
        trace=ended[0].trace,
        starts=tuple(summary(start, model, models[0]) for start, model in zip(ended, models, strict=True)),
        seconds=time.perf_counter() - began,
        method=method.name,
        basis=basis,
        constraints=constraints,
        notes=(CONSTANTS_UNKNOWN,) if problem.F is None else (),
    )


CONSTANTS_UNKNOWN = (
    "Jacobians alone do not determine constants: the values of the model are known up to one constant per output. "
    "Pass F to fix them."
)


def as_method(method: AlternatingMethod | None) -> AlternatingMethod:
    """The method, or the default one; anything else is refused."""
    if method is None:
        return default()
    if not isinstance(method, AlternatingMethod):
        given = f"the function {method.__name__}: call it" if callable(method) else repr(method)
        raise SettingError(f"method must come from ub.methods, such as ub.methods.dejonghe2025(), got {given}.")
    return method


def check_settings(
    problem: Problem,
    rank: int,
    basis: Basis,
    constraint: Constraint | Sequence[Constraint | None] | None,
    starts: int,
    init: DecoupledModel | None,
) -> tuple[Constraint | None, ...]:
    """Refuse what cannot work, with advice; the constraints, one per branch."""
    if not isinstance(problem, Problem):
        raise SettingError(f"problem must be an unbraid.Problem, got {type(problem).__name__}: use Problem(X, F, J).")
    check_whole("rank", rank, 1)
    check_whole("starts", starts, 1)
    if not isinstance(basis, Basis):
        raise SettingError(f"basis must be a basis such as ub.BSpline(df=12), got {basis!r}.")
    constraints = per_branch(constraint, rank, basis)
    if problem.J is None:
        raise DataError(
            "This problem has values only, and this solver works on Jacobians: pass J (S, n, m) as well, "
            "or let Problem.from_function(f, X) compute it."
        )
    if basis.size > problem.S:
        layout = " If X has its samples last, use Problem.from_paper_layout." if problem.m > problem.S else ""
        raise DataError(
            f"{problem.S} samples are too few for {basis!r}, which has {basis.size} coefficients per branch: "
            f"lower its size, or give at least {basis.size} samples.{layout}"
        )
    if problem.F is None and any(isinstance(one, NonNegative) for one in constraints):
        raise SettingError(
            "NonNegative needs values F: Jacobians alone leave the branches' constants open, "
            "so any branch can be made nonnegative by adding one."
        )
    if init is not None and not isinstance(init, DecoupledModel):
        raise SettingError(f"init must be a DecoupledModel, such as fit.model, got {init!r}.")
    if init is not None and (init.rank, init.m, init.n) != (rank, problem.m, problem.n):
        raise SettingError(f"init must have rank {rank}, {problem.m} inputs and {problem.n} outputs, got {init!r}.")
    return constraints


def seen_from(
    problem: Problem, units: Units, model: DecoupledModel
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """A model's directions in the solver's units, with its slopes and values at the samples.

    With V = W0 x_scale and β the lengths of its rows, the solver's inputs are V z / β, in which slopes
    are β times as large.
    """
    V = model.W0 * units.x_scale
    length = np.linalg.norm(V, axis=-1)
    length = np.where(length > 0.0, length, 1.0)
    u = problem.X @ model.W0.T
    G = np.stack([g.derivative(u[:, j]) for j, g in enumerate(model.branches)], axis=-1) * length
    R = np.stack([g(u[:, j]) for j, g in enumerate(model.branches)], axis=-1)
    return V / length[:, None], (G, R)


def lift(solver: AlternatingProjection, units: Units, basis: Basis, start: Run) -> DecoupledModel:
    """The model of one start, in the user's units."""
    one = start.best
    W0, W1, placement, a = one.W0[0], one.W1[0], one.placement.select(0), one.a[0]
    return units.model(W0, W1, solver.bias(W0, W1, placement, a), basis, placement, a)


def summary(start: Run, model: DecoupledModel, best: DecoupledModel) -> StartSummary:
    """How a start ended, beside the best one."""
    angle = float(direction_angles(best.W0, model.W0).max())
    return StartSummary(start.objective, start.trace.sweeps, start.status, angle)
