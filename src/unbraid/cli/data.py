"""The arrays that commands read, and where they may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from unbraid.errors import DataError, FileError
from unbraid.files import check_writable
from unbraid.npz import open_npz
from unbraid.problem import Problem, check_finite, numbers


def read_problem(path: Path, paper_layout: bool) -> Problem:
    """The samples in a file: X with F, J or both."""
    arrays = read_arrays(path, ("X", "F", "J"))
    if len(arrays) == 1:
        raise DataError(
            f"{path} has X but neither F nor J: add values F (S, n), Jacobians J (S, n, m), or both, "
            "with np.savez(path, X=X, F=F, J=J)."
        )
    build = Problem.from_paper_layout if paper_layout else Problem
    return build(arrays["X"], arrays.get("F"), arrays.get("J"))


def read_points(path: Path, m: int, paper_layout: bool) -> npt.NDArray[Any]:
    """The points X (S, m) in a file."""
    X = numbers("X", read_arrays(path, ("X",))["X"])
    if X.ndim == 1 and m == 1:
        X = X[:, None]
    elif paper_layout:
        X = X.T
    if X.ndim != 2 or X.shape[1] != m:
        swapped = X.ndim == 2 and X.shape[0] == m
        change = "remove" if paper_layout else "add"
        hint = f" It looks laid out the other way: {change} --paper-layout." if swapped else ""
        wanted, given = (f"({m}, S)", X.T.shape) if paper_layout else (f"(S, {m})", X.shape)
        raise DataError(f"X must be {wanted} for a model with m = {m} inputs, got shape {given}.{hint}")
    check_finite("X", X)
    return X


def read_arrays(path: Path, wanted: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Those of the wanted arrays that a file holds; the first must be there."""
    with open_npz(path) as file:
        if wanted[0] not in file.names:
            example = ", ".join(f"{name}={name}" for name in wanted)
            raise DataError(
                f"{path} has no array named {wanted[0]}: it holds {file.holds()}, so write it with "
                f"np.savez(path, {example})."
            )
        return {name: file.read(name) for name in wanted if name in file.names}


def check_output(output: Path, *inputs: Path) -> None:
    """Refuse an output that cannot be written, or that would replace an input, before any work is done."""
    target = check_writable(output)
    for one in inputs:
        if target.exists() and one.exists() and target.samefile(one):
            raise FileError(f"{output} is also an input of this command: give -o another name.")
