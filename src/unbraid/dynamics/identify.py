"""The front doors: a dynamic model from records, in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.choosing import FEW, LOST
from unbraid.dynamics.climbing import MOST_STATES, Climb, Level
from unbraid.dynamics.continuation import Continuing
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.forms import Form, NarxForm, StateSpaceForm, Units
from unbraid.dynamics.linear import horizon_for, linear_model, observability, regressed
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.narx import as_lags
from unbraid.dynamics.record import Record, as_records
from unbraid.dynamics.request import Auto, Request, check_enough, open_session
from unbraid.dynamics.search import Fitting, improve, model_of
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.stages import Data, Fitted, Identification
from unbraid.errors import DataError, SettingError, check_whole
from unbraid.fitting.session import Session
from unbraid.kernels.arrays import Array
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback
from unbraid.solvers.iterates import Run

LINEAR_STEPS = 30
"""Steps on the simulation error of a linear model."""


def state_space(
    records: Record | Sequence[Record],
    order: int | Auto = "auto",
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
    """Identify x⁺ = A x + B u + W_x g(W0 [x; u]), y = C x + D u + W_y g(W0 [x; u]) from records.

    It begins with the best linear model (BLA), found by subspaces; branches begin at random directions and race each
    other; what is minimised is the simulation error over all records, by Levenberg–Marquardt, with initial states free.

    Parameters
    ----------
    records
        One `Record`, or several of the same system, of any lengths.
    order
        How many states. "auto": as few as a linear model needs to simulate stretches that were held out.
    rank
        r, how many branches. "auto": as many as make the simulation of held-out stretches better; 0: a linear model.
    basis
        What the branches are made of. None: a polynomial or a spline, chosen on held-out stretches: of those that do
        about as well as the best within what was seen, the one that does best on larger outputs than it was fitted to.
    constraint
        One for all branches, or one (or None) per branch: `ub.Convex()`, `ub.Increasing()`, … Lines in a branch can
        also be in A, B, C and D; a branch whose slope is constrained keeps its own.
    continuation
        How branches go on beyond the range seen. "linear": as straight lines. "polynomial": as the polynomial that each
        ends with, for the length of the range on either side, then as lines. "auto": as far as the data determine it.
    starts
        How many random starts.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result.
    callback
        Called with a `Progress` after each step.
    checkpoint
        The path of a file to which the work is written every few seconds, from which a killed call goes on.
    max_seconds
        A time limit; the best model so far is returned.

    Returns
    -------
    DynamicFit
        Ctrl-C returns the best so far.

    Examples
    --------
    >>> import unbraid as ub
    >>> record, truth = ub.dynamics.systems.duffing(T=2000, rng=0)
    >>> fit = ub.dynamics.state_space(record, order=2, rank=1)
    >>> bool(fit.simulation_error.percent[0] < 1.1), fit.model.A.shape
    (True, (2, 2))
    """
    used = as_records(records)
    request = Request(rank, basis, constraint, continuation, starts, max_seconds)
    if order != "auto":
        check_whole("order", order, 1)
    nu, ny = used[0].nu, used[0].ny
    least = 1 if order == "auto" else int(order)
    branches = 0 if rank == "auto" else int(rank)
    check_enough(used, least * (least + nu + ny) + ny * nu + branches * (2 * least + nu + ny + 3))
    began = time.perf_counter()
    with open_session(
        used, {"kind": "state space", "order": order, **vars(request)}, rng, callback, checkpoint
    ) as session:
        linear = LinearModels(session, used, request)
        first, notes = linear.best_order() if order == "auto" else (int(order), ())
        orders = MOST_STATES if order == "auto" else first
        return find_size(session, linear.level, request, first, orders, notes, began, records)


def narx(
    records: Record | Sequence[Record],
    rank: int | Auto = "auto",
    *,
    input_lags: Sequence[int],
    output_lags: Sequence[int],
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    continuation: Continuing = "auto",
    starts: int = 8,
    rng: int | np.random.Generator | None = 0,
    callback: Callback | None = None,
    checkpoint: StrPath | None = None,
    max_seconds: float | None = None,
) -> DynamicFit:
    """Identify y_t = L φ_t + W1 g(W0 φ_t) + bias from records, φ_t being past outputs and inputs.

    The linear part comes first, by least squares one step ahead; branches begin as `ub.decouple` finds them in what is
    left of that, and at random; then all is fitted to the simulation error.

    Parameters
    ----------
    records, rank, basis, constraint, continuation, starts, rng, callback, checkpoint, max_seconds
        As of `state_space`.
    input_lags, output_lags
        Which moments before t are in φ_t: (0, 1, 2) and (1, 2), say; 0 is t itself.

    Returns
    -------
    DynamicFit
    """
    used = as_records(records)
    request = Request(rank, basis, constraint, continuation, starts, max_seconds)
    lags = as_lags("input_lags", input_lags, 0), as_lags("output_lags", output_lags, 1)
    form = NarxForm(used[0].nu, used[0].ny, *lags)
    check_enough(used, form.width * form.ny + request.most * (form.width + form.ny + 3) * (rank != "auto"))
    for k, record in enumerate(used, 1):
        if len(record) < 2 * form.lead + 2:
            raise SettingError(f"Record {k} has {len(record)} samples, too few for a lag of {form.lead}: leave it out.")
    began = time.perf_counter()
    settings = {"kind": "NARX", "input_lags": lags[0], "output_lags": lags[1], **vars(request)}
    with open_session(used, settings, rng, callback, checkpoint) as session:
        data = Data(form, Units.of(used), used)
        courses = data.courses(data.stretches())
        model = regressed(courses, [measured_phi(form, course) for course in courses])
        fitting = Fitting(form.feedback, (), max_seconds)
        run = improve(session, fitting, fitting.solver(courses, None, 0), model, "linear", LINEAR_STEPS)
        level = Identification(data, request), shrunk(model) if run is None else model_of(run)
        return find_size(session, lambda _: level, request, 1, 1, (), began, records)


def find_size(
    session: Session,
    level: Callable[[int], Level],
    request: Request,
    order: int,
    orders: int,
    notes: tuple[str, ...],
    began: float,
    raw: object,
) -> DynamicFit:
    """The fit of the order and rank that were asked for, or of those that are found from a first order on."""
    size = order, 0 if request.rank == "auto" else int(request.rank)
    found: Fitted | None = None
    if request.rank == "auto" or orders > order:
        climb = Climb(level, orders, request.most, FEW if len(request.bases) > 1 else request.bases)
        size = climb.run(session.part(0.0, 0.6), size)
        found = climb.tried[size]
        notes = (*notes, climb.told(size, orders > order))
    work, linear = level(size[0])
    if size[1] and not (found is not None and found.cut is not None):
        fewer = None if found is None else found.point.model
        found = work.fit_branches(session.part(0.6, 1.0), linear, size[1], request.bases, fewer) or found
    if found is None:
        found = work.linear(linear)
    if found is None:
        raise DataError("Not even a linear model of these records can be simulated: look at them, or lower the order.")
    return replace(work, notes=notes).finish(session, found, linear, began, raw)


def shrunk(model: Candidate) -> Candidate:
    """A linear NARX model without feedback, for where the one of least squares is unstable."""
    return replace(model, L=np.zeros_like(model.L))


def measured_phi(form: Form, course: Course) -> Array:
    """φ (T, mφ) of measured outputs, NaN where they are not known."""
    known = np.where(course.weight > 0.0, course.y, np.nan)
    return np.concatenate([form.feedback.gather(known, course.past), course.v], axis=1)


class LinearModels:
    """The best linear state-space models of records, order by order, on some stretches of them."""

    def __init__(self, session: Session, records: tuple[Record, ...], request: Request) -> None:
        self.session, self.records, self.request = session, records, request
        self.units = Units.of(records)
        plain = self.data(1)
        self.stretches = plain.stretches()
        courses = plain.courses(self.stretches)
        self.directions, self.singular = observability(courses, horizon_for(courses, MOST_STATES))
        self.levels: dict[int, Level] = {}

    def data(self, order: int) -> Data:
        """The records for a model of an order."""
        return Data(StateSpaceForm(self.records[0].nu, self.records[0].ny, order), self.units, self.records)

    def level(self, order: int) -> Level:
        """How models of an order are fitted, and the best linear one."""
        if order not in self.levels:
            data = self.data(order)
            courses = data.courses(self.stretches)
            model, run = self.fitted(courses, order)
            self.levels[order] = Identification(data, self.request), model if run is None else model_of(run)
        return self.levels[order]

    def fitted(self, courses: Sequence[Course], order: int) -> tuple[Candidate, Run | None]:
        """The linear model of an order by subspaces, and on the simulation error of some courses."""
        if order > self.directions.shape[0] - self.records[0].ny:
            raise SettingError(f"order={order} is more than records of this length tell: lower it.")
        fitting = Fitting(self.data(order).form.feedback, (), self.request.max_seconds)
        begin = linear_model(courses, self.directions, order)
        return begin, improve(self.session, fitting, fitting.solver(courses, None, 0), begin, "linear", LINEAR_STEPS)

    def best_order(self) -> tuple[int, tuple[str, ...]]:
        """The smallest order whose linear model simulates held-out stretches about as well as any, and why."""
        errors = []
        for order in range(1, min(MOST_STATES, self.directions.shape[0] - self.records[0].ny) + 1):
            work, model = self.level(order)
            linear = work.linear(model)
            errors.append(LOST if linear is None else linear.inside)
        found = next(k for k, one in enumerate(errors, 1) if not any(other.is_better(one) for other in errors[k:]))
        told = ", ".join(f"{100 * error.size:.3g} % for order {k}" for k, error in enumerate(errors, 1))
        values = ", ".join(f"{value / self.singular[0]:.2g}" for value in self.singular[: found + 2])
        return found, (f"Linear models, on held-out stretches, are off by {told}; singular values are {values}.",)
