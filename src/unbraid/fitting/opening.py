"""The session of what a user has asked for: who works on it, how much work it is, and where it is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid.data.problem import Problem
from unbraid.fitting.checkpoints.checkpoint import journal_at
from unbraid.fitting.memory_plan import Sizes
from unbraid.fitting.request import Request
from unbraid.fitting.session import Session
from unbraid.runtime.files import StrPath
from unbraid.runtime.helpers import helpers_for, told_of
from unbraid.runtime.progress import Callback

STEPS_OF_A_FIT, FITS_OF_A_PATH, BRANCHES_OF_A_PATH = 100, 10, 4
"""Steps of single starts in a usual fit; where the rank is to be found, how many fits, and of how many branches."""
SENT = 1 << 23
"""Numbers in the samples up to which other processes are sent them: 64 MB."""


@dataclass(frozen=True)
class RunSettings:
    """How a user wants a fit to be run: where its random numbers come from, and what has no influence on the result."""

    rng: int | np.random.Generator | None = None
    jobs: int | None = None
    client: Any = None
    callback: Callback | None = None
    checkpoint: StrPath | None = None

    @contextmanager
    def open(self, problem: Problem, request: Request, settings: Mapping[str, object]) -> Iterator[Session]:
        """A session for a request, whose clock starts now; a checkpoint knows by `settings` which fit it belongs to."""
        work = expected_work(problem, request) if self.checkpoint is None else 0.0
        workers = helpers_for(self.jobs, self.client, work)
        journal = journal_at(self.checkpoint, problem, self.rng, {**settings, **told_of(workers, self.client)})
        with Session.open(journal, self.rng, self.callback, workers) as session:
            yield session


def expected_work(problem: Problem, request: Request) -> float:
    """Multiplications of a fit, roughly; 0 where its samples are too many to be sent to other processes."""
    fits, rank = (FITS_OF_A_PATH, BRANCHES_OF_A_PATH) if request.rank == "auto" else (1, request.rank_used)
    sizes = Sizes.of(problem, request, rank)
    (n, m), K = sizes.sides, sizes.size
    step = 2.0 * sizes.searched * (rank * (m + K)) ** 2 + (rank * (n + m + K)) ** 3 / 3
    samples = sizes.S if request.rank == "auto" else sizes.searched
    sent = sizes.kind == "memory" and samples * sizes.per_sample <= SENT
    return fits * STEPS_OF_A_FIT * step if sent else 0.0
