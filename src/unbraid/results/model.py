"""The decoupled model, f(x) ≈ W1 g(W0 x) + bias: evaluated, shifted, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import as_names, check_finite, check_known, counted, numbers, read_only, real_array
from unbraid.data.encoding import Encoding, is_labelled
from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.branch import Branch
from unbraid.results.evaluation import (
    Floats,
    branch_values,
    in_blocks,
    jacobian_blocks,
    prepare_out,
    slopes_at_point,
    values_at_point,
)

if TYPE_CHECKING:
    from unbraid.results.canonical import CanonicalModel

PARTS = ("W0", "W1", "branches", "bias", "input_names", "output_names", "encoding")
"""What a model is made of."""


class DecoupledModel:
    """f(x) = W1 g(W0 x) + bias, with g made of r univariate branches.

    Parameters
    ----------
    W0
        (r, m), the directions the branches look along.
    W1
        (n, r), how the branches are mixed into the outputs.
    branches
        The r univariate functions.
    bias
        (n,), zero if None.
    input_names, output_names
        m and n names, or None. They are kept in files; data frames that have these columns may have them in any order.
    encoding
        How columns of a table become the inputs, where some of them are texts; else None.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=5, rng=0)
    >>> truth
    DecoupledModel(m=2 inputs, r=3 branches, n=2 outputs)
    >>> truth(problem.X).shape, truth.jacobian(problem.X).shape
    ((5, 2), (5, 2, 2))
    """

    def __init__(
        self,
        W0: npt.ArrayLike,
        W1: npt.ArrayLike,
        branches: Sequence[Branch],
        bias: npt.ArrayLike | None = None,
        *,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        self.branches = tuple(branches)
        r = len(self.branches)
        checked = numbers if r else lambda name, given: np.asarray(given, dtype=np.float64)  # no branches: no entries
        self.W0, self.W1 = read_only(checked("W0", W0)), read_only(checked("W1", W1))
        for name, matrix, axis in (("W0", self.W0, 0), ("W1", self.W1, 1)):
            if matrix.ndim != 2 or matrix.shape[axis] != r:
                shape = f"({r}, m)" if axis == 0 else f"(n, {r})"
                raise DataError(
                    f"{name} must be {shape} for {counted(r, 'branch', 'branches')}, got shape {matrix.shape}."
                )
        self.bias = read_only(np.zeros(self.n) if bias is None else numbers("bias", bias))
        if self.bias.shape != (self.n,):
            raise DataError(f"bias must be ({self.n},), got shape {self.bias.shape}.")
        for name, array in (("W0", self.W0), ("W1", self.W1), ("bias", self.bias)):
            if array.size:
                check_finite(name, array)
        self.input_names = as_names("input_names", input_names, None, self.m)
        self.output_names = as_names("output_names", output_names, None, self.n)
        self.encoding = encoding
        if encoding is not None and encoding.input_names != self.input_names:
            raise DataError(f"encoding must give the inputs {self.input_names}, it gives {encoding.input_names}.")

    @classmethod
    def from_parts(
        cls,
        W0: npt.ArrayLike,
        W1: npt.ArrayLike,
        bias: npt.ArrayLike | None,
        functions: Sequence[Any],
        *,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> DecoupledModel:
        """A model from matrices and functions: splines of SciPy, branches of other models, or a mixture of both.

        Parameters
        ----------
        W0, W1, bias
            (r, m), (n, r) and (n,); None for bias is zero.
        functions
            r of them: anything of `scipy.interpolate` that has one variable and one value (`PPoly`, `BSpline`,
            `CubicSpline`, `PchipInterpolator`, `Akima1DInterpolator`, `UnivariateSpline`, …), or branches. A spline
            goes on beyond its ends as it does in SciPy, or along its tangents where SciPy gives NaN there.
        input_names, output_names
            m and n names, or None.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> from scipy.interpolate import CubicSpline
        >>> u = np.linspace(-2.0, 2.0, 9)
        >>> model = ub.DecoupledModel.from_parts([[1.0, 2.0]], [[3.0]], [0.5], [CubicSpline(u, np.tanh(u))])
        >>> model([[0.0, 0.5]]).round(2)
        array([[2.78]])
        """
        from unbraid.results.branches.piecewise import as_branch

        if not isinstance(functions, Sequence):
            raise SettingError(
                f"functions must be a list of branches or splines, one a row of W0, got {shown(functions)}."
            )
        branches = [as_branch(one, j) for j, one in enumerate(functions)]
        return cls(W0, W1, branches, bias, input_names=input_names, output_names=output_names)

    @property
    def columns(self) -> Encoding | None:
        """Which columns of a table become the inputs, and how; None where the inputs have no names."""
        if self.encoding is not None or self.input_names is None:
            return self.encoding
        return Encoding.of_numbers(self.input_names)

    def changed(self, **parts: Any) -> DecoupledModel:
        """The same model with other ones of its parts: W0, W1, branches, bias, input_names, output_names, encoding."""
        kept = {name: getattr(self, name) for name in PARTS}
        return DecoupledModel(**{**kept, **parts})

    def rescaled(self, inputs: IndexArray, outputs: IndexArray) -> DecoupledModel:
        """The model of 2^outputs · f(2^-inputs · x), for powers (m,) and (n,)."""
        W1, bias = np.ldexp(self.W1, outputs[:, None]), np.ldexp(self.bias, outputs)
        return self.changed(W0=np.ldexp(self.W0, -inputs), W1=W1, bias=bias)

    @property
    def m(self) -> int:
        """How many inputs the model has."""
        return int(self.W0.shape[1])

    @property
    def n(self) -> int:
        """How many outputs the model has."""
        return len(self.W1)

    @property
    def rank(self) -> int:
        """How many branches the model has, r."""
        return len(self.branches)

    @np.errstate(invalid="ignore", over="ignore")
    def __call__(self, X: npt.ArrayLike, *, out: Floats | None = None, dtype: npt.DTypeLike | None = None) -> Array:
        """The values at X (S, m): (S, n). A single point (m,) gives (n,).

        They go to the array `out` where one is given, of its type, or to a new one of `dtype`, float64 if None. All is
        computed in float64.
        """
        points = self._points(X)
        if out is None is dtype and points.size == self.m:
            x = points.reshape(self.m).astype(np.float64, copy=False)
            F: Array = self.W1.dot(values_at_point(self.branches, self.W0.dot(x))) + self.bias
            return F if points.ndim == 1 else F[None]
        result = prepare_out(out, (*points.shape[:-1], self.n), dtype)
        in_blocks(np.atleast_2d(points), self.rank, result.reshape(-1, self.n), self._values)
        return np.asarray(result)

    def _values(self, X: Array) -> Array:
        """The values (S, n) at some points (S, m)."""
        R = branch_values(self.branches, self.W0 @ X.T)
        F: Array = R.T @ self.W1.T
        F += self.bias
        return F

    @np.errstate(invalid="ignore", over="ignore")
    def jacobian(self, X: npt.ArrayLike, *, out: Floats | None = None, dtype: npt.DTypeLike | None = None) -> Array:
        """J(x) = W1 diag(g'(W0 x)) W0 at X (S, m): (S, n, m). A single point (m,) gives (n, m).

        `out` and `dtype` are as in a call of the model.
        """
        points = self._points(X)
        if out is None is dtype and points.size == self.m:
            x = points.reshape(self.m).astype(np.float64, copy=False)
            J: Array = (self.W1 * slopes_at_point(self.branches, self.W0.dot(x))).dot(self.W0)
            return J if points.ndim == 1 else J[None]
        result = prepare_out(out, (*points.shape[:-1], self.n, self.m), dtype)
        every = result.reshape(-1, self.n, self.m)
        for part, J in jacobian_blocks(self, np.atleast_2d(points)):
            every[part] = J
        return np.asarray(result)

    def through(self, X: npt.ArrayLike, F: npt.ArrayLike) -> DecoupledModel:
        """The same model with the bias that fits values F (S, n), or (n,) for a single point, best.

        For models found from Jacobians alone, which leave one constant per output open. Values that are NaN are left
        out, and an output without any keeps its constant.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> fit = ub.decouple(ub.Problem(problem.X, J=problem.J), rank=3, starts=4, rng=0)
        >>> model = fit.model.through(problem.X[0], problem.F[0])
        >>> bool(ub.metrics.output_errors(problem.F, model(problem.X)).max() < 5.0)
        True
        """
        points, values = self._points(X), numbers("F", F)
        values = values[:, None] if values.ndim == 1 == self.n and points.ndim == 2 else values
        if values.shape != (*points.shape[:-1], self.n):
            raise DataError(f"F must be {(*points.shape[:-1], self.n)}, one row a point, got shape {values.shape}.")
        check_known("F", values)
        off = (values - self(points)).reshape(-1, self.n)
        known = ~np.isnan(off)
        missing = np.sum(np.where(known, off, 0.0), axis=0) / np.maximum(known.sum(axis=0), 1)
        return self.changed(bias=self.bias + missing)

    def canonical(
        self,
        X: npt.ArrayLike | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        straight: Sequence[int] | None = None,
    ) -> CanonicalModel:
        """The same function as f(x) = L x + W1 g(W0 x) + bias, with branches g that have no linear part.

        Linear parts of branches are gathered in one matrix L, so that models can be compared: rows of W0 of length one,
        signs, sizes and the order of branches are fixed, and a branch that is nothing but a line is none any more.

        Parameters
        ----------
        X
            (S, m), the samples over which the line nearest to each branch is taken; None: evenly over its domain.
        weights
            (S,), those of the samples; None: all the same.
        straight
            The branches, from 0, to be taken for lines, whatever is left of them: those that `ub.diagnose` finds to be
            straight up to noise, say. None: those of which nothing but rounding is left.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 3))
        >>> problem = ub.Problem(X, np.exp(X[:, 0]) - X[:, 2])
        >>> form = ub.decouple(problem, rank=2, rng=0).model.canonical(X, straight=[1])
        >>> form
        CanonicalModel(m=3 inputs, 1 bent branch, 1 straight one in L, n=1 output)
        >>> form.W0.round(2) + 0.0
        array([[1., 0., 0.]])
        >>> form.L.shape, form(X).shape, form.jacobian(X).shape
        ((1, 3), (200, 1), (200, 1, 3))
        """
        from unbraid.results.canonical import canonical_form

        points = None if X is None else np.atleast_2d(self._points(X)).astype(np.float64)
        own = None if weights is None else numbers("weights", weights)
        if own is not None and (points is None or own.shape != (len(points),)):
            got = "no X" if points is None else f"{counted(len(points), 'point')}"
            raise DataError(f"weights must be (S,), one a row of X, got shape {own.shape} for {got}.")
        return canonical_form(self, points, own, straight)

    def _points(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """X as an array (S, m) or (m,) of real numbers of any type, or an error that says what it is instead."""
        if self.columns is not None and is_labelled(X):
            X = self.columns.of_labelled(X)
        points = X if type(X) is np.ndarray and X.dtype == np.float64 else real_array("X", X)
        if points.ndim > 2 or points.shape[-1] != self.m:
            raise DataError(f"X must be (S, {self.m}) or a single point ({self.m},), got shape {points.shape}.")
        return points

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file of just this name: no pickle, and never half-written.

        It is a `.npz` archive, or a JSON text where the name ends in `.json`. Read either with `DecoupledModel.load`.
        """
        from unbraid.results.files.model_file import save_model

        save_model(self, path)

    def export(
        self,
        path: str | PathLike[str],
        *,
        name: str | None = None,
        dtype: Literal["float64", "float32"] = "float64",
        jacobian: bool = False,
    ) -> tuple[Path, ...]:
        """Write the model in another language, so that it runs without unbraid; the ending of `path` says which.

        Parameters
        ----------
        path
            ``.c`` (and ``.h`` beside it): C99 without dependencies. ``.onnx``: a graph for onnxruntime. ``.m``: a
            function for MATLAB and Octave; ``.mat``: the parts as a struct. ``.py``: a module that needs NumPy alone.
            ``.json``: a text that `load` reads back. ``.tex``: the formula.
        name
            What the function is called; None: after the file.
        dtype
            The type of the numbers in C and ONNX: "float64" or "float32".
        jacobian
            Whether an ONNX graph has the Jacobian as a second output; C, MATLAB and Python always have it.

        Returns
        -------
        tuple of Path
            The files that were written.
        """
        from unbraid.export import export_model

        return export_model(self, path, name=name, dtype=dtype, jacobian=jacobian)

    def to_sympy(self, digits: int | None = None) -> Any:
        """The model in SymPy: a matrix (n, 1) of expressions in real symbols, named after the inputs.

        Closed formulas are themselves, and branches made of polynomials are `sympy.Piecewise`.

        Parameters
        ----------
        digits
            How many significant digits numbers have; None: all.

        Examples
        --------
        >>> import sympy, unbraid as ub
        >>> from scipy.interpolate import CubicSpline
        >>> parabola = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
        >>> model = ub.DecoupledModel.from_parts([[1.0, 2.0]], [[0.5]], None, [parabola])
        >>> x1, x2 = sympy.symbols("x1 x2", real=True)
        >>> model.to_sympy().diff(x2).subs({x1: 0.5, x2: 0.5}).evalf(3)
        Matrix([[3.0]])
        """
        from unbraid.export import as_sympy

        return as_sympy(self, digits)

    @staticmethod
    def load(path: str | PathLike[str]) -> DecoupledModel:
        """Read a model that `save` has written, or `export` as `.json`. No code in the file is ever run."""
        from unbraid.results.files.model_file import load_model

        return load_model(path)

    def __repr__(self) -> str:
        branches = counted(self.rank, "branch", "branches")
        return f"DecoupledModel(m={counted(self.m, 'input')}, r={branches}, n={counted(self.n, 'output')})"

    def __str__(self) -> str:
        from unbraid.results.branches.formula import FormulaBranch
        from unbraid.results.branches.words import formula_lines

        if not any(isinstance(branch, FormulaBranch) for branch in self.branches):
            return f"{self!r}\nAll branches are curves, none is a formula."
        return "\n".join([repr(self), *formula_lines(self)])
