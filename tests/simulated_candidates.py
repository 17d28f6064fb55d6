"""Models in a solver's units and courses for them, made at random: what tests of the simulation error share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

import unbraid as ub
from unbraid.bases import Basis
from unbraid.dynamics.identifying.forms import Form, NarxForm, StateSpaceForm
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.trajectory import walk
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.kernels.arrays import Array

FORMS: dict[str, Form] = {
    "one state": StateSpaceForm(1, 1, 1),
    "as many states as outputs": StateSpaceForm(1, 2, 2),
    "three states, two by two": StateSpaceForm(2, 2, 3),
    "NARX of one moment": NarxForm(1, 1, (0,), (1,)),
    "NARX of several moments": NarxForm(1, 1, (0, 2), (1, 2, 4)),
    "NARX of late outputs, two by two": NarxForm(2, 2, (1, 3), (2, 3)),
}


def random_courses(form: Form, lengths: Sequence[int], seed: int = 0, gaps: bool = True) -> tuple[Course, ...]:
    """Courses of these lengths, whose outputs are noise; a third of them do not count where there are gaps."""
    rng, feedback = np.random.default_rng(seed), form.feedback
    result = []
    for T in lengths:
        weight = (rng.random((T, form.ny)) > 0.33 * gaps).astype(np.float64)
        past = 0.3 * rng.standard_normal((feedback.longest, feedback.fed))
        v, y = rng.standard_normal((T, form.width - feedback.width)), rng.standard_normal((T, form.ny))
        result.append(Course(v, y, weight, past))
    return tuple(result)


def random_candidate(
    form: Form, courses: Sequence[Course], basis: Basis | None, rank: int = 2, seed: int = 0
) -> Candidate:
    """A stable model with branches in a basis, placed about as wide as what they see; lines alone where it is None."""
    rng, n, m = np.random.default_rng(seed), form.feedback.outputs, form.width
    L = rng.standard_normal((n, m))
    L *= 0.5 / np.linalg.norm(L, 2)
    bias, pasts = 0.1 * rng.standard_normal(n), tuple(course.past for course in courses)
    if basis is None:
        return Candidate(L, np.zeros((0, m)), np.zeros((n, 0)), bias, None, np.zeros((0, 0)), pasts)
    W0, W1 = rng.standard_normal((rank, m)), rng.standard_normal((n, rank))
    W0, W1 = W0 / np.linalg.norm(W0, axis=1, keepdims=True), 0.15 * W1 / np.linalg.norm(W1, 2)
    placement = basis.place(rng.uniform(-5.0, 5.0, (1, rank, 400))).select(0)
    at = placement.at(np.tile(np.linspace(-5.0, 5.0, 200), (rank, 1)))
    design, curves = placement.design_at(at), np.sin(np.linspace(-5.0, 5.0, 200) + rng.uniform(0.0, 6.0, (rank, 1)))
    a = np.stack([np.linalg.lstsq(one, curve, rcond=None)[0] for one, curve in zip(design, curves, strict=True)])
    return Candidate(L, W0, W1, bias, placement, a, pasts)


def variations(model: Candidate, size: float) -> Iterator[tuple[Candidate, Candidate]]:
    """The model with each of its unknowns larger and smaller by a size: L, W1, bias, W0, a, and the pasts."""
    for name in ("L", "W1", "bias", "W0", "a"):
        part = getattr(model, name)
        for step in unit_steps(part, size):
            yield replace(model, **{name: part + step}), replace(model, **{name: part - step})
    for k, past in enumerate(model.pasts):
        for step in unit_steps(past, size):
            yield (
                model.with_pasts((*model.pasts[:k], past + step, *model.pasts[k + 1 :])),
                model.with_pasts((*model.pasts[:k], past - step, *model.pasts[k + 1 :])),
            )


def unit_steps(array: Array, size: float) -> Iterator[Array]:
    """One step of a size along every entry of an array."""
    for k in range(array.size):
        step = np.zeros(array.size)
        step[k] = size
        yield step.reshape(array.shape)


def weighted_errors(model: Candidate, feedback: Feedback, courses: Sequence[Course]) -> Array:
    """weight (ŷ - y) of all courses in a row, simulated moment by moment."""
    errors, limit = [], np.full(feedback.fed, np.inf)
    for course, past in zip(courses, model.pasts, strict=True):
        f = walk(model, feedback, course.v, past, limit).f
        errors.append((course.weight * (f[:, -feedback.observed :] - course.y)).ravel())
    return np.concatenate(errors)


def duffing_records(lengths: Sequence[int] = (400,), noise: float = 0.01, seed: int = 0) -> list[ub.dynamics.Record]:
    """Short records of one system, each with an input of its own."""
    return [ub.dynamics.systems.duffing(T=T, noise=noise, rng=seed + k)[0] for k, T in enumerate(lengths)]
