"""From the arrays of a file to samples, in either layout."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from unbraid.data.checks import Flaws, counted, not_finite, numbers, refuse_not_finite, samples_of
from unbraid.data.problem import Problem
from unbraid.errors import DataError, FileError
from unbraid.kernels.arrays import Array, Shape
from unbraid.reading.columns import Columns
from unbraid.reading.layout import FIRST, LAST, LAYOUTS, MEANING, find_sizes, samples_first
from unbraid.reading.samples import Points, Samples, describe_samples
from unbraid.reading.sources import ArraySource
from unbraid.runtime.memory import check_memory
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.text import clean_name, name_list

WEIGHTS = "weights"
OPTIONS = {"X": "inputs", "F": "outputs", "J": "jacobians", WEIGHTS: "weights"}
"""Which argument names an array."""
WORDS = {FIRST: "samples first", LAST: "samples last"}


def samples_in_arrays(source: ArraySource, columns: Columns, callback: Callback | None = None) -> Samples:
    """The samples in the arrays X and F, J or both of a file, with weights if there are any."""
    names = find_arrays(source, columns)
    shapes = {letter: source.shape(name) for letter, name in names.items()}
    check_sizes(source, shapes)
    layout, taken = choose_layout(source, shapes, columns.layout)
    beside = source.beside(names["X"])
    if columns.weights is not None or WEIGHTS in beside:
        names[WEIGHTS] = find_array(source, [columns.weights] if columns.weights is not None else [], WEIGHTS, beside)
        shapes[WEIGHTS] = weights_shape(source, names[WEIGHTS], shapes["X"], columns.weights is not None)
        check_sizes(source, shapes)
    read: dict[str, Array] = {}
    for letter, name in names.items():
        read[letter] = samples_of(letter, source.read(name))
        if callback is not None:
            done = sum(array.size for array in read.values())
            callback(Progress("read", done, sum(map(math.prod, shapes.values()))))
    X, F, J = read["X"], read.get("F"), read.get("J")
    W = read[WEIGHTS].ravel() if WEIGHTS in read else None
    sizes = find_sizes(layout, shapes["X"], shapes.get("F"), shapes.get("J"))
    if sizes is not None:
        problem = Problem(*samples_first(layout, sizes, X, F, J), W, columns.missing)
    else:
        build = Problem if layout == FIRST else Problem.from_paper_layout
        problem = build(X, F, J, W, columns.missing)  # which says what is wrong with the shapes
    gone = (len(X) if layout == FIRST else X.shape[-1]) - problem.S
    taken += f", {counted(gone, 'sample')} with gaps left out" if gone > 0 else ""
    return describe_samples(problem, taken, names.get(WEIGHTS))


def points_in_arrays(source: ArraySource, columns: Columns, m: int) -> Points:
    """The points in the array X of a file, one of whose axes has length m."""
    name, layout = find_array(source, columns.inputs, "X"), columns.layout
    shape = source.shape(name)
    check_sizes(source, {"X": shape})
    pair = shape
    if len(shape) == 1:
        pair = (1, *shape) if layout == LAST else (*shape, 1)
    fitting = [one for one, axis in ((LAST, 0), (FIRST, 1)) if len(pair) == 2 and pair[axis] == m]
    taken = layout or (fitting[0] if source.from_matlab and fitting else FIRST)
    if taken not in fitting:
        wanted = f"({m}, S)" if taken == LAST else f"(S, {m})"
        hint = f" It looks laid out the other way: set `layout` to {fitting[0]}." if fitting else ""
        raise DataError(f"X must be {wanted} for a model with m = {m} inputs, got shape {shape}.{hint}")
    X = numbers("X", source.read(name)).reshape(pair)
    X = X if taken == FIRST else X.T
    flaws = Flaws.among(X, not_finite)
    if not np.isfinite(X).all(axis=1).any():
        refuse_not_finite("X", flaws)
    told = (f"X has {counted(flaws.count, 'entry', 'entries')} that are NaN or infinite",) if flaws.count else ()
    words = layout_words(taken, guessed=source.from_matlab and layout is None and len(fitting) == 2)
    return Points(np.where(np.isinf(X), np.nan, X) if told else X, taken, words, told=told)


def find_arrays(source: ArraySource, columns: Columns) -> dict[str, str]:
    """What the file calls X, and F, J or both; unless they are named, they lie where X does."""
    names = {"X": find_array(source, columns.inputs, "X")}
    beside = source.beside(names["X"])
    for letter, given in (("F", columns.outputs), ("J", columns.jacobians)):
        if given or usual_name(letter, beside) in beside:
            names[letter] = find_array(source, given, letter, beside)
    if len(names) == 1:
        source.shape(names["X"])  # which may be no array
        raise DataError(
            f"{source.path} has X but neither F nor J: add values F (S, n), Jacobians J (S, n, m), or both, or name "
            f"them with `outputs` and `jacobians`; it holds {source.holds()}."
        )
    return names


def find_array(source: ArraySource, given: Sequence[str], letter: str, beside: Mapping[str, str] | None = None) -> str:
    """What the file calls the array that was named, or X, F, J or weights where none was; `beside`: among which."""
    option = OPTIONS[letter]
    if len(given) > 1:
        raise FileError(
            f"{source.path} holds arrays: `{option}` names one of them, got {name_list(given, len(given))}."
        )
    level = beside or {name: name for name in source.names}
    name = given[0] if given else usual_name(letter, level)
    found = source.find(name) if given else level.get(name)
    if found is None:
        raise source.lacks(name, option)
    return found


def usual_name(letter: str, level: Collection[str]) -> str:
    """X, F or J; or x, f or j where there is x and none of the others: a j beside X may be anybody's counter."""
    if letter == WEIGHTS:
        return letter
    return letter.lower() if "x" in level and not {"X", "F", "J"}.intersection(level) else letter


def weights_shape(source: ArraySource, name: str, X: Shape, meant: bool) -> Shape:
    """The shape of the weights, refused unless it has one long axis, as long as one of X; `meant`: they were named."""
    shape = source.shape(name)
    if math.prod(shape) == max(shape, default=0) and math.prod(shape) in X:
        return shape
    other = "" if meant else " If it is something else, rename it in the file, or name the weights with `weights`."
    raise DataError(
        f"{source.path}: {clean_name(name)} must be (S,), one weight a sample, got shape {shape} beside X {X}.{other}"
    )


def check_sizes(source: ArraySource, shapes: Mapping[str, Shape]) -> None:
    """Refuse arrays that are empty or do not fit into memory, before they are read."""
    for letter, shape in shapes.items():
        if 0 in shape:
            raise DataError(f"{letter} must not be empty, got shape {shape} in {source.path}.")
    if not source.mapped:
        check_memory(f"Reading {source.path}", 8 * sum(map(math.prod, shapes.values())))


def choose_layout(source: ArraySource, shapes: Mapping[str, Shape], layout: str | None) -> tuple[str, str]:
    """The layout, and words about it: what was asked for, what fits MATLAB's shapes, or samples first."""
    if layout is not None or not source.from_matlab:
        return layout or FIRST, layout_words(layout or FIRST)
    X, F, J = shapes["X"], shapes.get("F"), shapes.get("J")
    samples = {one: found.S for one in LAYOUTS if (found := find_sizes(one, X, F, J)) is not None}
    if not samples:
        given = ", ".join(f"{letter} {shape}" for letter, shape in shapes.items())
        last, first = (", ".join(f"{name} {MEANING[one][name]}" for name in shapes) for one in (LAST, FIRST))
        raise DataError(f"{source.path} has {given}, which fit neither samples last, {last}, nor first, {first}.")
    taken = max(reversed(LAYOUTS), key=lambda one: samples.get(one, 0))  # the last, if both have as many
    return taken, layout_words(taken, guessed=len(samples) == 2)


def layout_words(layout: str, guessed: bool = False) -> str:
    """'samples first' or 'samples last', and how to get the other where the shapes fit both."""
    other = FIRST if layout == LAST else LAST
    return WORDS[layout] + (f" (the shapes fit both layouts; `layout` {other} takes the other)" if guessed else "")
