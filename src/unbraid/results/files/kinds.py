"""The kinds of branches that files hold, each with its description, its arrays, and the checks on a stranger's.

A branch in a fitted basis is described by ``{"basis": "BSpline", "settings": {...}}`` and has ``coordinates`` (K,) with
what fixes its placement: ``breakpoints`` or ``range``. Where it goes on as a polynomial, ``continued`` (2,) has the
ends of that; without it, it goes on linearly.

A closed formula is ``{"formula": "sine", "domain": [-1.0, 2.0]}``, an end being null where there is none, and has
``parameters``: a, b, c, d of a h(b u + c) + d, or the coefficients of 1, u, u², … of a polynomial.

A piecewise polynomial of P pieces is ``{"pieces": P, "domain": [...]}`` and has ``polynomials.breaks`` (P - 1,),
``polynomials.middle`` and ``polynomials.rate`` (P,), ``polynomials.powers`` (q + 1, P) of `kernels.pieces`.
"""

from __future__ import annotations

import dataclasses
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from unbraid.bases import BASES, Basis
from unbraid.data.checks import read_only
from unbraid.errors import ModelFileError, UnbraidError, shown
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import PiecewiseBranch
from unbraid.results.files.container import FARTHEST_KNOTS, NARROWEST_KNOTS, Container

HIGHEST_DEGREE = 100
"""The degree of a basis, or of polynomials, that is read, at most."""
CONTINUED = "continued"
"""The name of the array with the ends between which a branch is not linear."""
POLYNOMIALS = "polynomials"
"""How the names of arrays of piecewise polynomials begin."""
FINEST = 2.0**-30
"""Reaches that are read are rounded to multiples of this share of a domain, which fits give: they come back exactly."""


def described_branch(j: int, branch: Branch) -> tuple[dict[str, Any], dict[str, Array]]:
    """The description and the arrays of branch j; refused if a file could not hold it."""
    if isinstance(branch, FormulaBranch):
        return describe_formula(j, branch)
    if isinstance(branch, PiecewiseBranch):
        return describe_pieces(j, branch)
    if isinstance(branch, FittedBranch):
        return describe_fitted(j, branch)
    raise ModelFileError(
        f"This model cannot be saved: branch {j + 1} is {branch!r}, and a file holds coefficients, not Python "
        "functions; save a model that `decouple` has fitted to it."
    )


def read_branch(file: Container, j: int, described: Any) -> Branch:
    """Branch j of a file, from its description."""
    if isinstance(described, dict) and "formula" in described:
        return read_formula(file, j, described)
    if isinstance(described, dict) and "pieces" in described:
        return read_pieces(file, j, described)
    return read_fitted(file, j, described)


# Branches in a fitted basis


def describe_fitted(j: int, branch: FittedBranch) -> tuple[dict[str, Any], dict[str, Array]]:
    """The basis of a branch and its arrays; refused where a reader could not find that basis."""
    if BASES.get(type(branch.basis).__name__) is not type(branch.basis):
        raise ModelFileError(
            f"This model cannot be saved: the basis of branch {j + 1}, {branch.basis!r}, is not in unbraid.bases.BASES"
            "; add it there, so that it can be found when the file is read."
        )
    settings = dataclasses.asdict(branch.basis)  # type: ignore[call-overload]
    return {"basis": type(branch.basis).__name__, "settings": settings}, fitted_arrays(branch)


def fitted_arrays(branch: FittedBranch) -> dict[str, Array]:
    """The arrays of a branch, by the names that they have in files."""
    arrays = {"coordinates": branch.coordinates, **branch.placement.arrays()}
    if np.any(branch.reach):
        low, high = branch.domain
        arrays[CONTINUED] = np.array([low, high]) + branch.reach * (high - low) * np.array([-1.0, 1.0])
    return arrays


def read_fitted(file: Container, j: int, described: Any) -> FittedBranch:
    """Branch j in a fitted basis; every array is checked against the basis."""
    basis = read_basis(file, j, described)
    check_basis(file, j, basis)
    coordinates = file.floats(f"branch_{j}.coordinates", (basis.size,))
    placed = basis.place(np.array([0.0, 1.0])).arrays()
    arrays = {name: file.points(f"branch_{j}.{name}", like.shape) for name, like in placed.items()}
    placement, where = basis.placement_from(arrays), f"branch_{j}.{CONTINUED}"
    if where not in file.names:
        return FittedBranch(basis, placement, coordinates)
    (low, high), (below, above) = placement.domain(), file.points(where, (2,))
    reach = np.array([low - below, above - high]) / (high - low)
    return FittedBranch(basis, placement, coordinates, read_only(np.clip(np.round(reach / FINEST), 0.0, None) * FINEST))


def check_basis(file: Container, j: int, basis: Basis) -> None:
    """Refuse a basis that would take long to work with, or is not the one of the coefficients, before it is placed."""
    degree = getattr(basis, "degree", 0)
    if degree > HIGHEST_DEGREE:
        raise file.damage(f"branch {j + 1} has degree {shown(degree)}, and at most {HIGHEST_DEGREE} is accepted")
    name = f"branch_{j}.coordinates"
    found = file.shape(name) if name in file.names else (basis.size,)
    if found != (basis.size,):
        raise file.damage(f"{name} has shape {shown(found)}, not ({shown(basis.size)})")


def read_basis(file: Container, j: int, described: Any) -> Basis:
    """The basis of branch j, from its description in the metadata."""
    name, settings = (
        (described.get("basis"), described.get("settings")) if isinstance(described, dict) else (None, None)
    )
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise file.damage(f"the description of branch {j + 1} has no basis")
    if name not in BASES:
        raise file.damage(f"branch {j + 1} has the basis {name!r:.80}, and this version knows {', '.join(BASES)}")
    kind = BASES[name]
    if settings.keys() != {field.name for field in dataclasses.fields(kind)}:  # type: ignore[arg-type]
        raise file.damage(f"the settings of branch {j + 1} are not those of {name}")
    try:
        return kind(**settings)
    except UnbraidError as error:
        raise file.damage(f"the basis of branch {j + 1} is refused, {str(error).rstrip('.')}") from error


# Closed formulas


def describe_formula(j: int, branch: FormulaBranch) -> tuple[dict[str, Any], dict[str, Array]]:
    """The form of a branch and its parameters."""
    formula = branch.formula
    if FORMS.get(formula.form.name) != formula.form or len(formula.parameters) != formula.form.count:
        raise ModelFileError(f"This model cannot be saved: branch {j + 1}, {branch!r}, has none of the known forms.")
    described = {"formula": formula.form.name, "domain": describe_domain(j, branch.domain)}
    return described, {"parameters": np.array(formula.parameters)}


def read_formula(file: Container, j: int, described: dict[str, Any]) -> FormulaBranch:
    """Branch j as a closed formula."""
    name = described["formula"]
    if not isinstance(name, str) or name not in FORMS:
        raise file.damage(f"branch {j + 1} has the formula {shown(name)}, and this version knows {', '.join(FORMS)}")
    parameters = file.floats(f"branch_{j}.parameters", (FORMS[name].count,))
    return FormulaBranch(Formula.of(name, parameters.tolist()), read_domain(file, j, described))


# Piecewise polynomials


def describe_pieces(j: int, branch: PiecewiseBranch) -> tuple[dict[str, Any], dict[str, Array]]:
    """How many pieces a branch has, and their arrays."""
    wrong = wrong_pieces(branch.pieces)
    if wrong is not None:
        raise ModelFileError(f"This model cannot be saved: of branch {j + 1} {wrong}.")
    described = {"pieces": len(branch.pieces.middle), "domain": describe_domain(j, branch.domain)}
    return described, piece_arrays(branch.pieces)


def piece_arrays(pieces: Pieces) -> dict[str, Array]:
    """The arrays of a piecewise polynomial, by the names that they have in files."""
    arrays = {"breaks": pieces.breaks, "middle": pieces.middle, "rate": pieces.rate, "powers": pieces.powers}
    return {f"{POLYNOMIALS}.{name}": array for name, array in arrays.items()}


def read_pieces(file: Container, j: int, described: dict[str, Any]) -> PiecewiseBranch:
    """Branch j as a piecewise polynomial."""
    count, begin = described["pieces"], f"branch_{j}.{POLYNOMIALS}"
    if type(count) is not int or count < 2:
        raise file.damage(f"branch {j + 1} has {shown(count)} pieces, and at least 2 are needed")
    powers = f"{begin}.powers"
    found = file.shape(powers) if powers in file.names else ()
    if found and not 2 <= found[0] <= HIGHEST_DEGREE + 1:
        raise file.damage(f"{powers} has shape {shown(found)}, and degrees from 1 to {HIGHEST_DEGREE} are accepted")
    shapes = {"breaks": (count - 1,), "middle": (count,), "rate": (count,), "powers": (None, count)}
    pieces = Pieces(**{name: file.floats(f"{begin}.{name}", shape) for name, shape in shapes.items()})
    wrong = wrong_pieces(pieces)
    if wrong is not None:
        raise file.damage(f"of branch {j + 1} {wrong}")
    return PiecewiseBranch(pieces, read_domain(file, j, described))


def wrong_pieces(pieces: Pieces) -> str | None:
    """What is wrong with pieces that cannot be computed with, in a few words."""
    count, degree = len(pieces.middle), len(pieces.powers) - 1
    shapes = (pieces.breaks.shape, pieces.rate.shape, pieces.powers.shape)
    if count < 2 or shapes != ((count - 1,), (count,), (degree + 1, count)):
        return f"the arrays do not make {count} pieces"
    if not 1 <= degree <= HIGHEST_DEGREE:
        return f"the degree is {degree}, and 1 to {HIGHEST_DEGREE} is accepted"
    if not np.all(pieces.breaks[:-1] <= pieces.breaks[1:]):
        return "the breaks are not increasing"
    reach, steepest = max(np.abs(pieces.breaks).max(), np.abs(pieces.middle).max()), np.abs(pieces.rate).max()
    if reach > FARTHEST_KNOTS or steepest > 1.0 / NARROWEST_KNOTS:
        return f"the breaks are as far out as {reach:.3g}, or rates as large as {steepest:.3g}"
    return None


# Domains


def describe_domain(j: int, domain: tuple[float, float]) -> list[float | None]:
    """A domain for JSON: null where it has no end."""
    low, high = map(float, domain)
    if not low < high:
        raise ModelFileError(f"This model cannot be saved: the domain of branch {j + 1} is {shown(domain)}.")
    return [end if isfinite(end) else None for end in (low, high)]


def read_domain(file: Container, j: int, described: dict[str, Any]) -> tuple[float, float]:
    """The domain of branch j."""
    given = described.get("domain")
    ends = given if isinstance(given, list) and len(given) == 2 else [False, False]
    low, high = (
        side * inf if end is None else float(end) if type(end) in (int, float) else nan
        for side, end in zip((-1, 1), ends, strict=True)
    )
    if not low < high:
        raise file.damage(f"the domain of branch {j + 1} is {shown(given)}")
    return low, high
