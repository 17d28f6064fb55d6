"""What a page about a dynamic model is about: its fit, further records, and its nonlinearity at what it has seen."""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.data.problem import Problem
from unbraid.dynamics.fit import DynamicFit, RecordError, Run, runs_on
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.slopes import visited
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import Record, several
from unbraid.plots.labels import indexed
from unbraid.report.subject import Subject
from unbraid.results.carrying import carrying
from unbraid.runtime.text import clean_name


@dataclass(frozen=True, eq=False)
class DynamicSubject:
    """What a page about a dynamic model is about.

    Attributes
    ----------
    fit
        The fit.
    inputs, outputs
        Names of u and y, fit to be shown.
    nonlinear
        The model's W1 g(W0 φ) + bias at all φ of its simulations, as the page of a static model has it; None where the
        model has no branch that carries something.
    tests
        Further records, simulated from their first outputs.
    test_errors
        The errors on each of them.
    """

    fit: DynamicFit
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nonlinear: Subject | None
    tests: tuple[Run, ...]
    test_errors: tuple[RecordError, ...]

    @classmethod
    def of(cls, fit: DynamicFit, test: Record | list[Record] | tuple[Record, ...]) -> DynamicSubject:
        """Gather what a page is about."""
        model = fit.model
        inputs, outputs = shown(model.input_names, "u", model.nu), shown(model.output_names, "y", model.ny)
        tests = tuple(runs_on(model, test)) if isinstance(test, Record) or test else ()
        errors = tuple(fit.error_on(one) for one in several(test or ()))
        return cls(fit, inputs, outputs, nonlinear_part(fit, inputs, outputs), tests, errors)

    @property
    def several(self) -> bool:
        """Whether there is more than one output."""
        return self.fit.model.ny > 1


def nonlinear_part(fit: DynamicFit, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Subject | None:
    """The nonlinearity at all φ of the fit's simulations, with names of all entries of φ and of what comes out."""
    model, phi = fit.model.nonlinearity, visited(fit.simulations)
    if phi is None or len(phi) < 2 or not model.rank or not len(carrying(model)):
        return None
    into, out = phi_names(fit.model, inputs, outputs), f_names(fit.model, outputs)
    return Subject.of(model, None, Problem(phi, model(phi), input_names=into, output_names=out))


def shown(names: tuple[str, ...] | None, letter: str, count: int) -> tuple[str, ...]:
    """Names, fit to be shown; or the letter, with indices where there are several."""
    given = names or ("",) * count
    return tuple(
        clean_name(one).strip() or (letter if count == 1 else indexed(letter, k + 1)) for k, one in enumerate(given)
    )


def phi_names(model: DynamicModel, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> list[str]:
    """What the entries of φ are called: x₁, x₂, u; or y(t−1), y(t−2), u(t)."""
    if isinstance(model, StateSpaceModel):
        return [*(indexed("x", k + 1) for k in range(model.order)), *inputs]
    fed = [f"{name}(t−{lag})" for lag in model.feedback.lags for name in outputs]
    return fed + [f"{name}(t{f'−{lag}' if lag else ''})" for lag in model.input_lags for name in inputs]


def f_names(model: DynamicModel, outputs: tuple[str, ...]) -> list[str]:
    """What comes out of f is called: x₁⁺, x₂⁺, y; or y(t)."""
    if isinstance(model, StateSpaceModel):
        return [*(indexed("x", k + 1) + "⁺" for k in range(model.order)), *outputs]
    return [f"{name}(t)" for name in outputs]
