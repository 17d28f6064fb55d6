"""What goes in: sample points X, values F, Jacobians J, checked once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Self

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import (
    ARRAYS,
    Missing,
    as_names,
    check_finite,
    check_missing,
    counted,
    fits_sample_layout,
    is_mapped,
    numbers,
    read_only,
)
from unbraid.data.dask_arrays import Chunks, align, gather, indices, is_lazy
from unbraid.data.dask_blocks import Held
from unbraid.data.encoding import Encoding
from unbraid.data.known import Known, all_known, check_entries, count_known
from unbraid.data.reductions import Summand, total
from unbraid.data.sample_arrays import ColumnNames, SampleArrays, arrays_of, as_samples
from unbraid.errors import DataError, check_whole
from unbraid.kernels.arrays import BoolArray, IndexArray, blocks, first_copies, spread_out
from unbraid.runtime.dask_cluster import as_client

if TYPE_CHECKING:
    from unbraid.data.functions import Derivatives, Function
    from unbraid.data.looking.look import Look
    from unbraid.runtime.files import StrPath
    from unbraid.runtime.progress import Callback

THIN_SAMPLES, LEAST_SAMPLES, THIN_ENTRIES = 100_000, 1000, 1 << 25
"""How many samples are looked at after a fit: at most so many, and no more numbers than that unless samples are few."""


class Problem(SampleArrays):
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
        ``"error"`` refuses NaN; ``"mask"`` takes NaN in F and J for entries that are not known, and leaves them out;
        ``"drop"`` leaves out samples with NaN anywhere.
    input_names, output_names
        m and n names, which models keep, for reports, plots and tables; None: those of the columns where X or F is a
        data frame, else none.
    encoding
        How columns of a table became the inputs, where some of them were texts, as `reading.read_problem` tells it.

    Notes
    -----
    Anything array-like is accepted and nothing is ever written to. Arrays of float64 in C order are
    used in place, others are copied once. With one output, F may be (S,) and J may be (S, m).

    Memory maps (``np.load(path, mmap_mode="r")``) stay in their files, in whatever type and order they are. Dask arrays
    are computed a block of samples at a time, whenever they are needed; where one is given, all become Dask arrays,
    and `X`, `F`, `J` and `weights` are such. Fits look at both only through `sum`.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    >>> ub.Problem(X, F=np.sin(X[:, :1] + X[:, 1:]))
    Problem(S=50 samples, m=2 inputs, n=1 output, values only)
    """

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
        encoding: Encoding | None = None,
    ) -> None:
        check_missing(missing)
        arrays = arrays_of(X, F, J, weights)
        m, n = arrays["X"].shape[1], (arrays["F"] if F is not None else arrays["J"]).shape[1]
        names = as_names("input_names", input_names, X, m), as_names("output_names", output_names, F, n)
        if missing == "drop":
            arrays, missing = without_gaps(arrays), "error"
        home = None
        if any(is_lazy(array) for array in arrays.values()):
            arrays = align(arrays)
            home = Chunks(arrays, partial(block_of, names, missing == "error"))
        else:
            arrays = {name: read_only(array) for name, array in arrays.items()}
        given = SampleArrays(**arrays, input_names=names[0], output_names=names[1], encoding=encoding, home=home)
        counts = check_entries(Problem.unchecked(given), missing)
        super().__init__(**vars(replace(given, counts=counts, whole=counts.entries == all_known(given).entries)))

    @classmethod
    def unchecked(cls, given: SampleArrays) -> Self:
        """A problem of arrays that are known to belong together, without a look at them."""
        problem = cls.__new__(cls)
        SampleArrays.__init__(problem, **vars(given))
        return problem

    def __setattr__(self, name: str, value: object) -> None:
        raise DataError(f"A Problem cannot be changed: make a new one instead of setting {name}.")

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
        points = as_samples("X", X)
        values = None if F is None else as_samples("F", F)
        jacobians = None if J is None else as_samples("J", J)
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
        derivatives: Derivatives | None = "auto",
        step: float | None = None,
        chunk: int | None = None,
        jobs: int = 1,
        cache: StrPath | None = None,
        callback: Callback | None = None,
        timeout: float | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
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
            a PyTorch or JAX function, else differences. For functions that are expensive to call: "forward"
            differences, m + 1 calls a point, that of its value among them; "central" ones, 2m + 1 calls; None, no
            Jacobians, one call. All three need up to ten calls more to find out what f takes.
        step
            Of forward and central differences, as a share of each input's spread: longer ones for functions that are
            noisy or rounded. None: the best for functions that are neither, 1e-8 and 1e-5 about.
        chunk
            How many points are evaluated at once. None: 1000, or 10 if f takes single points; 100 where calls are few.
        jobs
            How many calls are made at the same time: by threads, or by other processes where f computes instead of
            waiting, and can be sent to them. The result does not depend on it.
        cache
            The path of a file that keeps the values of f, point by point, as they come: after Ctrl-C or a crash at
            most the calls under way are lost, and the next call of `from_function` goes on with those that are
            missing. It belongs to f, not to X. Jacobians of `jacobian` and of frameworks are not kept.
        callback
            Called with a `Progress` after a chunk, at most five times a second, and at the end of both phases, "values"
            and "Jacobians". With "forward", "central" and None there is one phase, "calls": the first time it is called
            before f is, with their number as `total`, and later with the seconds that are left.
        timeout
            Seconds that a call may take, of a point or of a batch; None: as long as it likes. Calls are then made by
            other processes, which are ended where one takes longer: f has failed there. So f must be one that can be
            sent to them, as with `jobs`, and of NumPy arrays.
        input_names, output_names
            As for `Problem`.

        Raises
        ------
        UnbraidError
            If f fails at all points, if it is random, or if the Jacobians plainly contradict the values; if the cache
            is no such file, or one of another function.

        Warns
        -----
        UserWarning
            If f fails at some of the points: it raises an exception, returns NaN, infinity or another shape, or takes
            longer than `timeout`, at a point itself or beside it, where a difference is taken. These points are left
            out; the text says which, and what f did at the first. And if the cache cannot be written.

        Notes
        -----
        Differences of smooth functions in double precision reach a relative error of 1e-8, mostly 1e-11; of functions
        in single precision about 1e-5; central ones about 1e-10, forward ones 1e-7. Of functions that are noisy or
        rounded they are as good as that allows, and refused from an estimated error of 5 % on; so are jumps. A network
        is evaluated in evaluation mode (no dropout, batch norm with its running averages) and put back as it was, in
        the type and on the device of its parameters; no gradients are left in them. JAX functions are evaluated in
        float64, whatever JAX is set to. Results are float64 always.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
        >>> ub.Problem.from_function(lambda x: [np.sin(x[0] + x[1]), x[0] * x[1]], X)
        Problem(S=50 samples, m=2 inputs, n=2 outputs, values and Jacobians)

        A point at which f fails is left out, and named in a warning:

        >>> import warnings
        >>> X[17] = 0.0
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     problem = ub.Problem.from_function(lambda x: 1.0 / np.abs(x).sum(), X)
        >>> problem.S, str(caught[0].message)[:80]
        (49, '1 of 50 samples is left out, because f has no answer there: 17 (from 0). The fir')
        """
        from unbraid.data.functions import SamplingSettings, calling, check_function, notes_on_calls, sample_function

        check_function("f", f)
        outputs = as_names("output_names", output_names, None, None)
        count = None if outputs is None else len(outputs)
        settings = SamplingSettings(jacobian, derivatives, step, chunk, jobs, callback, count, timeout)
        points = numbers("X", X)
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2:
            raise DataError(f"X must be (S, m), got shape {points.shape}.")
        check_finite("X", points)
        inputs = as_names("input_names", input_names, X, points.shape[1])
        with calling(f, settings, cache, points.shape[1]) as (called, asked, kept):
            found = sample_function(called, points, asked, None if cache is None and not settings.thrifty else kept)
        for note in notes_on_calls(found.failures, len(points), kept):
            warnings.warn(note, stacklevel=2)
        return cls(found.X, found.F, found.J, input_names=inputs, output_names=outputs)

    @cached_property
    def known(self) -> Known:
        """How many entries of F and J are known, output by output."""
        return self.sum(count_known) if self.counts is None else self.counts

    @cached_property
    def complete(self) -> bool:
        """Whether all entries of F and J are known."""
        return self.whole or self.known.entries == all_known(self).entries

    @property
    def in_memory(self) -> bool:
        """Whether its arrays are NumPy's own: no memory map, and no Dask array."""
        return self.home is None and not any(is_mapped(getattr(self, name)) for name in ARRAYS)

    def look(self) -> Look:
        """What is odd about the samples, in sentences, each with a cure: it is worth a look before a fit.

        Columns that do not vary, or are sums of others; outputs that are an input in other units; copies, and points
        with several values; far values and long tails; inputs of a few values; what is missing; too few samples;
        Jacobians that are not those of the values.
        Where samples are very many it looks at 100,000 of them.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
        >>> X[:, 1], X[:, 2] = 7.0, 2.0 * X[:, 0]
        >>> ub.Problem(X, F=np.sin(X[:, :1]), input_names=["a", "b", "c"]).look()
        Problem(S=50 samples, m=3 inputs, n=1 output, values only)
          - The input b is 7 in all samples. Its weight in the model is zero. Leave it out, or give samples
            in which it varies.
          - The input c is 2 a: what belongs to which of them cannot be told. Leave c out, or give samples in
            which they vary apart.
        """
        from unbraid.data.looking.look import look_at

        return look_at(self)

    def sum(
        self,
        function: Callable[Concatenate[Problem, ...], Summand],
        *arguments: Any,
        entries: int | None = None,
    ) -> Summand:
        """The sum of ``function(block, *arguments)`` over blocks of the samples, each a problem in memory.

        Blocks are float64 in C order, whatever the arrays are. `entries` is how many numbers the function holds at a
        time per sample, from which follows how long a block is; None: what there is of a sample.
        """
        if self.home is not None:
            return self.home.sum(function, arguments, entries)
        per_sample = self.m + self.n * (1 + self.m) if entries is None else entries
        return total(function(self.part(part), *arguments) for part in blocks(self.S, per_sample))

    def part(self, part: slice | IndexArray) -> Problem:
        """Some samples of NumPy arrays as float64, not checked again; of float64 in C order, a slice is a view."""
        arrays = {name: array[part] for name in ARRAYS if (array := getattr(self, name)) is not None}
        blocks = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}
        return block_of((self.input_names, self.output_names), self.whole, **blocks)

    def take(self, index: Sequence[int] | IndexArray | BoolArray | slice) -> Problem:
        """The problem of some of the samples; of Dask arrays it is brought into memory.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> problem.take(slice(80))
        Problem(S=80 samples, m=2 inputs, n=2 outputs, values and Jacobians)
        """
        if self.home is None:
            arrays = {name: array[index] for name in ARRAYS if (array := getattr(self, name)) is not None}
        else:
            arrays = gather(self.home, indices(index, self.S))
        missing: Missing = "error" if self.complete else "mask"
        return Problem(
            **arrays,
            missing=missing,
            input_names=self.input_names,
            output_names=self.output_names,
            encoding=self.encoding,
        )

    def thinned(self, most: int | None = None) -> Problem:
        """The problem of at most so many of the samples, in memory: spread evenly, and drawn with a fixed seed.

        It is this one where that is in memory and small enough already. None: at most 100,000 samples, and fewer where
        they would take more than 256 MB.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> problem.thinned(30)
        Problem(S=30 samples, m=2 inputs, n=2 outputs, values and Jacobians)
        """
        index = self.thinning(most)
        return self if index is None else self.take(index)

    def thinning(self, most: int | None = None) -> IndexArray | None:
        """The numbers of the samples that `thinned` keeps; None: all, as they are."""
        if most is None:
            most = min(THIN_SAMPLES, max(LEAST_SAMPLES, THIN_ENTRIES // (self.m + self.n * (1 + self.m))))
        check_whole("most", most, 1)
        if most >= self.S and self.in_memory:
            return None
        return spread_out(self.S, most)

    def on(self, client: Any = None) -> Problem:
        """The same problem with its blocks on the workers of a Dask cluster, where they are computed once and stay.

        `client` is a `distributed.Client`, or a scheduler's address; None: the cluster that has the arrays already, or
        Dask's default one. A problem of NumPy arrays, or without a cluster, is returned as it is.
        """
        client = as_client(client) if client is not None else getattr(self.home, "client", None)
        if self.home is None or client is None or (isinstance(self.home, Held) and self.home.client is client):
            return self
        chunks = self.home.chunks if isinstance(self.home, Held) else self.home
        return self.with_parts(home=Held(client, chunks))

    def with_parts(self, **parts: Any) -> Problem:
        """The same with other parts, which are known to belong together, without a look at them."""
        own = {one.name: getattr(self, one.name) for one in fields(SampleArrays)}
        return Problem.unchecked(SampleArrays(**{**own, **parts}))

    def counting(self) -> Problem:
        """The problem of the distinct samples that count: of weight above 0, with something known.

        Samples that are exact copies of each other, in X, F and J, become one with the sum of their weights: a copy
        says nothing new. Samples in files and Dask arrays stay as they are; those that do not count add nothing to
        sums.
        """
        kept = self.which_count()
        if self.counted_as is None or kept is None:
            return self
        counts, taken = self.counted_as >= 0, self.take(kept)
        if not self.copies:
            return taken
        weights = None if self.weights is None else self.weights[counts]
        total = np.bincount(self.counted_as[counts], weights)[kept]
        return taken.with_parts(weights=total.astype(np.float64) if np.ptp(total) else None)

    def which_count(self) -> IndexArray | None:
        """The numbers of the samples that `counting` keeps; None: all, as they are."""
        return None if self.counted_as is None else np.flatnonzero(self.counted_as == np.arange(self.S))

    @property
    def copies(self) -> int:
        """How many of the samples that count are exact copies of others."""
        counted_as = self.counted_as
        return 0 if counted_as is None else int(np.sum((counted_as >= 0) & (counted_as != np.arange(self.S))))

    @cached_property
    def counted_as(self) -> IndexArray | None:
        """Which sample each one counts as, (S,): itself, or the first of its exact copies; -1: it does not count.

        None: all count, as they are.
        """
        if not self.in_memory:
            return None
        counts = np.ones(self.S, dtype=bool) if self.weights is None else self.weights > 0.0
        if not self.complete:
            arrays = [array for array in (self.F, self.J) if array is not None]
            for part in blocks(self.S, self.n * (1 + self.m)):
                some = [~np.isnan(array[part].reshape(len(array[part]), -1)).all(axis=1) for array in arrays]
                counts[part] &= np.any(some, axis=0)
        if not counts.any():
            raise DataError("Nothing is known of the samples that count: their F and J are NaN throughout.")
        which = np.flatnonzero(counts)
        first = first_copies([array for array in (self.X, self.F, self.J) if array is not None], which)
        if counts.all() and np.array_equal(first, which):
            return None
        counted_as = np.full(self.S, -1)
        counted_as[which] = first
        return counted_as

    def __repr__(self) -> str:
        have = {(True, True): "values and Jacobians", (True, False): "values only", (False, True): "Jacobians only"}
        more = [] if self.weights is None else ["weighted"]
        if not self.complete:
            share = 1.0 - self.known.entries / all_known(self).entries
            more.append(f"{100.0 * share:.2g} % missing")
        if self.home is not None:
            where = " on a cluster" if isinstance(self.home, Held) else ""
            more.append(f"in {counted(len(self.home.lengths), 'block')}{where}")
        return (
            f"Problem(S={counted(self.S, 'sample')}, m={counted(self.m, 'input')}, n={counted(self.n, 'output')}, "
            f"{', '.join([have[self.F is not None, self.J is not None], *more])})"
        )


def without_gaps(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of samples without those samples that have NaN in any of them."""
    if any(is_lazy(array) or is_mapped(array) for array in arrays.values()):
        raise DataError('missing="drop" is for arrays in memory: leave out those samples yourself, or use "mask".')
    gaps = [np.isnan(array.reshape(len(array), -1)).any(axis=1) for array in arrays.values()]
    keep = ~np.any(gaps, axis=0)
    if not keep.any():
        raise DataError('missing="drop" leaves nothing: all samples have NaN somewhere.')
    return arrays if keep.all() else {name: array[keep] for name, array in arrays.items()}


def block_of(names: tuple[ColumnNames, ColumnNames], whole: bool, **arrays: Any) -> Problem:
    """A problem of arrays of float64 that are known to belong together; `whole`: none of their entries is missing."""
    return Problem.unchecked(SampleArrays(**arrays, input_names=names[0], output_names=names[1], whole=whole))
