"""`select`: the question, checked, and the answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.decouple import as_method, check_settings, decouple, unknowns
from unbraid.errors import DataError, SettingError, check_whole
from unbraid.fitting.checkpoint import journal_at
from unbraid.methods import Method
from unbraid.results.fit import Fit
from unbraid.runtime.files import StrPath
from unbraid.runtime.journal import Journal
from unbraid.runtime.progress import Callback
from unbraid.runtime.workers import workers_for
from unbraid.selection.path import Path
from unbraid.selection.rule import simplest
from unbraid.selection.validation import Row, Settings, Validation
from unbraid.selection.words import reason, table
from unbraid.solvers.coupling import Coupling, as_coupling


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
        client: Any = None,
        callback: Callback | None = None,
        checkpoint: StrPath | Journal | None = None,
        max_memory: int | float | str | None = None,
    ) -> Fit:
        """Decouple all samples with the recommended settings; the reason is the first of its notes."""
        fit = decouple(
            self.problem,
            self.recommended.rank,
            basis=self.recommended.basis,
            constraint=self.constraint,
            method=replace(self.method, coupling=self.recommended.coupling),
            starts=starts,
            rng=rng,
            client=client,
            callback=callback,
            checkpoint=checkpoint,
            max_memory=max_memory,
        )
        return replace(fit, notes=(self.reason, *fit.notes))

    def __repr__(self) -> str:
        tried = counted(len(self.rows), "candidate")
        title = f"Selection of rank {self.recommended.rank}, {self.recommended.basis!r}, of {tried}"
        return f"{title}\n{table(self.rows, self.recommended)}\n{self.reason}"


def select(
    problem: Problem,
    ranks: Iterable[int] | None = None,
    dfs: Iterable[int] | None = None,
    degrees: Iterable[int] | None = None,
    couplings: Iterable[float | Coupling] | None = None,
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    method: Method | None = None,
    folds: int = 5,
    starts: int = 8,
    rng: int | np.random.Generator | None = None,
    jobs: int = 1,
    client: Any = None,
    callback: Callback | None = None,
    checkpoint: StrPath | Journal | None = None,
) -> Selection:
    """Choose the rank, and df, degree and λ if asked to, by how well held-out samples are predicted.

    Parameters
    ----------
    problem
        The samples. Of more than 100,000 so many are looked at, spread evenly, and the reason says so.
    ranks
        Ranks to try. None: 1, 2, … until two in a row bring nothing, held-out samples are predicted exactly, or there
        are half as many unknowns as numbers to fit.
    dfs, degrees, couplings
        Values to try of the basis's df and degree, and of λ. None: those of the basis and the method.
    basis, constraint, method
        As in `decouple`.
    folds
        In how many parts samples are held out, each once.
    starts
        Random starts of each candidate.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result, whatever `jobs` and `client` are.
    jobs
        In how many processes. With more than one, a script must start its work under
        ``if __name__ == "__main__":``, as always where Python starts processes.
    client
        A `distributed.Client`, or the address of its scheduler: the fits are made by the workers of that cluster.
    callback
        Called with a `Progress`, whose phase is "select", after every fit. `done` and `total` count fits, as far as
        they can be foreseen; `best` is the least held-out error so far.
    checkpoint
        The path of a file to which finished fits are written, as in `decouple`: killed and called again with the same
        arguments, the selection goes on after the last of them.

    Returns
    -------
    Selection
        A table of candidates, a recommendation and its reason. Ctrl-C ends the search and returns what was found until
        then, if at least one candidate is complete.

    Notes
    -----
    The held-out error of a sample is relative and squared: that of its Jacobian or of its values, each output in units
    of its own size, or the mean of both. Samples beyond the range that a branch has seen in training do not count.

    One candidate is as good as another if its error is at most one standard error above, of the differences fold by
    fold, errors below 1e-8 counting as 1e-8. Ranks are gone through upwards. The best candidate of a rank takes the
    place of the one kept so far if that is not as good, and would not be as good in a finer basis either, with as many
    unknowns. Recommended is what has the fewest unknowns of all that are as good as the one kept at the end.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.random_system(n=2, m=3, r=2, S=100, rng=0)
    >>> selection = ub.select(problem, rng=0)
    >>> selection.recommended.rank
    2
    >>> selection.reason
    'Rank 2 predicts held-out samples to 0.01 % or better, so no further branch is needed.'
    """
    method = as_method(method, None)
    bases = chosen_bases(method.basis if basis is None else basis, dfs, degrees)
    schedules = [method.coupling] if couplings is None else [as_coupling(one) for one in listed("couplings", couplings)]
    given = None if ranks is None else listed("ranks", ranks)
    for rank, one in itertools.product(given or [1], bases):
        check_settings(problem, rank, one, shared(constraint) if given is None else constraint, starts, None, method)
    check_whole("jobs", jobs, 1)
    whole, thin = problem, problem.thinned()
    problem = thin.counting()
    check_folds(problem, folds, bases)
    tried = range(1, most_branches(problem, folds, bases) + 1) if given is None else sorted(set(given))
    candidates = [Settings(*one) for one in itertools.product(tried, bases, dict.fromkeys(schedules))]
    interrupted = False
    settings = {"ranks": given, "bases": bases, "couplings": schedules, "constraint": constraint, "method": method}
    numbers = {"folds": folds, "starts": starts, "jobs": jobs, "cluster": client is not None}
    with journal_at(checkpoint, whole, rng, **settings, **numbers) as journal:
        generator = journal.generator(rng)
        fold = generator.permutation(problem.S) % folds
        validation = Validation(problem, constraint, method, starts, fold, int(generator.integers(2**62)))
        path = Path(validation, candidates, given is None, callback)
        try:
            with workers_for(jobs, client, journal) as workers:
                path.walk(workers)
        except KeyboardInterrupt:
            if not path.rows:
                raise
            interrupted = True
    chosen = simplest(path.rows, path.best)
    why = reason(path.rows, chosen, path.finer, given is None and not interrupted)
    if thin.S < whole.S:
        why = f"{why} This was found on {thin.S:,} of {whole.S:,} samples."
    if interrupted:
        why = f"Interrupted, so this is of {counted(len(path.rows), 'candidate')} only. {why}"
    return Selection(tuple(path.rows), chosen.settings, why, tuple(path.finer), interrupted, whole, constraint, method)


def listed(name: str, given: Iterable[Any]) -> list[Any]:
    """The values to try, at least one."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SettingError(f"{name} must be several values to try, such as a list, got {given!r}.")
    values = list(given)
    if not values:
        raise SettingError(f"{name} must have at least one value to try, got none: leave it out for the default.")
    return values


def chosen_bases(basis: Basis, dfs: Iterable[int] | None, degrees: Iterable[int] | None) -> list[Basis]:
    """The basis with every df and every degree that is to be tried."""
    if not isinstance(basis, Basis):
        return [basis]  # refused later, with advice
    changes: list[dict[str, Any]] = [{}]
    for name, values in (("df", dfs), ("degree", degrees)):
        if values is None:
            continue
        if name not in {one.name for one in fields(basis)}:  # type: ignore[arg-type]
            plural = "dfs" if name == "df" else "degrees"
            raise SettingError(f"{basis!r} has no {name} to choose: leave out {plural}, or give another basis.")
        several = listed("dfs" if name == "df" else "degrees", values)
        changes = [{**change, name: value} for change in changes for value in several]
    return list(dict.fromkeys(replace(basis, **change) for change in changes))  # type: ignore[type-var]


def shared(constraint: Any) -> Any:
    """A constraint for all branches; a list of them is refused where the rank is open."""
    if constraint is not None and not isinstance(constraint, Constraint | type) and isinstance(constraint, Sequence):
        raise SettingError(
            f"The rank is to be found, so constraint must be one for all branches, got {len(constraint)}: "
            f"give the rank, {len(constraint)}, with these."
        )
    return constraint


def check_folds(problem: Problem, folds: int, bases: Sequence[Basis]) -> None:
    """Refuse folds that leave too few samples to fit."""
    check_whole("folds", folds, 2)
    if folds > problem.S:
        raise SettingError(f"folds must be at most the number of samples, {problem.S}, got {folds}.")
    left = problem.S - -(-problem.S // folds)
    for basis in bases:
        if basis.size > left:
            raise DataError(
                f"{problem.S} samples in {folds} folds leave {left} to fit, too few for {basis!r}, which has "
                f"{basis.size} coefficients per branch: use a smaller one, more folds, or more samples."
            )


def most_branches(problem: Problem, folds: int, bases: Sequence[Basis]) -> int:
    """The largest rank that the samples can determine with each of the bases: half as many unknowns as numbers."""
    numbers = sum(array.size for array in (problem.F, problem.J) if array is not None) * (folds - 1) / folds
    return max(1, int(numbers / 2 / max(unknowns(problem, 1, basis) for basis in bases)))
