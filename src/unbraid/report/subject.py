"""What a report is about: a model, the samples, and how it came about where that is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.arrays import Array
from unbraid.diagnostics import Diagnostics, diagnose
from unbraid.errors import DataError, SettingError
from unbraid.fit import Fit, errors_on, fitted_problem
from unbraid.model import DecoupledModel
from unbraid.printable import shown
from unbraid.problem import Problem

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, eq=False)
class Subject:
    """A model and the samples it is held against.

    Attributes
    ----------
    model
        The model.
    problem
        The samples.
    fit
        How it came about; None for a model from a file.
    truth
        A known model, or None.
    jacobian_error, output_errors
        On the samples.
    diagnostics
        What `diagnose` found, or None where it could not look.
    inputs, outputs
        Names, fit to be shown; x₁, x₂, … and f₁, f₂, … where the samples have none.
    """

    model: DecoupledModel
    problem: Problem
    fit: Fit | None
    truth: DecoupledModel | None
    jacobian_error: float | None
    output_errors: Array | None
    diagnostics: Diagnostics
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, about: Fit | DecoupledModel, truth: DecoupledModel | None, problem: Problem | None) -> Subject:
        """Gather it; the samples are those the fit remembers unless others are given."""
        if not isinstance(about, Fit):
            raise SettingError(f"A report is about a Fit or a DecoupledModel, got a {type(about).__name__}.")
        samples = fitted_problem(about, problem)
        if truth is not None and not isinstance(truth, DecoupledModel):
            raise SettingError(f"truth must be a DecoupledModel, got a {type(truth).__name__}.")
        if truth is not None and truth.W0.shape != about.model.W0.shape:
            raise DataError(f"truth must have as many branches and inputs as the model: {truth!r} is not {about.model!r}.")
        remembered = samples is about.problem
        errors = (about.jacobian_error, about.output_errors) if remembered else errors_on(samples, about.model)
        return cls(
            about.model,
            samples,
            about,
            truth,
            *errors,
            diagnose(about, samples),
            called(samples.input_names, "x", samples.m),
            called(samples.output_names, "f", samples.n),
        )

    @property
    def rank(self) -> int:
        """How many branches."""
        return self.model.rank


def called(names: tuple[str, ...] | None, letter: str, count: int) -> tuple[str, ...]:
    """The names, fit to be shown, or letters with subscripts."""
    given = names or ("",) * count
    return tuple(shown(name).strip() or subscript(letter, i + 1) for i, name in enumerate(given))


def subscript(letter: str, number: int) -> str:
    """x₁₂ for x and 12."""
    return letter + str(number).translate(SUBSCRIPTS)


def input_weights(model: DecoupledModel, problem: Problem) -> Array:
    """W0 (r, m) with inputs in units of their standard deviations, rows of length one: what drives a branch."""
    weights = model.W0 * np.std(problem.X, axis=0)
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(length > 0.0, length, 1.0))


def output_weights(model: DecoupledModel, problem: Problem) -> Array:
    """W1 (n, r) in standard deviations: of the output, for one of the branch's values over the samples."""
    u = problem.X @ model.W0.T
    spread = np.array([np.std(branch(u[:, j])) for j, branch in enumerate(model.branches)])
    values = model(problem.X) if problem.F is None else problem.F
    scale = np.nanstd(values, axis=0)
    return np.asarray(model.W1 * spread / np.where(scale > 0.0, scale, 1.0)[:, None])
