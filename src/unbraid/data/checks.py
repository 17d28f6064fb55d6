"""Checks of arrays: what is no array of numbers, of the right shape and known, is refused in a sentence.

They look at samples in blocks: no array of the size of J is made beside it.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from unbraid.data.reductions import total
from unbraid.errors import DataError, shown
from unbraid.kernels.arrays import Array, BoolArray, blocks

ARRAYS = ("X", "F", "weights", "J")
"""What there is of every sample."""
Missing = Literal["error", "mask", "drop"]
MASK, DROP, ENCODE = 'pass missing="mask"', 'pass missing="drop"', "pass categories=True"
"""The advice where something is missing, or is a text."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """'1 sample', '2 samples'."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def numbers(name: str, given: Any) -> Array:
    """The given thing as float64 in memory, or a sentence about why it is not one."""
    array: Array = real_array(name, given)
    return array if array.dtype == np.float64 else array.astype(np.float64)


def samples_of(name: str, given: Any) -> Array:
    """Samples as float64 in memory, or a sentence why not; memory maps stay as they are, of any type, and unread."""
    array: Array = real_array(name, given)
    check_file(name, array)
    return array if array.dtype == np.float64 or is_mapped(array) else array.astype(np.float64)


def check_file(name: str, array: Any) -> None:
    """Refuse an array in a file that was cut short after it had been mapped: to read it would end the process."""
    while isinstance(array, np.ndarray) and not isinstance(array.base, mmap.mmap):
        array = array.base
    if isinstance(array, np.memmap):
        lies_in: Any = array.base
        needed, there = array.offset + array.nbytes, lies_in.size()
        if there < needed:
            raise DataError(
                f"{name} lies in a file that has {there:,} bytes, and had {needed:,} or more when it was mapped: write "
                "it again, and open it anew."
            )


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return isinstance(array, mmap.mmap)


def real_array(name: str, given: Any) -> Any:
    """The given thing as an array of real numbers, one row a sample."""
    if given is None:
        raise DataError(f"{name} must be an array of numbers, got None.")
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise DataError(
            f"{name} has masked entries, which would be used as if they were data: give "
            f'{name}.filled(np.nan) and missing="mask", or remove those samples.'
        )
    if cure := next((cure for needed, cure in CURES.items() if hasattr(given, needed)), None):
        kind = ("sparse " if cure.endswith(".toarray()") else "") + type(given).__name__
        raise DataError(f"{name} must be an array of numbers, got a {kind}: pass {cure.format(name)}.")
    if is_frame(given):
        return frame_array(name, given)
    return as_real(name, given)


def is_frame(given: Any) -> bool:
    """Whether something is a data frame, of pandas or polars."""
    return hasattr(given, "columns") and (hasattr(given, "iloc") or hasattr(given, "to_series"))


def frame_array(name: str, frame: Any) -> Any:
    """A data frame as an array of real numbers; what is wrong with a column is said of that column, by its name."""
    labels = list(frame.columns)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataError(f"{name} has {labels.count(twice)} columns named {shown(twice)}: rename them.")
    array, pandas = np.asarray(frame), hasattr(frame, "iloc")
    if not array.size or (array.dtype.kind in "fiub" and pandas):
        return as_real(name, array)
    parts = []
    for k, label in enumerate(labels):  # of a whole frame of polars np.asarray makes numbers of dates
        own = f"{name}[{shown(label)}]"
        parts.append(as_real(own, frame.iloc[:, k] if pandas else frame.to_series(k)))
        if parts[-1].ndim > 1:
            raise DataError(f"{own} must hold one number a row, and holds several: make columns of them.")
    return np.column_stack(parts)


def as_real(name: str, given: Any) -> Any:
    """The given thing, no frame, as an array of real numbers."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError, NotImplementedError, OverflowError) as error:
        if hasattr(given, "detach"):  # a tensor of torch
            raise DataError(
                f"{name} must be an array of numbers, got a tensor that NumPy cannot take, {tensor_kind(given)}: pass "
                f"{name}.detach().to('cpu', torch.float64).to_dense()."
            ) from None
        reason = " ".join(str(error).split())[:100].rstrip(".")
        raise DataError(f"{name} must be an array of numbers with equally long rows: {reason}.") from None
    if array.dtype == object:
        array = numbers_among_objects(name, array)
    check_kind(name, array)
    return array


CURES = {"sink_parquet": "{0}.collect().to_numpy()", "tocsr": "{0}.toarray()", "todense": "{0}.todense()"}
"""What frames that are not computed yet, and sparse arrays, have, by which they are known, and how numbers are got."""


TIMES = "turn times into numbers first, such as seconds since the first of them"
TEXTS = ": encode texts as numbers first, or leave them out"


def tensor_kind(tensor: Any) -> str:
    """What is unusual about a tensor of torch."""
    kind = f"of {getattr(tensor, 'dtype', 'an unknown type')} on {getattr(tensor, 'device', 'an unknown device')}"
    return f"{kind}, requiring gradients" if getattr(tensor, "requires_grad", False) else kind


def check_kind(name: str, array: Any) -> None:
    """Refuse what holds no real numbers, or none at all."""
    if array.dtype.kind == "c":
        raise DataError(f"{name} must be real, got {array.dtype}: pass {name}.real if the imaginary part is zero.")
    if array.dtype.kind in "mM":
        raise DataError(f"{name} must be an array of real numbers, got dtype {array.dtype}: {TIMES}.")
    if array.dtype.kind not in "fiub":
        cure = TEXTS if array.dtype.kind in "USTO" else ""
        raise DataError(f"{name} must be an array of real numbers, got dtype {array.dtype!s:.100}{cure}.")
    if array.ndim == 0:
        raise DataError(f"{name} must be an array with one row a sample, got the single number {array}.")
    if array.size == 0:
        raise DataError(f"{name} must not be empty, got shape {array.shape}.")


def numbers_among_objects(name: str, array: npt.NDArray[np.object_]) -> Array:
    """Python objects as float64, if they are numbers: text is not, even where it spells one."""
    strange = next((entry for entry in array.flat if isinstance(entry, str | bytes)), None)
    if strange is None:
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise DataError(f"{name} has whole numbers beyond 1e308, which floating point cannot hold.") from None
        except (ValueError, TypeError):
            strange = next((entry for entry in array.flat if not isinstance(entry, Real)), None)
    kind = type(strange).__name__
    cure = TEXTS if isinstance(strange, str) else ""
    if kind == "NAType":
        cure = f": replace what is missing by NaN, such as by {name}.to_numpy(float, na_value=np.nan)"
    elif kind in ("Timestamp", "Timedelta", "datetime", "timedelta", "date"):
        cure = f": {TIMES}"
    raise DataError(f"{name} must be an array of real numbers, got Python objects, of type {kind} among others{cure}.")


def read_only(array: Array) -> Array:
    """A C-ordered view that cannot be written through; a copy only where the order needs one, and not of a file."""
    view = np.asarray(array).view() if is_mapped(array) else np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class Flaws:
    """Entries that are not as they should be: how many, and the first of them, among so many samples. They add up."""

    samples: int
    count: int
    first: tuple[int, ...] | None

    @classmethod
    def of(cls, bad: BoolArray) -> Self:
        """The flaws of one block of samples, which are the true entries of `bad`."""
        count = int(np.count_nonzero(bad))
        first = np.unravel_index(int(np.argmax(bad)), bad.shape) if count else None
        return cls(len(bad), count, None if first is None else tuple(int(i) for i in first))

    @classmethod
    def among(cls, array: Array, bad: Callable[[Array], BoolArray]) -> Self:
        """The flaws of an array, which is looked at in blocks."""
        return total(cls.of(bad(array[part])) for part in blocks(len(array), array[0].size))

    def __add__(self, other: Flaws) -> Flaws:
        first = self.first
        if first is None and other.first is not None:
            first = (self.samples + other.first[0], *other.first[1:])
        return Flaws(self.samples + other.samples, self.count + other.count, first)


def not_finite(block: Array) -> BoolArray:
    """Which entries are NaN or infinite."""
    bad: BoolArray = np.isfinite(block)
    return np.logical_not(bad, out=bad)


def check_finite(name: str, array: Array, advice: str = "remove those samples or repair them") -> None:
    """Refuse NaN and infinity, saying how many and where the first is."""
    refuse_not_finite(name, Flaws.among(array, not_finite), advice)


def refuse_not_finite(name: str, flaws: Flaws, advice: str = "remove those samples or repair them") -> None:
    """Raise a sentence about entries that are not finite, if there are any."""
    if flaws.first is not None:
        raise DataError(
            f"{name} has {counted(flaws.count, 'entry', 'entries')} that "
            f"{'is' if flaws.count == 1 else 'are'} NaN or infinite, the first at {name}{list(flaws.first)}: "
            f"{advice}."
        )


def check_missing(missing: str) -> None:
    """Refuse a `missing` that does not exist."""
    if missing not in get_args(Missing):
        raise DataError(f"missing must be 'error', 'mask' or 'drop', got {shown(missing)}.")


def check_known(name: str, array: Array) -> None:
    """Refuse infinity, and NaN throughout: it stands for an entry that is missing."""
    refuse_infinite(name, Flaws.among(array, np.isinf))
    if Flaws.among(array, np.isnan).count == array.size:
        raise DataError(f"{name} holds nothing but NaN: pass {name}=None.")


def refuse_infinite(name: str, flaws: Flaws) -> None:
    """Raise a sentence about infinite entries where NaN is accepted, if there are any."""
    if flaws.first is not None:
        raise DataError(f"{name} is infinite at {name}{list(flaws.first)}: only NaN stands for what is missing.")


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


def as_names(argument: str, given: Sequence[str] | None, array: Any, count: int | None) -> tuple[str, ...] | None:
    """The given names, else those of the columns of a data frame, else None.

    There must be as many as columns; `count` None says that nobody knows yet how many these are.
    """
    if isinstance(given, str) or not isinstance(given, Iterable | None):
        many, what = "" if count is None else f"{count} ", "the single text " if isinstance(given, str) else ""
        raise DataError(f"{argument} must be a list of {many}names, got {what}{shown(given)}.")
    if given is None:
        columns = getattr(array, "columns", None)
        if columns is None or len(columns) != count or not all(isinstance(one, str) for one in columns):
            return None
        given = list(columns)
    names = tuple(given)
    strange = next((one for one in names if not isinstance(one, str)), None)
    if strange is not None:
        raise DataError(f"{argument} must be texts, got {shown(strange)} among them.")
    if count is not None and len(names) != count:
        raise DataError(f"{argument} must be {count} names, one a column, got {len(names)}.")
    return names
