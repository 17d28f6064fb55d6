"""Piecewise polynomials of several branches in PyTorch, evaluated at once, and linear in what is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unbraid.export.tables import tabulate
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.pieces import Pieces
from unbraid.networks.branches import shares
from unbraid.results.branch import Branch


class PiecewiseBranches(torch.nn.Module):  # type: ignore[misc]
    """The branches at u (..., r): (..., r).

    All that it has are tables that are never trained; they belong to the model and are in no `state_dict`.

    Parameters
    ----------
    branches
        The r branches, which are made of polynomials.
    first
        (r,), where the coefficients of each begin among those of all.
    """

    def __init__(self, branches: Sequence[Branch], first: Sequence[int]) -> None:
        super().__init__()
        functions = [pieces for one in branches if (pieces := one.polynomials()) is not None]
        table = tabulate(functions)
        self.turns = table.turns
        which, share = joined_shares(branches, functions, first, table.powers.shape)
        tables = {
            "start": table.start,
            "ends": table.ends,
            "breaks": table.breaks.ravel(),
            "variables": np.stack([table.middle.ravel(), table.rate.ravel()], axis=-1),
            "powers": table.powers.reshape(len(table.powers), -1).T,
            "which": which,
            "share": share,
        }
        for name, values in tables.items():
            self.register_buffer(name, torch.tensor(np.ascontiguousarray(values)), persistent=False)

    def forward(self, u: Any, change: Any) -> Any:
        """The values at u, with coefficients that differ from those of the model by `change`."""
        place = self.start
        for up, down in self.turns:
            place = place + torch.where(u >= self.breaks[place], up, down)
        middle, rate = self.variables[place].unbind(-1)
        t = (u - middle) * rate
        powers = self.powers + (self.share * change[self.which]).sum(-1)
        *lower, value = powers[place].unbind(-1)
        for power in reversed(lower):
            value = value * t + power
        low, high = limits(powers[self.ends].detach())
        return torch.where(t == torch.inf, high, torch.where(t == -torch.inf, low, value))


def limits(powers: Any) -> Any:
    """What polynomials (2, r, q + 1) have at minus and plus infinity: (2, r). They have no gradients."""
    exponents = torch.arange(powers.shape[-1], device=powers.device)
    highest = torch.where(powers != 0.0, exponents, 0).amax(-1, keepdim=True)
    sides = torch.tensor([[-torch.inf], [torch.inf]], dtype=powers.dtype, device=powers.device)
    leading = powers.gather(-1, highest)[..., 0]
    return torch.where(highest[..., 0] == 0, leading, leading * sides ** highest[..., 0])


def joined_shares(
    branches: Sequence[Branch], functions: Sequence[Pieces], first: Sequence[int], shape: tuple[int, ...]
) -> tuple[IndexArray, Array]:
    """The `shares` of all branches in one table, (r 2^k, q + 1, B) each, for powers of a shape (q + 1, r, 2^k)."""
    parts = [shares(one) for one in branches]
    powers, rows, width = shape
    most = max(own.shape[-1] for own, _ in parts)
    which, share = np.zeros((rows, width, powers, most), dtype=np.intp), np.zeros((rows, width, powers, most))
    for j, ((own, weight), function, begin) in enumerate(zip(parts, functions, first, strict=True)):
        degrees, count = function.powers.shape
        which[j, :count, :degrees, : own.shape[-1]] = own.swapaxes(0, 1) + begin
        share[j, :count, :degrees, : own.shape[-1]] = weight.swapaxes(0, 1)
    return which.reshape(rows * width, powers, most), share.reshape(rows * width, powers, most)
