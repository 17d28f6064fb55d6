"""The front door. What is behind it is imported with the first fit: a third of all that takes time to import."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback

if TYPE_CHECKING:
    from unbraid.fitting.request import Continuing
    from unbraid.methods import Method

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def tell_settings_of_methods(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function of a method that says where settings of methods belong when they are given to it directly."""
    own = inspect.signature(function).parameters

    @wraps(function)
    def told(*arguments: Arguments.args, **settings: Arguments.kwargs) -> Result:
        from unbraid.methods import default

        of_methods = inspect.signature(default).parameters
        for name in settings:
            if name in of_methods and name not in own:
                raise SettingError(
                    f"{name} is a setting of the method, of which each has its own: give "
                    f"method=ub.methods.default({name}={shown(settings[name])}) instead."
                )
        return function(*arguments, **settings)

    return told


@tell_settings_of_methods
def decouple(
    problem: Problem,
    rank: int | Literal["auto"],
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    method: Method | None = None,
    polish: bool | None = None,
    starts: int = 16,
    init: DecoupledModel | None = None,
    continuation: Continuing = "auto",
    loss: Literal["squared", "huber"] = "squared",
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    client: Any = None,
    callback: Callback | None = None,
    compress: bool | None = None,
    max_memory: int | float | str | None = None,
    checkpoint: StrPath | None = None,
) -> Fit:
    """Find f(x) ≈ W1 g(W0 x) + bias with `rank` univariate branches g.

    Parameters
    ----------
    problem
        The samples.
    rank
        r, how many branches. "auto": as many as the data support, from fits of rank 1, 2, … with half the starts; the
        best of them is searched for again, with all starts, where its own do not agree. With a basis or a method whose
        smoothing is not chosen from the data, as many as `select` recommends. The reason is the first of the fit's
        notes.
    basis
        What the branches are made of. None: the method's own, which for the default solver is a `SmoothingSpline` that
        chooses from the data how smooth each branch is, and leaves out branches which the data do not support.
    constraint
        One for all branches, or a sequence with one (or None) per branch.
    method
        From `unbraid.methods`; the default solver if None. It has the time limit, λ and budgets of sweeps and steps:
        ``method=ub.methods.default(max_seconds=60)``.
    polish
        Whether Gauss–Newton steps follow the method's sweeps. None: yes for the default solver, no for the
        methods of papers.
    starts
        How many random starts; the best one counts.
    init
        A model to start from, instead of random starts.
    continuation
        How branches go on beyond the range of their inputs. "linear": as straight lines. "polynomial": first, for an
        eighth of the range, as the polynomial that each ends with. "auto": like that, but only as far as the
        data determine the polynomial. Methods without polish, and fits that are cut short, go on linearly.
    loss
        "squared": least squares; where samples do not belong to the others, the first of the fit's notes names them.
        "huber": such samples count less, as with Huber's loss, and not at all where they are plainly wild; a note says
        which, and errors leave those out. It takes a few more fits, each begun at the last model.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result.
    jobs
        How many processes of this machine work on it, this one among them. None: as many as it has cores, or one where
        that would gain nothing: for small problems, with a checkpoint, and in a process or thread that others run
        beside. The result does not depend on it.
    client
        A `distributed.Client`, or the address of its scheduler. Starts are spread over the workers of that cluster,
        with the same result. Samples in Dask arrays are held by the workers, and only sums over them travel.
    callback
        Called with a `Progress` after each sweep; with a client, as starts come back.
    compress
        Whether Jacobians are first reduced to their leading directions, twice as many as branches, which makes the
        fit of a function with many inputs or outputs much faster; a note says what that leaves out. None: where it
        makes them at least four times smaller.
    max_memory
        Bytes, or text such as "2 GB", that the fit may take beside the given arrays. It estimates what it needs before
        it starts, and refuses with advice where that is more. None: what the machine has available.
    checkpoint
        The path of a file to which the work is written every few seconds. Killed at any moment and called again with
        the same arguments, `decouple` goes on from there and ends at the same result, to the last bit on the same
        machine; called again when it is done, it returns the same fit at once. Time spent before a break counts. The
        file belongs to one fit, and another is refused; samples are not in it. Where it cannot be written any more, as
        on a full disk, the fit goes on, and a note says so.

    Returns
    -------
    Fit
        The model and how it came about. Ctrl-C ends the search and returns the best so far; with a checkpoint the
        next call goes on with the search.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=1)
    >>> fit = ub.decouple(problem, rank=3, basis=ub.BSpline(df=20), rng=0)
    >>> bool(fit.output_errors.max() < 1.0)
    True
    """
    from unbraid.fitting.fit_rank import check_fit
    from unbraid.fitting.opening import RunSettings
    from unbraid.fitting.request import Request, check_problem, seed_of
    from unbraid.fitting.robust import fit_with_loss
    from unbraid.fitting.session import CUTS
    from unbraid.selection.select import fit_best_rank
    from unbraid.selection.supported import fit_supported_rank

    check_problem(problem)
    request = Request(
        rank=rank,
        basis=basis,
        constraint=constraint,
        method=method,
        polish=polish,
        starts=starts,
        init=init,
        continuation=continuation,
        loss=loss,
        seed=seed_of(rng),
        compress=compress,
        max_memory=max_memory,
    )
    check_fit(problem, request)
    running = RunSettings(rng, jobs, client, callback, checkpoint)
    with running.open(problem, request, request.settings()) as session:
        find = fit_with_loss
        if request.rank == "auto":
            find = fit_supported_rank if request.chooses_smoothing else fit_best_rank
        fit = find(problem, request, session)
        if fit.status not in CUTS:
            session.tell_of_the_end()
        return session.noted(fit)
