"""Many problems as one batch: what one at a time gives, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases.constraints import Constraint
from unbraid.studies.decouple_each import decouple_each


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
def test_a_batch_of_problems_is_one_after_another(anchored: bool, constraint: Constraint | None) -> None:
    problems = [ub.datasets.monotone(S=60, rng=k)[0] for k in range(3)]
    method = ub.methods.dejonghe2025(max_sweeps=8, tolerance=0.0, anchored=anchored)
    basis = ub.BSpline(df=7)
    rngs = [np.random.default_rng(k) for k in range(3)]
    fits = decouple_each(problems, 3, basis=basis, method=method, constraint=constraint, rngs=rngs)
    for k, (problem, fit) in enumerate(zip(problems, fits, strict=True)):
        alone = ub.decouple(problem, 3, basis=basis, method=method, constraint=constraint, starts=1, rng=k)
        np.testing.assert_allclose(fit.model(problem.X), alone.model(problem.X), rtol=1e-7, atol=1e-7)
        assert fit.objective == pytest.approx(alone.objective, rel=1e-7)
        assert fit.trace.sweeps == 8


def test_problems_leave_the_batch_when_they_are_done() -> None:
    problems = [ub.datasets.trig(rng=k)[0] for k in range(4)]
    method = ub.methods.dejonghe2025(target=0.02)
    fits = decouple_each(problems, 3, basis=ub.BSpline(), method=method, rngs=np.random.default_rng(0).spawn(4))
    assert len({fit.trace.sweeps for fit in fits}) > 1
    assert all(fit.objective <= 0.02 for fit in fits if fit.status is ub.Status.TARGET_REACHED)


def test_jacobians_alone_will_do() -> None:
    problems = [ub.datasets.trig(rng=k)[0] for k in range(2)]
    slopes = [ub.Problem(one.X, J=one.J) for one in problems]
    rngs = np.random.default_rng(0).spawn(2)
    fits = decouple_each(slopes, 3, basis=ub.BSpline(), method=ub.methods.dejonghe2025(max_sweeps=5), rngs=rngs)
    assert all(fit.output_errors is None for fit in fits)


def test_what_cannot_be_stacked_is_refused() -> None:
    problems = [ub.datasets.trig(S=S, rng=0)[0] for S in (50, 60)]
    rngs = np.random.default_rng(0).spawn(2)
    with pytest.raises(ub.UnbraidError, match="one shape"):
        decouple_each(problems, 3, basis=ub.BSpline(), method=ub.methods.dejonghe2025(), rngs=rngs)
    with pytest.raises(ub.UnbraidError, match="sweeps only"):
        decouple_each(problems[:1], 3, basis=ub.BSpline(), method=ub.methods.default(), rngs=rngs[:1])
