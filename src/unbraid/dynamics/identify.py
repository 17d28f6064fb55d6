"""The front doors: a dynamic model from records, in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.identifying.climbing import MOST_STATES, find_size
from unbraid.dynamics.identifying.data import Data
from unbraid.dynamics.identifying.forms import NarxForm, Units
from unbraid.dynamics.identifying.linear import regressed
from unbraid.dynamics.identifying.linear_models import LINEAR_STEPS, LinearModels
from unbraid.dynamics.identifying.request import Auto, Request, check_enough, is_auto, open_session
from unbraid.dynamics.identifying.result import completed
from unbraid.dynamics.identifying.search import Fitting, improve
from unbraid.dynamics.identifying.stages import Identification, measured_phi
from unbraid.dynamics.models.narx import as_lags
from unbraid.dynamics.record import Record, as_records
from unbraid.errors import SettingError, check_whole
from unbraid.fitting.request import Continuing
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback


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
        How branches go on beyond the range seen. "linear" and "polynomial", which is for an eighth of the range, are
        those of `ub.decouple`. "auto": as polynomials for a quarter of the range, or all of it, or as lines, whichever
        simulates held-out stretches best.
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
        The linear model, with a note, where no branches simulate the records better. Ctrl-C returns the best so far.

    Examples
    --------
    >>> import unbraid as ub
    >>> record, truth = ub.dynamics.systems.duffing(T=400, rng=0)
    >>> fit = ub.dynamics.state_space(record, order=2, rank=1)
    >>> bool(fit.simulation_error.percent[0] < 1.1), fit.model.A.shape
    (True, (2, 2))
    """
    used = as_records(records)
    request = Request(rank, basis, constraint, continuation, starts, max_seconds)
    if not is_auto(order):
        check_whole("order", order, 1)
    nu, ny = used[0].nu, used[0].ny
    least = 1 if order == "auto" else int(order)
    branches = 0 if rank == "auto" else int(rank)
    check_enough(used, least * (least + nu + ny) + ny * nu + branches * (2 * least + nu + ny + 3))
    began, settings = time.perf_counter(), {"order": order, **vars(request)}
    with open_session(used, {"kind": "state space", **settings}, rng, callback, checkpoint) as session:
        linear = LinearModels(session.part(0.0, 0.02), used, request, max(least, MOST_STATES))
        first, notes = linear.best_order() if order == "auto" else (int(order), ())
        orders = MOST_STATES if order == "auto" else first
        found = find_size(session, linear.level, request, first, orders, notes)
        return completed(found, "state_space", settings, rng, records, began)


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

    The linear part comes first, by least squares one step ahead. Branches begin as `ub.decouple` finds them in what is
    left, and at random directions; then all is fitted to the simulation error.

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
    settings = {"input_lags": lags[0], "output_lags": lags[1], **vars(request)}
    with open_session(used, {"kind": "NARX", **settings}, rng, callback, checkpoint) as session:
        data = Data(form, Units.of(used), used)
        courses = data.courses(data.stretches())
        model = regressed(courses, [measured_phi(form, course) for course in courses])
        fitting = Fitting(form.feedback, (), max_seconds)
        solver = fitting.solver(courses, None, 0)
        linear = improve(session.part(0.0, 0.02), fitting, solver, model, "linear", LINEAR_STEPS)
        work = Identification(data, request)
        found = find_size(session, lambda _: (work, linear), request, 1, 1)
        return completed(found, "narx", settings, rng, records, began)
