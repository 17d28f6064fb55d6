"""The front doors: a dynamic model from records, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.choosing import WORTH, Split, some_stretches
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
from unbraid.dynamics.stages import Data, Identification
from unbraid.errors import SettingError, check_whole, shown
from unbraid.fitting.session import Session
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback

MOST_STATES = 6
"""States that are tried where their number is to be found."""
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
        One for all branches, or one (or None) per branch: `ub.Convex()`, `ub.Increasing()`, … Lines in a branch can also
        be in A, B, C and D; a branch whose slope is constrained keeps its own.
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
    known = 1 if order == "auto" else int(order)
    check_enough(
        used, known * (known + nu + ny) + ny * nu + request.most * (2 * known + nu + ny + 3) * (rank != "auto")
    )
    settings = {"kind": "state space", "order": order, **vars(request)}
    units = Units.of(used)
    with open_session(used, settings, rng, callback, checkpoint) as session:
        form, model, notes = linear_state_space(session, used, units, order, request)
        work = Identification(Data(form, units, used), request, notes)
        return work.run(session, model, raw=records)


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
    units = Units.of(used)
    settings = {"kind": "NARX", "input_lags": lags[0], "output_lags": lags[1], **vars(request)}
    with open_session(used, settings, rng, callback, checkpoint) as session:
        data = Data(form, units, used)
        courses = data.courses(data.stretches())
        phis = [measured_phi(form, course) for course in courses]
        model = regressed(courses, form.feedback.width, phis)
        fitting = Fitting(form.feedback, (), max_seconds)
        run = improve(session, fitting, fitting.solver(courses, None, 0), model, "linear", LINEAR_STEPS)
        found = shrunk(model) if run is None else model_of(run)
        return Identification(data, request, ()).run(session, found, raw=records)


def shrunk(model: Candidate) -> Candidate:
    """A linear NARX model without feedback, for where the one of least squares is unstable."""
    return replace(model, L=np.zeros_like(model.L))


def measured_phi(form: Form, course: Course) -> Any:
    """φ (T, mφ) of measured outputs."""
    return np.concatenate([form.feedback.gather(course.y, course.past), course.v], axis=1)


def linear_state_space(
    session: Session, records: Sequence[Record], units: Units, order: int | Auto, request: Request
) -> tuple[StateSpaceForm, Candidate, tuple[str, ...]]:
    """The best linear model, of the order that was asked for or is needed, on some stretches of the records."""
    nu, ny = records[0].nu, records[0].ny
    orders = range(1, MOST_STATES + 1) if order == "auto" else [int(order)]
    first = Data(StateSpaceForm(nu, ny, 1), units, records)
    stretches = first.stretches()
    plain = first.courses(stretches)
    directions, singular = observability(plain, horizon_for(plain, max(orders)))
    found: list[tuple[StateSpaceForm, Candidate, float]] = []
    for nx in orders:
        if nx > directions.shape[1] - ny:
            break
        form = StateSpaceForm(nu, ny, nx)
        courses = Data(form, units, records).courses(stretches)
        split = Split.of(courses)
        fitting = Fitting(form.feedback, (), request.max_seconds)
        solver = fitting.solver(split.courses if order == "auto" else courses, None, 0)
        begin = linear_model(courses, directions, nx)
        run = improve(session, fitting, solver, begin, "linear", LINEAR_STEPS)
        model = begin if run is None else model_of(run)
        error = split.errors(solver.simulate(model), form.feedback).inside
        found.append((form, model, float(np.sqrt(error))))
    if not found:
        raise SettingError(f"order={shown(order)} is more than records of this length tell: lower it.")
    if order != "auto":
        return found[0][0], found[0][1], ()
    return chosen_order(found, singular)


def chosen_order(
    found: list[tuple[StateSpaceForm, Candidate, float]], singular: Any
) -> tuple[StateSpaceForm, Candidate, tuple[str, ...]]:
    """The smallest order whose held-out error is about as small as that of any, and why."""
    errors = np.array([error for _, _, error in found])
    least = errors.min()
    k = int(np.flatnonzero(errors <= least / WORTH)[0])
    form, model, error = found[k]
    more = f"; of {found[-1][0].order}: {100 * errors[-1]:.3g} %" if k + 1 < len(found) else ""
    less = f", of {form.order - 1}: {100 * errors[k - 1]:.3g} %" if k else ""
    values = ", ".join(f"{value / singular[0]:.2g}" for value in singular[: form.order + 2])
    note = (
        f"Order {form.order}: the smallest whose linear model simulates held-out stretches about as well as any, off by "
        f"{100 * error:.3g} % of the spread{less}{more}. Singular values {values}."
    )
    return form, model, (note,)
