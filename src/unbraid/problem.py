"""What goes in: sample points X, values F, Jacobians J, checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from unbraid.arrays import Array, BoolArray, IndexArray, blocks
from unbraid.errors import DataError
from unbraid.labels import as_names
from unbraid.sums import total

if TYPE_CHECKING:
    from unbraid.functions import Derivatives, Function
    from unbraid.progress import Callback

Missing = Literal["error", "mask"]
Summand = TypeVar("Summand")
MASK = 'pass missing="mask"'
"""The advice where something is missing."""


class Problem:
    """Samples of a function f: R^m -> R^n to be decoupled. Samples come first.

    Parameters
    ----------
    X
        (S, m), the points.
    F
        (S, n), the values f(x), or None.
    J
        (S, n, m), the Jacobians, J[s, i, k] = ∂f_i/∂x_k at x_s, or None. F and J may not both be absent.
    weights
        (S,), how much each sample counts in the fit, ≥ 0: a sample of weight 2 counts like two. None: all the same.
    missing
        ``"error"`` refuses NaN; ``"mask"`` takes NaN in F and J for entries that are not known, and leaves them out.
    input_names, output_names
        m and n names for reports and plots; None: those of the columns where X or F is a data frame, else none.

    Notes
    -----
    Anything array-like is accepted and nothing is ever written to. Arrays of float64 in C order are
    used in place, others are copied once. With one output, F may be (S,) and J may be (S, m).

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    >>> ub.Problem(X, F=np.sin(X[:, :1] + X[:, 1:]))
    Problem(S=50 samples, m=2 inputs, n=1 output, values only)
    """

    X: Array
    F: Array | None
    weights: Array | None
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None
    J: Array | None

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "J"):  # the last to be set: the problem is complete, and checked
            raise DataError(f"A Problem cannot be changed: make a new one instead of setting {name}.")
        super().__setattr__(name, value)

    def __init__(
        self,
        X: npt.ArrayLike,
        F: npt.ArrayLike | None = None,
        J: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        missing: Missing = "error",
        *,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        check_missing(missing)
        if F is None and J is None:
            raise DataError("Neither F nor J was given: pass values F (S, n), Jacobians J (S, n, m), or both.")
        points = numbers("X", X)
        values = None if F is None else numbers("F", F)
        jacobians = None if J is None else numbers("J", J)
        points = points[:, None] if points.ndim == 1 else points
        values = values[:, None] if values is not None and values.ndim == 1 else values
        one_output = values is None or values.shape[-1] == 1
        if jacobians is not None and jacobians.ndim == 2 and one_output:
            jacobians = jacobians[:, None, :]
        check_shapes(points, values, jacobians)
        check_finite("X", points)
        for name, array in (("F", values), ("J", jacobians)):
            if array is not None:
                check_known(name, array, missing)
        if missing == "mask":
            check_outputs_known(values, jacobians)
        self.X = read_only(points)
        self.F = None if values is None else read_only(values)
        self.weights = None if weights is None else read_only(check_weights(numbers("weights", weights), len(points)))
        self.input_names = as_names("input_names", input_names, X, self.m)
        n = (values if values is not None else jacobians).shape[1]  # type: ignore[union-attr]
        self.output_names = as_names("output_names", output_names, F, n)
        self.J = None if jacobians is None else read_only(jacobians)

    @classmethod
    def from_paper_layout(
        cls,
        X: npt.ArrayLike,
        F: npt.ArrayLike | None = None,
        J: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        missing: Missing = "error",
    ) -> Self:
        """A problem from arrays as the paper (and MATLAB code) lays them out: samples last.

        X is (m, S), F is (n, S), J is (n, m, S); weights and missing are as for `Problem`.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> ub.Problem.from_paper_layout(X=np.ones((2, 30)), F=np.ones((3, 30)))
        Problem(S=30 samples, m=2 inputs, n=3 outputs, values only)
        """
        points = numbers("X", X)
        values = None if F is None else numbers("F", F)
        jacobians = None if J is None else numbers("J", J)
        for name, array, axes in (("X", points, 2), ("F", values, 2), ("J", jacobians, 3)):
            if array is not None and array.ndim != axes:
                layout = {"X": "(m, S)", "F": "(n, S)", "J": "(n, m, S)"}[name]
                raise DataError(f"{name} must be {layout} in the paper's layout, got shape {array.shape}.")
        if fits_sample_layout(points, values, jacobians):
            raise DataError(
                f"In the paper's layout samples come last, X (m, S), but X {points.shape} and the others "
                "have them first: use Problem(X, F, J)."
            )
        return cls(
            points.T,
            None if values is None else values.T,
            None if jacobians is None else np.moveaxis(jacobians, -1, 0),
            weights,
            missing,
        )

    @classmethod
    def from_function(
        cls,
        f: Function,
        X: npt.ArrayLike,
        jacobian: Function | None = None,
        *,
        derivatives: Derivatives = "auto",
        chunk: int | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """A problem from a function, which is evaluated at X with its Jacobian.

        Parameters
        ----------
        f
            Maps a point (m,) to (n,), or a batch (S, m) to (S, n); which of the two is found out. It may compute with
            NumPy, PyTorch (an `nn.Module`, or a function of tensors) or JAX.
        X
            (S, m), the points.
        jacobian
            Maps a point (m,) to the Jacobian (n, m), or a batch to (S, n, m). It is held against differences of f at
            three points.
        derivatives
            Where Jacobians come from if `jacobian` is None. "torch" and "jax": automatic differentiation.
            "differences": five-point central differences, with a step for each input. "complex-step": Im f(x + ih) / h,
            exact, for analytic NumPy functions that take complex numbers. "auto": automatic differentiation if f is
            a PyTorch or JAX function, else differences.
        chunk
            How many points are evaluated at once. None: 1000, or 10 if f takes single points.
        callback
            Called with a `Progress` after a chunk, at most five times a second, and at the end of both phases, "values"
            and "Jacobians".

        Raises
        ------
        UnbraidError
            If f fails or is not finite somewhere (the message says at which point), if it is random, or if the
            Jacobians plainly contradict the values.

        Notes
        -----
        Differences of smooth functions in double precision reach a relative error of 1e-8, mostly 1e-11; of functions
        in single precision about 1e-5. Of functions that are noisy or rounded they are as good as that allows, and
        refused from an estimated error of 5 % on; so are jumps. A network is
        evaluated in evaluation mode (no dropout, batch norm with its running averages) and put back as it was, in the
        type and on the device of its parameters; no gradients are left in them. JAX functions are evaluated in
        float64, whatever JAX is set to. Results are float64 always.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
        >>> ub.Problem.from_function(lambda x: [np.sin(x[0] + x[1]), x[0] * x[1]], X)
        Problem(S=50 samples, m=2 inputs, n=2 outputs, values and Jacobians)

        A point at which f fails is named:

        >>> X[17] = [0.0, 0.5]
        >>> ub.Problem.from_function(lambda x: 1.0 / x[0], X)
        Traceback (most recent call last):
        unbraid.errors.DataError: f gave inf at X[17] = [0. , 0.5]: remove that sample, or repair the function there.
        """
        from unbraid.functions import sample_function

        points = numbers("X", X)
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2:
            raise DataError(f"X must be (S, m), got shape {points.shape}.")
        check_finite("X", points)
        F, J = sample_function(f, points, jacobian, derivatives, chunk, callback)
        return cls(points, F, J, input_names=as_names("input_names", None, X, points.shape[1]))

    @property
    def S(self) -> int:
        """How many samples."""
        return len(self.X)

    @property
    def m(self) -> int:
        """How many inputs."""
        return int(self.X.shape[1])

    @property
    def n(self) -> int:
        """How many outputs."""
        known = self.F if self.F is not None else self.J
        assert known is not None
        return int(known.shape[1])

    @cached_property
    def complete(self) -> bool:
        """Whether all entries of F and J are known."""
        return not any(array is not None and np.isnan(array).any() for array in (self.F, self.J))

    def sum(
        self,
        function: Callable[Concatenate[Problem, ...], Summand],
        *arguments: Any,
        entries: int | None = None,
    ) -> Summand:
        """Σ function(block, *arguments) over blocks of the samples, each a problem in memory (`unbraid.sums`).

        `entries` is how many numbers the function holds at a time per sample, from which follows how long a block is;
        None: what there is of a sample.
        """
        per_sample = self.m + self.n * (1 + self.m) if entries is None else entries
        return total(function(self.part(part), *arguments) for part in blocks(self.S, per_sample))

    def part(self, part: slice) -> Problem:
        """Samples that follow each other, without looking at them again: views, nothing is copied."""
        some = object.__new__(Problem)
        for name in ("X", "F", "weights", "J"):
            array = getattr(self, name)
            object.__setattr__(some, name, None if array is None else array[part])
        for name in ("input_names", "output_names"):
            object.__setattr__(some, name, getattr(self, name))
        return some

    def take(self, index: Sequence[int] | IndexArray | BoolArray | slice) -> Problem:
        """The problem of some of the samples.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> problem.take(slice(80))
        Problem(S=80 samples, m=2 inputs, n=2 outputs, values and Jacobians)
        """
        return Problem(
            self.X[index],
            None if self.F is None else self.F[index],
            None if self.J is None else self.J[index],
            None if self.weights is None else self.weights[index],
            "error" if self.complete else "mask",
            input_names=self.input_names,
            output_names=self.output_names,
        )

    def counting(self) -> Problem:
        """The problem of the samples that count: of weight above 0, with something known."""
        counts = np.ones(self.S, dtype=bool) if self.weights is None else self.weights > 0.0
        if not self.complete:
            arrays = [array.reshape(self.S, -1) for array in (self.F, self.J) if array is not None]
            counts &= np.any([~np.isnan(array).all(axis=1) for array in arrays], axis=0)
        return self if counts.all() else self.take(counts)

    def __repr__(self) -> str:
        have = {(True, True): "values and Jacobians", (True, False): "values only", (False, True): "Jacobians only"}
        more = [] if self.weights is None else ["weighted"]
        if not self.complete:
            gaps = [array for array in (self.F, self.J) if array is not None]
            share = sum(np.count_nonzero(np.isnan(array)) for array in gaps) / sum(array.size for array in gaps)
            more.append(f"{100.0 * share:.2g} % missing")
        return (
            f"Problem(S={counted(self.S, 'sample')}, m={counted(self.m, 'input')}, n={counted(self.n, 'output')}, "
            f"{', '.join([have[self.F is not None, self.J is not None], *more])})"
        )


def counted(count: int, noun: str, plural: str = "") -> str:
    """'1 sample', '2 samples'."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def numbers(name: str, given: Any) -> Array:
    """The given thing as float64, or a sentence about why it is not one."""
    if given is None:
        raise DataError(f"{name} must be an array of numbers, got None.")
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise DataError(f"{name} has masked entries, which would be used as if they were data: remove those samples.")
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: a torch tensor that requires gradients
        if hasattr(given, "detach"):
            raise DataError(
                f"{name} must be an array of numbers, got a tensor that requires gradients or is on another device: "
                f"pass {name}.detach().cpu()."
            ) from None
        reason = str(error).rstrip(".")
        raise DataError(f"{name} must be an array of numbers with equally long rows: {reason}.") from None
    if array.dtype == object:
        array = numbers_among_objects(name, array)
    if array.dtype.kind == "c":
        raise DataError(f"{name} must be real, got {array.dtype}: pass {name}.real if the imaginary part is zero.")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} must be an array of real numbers, got dtype {array.dtype}.")
    if array.ndim == 0:
        raise DataError(f"{name} must be an array with one row a sample, got the single number {array}.")
    if array.size == 0:
        raise DataError(f"{name} must not be empty, got shape {array.shape}.")
    return array if array.dtype == np.float64 else array.astype(np.float64)


def numbers_among_objects(name: str, array: npt.NDArray[np.object_]) -> Array:
    """Python objects as float64, if they are numbers: text is not, even where it spells one."""
    strange = next((entry for entry in array.flat if isinstance(entry, str | bytes)), None)
    if strange is None:
        try:
            return array.astype(np.float64)
        except (ValueError, TypeError):
            strange = next((entry for entry in array.flat if not isinstance(entry, Real)), None)
    raise DataError(
        f"{name} must be an array of real numbers, got Python objects, of type {type(strange).__name__} among others."
    )


def read_only(array: Array) -> Array:
    """A C-ordered view that cannot be written through; a copy only where the order needs one."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def check_finite(name: str, array: Array, advice: str = "remove those samples or repair them") -> None:
    """Refuse NaN and infinity, saying how many and where the first is."""
    finite = np.isfinite(array)
    if finite.all():
        return
    bad = int(array.size - np.count_nonzero(finite))
    first = tuple(int(i) for i in np.unravel_index(int(np.argmin(finite)), array.shape))
    raise DataError(
        f"{name} has {counted(bad, 'entry', 'entries')} that "
        f"{'is' if bad == 1 else 'are'} NaN or infinite, the first at {name}{list(first)}: "
        f"{advice}."
    )


def check_missing(missing: str) -> None:
    """Refuse what is no way to deal with gaps."""
    if missing not in get_args(Missing):
        raise DataError(f"missing must be 'error' or 'mask', got {missing!r}.")


def check_known(name: str, array: Array, missing: Missing) -> None:
    """Refuse infinity, and NaN unless it stands for an entry that is missing; not all of them can be."""
    if missing == "error":
        advice = f"remove those samples or repair them, or {MASK} where NaN stands for what is not known"
        check_finite(name, array, advice)
        return
    infinite = np.isinf(array)
    if infinite.any():
        first = [int(i) for i in np.argwhere(infinite)[0]]
        raise DataError(f"{name} is infinite at {name}{first}: only NaN stands for what is missing.")
    if np.isnan(array).all():
        raise DataError(f"{name} holds nothing but NaN: pass {name}=None.")


def check_outputs_known(F: Array | None, J: Array | None) -> None:
    """Refuse an output of which nothing is known."""
    known = [~np.isnan(array).all(axis=axes) for array, axes in ((F, 0), (J, (0, 2))) if array is not None]
    unknown = np.flatnonzero(~np.any(known, axis=0))
    if unknown.size:
        raise DataError(f"Output {unknown[0]} is missing throughout, in F and J: leave it out.")


def check_weights(weights: Array, S: int) -> Array:
    """Refuse weights that are not one number ≥ 0 a sample, with one above 0."""
    if weights.shape != (S,):
        raise DataError(f"weights must be (S,) = ({S},), one a sample, got shape {weights.shape}.")
    check_finite("weights", weights)
    if weights.min() < 0.0:
        raise DataError(f"weights must be ≥ 0, got {weights.min():g} at weights[{int(weights.argmin())}].")
    if weights.max() == 0.0:
        raise DataError("weights are all zero: at least one sample has to count.")
    return weights


def check_shapes(X: Array, F: Array | None, J: Array | None) -> None:
    """Refuse shapes that do not belong together, with a hint at the likely mistake."""
    given = {"X": X, "F": F, "J": J}
    dimensions = {"X": 2, "F": 2, "J": 3}
    layout = {"X": "(S, m)", "F": "(S, n)", "J": "(S, n, m)"}
    for name, array in given.items():
        if array is not None and array.ndim != dimensions[name]:
            advice = " With one input and one output, pass J[:, None, None]." if name == "J" and array.ndim == 1 else ""
            raise DataError(f"{name} must be {layout[name]}, got shape {array.shape}.{advice}")
    S, m = X.shape
    paper = " This looks like the paper's layout, samples last: use Problem.from_paper_layout(X, F, J)."
    hint = paper if m >= S and fits_paper_layout(X, F, J) else ""  # X with more rows than columns is samples first
    if F is not None and F.shape[0] != S:
        raise DataError(f"F must have one row for each of the {S} samples of X, got shape {F.shape}.{hint}")
    if J is not None:
        n = J.shape[1] if F is None else F.shape[1]
        if J.shape != (S, n, m):
            if not hint and J.shape == (S, m, n):
                hint = " Its last two axes look swapped."
            raise DataError(f"J must be (S, n, m) = {(S, n, m)}, got {J.shape}.{hint}")


def fits_sample_layout(X: Array, F: Array | None, J: Array | None) -> bool:
    """Whether the arrays are (S, m), (S, n), (S, n, m), and cannot be (m, S), (n, S), (n, m, S)."""
    S, m = X.shape
    first = (F is None or F.shape[0] == S) and (J is None or (J.shape[0] == S and J.shape[2] == m))
    return first and not fits_paper_layout(X, F, J)


def fits_paper_layout(X: Array, F: Array | None, J: Array | None) -> bool:
    """Whether the arrays are (m, S), (n, S), (n, m, S)."""
    m, S = X.shape
    return (F is None or F.shape[1] == S) and (J is None or (J.shape[1] == m and J.shape[2] == S))
