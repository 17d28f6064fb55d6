"""The candidates in turn, rank by rank, and which one is kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from unbraid.fitting.session import Session
from unbraid.results.model import DecoupledModel
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import Shared
from unbraid.selection.rule import as_good, clearly_better, exact, finer, lowest
from unbraid.selection.validation import Row, Settings, Validation

MISSES = 2
"""So many ranks in a row that bring nothing end a path."""


class Path:
    """A path in progress: what has been computed until now, whatever happens next.

    Attributes
    ----------
    rows
        The candidates, complete, in order.
    finer
        Candidates that show whether a finer basis does what a further branch does.
    kept
        The best candidate of the highest rank that was worth its unknowns.
    """

    def __init__(
        self, validation: Validation, candidates: Sequence[Settings], ends_early: bool, session: Session
    ) -> None:
        self.validation, self.candidates = validation, candidates
        self.ends_early, self.session = ends_early, session
        self.shared = Shared(validation)
        self.rows: list[Row] = []
        self.finer: list[Row] = []
        self.kept: Row | None = None
        self.judged: list[int] = []
        self.fits, self.trying, self.running = 0, 0, 1

    @property
    def best(self) -> Row:
        """The one kept; where Ctrl-C came before all were judged, with what there is of higher ranks in view."""
        best = self.kept
        for row in sorted(self.rows, key=lambda row: row.error, reverse=True):
            if row.settings.rank not in self.judged and (best is None or not as_good(best, row)):
                best = row
        assert best is not None
        return best

    def walk(self) -> bool:
        """Go through the candidates, as many at a time as there are workers; what follows the end is forgotten."""
        waiting = iter(self.candidates)
        while batch := list(itertools.islice(waiting, self._engage())):
            self.trying = batch[-1].rank
            self._tell()  # the first fit of a rank takes longest
            self.rows += self.cross_validate(batch)
            for rank in self._complete():
                self._judge(rank)
                if self.ended:
                    self.rows = [row for row in self.rows if row.settings.rank <= rank]
                    return True
        return True

    def cross_validate(self, several: Sequence[Settings], init: DecoupledModel | None = None) -> list[Row]:
        """Candidates with their held-out errors. `init` takes the place of random starts."""
        folds, session, tick = self.validation.folds, self.session, self._count
        fits = session.map_all(Validation.fit, [(one, init) for one in several], self.shared, tick)
        pieces = [(one, fit.model, k) for one, fit in zip(several, fits, strict=True) for k in range(folds)]
        parts = session.map_all(Validation.held_out, pieces, self.shared, tick)
        shares = [parts[i * folds : (i + 1) * folds] for i in range(len(several))]
        return [self.validation.row(*one) for one in zip(several, fits, shares, strict=True)]

    def _engage(self) -> int:
        """How many candidates to try at the same time: the workers of a cluster come and go."""
        self.running = self.session.engaged()
        return self.running

    @property
    def ended(self) -> bool:
        """Whether more branches would bring nothing."""
        if not self.ends_early or self.kept is None:
            return False
        missed = sum(rank > self.kept.settings.rank for rank in self.judged)
        return missed >= MISSES or exact(self.kept)

    def _complete(self) -> Iterator[int]:
        """Ranks whose candidates are all there, and that have not been judged."""
        for rank, group in itertools.groupby(self.candidates, key=lambda one: one.rank):
            there = sum(row.settings.rank == rank for row in self.rows)
            if rank not in self.judged and there == len(list(group)):
                yield rank

    def _judge(self, rank: int) -> None:
        """Keep the best candidate of a rank, or not."""
        best = lowest([row for row in self.rows if row.settings.rank == rank])
        if self.kept is None or self._better(best, self.kept):
            self.kept = best
        self.judged.append(rank)

    def _better(self, new: Row, kept: Row) -> bool:
        """Whether more branches are worth their unknowns."""
        if as_good(kept, new):
            return False
        settings = finer(self.validation.problem, kept, new)
        if clearly_better(new, kept) or settings.basis.size > self.validation.least_training:
            return True
        [instead] = self.cross_validate([settings], kept.fit.model)
        self.finer.append(instead)
        return not as_good(instead, new)

    def _count(self) -> None:
        """Count a fit that has been made, and tell of it."""
        self.fits += 1
        self._tell()

    def _tell(self) -> None:
        """Tell of the progress, before a batch and after each fit."""
        self.session.tell(self._progress)

    def _progress(self) -> Progress:
        """How many fits have been made of those that can be foreseen, and the least error so far."""
        planned = len(self.candidates)
        if self.ends_early:
            last = (0 if self.kept is None else self.kept.settings.rank) + MISSES
            planned = sum(one.rank <= last for one in self.candidates)
        total = (self.validation.folds + 1) * (planned + len(self.finer))
        least = min((row.error for row in self.rows), default=np.inf)
        return Progress("select", self.fits, max(self.fits, total), self.running, least, self.trying)
