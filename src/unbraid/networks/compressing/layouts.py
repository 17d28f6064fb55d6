"""How samples lie in what a part of a network is given, and gives: as vectors, pixels of maps, or tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from unbraid.errors import SettingError
from unbraid.networks.compressing.refusals import check_output, run

Places = Literal["vectors", "pixels", "tokens"]


@dataclass(frozen=True)
class Layout:
    """The shapes of one input of a part, and of one output, without the batch, and what in them are samples."""

    places: Places
    entering: tuple[int, ...]
    leaving: tuple[int, ...]

    @property
    def m(self) -> int:
        """How many inputs a sample has."""
        return self._size(self.entering)

    @property
    def n(self) -> int:
        """How many outputs a sample has."""
        return self._size(self.leaving)

    def _size(self, shape: tuple[int, ...]) -> int:
        if self.places == "vectors":
            return int(np.prod(shape))
        return shape[0] if self.places == "pixels" else shape[-1]

    def count(self, x: torch.Tensor) -> int:
        """How many samples there are in one of what the part is given."""
        return int(x[0].numel()) // self.m

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Samples (S, ·) of what a part is given, or gives."""
        if self.places == "pixels":
            return x.movedim(1, -1).flatten(0, -2)
        return x.flatten(0, -2) if self.places == "tokens" else x.flatten(1) if x.ndim > 1 else x[:, None]

    def back(self, rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """What the part gives for something of the shape of `like`, from its samples (S, n)."""
        if self.places == "pixels":
            return rows.unflatten(0, (like.shape[0], *like.shape[2:])).movedim(-1, 1)
        if self.places == "tokens":
            return rows.unflatten(0, like.shape[:-1])
        return rows if len(self.leaving) == 1 else rows.unflatten(1, self.leaving)

    def given(self, rows: torch.Tensor) -> torch.Tensor:
        """Samples (S, m) as something that the part can be given: pixels as maps of one."""
        if self.places == "pixels":
            return rows[..., None, None]
        return rows[:, None] if self.places == "tokens" else rows.reshape(-1, *self.entering)

    def through(self, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """What a function of samples makes of what a part is given; of one input without a batch as well."""
        if x.ndim == len(self.entering):
            return self.through(function, x[None])[0]
        return self.back(function(self.rows(x)), x)


class OfSamples(torch.nn.Module):  # type: ignore[misc]
    """A part as a function of samples: (S, m) to (S, n)."""

    def __init__(self, part: torch.nn.Module, layout: Layout) -> None:
        super().__init__()
        self.part, self.layout = part, layout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs of the samples x."""
        return self.layout.rows(self.part(self.layout.given(x)))


class OfMaps(torch.nn.Module):  # type: ignore[misc]
    """A function of samples in place of a part: it takes vectors, maps or tokens as the part did, and gives as much."""

    def __init__(self, function: torch.nn.Module, layout: Layout) -> None:
        super().__init__()
        self.function, self.layout = function, layout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the part gives."""
        return self.layout.through(self.function, x)


def layout_of(function: torch.nn.Module, entered: torch.Tensor) -> Layout:
    """How samples lie in what a part is given and gives, found out by calling it."""
    few = entered[:4]
    left = check_output("The part", run(function, few), len(few), axes=2)
    types = {str(one.dtype).removeprefix("torch.") for one in (few, left)}
    if len(types) > 1 or not few.is_floating_point():
        raise SettingError(
            f"The part is given, or gives, {' and '.join(sorted(types))}: only parts that map floating point numbers "
            "to such of the same type can be replaced."
        )
    shapes = tuple(few.shape[1:]), tuple(left.shape[1:])
    places: Places | None = None
    if few.ndim == left.ndim == 4 and few.shape[2:] == left.shape[2:]:
        places = "pixels"
    elif few.ndim == left.ndim == 3 and few.shape[1] == left.shape[1]:
        places = "tokens"
    if places is not None and works_place_by_place(function, layout := Layout(places, *shapes), few, left):
        return layout
    return Layout("vectors", *shapes)


def works_place_by_place(function: torch.nn.Module, layout: Layout, few: torch.Tensor, left: torch.Tensor) -> bool:
    """Whether a part gives the same when every place of a map is given by itself."""
    try:
        alone = layout.through(OfSamples(function, layout), few.clone())
    except Exception:
        return False
    close = 1e-4 * float(left.abs().max())
    return bool(alone.shape == left.shape and torch.allclose(alone, left, rtol=1e-3, atol=close))
