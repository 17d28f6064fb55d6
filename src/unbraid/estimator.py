"""A scikit-learn regressor. Needs scikit-learn, which the extra `sklearn` brings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from unbraid.bases import Basis, BSpline
from unbraid.bases.constraints import Constraint
from unbraid.data.checks import check_finite, is_frame, numbers, real_array
from unbraid.data.looking.neighbours import CONTRADICTION
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.errors import DataError, MissingDependencyError, check_whole, install_hint, shown
from unbraid.fitting.request import Continuing
from unbraid.inference.importance.marginals import Marginals
from unbraid.inference.importance.result import overall_importance
from unbraid.inference.importance.sobol import sobol_indices
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.methods import Method
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.results.wild import COMMAND_LINE, WILD, names_samples, renumbered
from unbraid.results.worth.uncertainty import Uncertainty
from unbraid.runtime.files import StrPath
from unbraid.runtime.helpers import cores

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise MissingDependencyError(
        f"DecouplingRegressor needs scikit-learn 1.6 or newer: {install_hint('sklearn')}."
    ) from error

if TYPE_CHECKING:
    from sklearn.utils import Tags


QUICK = 1500
"""Unknowns up to which the uncertainty of a fit is found at once, because its samples are not kept."""
ADVICE = {
    Status.OUT_OF_SWEEPS: (
        "The budget ran out before the solver was at rest: give its method a larger max_sweeps, or the default one "
        "more steps, method=ub.methods.default(max_steps=1000), or use the model as it is."
    ),
    Status.OUT_OF_TIME: "The time limit of the method was reached: raise its max_seconds, or use the model as it is.",
    Status.NOT_FINITE: (
        "Steps produced inf or nan, and this is the best model before that: look at X and y for numbers that are far "
        "too large, or try another random_state."
    ),
}
"""What to do about fits that did not converge, in terms of the regressor's parameters."""


class DecouplingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """f(x) ≈ W1 g(W0 x) + bias with r univariate branches g, as a scikit-learn regressor.

    Parameters
    ----------
    rank
        r, how many branches. ``"auto"``: as many as the data support.
    df
        Degrees of freedom of a branch, a cubic `BSpline` (of lower degree where df < 3). Where there are no more than
        df distinct samples, it is one less than those. None: as many as the data support, branch by branch, of a
        `SmoothingSpline`; with a `method` its own basis.
    basis
        Any basis instead, such as ``ub.SmoothingSpline()``. It is taken as it is, and df does not matter.
    constraint
        One for all branches, such as ``ub.Increasing()``, or a sequence with one (or None) a branch.
    method
        From `unbraid.methods`; the default solver if None.
    polish
        Whether Gauss–Newton steps follow the method's sweeps. None: yes for the default solver only.
    starts
        How many random starts; the best one counts.
    continuation
        How branches go on beyond the range of their inputs, as in `decouple`: ``"auto"``, ``"linear"`` or
        ``"polynomial"``.
    loss
        "squared", or "huber" where some samples are wild: those count less, or not at all, and a note says which. With
        "squared" there is a warning that names them.
    keep_samples
        Whether `fit_` remembers the samples, for `report` and `unbraid.diagnose`; a pickle then holds them as well.
    random_state
        None, a seed or a NumPy `RandomState`. The same seed gives the same model.
    n_jobs
        How many processes work on a fit. None: all cores, or one where that would gain nothing, as within a grid search
        that uses them already. -1: all cores, -2: all but one. The model does not depend on it.

    Attributes
    ----------
    model_
        The `DecoupledModel`.
    fit_
        The `Fit`: the model, how it came about, and what was chosen from the data.
    rank_
        How many branches of the model carry something.
    feature_importances_
        (m,), how much each input matters: the mean over outputs of its total Sobol' index, over the sum of all
        (`unbraid.importance`). Inputs count as independent, each distributed as in the samples.
    n_features_in_, feature_names_in_
        How many inputs there are, and their names where X had any.

    Notes
    -----
    Inputs need no scaling. Samples that occur more than once count as one of larger weight, so that a weight of 2 and a
    sample given twice are the same. Ctrl-C keeps the best model found until then, and is passed on. For other data,
    such as Jacobians only or gaps, use `decouple`.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> y = np.exp(X[:, 0] + X[:, 1]) + (X[:, 1] - X[:, 2]) ** 2
    >>> regressor = ub.DecouplingRegressor(random_state=0).fit(X[:150], y[:150])
    >>> bool(regressor.score(X[150:], y[150:]) > 0.99)
    True
    >>> regressor.rank_
    2
    >>> regressor.jacobian(X).shape
    (200, 3)
    """

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        *,
        df: int | None = None,
        basis: Basis | None = None,
        constraint: Constraint | Sequence[Constraint | None] | None = None,
        method: Method | None = None,
        polish: bool | None = None,
        starts: int = 16,
        continuation: Continuing = "auto",
        loss: Literal["squared", "huber"] = "squared",
        keep_samples: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rank: Any = rank
        self.df = df
        self.basis = basis
        self.constraint = constraint
        self.method = method
        self.polish = polish
        self.starts = starts
        self.continuation = continuation
        self.loss = loss
        self.keep_samples = keep_samples
        self.random_state = random_state
        self.n_jobs = n_jobs

    model_: DecoupledModel
    fit_: Fit
    _uncertainty: Uncertainty | None
    rank_: int

    def fit(self, X: Any, y: Any, jac: Any = None, sample_weight: Any = None) -> Self:
        """Find the model of some samples.

        Parameters
        ----------
        X
            (S, m), the points; a data frame will do.
        y
            (S,) or (S, n), the values.
        jac
            (S, n, m), the Jacobians, jac[s, i, k] = ∂y_i/∂x_k at sample s, or None; (S, m) where there is one output.
        sample_weight
            (S,), how much each sample counts, or None: all the same.
        """
        for name, given in (("X", X), ("y", y), ("sample_weight", sample_weight)):
            check_numbers(name, given)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        values = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        jacobians = None if jac is None else as_jacobians(jac, values, X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise DataError("sample_weight is zero throughout: at least one sample has to count.")
        order = in_fixed_order(X, values, jacobians)
        ordered = None if jacobians is None else jacobians[order]
        equal = np.all(weights == weights[0])
        problem = Problem(X[order], values[order], ordered, None if equal else weights[order])
        distinct = problem.counting()
        if distinct.S == 1:
            raise DataError(f"Of {len(X)} samples only 1 distinct sample counts: at least 2 are needed.")
        basis = self.basis
        if basis is None and self.df is not None:
            basis = basis_of(distinct, self.df)
        fit = decouple(
            problem,
            self.rank,
            basis=basis,
            constraint=self.constraint,
            method=self.method,
            polish=self.polish,
            starts=self.starts,
            continuation=self.continuation,
            loss=self.loss,
            rng=int(check_random_state(self.random_state).randint(2**31 - 1)),
            jobs=self.n_jobs if self.n_jobs is None or self.n_jobs >= 0 else max(1, cores() + 1 + self.n_jobs),
        )
        if any(names_samples(note) for note in fit.notes):
            fit = replace(fit, notes=tuple(renumbered(note, order) for note in fit.notes))
        self._uncertainty = None if self.keep_samples else quick_uncertainty(fit)
        if self.keep_samples:
            fit = replace(fit, problem=self._problem(X, values, jacobians, sample_weight))
        else:
            fit = fit.without_problem()
        self.fit_, self.model_ = fit, fit.model
        self.rank_ = fit.model.rank if fit.smoothing is None else fit.smoothing.supported
        self._marginals = Marginals.of(distinct.X, distinct.weights)
        self._single_output = y.ndim == 1
        if self.fit_.status is Status.INTERRUPTED:  # the best so far is kept, but a grid search must not go on
            raise KeyboardInterrupt
        if not self.fit_.status.converged:
            warnings.warn(ADVICE.get(fit.status, fit.status.advice), ConvergenceWarning, stacklevel=2)
        for note in self.fit_.notes:
            if note.startswith((CONTRADICTION, WILD)):
                warnings.warn(in_own_words(note), stacklevel=2)
        return self

    def report(self, path: StrPath, X: Any = None, y: Any = None, jac: Any = None) -> None:
        """Write a page about the fit: one HTML file that needs nothing else.

        Parameters
        ----------
        path
            Where it goes, `report.html`, say.
        X, y, jac
            The samples that the page looks at, as in `fit`. None: those of the fit, where ``keep_samples=True``.
        """
        check_is_fitted(self)
        if X is None and self.fit_.problem is None:
            raise DataError("The samples were not kept: pass them as X and y, or fit with keep_samples=True.")
        problem = None
        if X is not None:
            points, values = self._points(X), np.asarray(y, dtype=np.float64)
            values = values.reshape(len(points), -1)
            problem = self._problem(points, values, None if jac is None else as_jacobians(jac, values, points), None)
        self.fit_.report(path, problem=problem)

    def _problem(self, X: Array, F: Array, J: Array | None, weights: Any) -> Problem:
        """Samples as they were given, with the names of the inputs where they have any."""
        names = [str(name) for name in getattr(self, "feature_names_in_", ())] or None
        return Problem(X, F, J, None if weights is None else np.asarray(weights, dtype=np.float64), input_names=names)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The values at X (S, m): (S, n), or (S,) if y was; with `return_std` also the standard deviation of each.

        The standard deviation is that of a new observation there, noise included, as that of scikit-learn's linear
        models is. `uncertainty()` has that of the function itself, and intervals.
        """
        points = self._points(X)
        values = self.model_(points)
        if not return_std:
            return values[:, 0] if self._single_output else values
        std = self.uncertainty().values(points, new=True).std
        return (values[:, 0], std[:, 0]) if self._single_output else (values, std)

    def uncertainty(self) -> Uncertainty:
        """How far the fit can be trusted, as `Fit.uncertainty` has it."""
        check_is_fitted(self)
        if self._uncertainty is None and self.fit_.problem is None:
            raise DataError(
                "The samples were not kept, and of so many unknowns nothing was found out: fit with keep_samples=True."
            )
        if self._uncertainty is None:
            self._uncertainty = self.fit_.uncertainty()
        return self._uncertainty

    def jacobian(self, X: Any) -> Array:
        """The Jacobians at X (S, m): (S, n, m), or the gradients (S, m) if y was (S,)."""
        points = self._points(X)
        jacobians = self.model_.jacobian(points)
        return jacobians[:, 0] if self._single_output else jacobians

    @property
    def feature_importances_(self) -> Array:
        """How much each input matters, (m,), with sum 1."""
        check_is_fitted(self)
        return overall_importance(sobol_indices(self.model_, self._marginals, seed=0).total)

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        check_numbers("X", X)
        points: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return points

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def check_numbers(name: str, given: Any) -> None:
    """Refuse what holds no finite numbers, in a sentence that names the argument and, of a data frame, the column.

    scikit-learn refuses the rest: shapes, names of features, and what its own checks expect in its own words.
    """
    own_words = isinstance(given, np.ndarray) and (
        given.size == 0
        or given.dtype.kind == "c"
        or (given.dtype.kind == "O" and any(isinstance(entry, dict) for entry in given.flat))
    )
    if own_words or (given is None and name != "X") or (isinstance(given, Real) and name == "sample_weight"):
        return
    array = real_array(name, given)
    if is_frame(given):
        if hasattr(given, "sparse"):
            raise DataError(f"{name} has sparse columns: pass {name}.sparse.to_dense().")
        for label, column in zip(given.columns, array.T, strict=True):
            check_finite(f"{name}[{shown(label)}]", column)
    check_finite(name, array)


def as_jacobians(jac: npt.ArrayLike, y: Array, X: Array) -> Array:
    """The Jacobians that were given as (S, n, m), refused where they cannot be."""
    J = numbers("jac", jac)
    expected = (*y.shape, X.shape[1])
    if J.shape != expected and not (y.shape[1] == 1 and J.shape == X.shape):
        hint = " Its last two axes look swapped." if J.shape == (len(X), X.shape[1], y.shape[1]) else ""
        raise DataError(f"jac must be (S, n, m) = {expected}, or (S, m) with one output, got {J.shape}.{hint}")
    check_finite("jac", J)
    return J.reshape(expected)


def quick_uncertainty(fit: Fit) -> Uncertainty | None:
    """The uncertainty of a fit whose samples will be dropped, without them; None where it would take long to find."""
    coefficients = fit.basis.size + fit.model.n + fit.model.m
    if fit.model.rank * coefficients > QUICK or fit.status is Status.INTERRUPTED:
        return None
    found = fit.uncertainty()
    return found.without_samples() if isinstance(found, LinearisedUncertainty) else found


def in_own_words(note: str) -> str:
    """A note on samples with the names that the arguments of `DecouplingRegressor.fit` have."""
    for theirs, own in (("F and J", "y and jac"), (f"{WILD}F", f"{WILD}y"), (f"{WILD}J", f"{WILD}jac")):
        if theirs in note:
            note = note.replace(theirs, own, 1)
            break
    return note.replace(COMMAND_LINE, "")


def in_fixed_order(X: Array, F: Array, J: Array | None) -> IndexArray:
    """Numbers of samples in an order that does not depend on the given one: sums would round differently in another."""
    columns = [X, F] if J is None else [X, F, J.reshape(len(J), -1)]
    return np.lexsort(np.hstack(columns).T[::-1])


def basis_of(problem: Problem, df: int) -> Basis:
    """Cubic splines of df degrees of freedom, and never too many for a problem of distinct samples."""
    check_whole("df", df, 1)
    df = min(df, problem.S - 1)
    return BSpline(df, degree=min(3, df))
