"""What a part of a network is given: activations as samples, from the user's data.

A part maps vectors to vectors, or every place of a feature map by itself: the pixels of (N, C, H, W), as 1×1
convolutions do, and the tokens of (N, T, C). Then places are samples. All else is flattened: (N, C, H, W) to (N, n) is
a function of C·H·W inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch

from unbraid.data.functions.forms import deed
from unbraid.data.functions.hosts import quiet
from unbraid.data.functions.torch_functions import evaluation_mode
from unbraid.errors import DataError, SettingError, UnbraidError, shown
from unbraid.kernels.arrays import Array
from unbraid.networks.compressing.layouts import Layout, layout_of
from unbraid.networks.compressing.parts import Part, device_and_type
from unbraid.networks.compressing.refusals import run

Given = Literal["inputs", "activations"]
MOST_SAMPLES, MOST_HELD, HELD_SHARE = 20_000, 5_000, 0.2
"""Samples that are kept, at most; how many inputs are held out, at most, and which share of all."""
MANY_INPUTS = 1250
"""Of so many inputs or more, few places each are kept as samples: 16."""
FEWEST = 10
"""Samples to fit to, at least."""
BATCH = 512
"""Inputs that go through the network at once, where they come as one array."""


class Examples(NamedTuple):
    """Some inputs, and their labels where there are any."""

    x: torch.Tensor
    y: torch.Tensor | None

    @classmethod
    def of(cls, x: Any, y: Any) -> Self:
        """What was given, as tensors; refused where there is not one label a sample."""
        x, y = as_tensor(x, "Inputs"), None if y is None else as_labels(y)
        if y is not None and len(y) != len(x):
            raise DataError(f"X and y must have one row a sample each, got {len(x)} and {len(y)}.")
        return cls(x, y)

    def some(self, which: Any) -> Self:
        """Those with these numbers."""
        return type(self)(self.x[which], None if self.y is None else self.y[which])


@dataclass(frozen=True)
class Activations:
    """What a part was given, and inputs that are held out.

    Attributes
    ----------
    X
        (S, m), samples to fit to.
    layout
        How samples lie in what the part is given.
    given
        Whether the data are inputs of the network, or of the part.
    inputs, labels
        What is held out: as the network takes it (or the part), and the labels if there are any.
    device, dtype
        Of what the part is given.
    """

    X: Array
    layout: Layout
    given: Given
    inputs: torch.Tensor
    labels: torch.Tensor | None
    device: Any
    dtype: Any


def are_classes(labels: torch.Tensor) -> bool:
    """Whether labels are classes: one whole number a sample."""
    return not labels.is_floating_point() and labels.ndim == 1


def as_labels(y: Any) -> torch.Tensor:
    """Labels as a tensor; whole numbers in one column as a vector."""
    y = as_tensor(y, "Labels", " (np.unique(y, return_inverse=True) numbers classes)")
    if y.is_complex():
        raise DataError("Labels must be real numbers, or classes 0, 1, …, got complex ones.")
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 and not y.is_floating_point() else y


def as_tensor(given: Any, what: str, cure: str = "") -> torch.Tensor:
    """A tensor of what was given, or an error that says what it is."""
    try:
        if not isinstance(given, torch.Tensor):
            given = np.asarray(given)
            wide = given.dtype.kind == "f" and given.dtype.itemsize > 8  # which torch does not have
            given = np.ascontiguousarray(given, np.float64 if wide else given.dtype.newbyteorder("="))
        with quiet():  # of arrays that may not be written to, which nobody does
            tensor = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        kind = f"an array of {given.dtype}" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
        raise DataError(f"{what} must be numbers in one array or tensor, got {kind}{cure}.") from None
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.is_nested or tensor.ndim == 0:
        kind = "on the meta device" if tensor.is_meta else f"of {tensor.layout} and shape {tuple(tensor.shape)}"
        raise DataError(f"{what} must be dense numbers in one array or tensor, a row a sample, got one {kind}{cure}.")
    return tensor.detach()


def joined(several: Sequence[torch.Tensor]) -> torch.Tensor:
    """Batches as one tensor; refused where they are of several shapes."""
    shapes = {tuple(one.shape[1:]) for one in several}
    if len(shapes) > 1:
        raise DataError(f"Batches must be of one shape, got rows of {' and '.join(map(str, sorted(shapes)))}.")
    return torch.cat(list(several))


def look_like_classes(labels: torch.Tensor, outputs: int) -> bool:
    """Whether labels that are no whole numbers say the same as classes would: 0.0, 1.0, … or a one for the class."""
    if labels.ndim == 1 and labels.is_floating_point():
        return bool((labels == labels.round()).all() and labels.min() >= 0 and labels.max() < outputs)
    one_each = labels.ndim == 2 and labels.shape[1] == outputs and bool(((labels == 0) | (labels == 1)).all())
    return one_each and bool((labels.sum(1) == 1).all())


def check_classes(labels: torch.Tensor, outputs: int) -> None:
    """Raise an error where labels are no classes that so many outputs can stand for."""
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= outputs:
        raise DataError(
            f"Labels must be classes from 0 to {outputs - 1}, as the network has {outputs} outputs; they go from {low} "
            f"to {high}."
        )


class Remembered:
    """Batches of a loader that come again, the same ones, each time they are asked for; read as far as is needed."""

    def __init__(self, loader: Iterable[Any]) -> None:
        self.loader, self.read = iter(loader), list[Any]()

    def __iter__(self) -> Iterator[Any]:
        k = 0
        while True:
            if k == len(self.read):
                try:
                    self.read.append(next(self.loader))
                except StopIteration:
                    return
            yield self.read[k]
            k += 1


def collect(
    network: torch.nn.Module, part: Part, data: object, given: Given | None, rng: np.random.Generator
) -> Activations:
    """What a part is given while the network runs on data, or the data themselves; the first inputs are held out."""
    function = part.of(network)
    with evaluation_mode(network), torch.no_grad():
        batches = batches_of(data, network, rng)
        first = next(batches, None)
        if first is None or not len(first.x):
            raise DataError("X has no samples.")
        given = what_is_given(network, part, first.x) if given is None else as_given(given)
        rows: list[torch.Tensor] = []
        held: list[Examples] = []
        layout, places = None, 1
        for batch in chain([first], batches):
            entered = batch.x if given == "activations" else entering(network, part, batch.x)
            if layout is None:
                layout = layout_of(function, entered)
                inputs = min(inputs_in(data, len(first.x)), MANY_INPUTS)
                places = min(layout.count(entered), max(1, MOST_SAMPLES // inputs))
            elif tuple(entered.shape[1:]) != layout.entering:
                raise DataError(
                    f"The part is given shape {layout.entering} for some inputs, and {tuple(entered.shape[1:])} for "
                    "others: give inputs of one shape."
                )
            rows.append(some_places(layout.rows(entered).cpu(), len(entered), places, rng))
            if sum(len(one.x) for one in held) < MOST_HELD:
                held.append(batch)
            if sum(map(len, rows)) >= MOST_SAMPLES + MOST_HELD * places:
                break
        assert layout is not None
    kept, every = joined([one.x for one in held]), joined(rows)
    count = min(len(kept), MOST_HELD, max(1, int(HELD_SHARE * len(every) / places)))
    X = every[count * places :][:MOST_SAMPLES].to(torch.float64).numpy()
    if not np.isfinite(X).all() or not every.isfinite().all():
        raise DataError("What the part is given is NaN or infinite for some samples: look at the network's inputs.")
    if len(X) < FEWEST:
        raise DataError(
            f"X has {len(every) // places} samples, of which {count} are held out: too few, give some hundreds."
        )
    y = [one.y for one in held if one.y is not None]
    labels = joined(y)[:count] if len(y) == len(held) else None
    return Activations(X, layout, given, kept[:count], labels, entered.device, entered.dtype)


def inputs_in(data: object, batch: int) -> int:
    """About how many inputs there are; as if there were many, where nobody knows."""
    pair = as_pair(data)
    if pair is not None:
        return len(pair.x)
    with suppress(TypeError):  # some loaders have a length in name only
        return len(data) * batch  # type: ignore[arg-type]
    return MANY_INPUTS


def some_places(rows: torch.Tensor, inputs: int, places: int, rng: np.random.Generator) -> torch.Tensor:
    """So many rows of each input, drawn at random where it has more."""
    count = len(rows) // inputs
    if count <= places:
        return rows
    drawn = rng.permuted(np.tile(np.arange(count), (inputs, 1)), axis=1)[:, :places]
    return rows[torch.as_tensor(drawn + count * np.arange(inputs)[:, None]).flatten()]


def batches_of(data: object, network: torch.nn.Module, rng: np.random.Generator) -> Iterator[Examples]:
    """Batches on the device and of the type of a network, of arrays in a random order, or of a loader as it gives."""
    where = device_and_type(network)
    return (placed(one, *where) for one in as_batches("X", data, rng))


def as_batches(name: str, data: object, rng: np.random.Generator | None = None) -> Iterator[Examples]:
    """Batches of arrays X, or (X, y), in a random order where `rng` is given; or those x, or (x, y), of a loader."""
    pair = as_pair(data)
    if pair is not None:
        order = np.arange(len(pair.x)) if rng is None else rng.permutation(len(pair.x))
        yield from map(pair.some, torch.as_tensor(order).split(BATCH))
    elif isinstance(data, Iterable) and not isinstance(data, str):
        yield from map(as_batch, read(data))
    else:
        raise DataError(f"{name} must be an array, a tensor, (X, y), or a loader of batches, got {shown(data)}.")


def read(loader: Iterable[Any]) -> Iterator[Any]:
    """The batches of a loader; where it fails, in a sentence."""
    try:
        yield from loader
    except UnbraidError:
        raise
    except Exception as error:
        raise DataError(
            f"The loader {deed(error)}: give one that can be gone through, of inputs of one shape."
        ) from error


def as_batch(given: Any) -> Examples:
    """A batch x, or (x, y), of a loader."""
    several = isinstance(given, list | tuple) and len(given) > 0
    x, y = given[0] if several else given, given[1] if several and len(given) > 1 else None
    if not isinstance(x, np.ndarray | torch.Tensor):
        raise DataError(
            f"Inputs must be numbers in one array or tensor, got a {type(x).__name__}: give np.array(X) for lists of "
            "numbers, and batches x or (x, y) as arrays or tensors."
        )
    return Examples.of(x, y)


def placed(batch: Examples, device: Any, dtype: Any) -> Examples:
    """A batch whose inputs are on a device, and of a type where they are of floating point."""
    x = batch.x
    return Examples(x.to(device=device, dtype=dtype if x.is_floating_point() else x.dtype), batch.y)


def as_pair(data: object) -> Examples | None:
    """Data that are all there, (X, y) or X; None where they come in batches."""
    X, y = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
    return Examples.of(X, y) if isinstance(X, np.ndarray | torch.Tensor) else None


def as_given(given: object) -> Given:
    """What X is, or an error."""
    if given not in ("inputs", "activations"):
        raise SettingError(f'given must be "inputs" of the network or "activations" of the part, got {shown(given)}.')
    return given


def what_is_given(network: torch.nn.Module, part: Part, x: torch.Tensor) -> Given:
    """Whether x are inputs of the network, or, where it takes no such inputs, of the part."""
    failures = []
    kinds: tuple[tuple[Given, torch.nn.Module], ...] = (("inputs", network), ("activations", part.of(network)))
    for kind, module in kinds:
        try:
            run(module, x[:2])
        except DataError as error:
            failures.append(deed(error.__cause__ or error))
        else:
            return kind
    raise DataError(
        f"Samples of shape {tuple(x.shape[1:])} are neither inputs of the network ({failures[0]}) nor of its part "
        f"({failures[1]}).{advice_on_inputs(network, x)}"
    )


def advice_on_inputs(network: torch.nn.Module, x: torch.Tensor) -> str:
    """What to do about samples that suit neither a network nor its part."""
    if not x.is_floating_point():
        return " Whole numbers are taken for indices: give floats if they are none."
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        one
        for one in signature(network.forward).parameters.values()
        if one.kind in positional and one.default is one.empty
    ]
    if len(required) > 1:
        return f" The network takes {len(required)} inputs, and X is one: give X as what the part is given."
    return ""


def entering(network: torch.nn.Module, part: Part, x: torch.Tensor) -> torch.Tensor:
    """What a part is given while a network runs on x."""
    caught: list[torch.Tensor] = []

    def catch(_: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if len(arguments) != 1 or not isinstance(arguments[0], torch.Tensor):
            raise SettingError(
                f"The part {part.name!r} is called with {len(arguments)} arguments: only parts of one tensor can be "
                "replaced."
            )
        caught.append(arguments[0].clone())  # the part may write to it

    handle = part.first_module(network).register_forward_pre_hook(catch)
    try:
        run(network, x)
    finally:
        handle.remove()
    if len(caught) != 1:
        raise SettingError(
            f"The part {part.name!r} is used {len(caught)} times as the network runs once: only parts that are used "
            "once can be replaced."
        )
    return caught[0]
