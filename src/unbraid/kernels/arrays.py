"""The array types of the package, their precision, and blocks of samples."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.intp]
Shape = tuple[int, ...]

EPS = float(np.finfo(np.float64).eps)
"""From 1 to the next number: what a result of float64 may be off by, relatively."""

TEMPORARY_ENTRIES = 1 << 18
"""Entries of a temporary in a reduction over samples: 2 MB of float64, about a core's cache."""
BRANCH_ENTRIES = 1 << 16
"""Entries of (r, samples) in a block that branches are evaluated at: of longer ones more leaves the cache, of shorter
ones calls take much time."""
LEAST_BLOCK = 256
"""Samples in such a block at least: below, calling takes longer than computing."""
PRODUCT_BLOCK = 512
"""Samples in a block of many features at least: below, adding products takes longer than computing them."""


def spread_out(samples: int, most: int) -> IndexArray:
    """The numbers of at most so many samples, spread evenly among all, and drawn: the same ones always."""
    count = min(most, samples)
    edges = np.arange(count + 1) * samples // count
    return np.asarray(np.random.default_rng(0).integers(edges[:-1], edges[1:]), dtype=np.intp)


def blocks(samples: int, entries_per_sample: int) -> Iterator[slice]:
    """Slices that cover `samples`, each of at most `TEMPORARY_ENTRIES` entries (and at least one sample)."""
    size = max(1, TEMPORARY_ENTRIES // max(1, entries_per_sample))
    for start in range(0, samples, size):
        yield slice(start, min(start + size, samples))


def block_length(branches: int) -> int:
    """How many samples a block has at which so many branches are evaluated."""
    return max(LEAST_BLOCK, BRANCH_ENTRIES // branches)


def feature_block_length(features: int) -> int:
    """How many samples a block has whose features, so many each, are multiplied with each other.

    Of so many that four arrays of them stay in the cache, unless that were few: the product, of the square of the
    features, is read and written once a block.
    """
    return max(1, TEMPORARY_ENTRIES // (4 * features), min(PRODUCT_BLOCK, features))


def even_blocks(samples: int, length: int) -> list[slice]:
    """Slices of about equal length, at most so long, that cover `samples`."""
    count = -(-samples // length)
    return [slice(samples * k // count, samples * (k + 1) // count) for k in range(count)]


def first_copies(arrays: Sequence[Array], which: IndexArray) -> IndexArray:
    """The number of the first of the samples `which` that each of them is an exact copy of, in all arrays.

    Samples are sorted by keys of their rows, those of the first array at first, and compared where keys are the same.
    """
    result, keys, alike = which.copy(), np.zeros(len(which), np.uint64), np.arange(len(which))
    for array in arrays:
        keys[alike] = keys[alike] * np.uint64(3) + row_keys(array, which[alike])
        _, first, group, counts = np.unique(keys[alike], True, True, True)
        result[alike] = which[alike[first[group]]]
        alike = alike[counts[group] > 1]
    for array in arrays:
        for part in blocks(len(alike), array[0].size):
            some = alike[part]
            differ = np.any(row_bits(array, which[some]) != row_bits(array, result[some]), axis=1)
            result[some[differ]] = which[some[differ]]  # rows that share a key by chance
    return result


def row_keys(array: Array, which: IndexArray) -> npt.NDArray[np.uint64]:
    """Numbers of some rows of an array that are the same where rows are, and hardly ever else."""
    factors = np.random.default_rng(0).integers(1 << 63, size=array[0].size, dtype=np.uint64) * 2 + 1
    keys = np.empty(len(which), np.uint64)
    for part in blocks(len(which), array[0].size):
        bits = row_bits(array, which[part])
        bits = (bits ^ bits >> 32) * factors
        keys[part] = (bits ^ bits >> 29).sum(axis=1)
    return keys


def row_bits(array: Array, which: IndexArray) -> npt.NDArray[np.uint64]:
    """The bits of some rows of an array: those of 0 where there is -0."""
    return (array[which].reshape(len(which), -1) + 0.0).view(np.uint64)
