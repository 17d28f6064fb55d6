"""What a report says of every branch and of every output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbraid.bases.constraints import CONSTRAINTS
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.plots.labels import indexed
from unbraid.report.subject import MOST_NAMED, NEGLIGIBLE_WEIGHT, Subject
from unbraid.report.verdict import Badge, grade
from unbraid.report.words import in_percent, plain_number, share_of, signed


class Weight(NamedTuple):
    """A named weight, and its size as a share of the largest."""

    name: str
    text: str
    share: float
    negative: bool


class Card(NamedTuple):
    """What the page says of a branch, ready to be shown."""

    which: int
    symbol: str
    formula: str
    domain: str
    certificate: str
    angle: str
    importance: str
    freedom: str
    inputs: list[Weight]
    outputs: list[Weight]
    others: tuple[int, int]


class OutputRow(NamedTuple):
    """What the page says of an output and its error, ready to be shown."""

    name: str
    error: str
    expected: str
    inside: str
    outside: str
    share: float
    words: str
    absolute: str
    worst: str


def branch_cards(subject: Subject) -> list[Card]:
    """One card a branch that carries something, in the model's order."""
    into, out = subject.weights
    cards = []
    for j in map(int, subject.carrying):
        low, high = subject.model.branches[j].domain
        inputs, outputs = strongest(into[j], subject.inputs), strongest(out[j], subject.outputs)
        cards.append(
            Card(
                j,
                indexed("g", j + 1),
                direction_formula(subject, j, into[j]),
                f"from {plain_number(low)} to {plain_number(high)}",
                certified_words(subject, j),
                "" if subject.angles is None else f"{subject.angles[j]:.2g}° from the true direction.",
                matters(subject, j),
                freedom_words(subject, j),
                inputs,
                outputs,
                (left_over(into[j], inputs), left_over(out[j], outputs)),
            )
        )
    return cards


def strongest(weights: Array, names: tuple[str, ...]) -> list[Weight]:
    """The largest weights of a branch with their names, largest first."""
    largest = float(np.abs(weights).max()) or 1.0
    order = np.argsort(-np.abs(weights), kind="stable")[:MOST_NAMED]
    return [
        Weight(names[k], signed(weights[k]), abs(float(weights[k])) / largest, bool(weights[k] < 0.0))
        for k in order
        if abs(weights[k]) >= NEGLIGIBLE_WEIGHT * largest
    ]


def left_over(weights: Array, named: list[Weight]) -> int:
    """How many weights of a branch that are not negligible were not named."""
    largest = float(np.abs(weights).max()) or 1.0
    return int(np.count_nonzero(np.abs(weights) >= NEGLIGIBLE_WEIGHT * largest)) - len(named)


def direction_formula(subject: Subject, j: int, scaled: Array) -> str:
    """The direction of branch j in the user's units, 'u₁ = 0.71 x₁ − 0.70 x₂'; of many terms the strongest.

    Those that are negligible, by the weights (m,) in standard deviations of the inputs, are left out.
    """
    row = subject.model.W0[j]
    counting = int(np.count_nonzero(np.abs(scaled) >= NEGLIGIBLE_WEIGHT * np.abs(scaled).max()))
    order = np.sort(np.argsort(-np.abs(scaled), kind="stable")[: min(MOST_NAMED, counting)])
    terms = [f"{'−' if row[k] < 0 else '+'} {abs(row[k]):.3g} {subject.inputs[k]}" for k in order]
    text = " ".join(terms).removeprefix("+ ").replace("− ", "−", 1 if row[order[0]] < 0 else 0)
    more = counting - len(order)
    return f"{indexed('u', j + 1)} = {text}" + (f" + {more} more" if more else "")


def certified_words(subject: Subject, j: int) -> str:
    """Which shapes the coefficients of branch j certify, asked for or not, in a sentence."""
    branch = subject.model.branches[j]
    asked = None if subject.fit is None else subject.fit.constraints[j]
    held = [one.means for one in CONSTRAINTS if branch.certified(one())]
    if asked is not None:
        if asked.means in held:
            others = [word for word in held if word != asked.means]
            more = f"; it also is {' and '.join(others)}" if others else ""
            return f"Certified {asked.means} on its whole range, from its coefficients{more}."
        return f"Asked to be {asked.means}, and not certified."
    if held:
        unasked = "; that was not asked for" if subject.fit is not None else ""
        return f"Its coefficients show it to be {' and '.join(held)}{unasked}."
    return ""


def matters(subject: Subject, j: int) -> str:
    """The shares of branch j in values and slopes, in words."""
    both = (subject.both_shares.values, VARIANCE), (subject.both_shares.slopes, SIZE)
    parts = [share_of(float(shares[j]), what, subject.follows) for shares, what in both if shares is not None]
    return " and ".join(parts)


def freedom_words(subject: Subject, j: int) -> str:
    """How many degrees of freedom branch j uses, in a sentence; nothing where its smoothing was not open."""
    chosen = None if subject.fit is None else subject.fit.smoothing
    return (
        "" if chosen is None else f"Uses {chosen.freedom[j]:.1f} degrees of freedom, for its curve and its directions."
    )


VARIANCE, SIZE = "the outputs’ variance", "the Jacobians’ size"
"""What shares of values and of slopes are shares of."""


def shape_badges(subject: Subject) -> Iterator[Badge]:
    """A badge where different shapes were asked for and all are certified; of one shape for all, the verdict tells."""
    asked = () if subject.fit is None else subject.fit.constraints
    pairs = [(subject.model.branches[j], asked[j]) for j in subject.carrying] if asked else []
    pairs = [(branch, one) for branch, one in pairs if one is not None]
    if pairs and len(set(asked)) > 1 and all(branch.certified(one) for branch, one in pairs):
        yield Badge("good", "Every shape asked for is certified")


def output_rows(subject: Subject) -> list[OutputRow]:
    """The rows of the table of outputs and errors; of many the worst come first."""
    F, errors = subject.problem.F, subject.output_errors
    if F is None or errors is None:
        return []
    residual = np.abs(F - subject.model(subject.problem.X))
    weights = np.ones(len(F)) if subject.problem.weights is None else subject.problem.weights
    largest = float(np.max(errors, where=np.isfinite(errors), initial=0.0)) or 1.0
    held = subject.held_out
    new, inside, outside = (
        (None,) * 3 if held is None else (held.output_errors, held.inside_errors, held.outside_errors)
    )
    rows = [
        OutputRow(
            subject.outputs[i],
            in_percent(float(errors[i])),
            error_text(new, i),
            error_text(inside, i),
            error_text(outside, i),
            float(errors[i]) / largest if np.isfinite(errors[i]) else 0.0,
            grade(float(errors[i])),
            *residual_sizes(residual[:, i], weights, subject.numbers),
        )
        for i in range(len(errors))
    ]
    if len(rows) <= MANY:
        return rows
    order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")
    return [rows[i] for i in order]


def error_text(errors: Array | None, i: int) -> str:
    """The i-th of errors in %, or a dash where they are not known."""
    return "–" if errors is None else in_percent(float(errors[i]))


def residual_sizes(residual: Array, weights: Array, numbers: IndexArray) -> tuple[str, str]:
    """The root mean square of an output's residuals (S,), and the largest, over the samples that count.

    `numbers` are what the user knows the samples by.
    """
    counts = ~np.isnan(residual) & (weights > 0.0)
    if not counts.any():
        return "–", "–"
    at = int(np.argmax(np.where(counts, residual, -1.0)))
    mean = float(np.sqrt(np.average(residual[counts] ** 2, weights=weights[counts])))
    return plain_number(mean), f"{plain_number(float(residual[at]))} at sample {numbers[at]}"


MANY = 10
"""How many outputs are listed in their own order; of more, the worst come first and the rest is folded away."""
