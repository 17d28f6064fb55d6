"""What a notebook shows of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unbraid.report.cards import shape_badges
from unbraid.report.diagram import WIDE_SCREEN, lay_out
from unbraid.report.subject import Subject
from unbraid.report.templates import environment, missing_packages, text_file
from unbraid.report.trust import chosen_words, left_out_words
from unbraid.report.verdict import badges, verdict
from unbraid.report.worth import expected_words, held_out_advice

if TYPE_CHECKING:
    from unbraid.results.fit import Fit

QUICK = 2_000_000
"""Numbers in Jacobians up to which branches are weighed against each other: a view must not take a second."""


def notebook_view(fit: Fit) -> str | None:
    """A small view of the fit as HTML; None where a package for it is missing, or the samples are, or not at hand."""
    if missing_packages() or fit.problem is None or fit.problem.home is not None:
        return None
    subject = Subject.of(fit, None, None)
    quick = fit.problem.S * fit.problem.n * fit.problem.m <= QUICK
    drawn = lay_out(WIDE_SCREEN, subject, subject.shares if quick else None)
    return (
        environment()
        .get_template("notebook.html.jinja")
        .render(
            fit=fit,
            verdict=verdict(subject),
            badges=[*badges(subject), *shape_badges(subject)] if quick else [],
            diagram=drawn,
            expected_words=expected_words(subject),
            remarks=[one for one in (held_out_advice(subject), left_out_words(subject), chosen_words(subject)) if one],
            style=text_file("diagram.css") + text_file("notebook.css"),
        )
    )
