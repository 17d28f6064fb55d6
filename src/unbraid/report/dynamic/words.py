"""What a dynamic model is worth, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from unbraid.data.checks import counted
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.models.base import SimulationStatus
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.report.dynamic.subject import DynamicSubject
from unbraid.report.repeat import call_code, shape_code
from unbraid.report.verdict import FAIR, MISSED, Badge, how_well, outputs_words, reproduce
from unbraid.report.words import count_word, in_percent, plain_number
from unbraid.results.carrying import carrying

NEAR_NOISE = 1.3
"""Up to so many times the noise, an error is called as low as noise."""


def verdict(subject: DynamicSubject) -> str:
    """What a fit is worth, in one sentence."""
    model, error = subject.fit.model, subject.fit.simulation_error
    count = len(carrying(model.nonlinearity)) if model.rank else 0
    who = f"{count_word(count).capitalize()} curve{'' if count == 1 else 's'} in {kind_words(subject)}"
    s = "s" if count == 1 else ""
    if error.status is SimulationStatus.DIVERGED:
        return f"{who} leave{s} all bounds in simulation."
    worst = float(np.max(error.percent))
    outputs = outputs_words(model.ny, model.ny)
    if worst >= MISSED:
        return f"{who} miss{'es' if s else ''} much of {outputs} in simulation: an error of {in_percent(worst)}."
    return f"{who} {reproduce(worst, s)} {outputs} in simulation{how_well(worst, model.ny == 1)}."


def kind_words(subject: DynamicSubject) -> str:
    """What kind of model it is: 'a state-space model of order 2', 'a NARX model'."""
    model = subject.fit.model
    return f"a state-space model of order {model.order}" if isinstance(model, StateSpaceModel) else "a NARX model"


def linear_words(subject: DynamicSubject) -> str:
    """What the curves are worth, beside the best linear model; and errors on further records."""
    error, linear = subject.fit.simulation_error, subject.fit.linear_error
    said = []
    own, other = float(np.max(error.percent)), float(np.max(linear.percent))
    if np.isfinite([own, other]).all():
        times = other / own if own > 0.0 else np.inf
        much = f", {plain_number(float(f'{times:.2g}'))} times as much" if 1.5 < times < 1e6 else ""
        said.append(f"The best linear model of the same size (BLA) is off by {in_percent(other)}{much}.")
    if subject.test_errors:
        fresh = max(float(np.max(one.percent)) for one in subject.test_errors)
        what = "a record" if len(subject.tests) == 1 else "records"
        off = f"the error is {in_percent(fresh)}" if np.isfinite(fresh) else "a simulation diverges"
        said.append(f"On {what} that the fit did not see, {off}.")
        said += [note for one in subject.test_errors for note in one.notes]
    return " ".join(said)


def badges(subject: DynamicSubject) -> Iterator[Badge]:
    """Facts at a glance."""
    fit, error = subject.fit, subject.fit.simulation_error
    yield Badge("good" if fit.status.converged else "bad", fit.status.name.replace("_", " ").capitalize())
    if error.status is SimulationStatus.FINISHED:
        yield Badge("good", "Simulations stay in the range seen")
    elif error.status is SimulationStatus.LEFT_RANGE:
        yield Badge("", f"{in_percent(100.0 * error.outside_share)} of samples outside the range seen")
    else:
        yield Badge("bad", "A simulation diverged")
    if fit.noise is not None and np.isfinite(error.rmse).all():
        near = bool((error.rmse <= NEAR_NOISE * fit.noise).all())
        yield Badge("good", "As low as the noise") if near else Badge("", "More than noise is left")
    if len(fit.starts) > 1:
        yield Badge("good" if fit.close > 1 else "bad", f"{fit.close} of {len(fit.starts)} starts came as low")
    if float(np.max(error.percent)) >= FAIR:
        yield Badge("bad", "A large error is left")


def model_words(subject: DynamicSubject) -> str:
    """The equations of the model, in plain text."""
    model = subject.fit.model
    if isinstance(model, StateSpaceModel):
        return "x⁺ = A x + B u + W_x g(W₀ [x; u]),   y = C x + D u + W_y g(W₀ [x; u]), with constants"
    return "y(t) = L φ + W₁ g(W₀ φ) + bias, φ = earlier outputs, and inputs"


def course_words(fit: DynamicFit) -> str:
    """How the model was found, in a sentence or two."""
    steps = counted(max(len(fit.objectives) - 1, 0), "step")
    told = f"The best start took {steps} on the simulation error of the whole records."
    if not fit.starts:
        return told
    return f"{told} {fit.close} of {counted(len(fit.starts), 'start')} came within 1 % of the best."


def python_code(subject: DynamicSubject) -> str:
    """Python code that repeats the fit, as far as it is known, and uses its model."""
    fit, asked = subject.fit, subject.fit.asked
    first = fit.records[0]
    lines = ["import unbraid as ub", "", f"# your signals: u (T, {first.nu}), y (T, {first.ny})"]
    if asked is not None:
        several = len(asked.records) > 1
        given = ["A", "B", "C", "D", "f"] if asked.function == "decouple" else []
        given += ["records" if several else "record", *(setting_code(*one) for one in asked.settings.items())]
        codes = []
        for k, one in enumerate(asked.records, 1):
            signals = [f"u{k}", f"y{k}"] if several else ["u", "y"]
            settings = [f"{name}={value!r}" for name, value in one.items() if value not in (None, 0)]
            codes.append(call_code("ub.dynamics.Record", [*signals, *settings]))
        lines.append(
            "\n".join(["records = [", *(f"{code}," for code in codes), "]"]) if several else f"record = {codes[0]}"
        )
        if asked.settings["rng"] is None:
            lines.append("# the seed of this fit is not known: another one repeats it roughly")
        lines += [call_code(f"fit = ub.dynamics.{asked.function}", [one for one in given if one])]
        lines += ['fit.model.save("model.npz")', ""]
    return "\n".join(
        [
            *lines,
            'model = ub.dynamics.load("model.npz")',
            "model.simulate(u)                  # from rest",
            "model.simulate(u, y_start=y[:50])  # the first outputs set the initial state",
            "model.predict(u, y)                # one step ahead",
        ]
    )


def setting_code(name: str, value: Any) -> str:
    """A setting as Python code; nothing for None, which all of them are by default but the seed."""
    if value is None:
        return "rng=None" if name == "rng" else ""
    code = shape_code(value) if name == "constraint" else f"ub.{value!r}" if name == "basis" else repr(value)
    return f"{name}={code}".replace("'", '"')
