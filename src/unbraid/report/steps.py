"""What to try next: only what the samples and the fit can tell, and nothing that was done already."""

from __future__ import annotations

from collections.abc import Iterator

from unbraid.bases import SmoothingSpline
from unbraid.report.subject import Subject
from unbraid.report.verdict import GOOD
from unbraid.report.words import in_percent
from unbraid.results.advice import on_error_left, on_shape
from unbraid.results.carrying import left_out
from unbraid.results.contradictions import puts_all_in_doubt
from unbraid.results.outcome import Status


def next_steps(subject: Subject) -> Iterator[str]:
    """What a user should try next, most pressing first."""
    fit = subject.fit
    notes = () if fit is None else fit.notes  # which the page has as well
    doubts = [note for note in notes if puts_all_in_doubt(note)] if subject.own else []
    yield from doubts
    if fit is not None and (not fit.status.converged or fit.status is Status.UP_TO_CONSTANTS):
        yield fit.status.advice
    shaped = fit is not None and any(one is not None for one in fit.constraints)
    on_constraint = on_shape(subject.worst) if shaped else None
    if on_constraint is not None and on_constraint not in notes:
        yield on_constraint
    if subject.worst >= GOOD and not doubts:
        yield on_error(subject) if subject.own else on_error_elsewhere(subject)
    if subject.own:
        yield from (advice for advice in subject.diagnostics.advice if advice not in notes)
    if fit is not None and len(fit.starts) == 1:
        yield "A single start cannot say whether another would have found the same: use several `starts`."
    yield on_new_samples(subject)


def on_error(subject: Subject) -> str:
    """What to do about an error on the samples of the fit."""
    fit = subject.fit
    assert fit is not None
    larger = "a larger `degree`" if hasattr(fit.basis, "degree") and not hasattr(fit.basis, "df") else "a larger `df`"
    smoothing = isinstance(fit.basis, SmoothingSpline)
    if left_out(fit.model, fit.smoothing):
        return f"{left_words(subject)} The data support no further branch, so the fit takes it for noise."
    tries = [] if subject.few_numbers or smoothing else [larger]
    if subject.may_have_more:
        tries.insert(0, f"rank {subject.rank + 1}")
    return on_error_left(left_words(subject), tries, smoothing, subject.may_have_more)


def left_words(subject: Subject) -> str:
    """How large an error is left, in a sentence."""
    what = "" if subject.output_errors is not None else " of the slopes"
    return f"An error{what} of {in_percent(subject.worst)} is left."


def on_error_elsewhere(subject: Subject) -> str:
    """What to make of an error on samples that may not be the fit's."""
    return (
        f"An error of {in_percent(subject.worst)} is left on the samples given. Compare it with the error on the "
        "samples of the fit: where that was much smaller, the model follows those too closely or these lie elsewhere, "
        f"and more samples help{'' if subject.smooth else ', or a smaller `df`'}; where it was about the same, see the "
        "page about the fit."
    )


def on_new_samples(subject: Subject) -> str:
    """What the errors are on, and how to have them on samples that the model has not seen."""
    if subject.held_out is not None and not subject.open_constants:
        return (
            "The errors on new points are expected ones, from samples left out one at a time. Where you have samples "
            "that the model has not seen, `fit.error_on(ub.Problem(X_new, F_new))` tells its errors on them."
        )
    if not subject.own:
        return (
            "The errors on this page are on the samples given. They tell what the model is worth on new points if it "
            "was not fitted to these."
        )
    said = "The errors on this page are on the samples of the fit. Hold the model against samples it has not seen"
    if subject.open_constants:
        return (
            f"{said}, `ub.metrics.jacobian_error(J_new, fit.model.jacobian(X_new))`; before values are compared, set "
            "the constants with `model = fit.model.through(X, F)`."
        )
    return f"{said}: `ub.metrics.output_errors(F_new, fit.model(X_new))`."
