"""The basis that options of `unbraid fit` ask for."""

from __future__ import annotations

from collections.abc import Callable

import click

from unbraid.bases import Basis, BSpline, NaturalCubic, PiecewiseLinear, Polynomial, SmoothingSpline
from unbraid.methods import Method

Options = dict[str, int]

BASIS_CHOICES: dict[str, tuple[Callable[..., Basis], tuple[str, ...]]] = {
    "spline": (BSpline, ("df", "degree")),
    "smoothing": (SmoothingSpline, ("df", "degree")),
    "natural": (NaturalCubic, ("df",)),
    "linear": (PiecewiseLinear, ("df",)),
    "polynomial": (Polynomial, ("degree",)),
}
"""What --basis takes: the kind, and which of --df and --degree it has."""


def basis_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add the options --basis, --df and --degree."""
    for option in (
        click.option("--degree", type=int, help="Polynomial degree of a branch; the basis' own by default."),
        click.option("--df", type=int, help="Degrees of freedom of a branch; the basis' own by default."),
        click.option(
            "--basis",
            "basis_name",
            type=click.Choice(list(BASIS_CHOICES)),
            help="What branches are made of; chosen from the data by default, or spline with --df or --degree.",
        ),
    ):
        function = option(function)
    return function


def choose_basis(name: str | None, df: int | None, degree: int | None, method: Method) -> Basis | None:
    """The basis that the options ask for, or None for the method's own."""
    given: Options = {option: value for option, value in (("df", df), ("degree", degree)) if value is not None}
    if name is None and not given:
        return None
    name = name or name_of(method.basis)
    make, options = BASIS_CHOICES[name]
    for option in given:
        if option not in options:
            raise click.UsageError(f"The basis {name} has no --{option}: give --{options[0]}, or another --basis.")
    return make(**given)


def name_of(basis: Basis) -> str:
    """What --basis calls a method's own basis where --df or --degree is given, which nobody needs for smoothing."""
    if isinstance(basis, SmoothingSpline):
        return "spline"
    return next(key for key, (kind, _) in BASIS_CHOICES.items() if isinstance(basis, kind))  # type: ignore[arg-type]
