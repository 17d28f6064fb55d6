"""What a selection found: its table, its recommendation, and the fit that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.fitting.fit_rank import check_fit
from unbraid.fitting.opening import RunSettings
from unbraid.fitting.request import Request, seed_of
from unbraid.fitting.robust import fit_with_loss
from unbraid.fitting.session import Session
from unbraid.methods import Method
from unbraid.results.advice import with_chosen_rank
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback
from unbraid.selection.validation import Row, Settings
from unbraid.selection.words import table


@dataclass(frozen=True, repr=False, eq=False)
class Selection:
    """What `select` found.

    Attributes
    ----------
    rows
        Every candidate, by rank: settings, held-out error, its standard error, unknowns, seconds, a quick fit.
    recommended
        The settings to use: rank, basis and coupling.
    reason
        Why, in words.
    finer
        Candidates that were tried only to see whether a finer basis does what a further branch does.
    interrupted
        Whether Ctrl-C ended it early.
    problem, constraint, method
        What it was made with.
    """

    rows: tuple[Row, ...]
    recommended: Settings
    reason: str
    finer: tuple[Row, ...]
    interrupted: bool
    problem: Problem
    constraint: Constraint | Sequence[Constraint | None] | None
    method: Method

    @property
    def chosen(self) -> Row:
        """The row of the recommended settings."""
        return next(row for row in self.rows if row.settings == self.recommended)

    def fit(
        self,
        *,
        starts: int = 16,
        rng: int | np.random.Generator | None = None,
        jobs: int | None = None,
        client: Any = None,
        callback: Callback | None = None,
        checkpoint: StrPath | None = None,
        max_memory: int | float | str | None = None,
    ) -> Fit:
        """Decouple all samples with the recommended settings; the reason is the first of its notes."""
        request = self.request(Request(rank="auto", starts=starts, seed=seed_of(rng), max_memory=max_memory))
        check_fit(self.problem, request)
        running = RunSettings(rng, jobs, client, callback, checkpoint)
        with running.open(self.problem, request, request.settings()) as session:
            return session.noted(self.fit_in(session, request))

    def request(self, asked: Request) -> Request:
        """What was asked for, with the recommended settings."""
        return self.recommended.request(replace(asked, constraint=self.constraint), self.method)

    def fit_in(self, session: Session, request: Request) -> Fit:
        """The fit that `request` asks for, in a session; the reason is the first of its notes."""
        fit = fit_with_loss(self.problem, request, session)
        return replace(fit, notes=with_contradiction_first((self.reason, *map(with_chosen_rank, fit.notes))))

    def __repr__(self) -> str:
        tried = counted(len(self.rows), "candidate")
        title = f"Selection of rank {self.recommended.rank}, {self.recommended.basis!r}, of {tried}"
        return f"{title}\n{table(self.rows, self.recommended)}\n{self.reason}"
